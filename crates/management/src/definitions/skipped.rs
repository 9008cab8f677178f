//! What an import leaves out and goes on, and what it takes though nothing comes of it, and says so.

use super::compare::text_of;
use super::error::ImportError;
use super::foreign::Stripped;
use serde_json::Value;

/// Rows that a warning names.
const NAMED_MAX: usize = 20;
/// Bytes of what is said of a row: keys and names of a file may be as long as the file, and values may stand beside them.
const ROW_BYTES_MAX: usize = 500;

/// What was left out, by the reason.
#[derive(Default)]
pub(super) struct Skipped {
    /// Keys of the file that mean nothing.
    pub unknown: Rows,
    /// Their names are the broker's own.
    pub reserved: Rows,
    /// They are bindings of what there is not: exports of RabbitMQ have those of exclusive queues without the queues.
    pub without_end: Rows,
    /// Parameters of components that there are not.
    without_component: Rows,
    /// Parameters that are kept, and nothing comes of them.
    kept: Rows,
    /// Policies that are imported without some of their keys.
    stripped: Rows,
    /// Policies that have no other keys.
    emptied: Rows,
    /// Policies and permissions with patterns that an earlier version has taken.
    pub outdated: Rows,
    /// The same, where others are there.
    pub outdated_beside: Rows,
    /// They are in order, and what there is refuses them.
    pub refused: Rows,
}

/// The first of some rows, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    first: Vec<String>,
    count: usize,
}

impl Rows {
    /// Counts a row, and has it among the first if there are few so far. What is too long of it is cut off.
    pub(crate) fn push(&mut self, mut row: String) {
        self.count += 1;
        if self.first.len() < NAMED_MAX {
            row.truncate(row.floor_char_boundary(ROW_BYTES_MAX));
            self.first.push(row);
        }
    }

    /// Takes in those that come behind these.
    pub fn append(&mut self, more: Rows) {
        self.count += more.count;
        let room = NAMED_MAX - self.first.len();
        self.first.extend(more.first.into_iter().take(room));
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The first of them, and how many others there are.
    pub fn named(&self) -> String {
        let first = self.first.join(", ");
        match self.count - self.first.len() {
            0 => first,
            more => format!("{first} and {more} more"),
        }
    }
}

/// A parameter in a line that names several. A file of one vhost names none.
fn parameter(component: &str, row: &Value) -> String {
    let place = text_of(row, "vhost").map(|vhost| format!(" in vhost '{vhost}'"));
    let (place, name) = (place.unwrap_or_default(), text_of(row, "name").unwrap_or_default());
    format!("'{name}' of component '{component}'{place}")
}

impl Skipped {
    pub fn strip(&mut self, policy: &Stripped<'_>) {
        let rows = if policy.is_empty { &mut self.emptied } else { &mut self.stripped };
        rows.push(policy.named());
    }

    /// A parameter that was left out.
    pub fn parameter(&mut self, component: &str, row: &Value) {
        self.without_component.push(parameter(component, row));
    }

    /// A parameter that was kept.
    pub fn kept(&mut self, component: &str, row: &Value) {
        self.kept.push(parameter(component, row));
    }

    /// A row that was left out, and why. Not every error names the vhost.
    pub fn refuse(&mut self, row: &Value, why: &ImportError) {
        let place = text_of(row, "vhost").map(|vhost| format!("in vhost '{vhost}': "));
        self.refused.push(format!("{}{why}", place.unwrap_or_default()));
    }

    /// Rows that were left out whole.
    pub fn rows(&self) -> usize {
        let left_out = [
            &self.reserved,
            &self.without_end,
            &self.without_component,
            &self.emptied,
            &self.outdated,
            &self.outdated_beside,
            &self.refused,
        ];
        left_out.into_iter().map(|rows| rows.count).sum()
    }

    /// However many rows there were, there is one warning for each reason.
    fn by_reason(&self) -> impl Iterator<Item = (&'static str, &Rows)> {
        let all = [
            ("definitions with unknown keys: what is below them is not imported", &self.unknown),
            ("definitions not imported: their names are reserved", &self.reserved),
            (
                "bindings not imported: their queues or exchanges are neither here nor in the file",
                &self.without_end,
            ),
            ("parameters not imported: there are no such components here", &self.without_component),
            (
                "parameters kept, and nothing comes of them: there are no shovels and no federation",
                &self.kept,
            ),
            (
                "policies imported without keys that are RabbitMQ's and do nothing here",
                &self.stripped,
            ),
            (
                "policies not imported: all their keys are RabbitMQ's and do nothing here; what they were for gets the \
                 policy of the next lower priority",
                &self.emptied,
            ),
            (
                "policies and permissions not imported: earlier versions have taken their patterns, which are refused now; \
                 set them anew. Topic permissions of which there were none for the exchange permit nothing",
                &self.outdated,
            ),
            (
                "policies and permissions not imported, and others go on to hold that are here: earlier versions have taken \
                 the patterns of the file, which are refused now; set them anew",
                &self.outdated_beside,
            ),
            (
                "definitions not imported: they are in order, and what is there refuses them",
                &self.refused,
            ),
        ];
        all.into_iter().filter(|(_, rows)| !rows.is_empty())
    }

    /// Says it in the log.
    pub fn tell(&self) {
        for (reason, rows) in self.by_reason() {
            let (first, rows) = (rows.first.join(", "), rows.count);
            tracing::warn!(rows, first, "{reason}");
        }
    }

    /// The same for the answer.
    pub fn warnings(&self) -> Vec<String> {
        self.by_reason().map(|(reason, rows)| format!("{reason}: {}", rows.named())).collect()
    }
}
