//! Crashes that meet what is under way: the log lacks its end, or has part of what an operation does.

use super::World;
use crate::broker::Stop;
use crate::features::Feature;
use crate::model::{Model, Observed, Path, Publish, Queue, Stream};
use crate::operation::{Batch, Operation};
use crate::topology::{DEAD, HashKey, WORK};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How a publish of which the log has a part is there after a start.
#[derive(Clone, Copy)]
struct Late {
    /// It is when the broker takes up what had waited, and not as if it came after that.
    is_there_at_start: bool,
    /// All queues have it, or those that had no room for it have not.
    refuses_nothing: bool,
    /// How many letters have left their queues for it, if not all.
    letters_max: Option<usize>,
}

impl World {
    /// Does operations of which the log has nothing when the broker stops: it is as before them, but for
    /// the time. So it is after a failover, when no other node has heard of the leader's last changes.
    pub(super) fn lose_tail(&mut self, operations: &[Operation], how: Stop) -> Result<(), String> {
        let before = self.model.clone();
        self.hold_back(true);
        for operation in operations {
            self.tell(|| format!("  to be lost: {operation:?}"));
            let is_logged = self.is_logged(operation, &before);
            self.step(operation).and_then(|()| self.compare())?;
            if std::mem::take(&mut self.model.observed.is_confirmed) && is_logged {
                return Err(format!("{operation:?} is confirmed, and nothing is on the disk"));
            }
        }
        let now_ms = self.model.now_ms;
        self.start_again(how, false)?;
        self.model = before.clone();
        let agrees = self.restart_model(now_ms, false).and_then(|()| self.compare());
        agrees.or_else(|_| {
            self.model = before;
            self.restart_model(now_ms, true)
        })
    }

    /// Whether an operation publishes something that has to survive, and repeats nothing that does: all that was there
    /// `before`.
    fn is_logged(&self, operation: &Operation, before: &Model) -> bool {
        let Operation::Publish(Batch { path: Path::Name, persistent: true, mark, .. }) = operation
        else {
            return false;
        };
        let is_repeated = mark.is_some_and(|mark| before.repeats(mark) && self.model.repeats(mark));
        self.model.exists(WORK) && !is_repeated
    }

    /// Does an operation, and stops when the log has what it has appended up to some point. Then there
    /// is what was there before, or afterwards; or a publish comes to what is there after the restart,
    /// when the log has it and not yet what has left for it.
    pub(super) fn tear(
        &mut self,
        operation: &Operation,
        appends: u64,
        how: Stop,
    ) -> Result<(), String> {
        // Whether a letter waits in its queue until there is another one for it can't be seen.
        if self.features.has(Feature::AtLeastOnce) && !self.model.exists(DEAD) {
            return self.step(operation);
        }
        // Where consumers do not acknowledge, any part of what they get may be done with.
        let is_taken = self.model.queues.values().any(Queue::hands_out_for_good);
        let single = match operation {
            Operation::Publish(batch) => Operation::Publish(Batch { count: 1, ..batch.clone() }),
            other if is_taken => return self.step(other),
            other => other.clone(),
        };
        let operation = if is_taken { &single } else { operation };
        let (before, first_id) = (self.model.clone(), self.next_id);
        self.hold_back(true);
        self.running().write_after(appends);
        self.step(operation).and_then(|()| self.compare())?;
        let now_ms = self.model.now_ms;
        let after = std::mem::replace(&mut self.model, Model::new(now_ms));
        self.start_again(how, false)?;
        self.model.observed.check_rest()?;
        // What is not persistent is safe nowhere but in a stream, and what it has driven out may be back.
        let is_transient = matches!(operation, Operation::Publish(Batch { persistent: false, .. }));
        let has_more = |(name, stream): (&&str, &Stream)| {
            before.streams.get(*name).is_none_or(|was| was.came() < stream.came())
        };
        let is_in_stream = after.streams.iter().any(has_more);
        let is_confirmed = after.observed.is_confirmed && (!is_transient || is_in_stream);
        let hashed = after.exchanges.hashed.clone();
        self.model = after;
        let as_after = self.restart_model(now_ms, false).and_then(|()| self.compare());
        let after = std::mem::replace(&mut self.model, before.clone());
        let as_before = self.restart_model(now_ms, false).and_then(|()| self.compare());
        match (as_after, as_before, operation) {
            (Ok(()), Ok(()), _) => {
                // What waits is the same, and it may say something else of its way.
                let before = std::mem::replace(&mut self.model, after);
                self.model.leave_open(&before);
                Ok(())
            }
            // It may wait at its exchange still, and the queue may have had no room for it but has after the start. Or it is
            // refused, its letter is not sent for good, and after the start it dies once more, of something else.
            (Ok(()), Err(_), Operation::Publish(batch))
                if batch.path == Path::Later || self.features.has(Feature::AtLeastOnce) =>
            {
                let publishes = self.late_publishes(batch, first_id);
                let come = self.have_come(&publishes, &(before, hashed), now_ms);
                let come = come.map(|()| std::mem::replace(&mut self.model, Model::new(now_ms)));
                self.model = after;
                come.iter().for_each(|come| self.model.leave_open(come));
                Ok(())
            }
            (Ok(()), Err(_), _) => {
                self.model = after;
                Ok(())
            }
            (Err(_), Ok(()), _) if is_confirmed => {
                Err("what was confirmed is not there".to_owned())
            }
            (Err(_), Ok(()), _) => Ok(()),
            (Err(one), Err(other), Operation::Publish(batch)) => {
                let publishes = self.late_publishes(batch, first_id);
                let come = self.have_come(&publishes, &(before, hashed), now_ms);
                come.map_err(|whys| {
                    format!("not as after, as {one}; not as before, as {other}{whys}")
                })
            }
            (Err(one), Err(other), _) => {
                Err(format!("not as after, as {one}; not as before, as {other}"))
            }
        }
    }

