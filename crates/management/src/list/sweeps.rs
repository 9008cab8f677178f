//! How fast a counter of every queue grows, for lists that are sorted by that.
//!
//! A request for such a list has the counter of each queue noted that it looks at, at most once a second; the rate is
//! what has been added since it was noted before. Callers look at different queues, so each queue has notes of its own.
//! Notes count towards the limit of memory. Without such requests nothing is noted, and what was noted goes.

use courser_broker::admin::{Admin, Held};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Counters that are noted at the same time; the one that was asked for least recently gives way.
const COLUMNS_MAX: usize = 4;
/// The least time between two notes of a counter.
const GAP_MS: u64 = 1_000;
/// The time after which a note says nothing any more about now.
const STALE_MS: u64 = 5 * 60_000;
/// The time between two searches for notes that are stale.
const CLEANING_MS: u64 = 60_000;

/// What was noted of counters.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    columns: Arc<Columns>,
}

type Columns = Mutex<Vec<Column>>;

#[derive(Debug)]
struct Column {
    name: String,
    used_ms: u64,
    /// Since it was last looked for columns that are not.
    is_used: bool,
    cleaned_ms: u64,
    queues: Arc<Mutex<Queues>>,
}

/// What was noted of each queue, by its number.
#[derive(Debug)]
struct Queues {
    noted: HashMap<u64, Noted>,
    held: Held,
}

#[derive(Debug)]
struct Noted {
    last: Note,
    before: Option<Note>,
}

#[derive(Clone, Copy, Debug)]
struct Note {
    at_ms: u64,
    count: u64,
}

/// A look at some queues.
#[derive(Debug)]
pub(crate) struct Sweep {
    now_ms: u64,
    queues: Arc<Mutex<Queues>>,
}

impl Sweeps {
    /// Begins to look at a counter, of which the broker of `admin` counts the notes.
    pub fn begin(&self, admin: &Admin, name: &str, now_ms: u64) -> Sweep {
        let mut columns = self.columns.lock();
        if columns.is_empty() {
            tokio::spawn(let_go(Arc::downgrade(&self.columns)));
        }
        let at = columns.iter().position(|column| column.name == name).unwrap_or_else(|| {
            if columns.len() >= COLUMNS_MAX {
                let oldest = columns.iter().enumerate().min_by_key(|(_, column)| column.used_ms);
                let oldest = oldest.map_or(0, |(at, _)| at);
                columns.swap_remove(oldest);
            }
            columns.push(Column::new(admin, name, now_ms));
            columns.len() - 1
        });
        let column = &mut columns[at];
        (column.used_ms, column.is_used) = (now_ms, true);
        if now_ms.abs_diff(column.cleaned_ms) >= CLEANING_MS {
            column.cleaned_ms = now_ms;
            column.queues.lock().forget_old(now_ms);
        }
        Sweep { now_ms, queues: Arc::clone(&column.queues) }
    }
}

/// Lets go of what was not asked for in all the time after which notes are of no use, until nothing is left.
async fn let_go(columns: Weak<Columns>) {
    loop {
        tokio::time::sleep(Duration::from_millis(STALE_MS)).await;
        let Some(columns) = columns.upgrade() else { return };
        let mut columns = columns.lock();
        columns.retain_mut(|column| mem::take(&mut column.is_used));
        if columns.is_empty() {
            return;
        }
    }
}

impl Column {
    fn new(admin: &Admin, name: &str, now_ms: u64) -> Self {
        let queues = Queues { noted: HashMap::new(), held: admin.hold(0) };
        let (name, queues) = (name.to_owned(), Arc::new(Mutex::new(queues)));
        Column { name, used_ms: now_ms, is_used: true, cleaned_ms: now_ms, queues }
    }
}

impl Queues {
    fn forget_old(&mut self, now_ms: u64) {
        self.noted.retain(|_, noted| noted.last.at_ms + STALE_MS >= now_ms);
        self.noted.shrink_to_fit();
        self.count();
    }

    fn count(&mut self) {
        // A table has a byte more for each place, and an eighth of its places stays free.
        let place = size_of::<(u64, Noted)>() + 1;
        self.held.set(self.noted.capacity() * place * 8 / 7);
    }
}

impl Sweep {
    /// How fast the counter of a queue grows, in thousandths a second.
    pub fn rate(&self, queue: u64, count: u64) -> i64 {
        let now = Note { at_ms: self.now_ms, count };
        // Held for one queue only: a look at many may take long.
        let mut queues = self.queues.lock();
        let Some(noted) = queues.noted.get_mut(&queue) else {
            queues.noted.insert(queue, Noted { last: now, before: None });
            queues.count();
            return 0;
        };
        let is_usable =
            |note: &Note| (GAP_MS..=STALE_MS).contains(&self.now_ms.saturating_sub(note.at_ms));
        let then = [Some(noted.last), noted.before].into_iter().flatten().find(is_usable);
        if self.now_ms.abs_diff(noted.last.at_ms) >= GAP_MS {
            noted.before = Some(mem::replace(&mut noted.last, now));
        }
        let Some(then) = then else { return 0 };
        let elapsed_ms = self.now_ms.saturating_sub(then.at_ms);
        let added = i128::from(count) - i128::from(then.count);
        i64::try_from(added * 1_000_000 / i128::from(elapsed_ms)).unwrap_or(i64::MAX)
    }
}

#[cfg(test)]
mod tests;
