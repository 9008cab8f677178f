//! Moving messages that are chosen one by one, and moving them back to where they died.

mod portion;

use super::messages::refuse_streams;
use super::{Admin, MessageView};
use crate::fault::Fault;
use crate::queue::{Cursor, Queue};
use crate::vhost::{Vhost, WriteTarget};
use courser_codec::ShortString;
use portion::Moving;
use std::fmt;
use std::sync::Arc;

/// Which messages are meant: those that all of this lets through, the first ones first.
#[derive(Default)]
pub struct Selection<'a> {
    /// Those with these numbers (see [`MessageView::number`]).
    pub numbers: Option<&'a [u64]>,
    /// So many at most.
    pub count: Option<usize>,
    /// Those that it returns true for.
    pub filter: Option<&'a dyn Fn(&MessageView) -> bool>,
    /// Those behind so many others, which are not looked at.
    pub skip: usize,
}

/// Where messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveTo {
    /// To the end of a queue.
    Queue(ShortString),
    /// To an exchange, with another routing key or each with its own.
    Exchange(ShortString, Option<ShortString>),
    /// Each to the queue that it was in before it became a dead letter.
    Origin,
}

/// Whether the user may write there; `None` if that can't be asked any more.
pub type MayWrite<'a> = dyn Fn(WriteTarget<'_>) -> Option<bool> + 'a;

/// What came of moving messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Relocated {
    /// They are in their new places.
    pub moved: usize,
    /// They stay, as there is no place that they could go to.
    pub without_place: usize,
    /// They stay, as they may not go there.
    pub forbidden: usize,
    /// How many were looked at.
    pub looked_at: usize,
    /// There are more that were not looked at: they are too many for one move, the place that they go to has no more
    /// room, or it can't be asked whether they may go there.
    pub is_partial: bool,
    /// Messages at the front of the queue that stay, those that were skipped included: where another
    /// move goes on.
    pub next: usize,
}

/// A move that goes on portion by portion. Between two of them, it holds nothing up.
pub struct Relocation {
    admin: Admin,
    vhost: Arc<Vhost>,
    source: Arc<Queue>,
    to: MoveTo,
    is_trial: bool,
    /// How many messages there were when it began: what comes in the meantime is not meant.
    there: Option<usize>,
    /// Behind the messages that have been looked at.
    cursor: Cursor,
    /// Bytes of bodies that the filter has seen.
    seen_bytes: usize,
    done: Relocated,
}

impl Admin {
    /// Moves messages from a queue to another place in the same vhost, where `may_write` lets them go.
    /// Each is in one of the two places, whatever crashes. With `is_trial` nothing is moved, and it is
    /// said what would be.
    ///
    /// # Errors
    /// When the queue or the place is not there or is another connection's own, both are the same, the
    /// queue is a stream, or the store fails.
    pub fn relocate(
        &self,
        vhost: &str,
        from: &[u8],
        selection: &Selection<'_>,
        to: &MoveTo,
        may_write: &MayWrite<'_>,
        is_trial: bool,
    ) -> Result<Relocated, Fault> {
        let mut relocation = self.relocation(vhost, from, to.clone(), is_trial)?;
        while relocation.go_on(selection, may_write)? {}
        Ok(relocation.done())
    }

    /// As [`Admin::relocate`], a portion at a time ([`Relocation::go_on`]).
    ///
    /// # Errors
    /// As there.
    pub fn relocation(
        &self,
        vhost: &str,
        from: &[u8],
        to: MoveTo,
        is_trial: bool,
    ) -> Result<Relocation, Fault> {
        let (vhost, source) = self.own_queue(vhost, from)?;
        refuse_streams("move", &vhost, &source)?;
        match &to {
            MoveTo::Queue(name) if Arc::ptr_eq(&source, &vhost.queue_for(name.as_bytes(), 0)?) => {
                let same = "a queue's messages can't be moved to itself";
                return Err(Fault::precondition_failed(same));
            }
            MoveTo::Exchange(name, _) if !name.is_empty() => {
                drop(vhost.published_to(name.as_bytes())?)
            }
            _ => {}
        }
        let (admin, there, seen_bytes) = (self.clone(), None, 0);
        let (cursor, done) = (Cursor::default(), Relocated::default());
        Ok(Relocation { admin, vhost, source, to, is_trial, there, cursor, seen_bytes, done })
    }
}

impl Relocation {
    /// What has come of it so far.
    pub fn done(&self) -> Relocated {
        self.done
    }

    /// Moves some more messages: those of one append, or looks at a portion of the queue. Returns
    /// whether there is more to do.
    ///
    /// # Errors
    /// When the queue or the place is not there any more, or the store fails.
    pub fn go_on(
        &mut self,
        selection: &Selection<'_>,
        may_write: &MayWrite<'_>,
    ) -> Result<bool, Fault> {
        let vhost = Arc::clone(&self.vhost);
        let _change = vhost.begin_change()?;
        vhost.queue_for(self.source.name.as_bytes(), 0)?;
        let numbers = selection.numbers.map(|numbers| numbers.iter().copied().collect());
        let goes_on = Moving { relocation: self, selection, numbers, may_write }.go_on()?;
        self.admin.broker.check_alarms();
        Ok(goes_on)
    }
}

impl fmt::Debug for Relocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relocation").field("done", &self.done).finish_non_exhaustive()
    }
}
