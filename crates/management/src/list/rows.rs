//! Rows of a list for the node that merges it with those of other brokers: each in a line, with what it is sorted by.
//!
//! The first line says how much there is. As many rows follow as the page that is asked for could need, if these were all: the
//! first `page` times `page_size`, in the order that is asked for. They are made as they are read.

use super::order::Key;
use super::ordered::Ordered;
use super::{SOME_BYTES, SOME_ROWS, Source, object};
use crate::fetches::Fetch;
use crate::json::{Columns, Fields};
use crate::reply::Rows;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};

/// Where an item stands among those of other brokers: by a number first, and by a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(pub i64, pub String);

impl Place {
    pub fn of(name: &str) -> Self {
        Place(0, name.to_owned())
    }
}

/// The first line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Rows behind it are for a page.
    pub is_page: bool,
    pub total: usize,
    /// How many of them are wanted.
    pub filtered: usize,
}

/// A row, as its line has it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub key: Key,
    pub place: Place,
    /// A JSON text.
    pub object: String,
}

impl Row {
    /// Reads a line. `None` if it is none.
    pub fn read(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let (key, rank, name) = (parts.next()?, parts.next()?, parts.next()?);
        let place = Place(rank.parse().ok()?, serde_json::from_str(name).ok()?);
        Some(Row { key: read_key(key)?, place, object: parts.next()?.to_owned() })
    }
}

/// Adds a line. A JSON text has neither tabs nor line breaks in it.
fn write_row(
    out: &mut Vec<u8>,
    key: &Key,
    Place(rank, name): &Place,
    object: &serde_json::Value,
) -> io::Result<()> {
    write_key(out, key)?;
    write!(out, "\t{rank}\t")?;
    serde_json::to_writer(&mut *out, name)?;
    out.push(b'\t');
    serde_json::to_writer(&mut *out, object)?;
    out.push(b'\n');
    Ok(())
}

/// A number goes as its bits: it has to be what it was.
fn write_key(out: &mut Vec<u8>, key: &Key) -> io::Result<()> {
    match key {
        Key::Number(number) => write!(out, "n{:x}", number.to_bits()),
        Key::Flag(flag) => write!(out, "f{}", u8::from(*flag)),
        Key::List(len) => write!(out, "l{len}"),
        Key::Text(text) => {
            out.push(b't');
            Ok(serde_json::to_writer(out, text)?)
        }
    }
}

fn read_key(text: &str) -> Option<Key> {
    let (kind, rest) = text.split_at_checked(1)?;
    Some(match kind {
        "n" => Key::Number(f64::from_bits(u64::from_str_radix(rest, 16).ok()?)),
        "f" => Key::Flag(rest == "1"),
        "l" => Key::List(rest.parse().ok()?),
        "t" => Key::Text(serde_json::from_str(rest).ok()?),
        _ => return None,
    })
}

/// Writes a list line by line.
pub(super) struct Lines<S: Source, R> {
    /// Until it is written.
    head: Option<Head>,
    items: Ordered<S>,
    columns: Columns,
    render: R,
}

impl<S: Source, R> Lines<S, R> {
    pub fn new(head: Head, items: Ordered<S>, columns: Columns, render: R) -> Self {
        Lines { head: Some(head), items, columns, render }
    }
}

impl<S, R> Rows for Lines<S, R>
where
    S: Source,
    S::Item: Send,
    R: Fn(&S::Item, &mut Fields) + Send,
{
    fn bytes(&self) -> usize {
        self.items.bytes()
    }

    fn take_room(&mut self) -> Option<Fetch> {
        self.items.take_room()
    }

    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        if let Some(head) = self.head.take() {
            serde_json::to_writer(&mut *out, &head)?;
            out.push(b'\n');
        }
        for _ in 0..SOME_ROWS {
            if out.len() >= SOME_BYTES {
                break;
            }
            let Some((key, item)) = self.items.next() else { return Ok(false) };
            let place = self.items.place(&item);
            write_row(out, &key, &place, &object(&item, &self.columns, &self.render))?;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_is_read_as_it_was_written() {
        let object = json!({ "name": "a\tb\nc", "messages": 1.5 });
        let keys = [
            Key::Number(0.1 + 0.2),
            Key::Number(-0.0),
            Key::Flag(true),
            Key::List(7),
            Key::Text("t\t\"\n\u{e9}".into()),
        ];
        for key in keys {
            let place = Place(-3, "v\th\n\"".into());
            let mut line = Vec::new();
            write_row(&mut line, &key, &place, &object).expect("a line");
            let line = String::from_utf8(line).expect("text");
            let row = Row::read(line.strip_suffix('\n').expect("a line")).expect("a row");
            assert_eq!(row, Row { key, place, object: object.to_string() });
        }
    }

    #[test]
    fn what_is_no_row_is_not_read() {
        for line in ["", "n0", "x0\t0\t\"\"\t{}", "n0\t0\tv\t{}", "n0\t0\t\"v\""] {
            assert_eq!(Row::read(line), None, "{line}");
        }
    }
}
