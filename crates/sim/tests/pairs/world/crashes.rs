//! Crashes that meet what is under way: the log lacks its end, or has part of what an operation does.

use super::World;
use crate::broker::Stop;
use crate::features::Feature;
use crate::model::{Model, Observed, Path, Publish, Queue};
use crate::operation::{Batch, Operation};
use crate::topology::{DEAD, HashKey, WORK};
use std::collections::BTreeMap;

/// How a publish of which the log has a part is there after a start.
#[derive(Clone, Copy)]
struct Late {
    /// It is when the broker takes up what had waited, and not as if it came after that.
    is_there_at_start: bool,
    /// All queues have it, or those that had no room for it have not.
    refuses_nothing: bool,
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
        let is_confirmed = after.observed.is_confirmed;
        let hashed = after.exchanges.hashed.clone();
        let mut whys = Vec::new();
        for (name, model) in [("as after", after), ("as before", before.clone())] {
            self.model = model;
            let agrees = self.restart_model(now_ms, false).and_then(|()| self.compare());
            let Err(why) = agrees else {
                return match name == "as before" && is_confirmed {
                    true => Err("what was confirmed is not there".to_owned()),
                    false => Ok(()),
                };
            };
            whys.push(format!("not {name}, as {why}"));
        }
        let Operation::Publish(batch) = operation else { return Err(whys.join("; ")) };
        let not_mandatory = |one: Publish| Publish { mandatory: false, ..one };
        let publishes: Vec<_> =
            self.messages(batch, first_id).into_iter().map(not_mandatory).collect();
        for count in 1..=publishes.len() {
            let before = || (before.clone(), hashed.clone());
            for late in [
                Late { is_there_at_start: false, refuses_nothing: true },
                Late { is_there_at_start: true, refuses_nothing: true },
                Late { is_there_at_start: false, refuses_nothing: false },
            ] {
                let agrees = self.has_come(&publishes[..count], before(), late, now_ms);
                let Err(why) = agrees else { return Ok(()) };
                whys.push(format!("not with {count}, as {why}"));
            }
        }
        Err(whys.join("; "))
    }

    /// Whether the broker, which has started again, has these publishes besides what was there before.
    fn has_come(
        &mut self,
        publishes: &[Publish],
        (before, hashed): (Model, BTreeMap<HashKey, &'static str>),
        late: Late,
        now_ms: u64,
    ) -> Result<(), String> {
        self.model = before;
        match late.is_there_at_start {
            true => self.model.forget_consumers(),
            false => self.restart_model(now_ms, false)?,
        }
        self.model.exchanges.hashed = hashed;
        self.model.refuses_nothing = late.refuses_nothing;
        let published = self.model.publish(publishes);
        self.model.refuses_nothing = false;
        published?;
        if late.is_there_at_start {
            self.restart_model(now_ms, false)?;
        }
        // It was published before the start.
        self.model.forget_marks(self.marks());
        self.compare()
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
