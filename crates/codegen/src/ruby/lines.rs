//! Text of a Ruby file while it is being written.

/// Lines, indented by two spaces a level.
#[derive(Default)]
pub(super) struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    /// Appends a line at the present depth. An empty one stays empty.
    pub(super) fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            self.text.push_str(&"  ".repeat(self.depth));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Appends a comment, broken so that no line is longer than 100 characters.
    pub(super) fn comment(&mut self, text: &str) {
        let width = 100 - 2 * self.depth - 2;
        let mut line = String::new();
        for word in text.split(' ') {
            if !line.is_empty() && line.len() + 1 + word.len() > width {
                self.line(format!("# {line}"));
                line.clear();
                // What goes on belongs to a tag, if one began the comment.
                if text.starts_with('@') {
                    line.push(' ');
                }
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        self.line(format!("# {line}"));
    }

    /// Appends `open`, what `body` writes one level deeper, and `end`.
    pub(super) fn block(&mut self, open: impl AsRef<str>, body: impl FnOnce(&mut Self)) {
        self.line(open);
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("end");
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}