    /// What a publish of which the log has a part may bring after a start.
    fn late_publishes(&self, batch: &Batch, first_id: u64) -> Vec<Publish> {
        let not_mandatory = |one: Publish| Publish { mandatory: false, ..one };
        self.messages(batch, first_id).into_iter().map(not_mandatory).collect()
    }

    /// Whether the broker, which has started again, has the first of these publishes besides what was there before,
    /// with some of what follows from them.
    fn have_come(
        &mut self,
        publishes: &[Publish],
        before: &(Model, BTreeMap<HashKey, &'static str>),
        now_ms: u64,
    ) -> Result<(), String> {
        // What goes together is in the log as a whole, and then its letters leave one after the other.
        let goes_apart = publishes.first().is_some_and(|one| before.0.go_apart(one));
        let first = if goes_apart { 1 } else { publishes.len() };
        let (mut whys, mut letters_before) = (String::new(), 0);
        for count in first..=publishes.len() {
            let mut letters = 0;
            for (is_there_at_start, refuses_nothing) in
                [(false, true), (true, true), (false, false), (true, false)]
            {
                let late = Late { is_there_at_start, refuses_nothing, letters_max: None };
                let (come, gone) = self.has_come(&publishes[..count], before.clone(), late, now_ms);
                let Err(why) = come else { return Ok(()) };
                write!(whys, "; not with {count}, as {why}").ok();
                letters = letters.max(gone);
            }
            let letters_of_last = letters_before..letters;
            for (most, refuses_nothing) in
                letters_of_last.flat_map(|most| [(most, true), (most, false)])
            {
                let late =
                    Late { is_there_at_start: true, refuses_nothing, letters_max: Some(most) };
                let (come, _) = self.has_come(&publishes[..count], before.clone(), late, now_ms);
                let Err(why) = come else { return Ok(()) };
                write!(whys, "; not with {count} and {most} letters, as {why}").ok();
            }
            letters_before = letters;
        }
        Err(whys)
    }

    /// Whether the broker, which has started again, has these publishes besides what was there before; and how many
    /// letters have left their queues for them.
    fn has_come(
        &mut self,
        publishes: &[Publish],
        (before, hashed): (Model, BTreeMap<HashKey, &'static str>),
        late: Late,
        now_ms: u64,
    ) -> (Result<(), String>, usize) {
        self.model = before;
        let restarted = match late.is_there_at_start {
            true => {
                self.model.forget_consumers();
                Ok(())
            }
            false => self.restart_model(now_ms, false),
        };
        if restarted.is_err() {
            return (restarted, 0);
        }
        let letters_before = self.model.letters_gone;
        self.model.exchanges.hashed = hashed;
        self.model.refuses_nothing = late.refuses_nothing;
        self.model.letters_left = late.letters_max;
        let published = self.model.publish(publishes);
        self.model.refuses_nothing = false;
        self.model.letters_left = None;
        let letters = self.model.letters_gone - letters_before;
        let restarted = match late.is_there_at_start {
            true => published.and_then(|_| self.restart_model(now_ms, false)),
            false => published.map(drop),
        };
        // It was published before the start.
        self.model.forget_marks(self.marks());
        (restarted.and_then(|()| self.compare()), letters)
    }

    /// The broker has started with the log that it had when the model was as it is.
    fn restart_model(&mut self, now_ms: u64, due_comes_first: bool) -> Result<(), String> {
        self.model.now_ms = now_ms;
        self.model.observed = Observed::default();
        self.see_streams()?;
        self.model.restart(self.marks(), due_comes_first)
    }

    fn hold_back(&mut self, on: bool) {
        self.running().holds_back = on;
        self.model.observed.nothing_is_durable = on;
    }
}
