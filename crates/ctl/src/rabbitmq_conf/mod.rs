//! Reads a `rabbitmq.conf`, and says for each of its lines what becomes of it here.
//!
//! - `lines`: the file's own rules.
//! - `keys`: the table of keys.
//! - `logins`: who may log in, and how.
//! - `backends`: whom RabbitMQ asks about logins and permissions.
//! - `tokens`: tokens as logins.
//! - `values`: what their values are here.

mod backends;
mod keys;
mod lines;
mod logins;
mod tokens;
mod values;

pub(crate) use values::{level, size};

use keys::{KEYS, Use};
use lines::Line;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What becomes of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is a setting here, under this name.
    Taken(String),
    /// It needs no setting here; why.
    NotNeeded(String),
    /// It has nothing here that takes its place, and this is what follows from it.
    NotThere(String),
    /// RabbitMQ does not know it either; a key that it may have been meant to be.
    Unknown(Option<&'static str>),
    /// It can't be read.
    Wrong(String),
    /// A later line says something else.
    Overridden(usize),
}

/// A line of the file, and what becomes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The number of the line, from 1.
    pub line: usize,
    /// Its key; none where it can't be read, as part of it may be a password.
    pub key: Option<String>,
    /// What becomes of it.
    pub fate: Fate,
}

/// What a file is here.
#[derive(Clone, Debug)]
pub struct Translated {
    /// Our settings.
    pub settings: Value,
    /// All lines that set something, in their order.
    pub told: Vec<Told>,
}

impl Translated {
    /// Our settings as a file.
    pub fn yaml(&self) -> String {
        // A value that is made here can be written.
        serde_saphyr::to_string(&self.settings).unwrap_or_default()
    }

    /// What becomes of each line, one after the other; `name` is the file's.
    pub fn describe(&self, name: &str) -> String {
        let mut text = String::new();
        for Told { line, key, fate } in &self.told {
            let fate = match fate {
                Fate::Taken(ours) => format!("becomes {ours}"),
                Fate::NotNeeded(why) => format!("not needed: {why}"),
                Fate::NotThere(why) => format!("NOT SUPPORTED: {why}"),
                Fate::Unknown(Some(near)) => format!("UNKNOWN: did you mean {near}?"),
                Fate::Unknown(None) => "UNKNOWN: not a key of RabbitMQ 4.3".to_owned(),
                Fate::Wrong(why) => format!("WRONG: {why}"),
                Fate::Overridden(by) => format!("no effect: line {by} sets it again"),
            };
            // Writing to a String does not fail.
            let _ = match key {
                Some(key) => writeln!(text, "{name}:{line}: {}: {fate}", crate::format::plain(key)),
                None => writeln!(text, "{name}:{line}: {fate}"),
            };
        }
        text
    }
}

/// Translates the text of a file.
pub fn translate(text: &str) -> Translated {
    let lines = lines::read(text);
    let mut settings = json!({});
    let mut told = Vec::new();
    for (index, read) in lines.iter().enumerate() {
        let (line, key, value) = match read {
            Line::Set { line, key, value } => (*line, key, value),
            Line::Wrong { line } => {
                let fate = Fate::Wrong("expected key = value".to_owned());
                told.push(Told { line: *line, key: None, fate });
                continue;
            }
        };
        let again = lines[index + 1..].iter().find_map(|later| match later {
            Line::Set { line, key: other, .. } if other == key => Some(*line),
            _ => None,
        });
        let fate = match again {
            Some(by) => Fate::Overridden(by),
            None => fate_of(key, value, &lines, &mut settings),
        };
        told.push(Told { line, key: Some(key.clone()), fate });
    }
    values::finish(&lines, &mut settings);
    Translated { settings, told }
}

fn fate_of(key: &str, value: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let Some(known) = KEYS.iter().find(|known| fits(known.pattern, key)) else {
        return Fate::Unknown(nearest(key));
    };
    if let Some(left_out) = backends::left_out(key, lines) {
        return left_out;
    }
    if value.contains("$(") || value.starts_with("encrypted:") {
        return match known.what {
            Use::NotNeeded(why) => Fate::NotNeeded(why.to_owned()),
            _ => Fate::NotThere("its value comes from elsewhere: set it by hand".to_owned()),
        };
    }
    match known.what {
        Use::Is(path, read) => match read(value) {
            Ok(Some(value)) => {
                set(settings, path, value);
                Fate::Taken(path.to_owned())
            }
            Ok(None) => Fate::NotNeeded(format!("that is the default of {path}")),
            Err(why) => Fate::Wrong(why),
        },
        Use::Made(made) => made(key, value, lines, settings),
        Use::NotNeeded(why) => Fate::NotNeeded(why.to_owned()),
        Use::NotThere(why) => Fate::NotThere(why.to_owned()),
    }
}

/// Whether a key is of a pattern: `*` is one part of it, at its end all that follow.
fn fits(pattern: &str, key: &str) -> bool {
    let mut parts = key.split('.');
    let mut wanted = pattern.split('.').peekable();
    while let Some(part) = wanted.next() {
        match (part, parts.next()) {
            ("*", Some(_)) if wanted.peek().is_none() => return true,
            ("*", Some(_)) => {}
            (part, Some(given)) if part == given => {}
            _ => return false,
        }
    }
    parts.next().is_none()
}

/// The key that is most like this one, if any is.
fn nearest(key: &str) -> Option<&'static str> {
    let distance = |other: &str| strsim::damerau_levenshtein(key, other);
    let plain = KEYS.iter().map(|known| known.pattern).filter(|pattern| !pattern.contains('*'));
    let near = plain.min_by_key(|other| distance(other))?;
    (distance(near) <= key.len() / 4 + 1).then_some(near)
}

/// Sets what is at a path, with dots between sections.
fn set(settings: &mut Value, path: &str, value: Value) {
    let (section, name) =
        path.split_once('.').map_or((None, path), |(section, name)| (Some(section), name));
    let place = match section {
        Some(section) => &mut settings[section],
        None => settings,
    };
    place[name] = value;
}
