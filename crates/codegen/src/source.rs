//! Text of a source file while it is being written, line by line.

/// Lines, indented by the block that they are in.
#[derive(Debug, Default)]
pub struct Source {
    text: String,
    depth: usize,
}

impl Source {
    /// Appends a line at the present depth. An empty one stays empty.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// Appends `open {`, what `body` writes one level deeper, and `}`.
    pub fn block(&mut self, open: impl AsRef<str>, body: impl FnOnce(&mut Self)) {
        self.line(format!("{} {{", open.as_ref()));
        self.depth += 1;
        body(self);
        self.depth -= 1;
        self.line("}");
    }

    /// All lines.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }
}
