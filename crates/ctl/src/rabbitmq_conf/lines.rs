//! The lines of a file: `key = value`, comments behind `#`, values in single quotes if they hold one.

/// A line that says something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Set {
        line: usize,
        key: String,
        value: String,
    },
    /// Not what it says: part of it may be a password.
    Wrong {
        line: usize,
    },
}

impl Line {
    /// What a key is set to by this line.
    pub fn value_of(&self, wanted: &str) -> Option<&str> {
        match self {
            Line::Set { key, value, .. } if key == wanted => Some(value),
            _ => None,
        }
    }
}

/// What a key is set to by the last line that does.
pub(super) fn value<'a>(lines: &'a [Line], key: &str) -> Option<&'a str> {
    lines.iter().rev().find_map(|line| line.value_of(key))
}

/// The keys that begin so, such as those of a list, and what the last lines of each set them to.
pub(super) fn values<'a>(
    lines: &'a [Line],
    beginning: &str,
) -> impl Iterator<Item = (&'a str, &'a str)> {
    lines.iter().filter_map(move |line| match line {
        Line::Set { key, .. } if key.starts_with(beginning) => {
            let set = value(lines, key)?;
            line.value_of(key).filter(|said| *said == set).map(|set| (&**key, set))
        }
        _ => None,
    })
}

pub(super) fn read(text: &str) -> Vec<Line> {
    let numbered = text.trim_start_matches('\u{feff}').lines().enumerate();
    numbered.filter_map(|(index, text)| one(index + 1, text)).collect()
}

fn one(line: usize, text: &str) -> Option<Line> {
    let text = text.trim();
    if text.is_empty() || text.starts_with('#') {
        return None;
    }
    let wrong = || Some(Line::Wrong { line });
    let Some((key, value)) = text.split_once('=') else { return wrong() };
    let (key, value) = (key.trim(), value.trim());
    let value = match value.strip_prefix('\'') {
        Some(rest) => match rest.split_once('\'') {
            Some((quoted, _)) => quoted,
            None => return wrong(),
        },
        None => value.split('#').next().unwrap_or_default().trim_end(),
    };
    if key.is_empty() || key.contains(char::is_whitespace) {
        return wrong();
    }
    Some(Line::Set { line, key: key.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_quotes_are_understood() {
        let text = "# a comment\n\n a.b = 1 # more\nc='x # y'\nno value\n  d =\n";
        let set =
            |line, key: &str, value: &str| Line::Set { line, key: key.into(), value: value.into() };
        let wrong = Line::Wrong { line: 5 };
        assert_eq!(read(text), [set(3, "a.b", "1"), set(4, "c", "x # y"), wrong, set(6, "d", "")]);
        assert_eq!(value(&read("a = 1\na = 2"), "a"), Some("2"));
    }
}
