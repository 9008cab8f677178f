//! One row and one seed: the broker does what the operations say, the model is told what was seen, and
//! after each operation the two have to agree.

mod clients;
mod compare;
mod consume;
mod crashes;
mod operators;

use crate::broker::{CONNECTIONS, CONSUMERS, GETS, PUBLISHER, Running, TX};
use crate::features::{Feature, Features};
use crate::model::{ChannelId, Model, Queue};
use crate::operation::Operation;
use crate::topology::{self, DEAD, Declared, MARKS, RETRY_MAX_MS, WORK};
use courser_broker::admin::VhostLimits;
use courser_codec::Method;
use courser_journal::testing::FakeDisk;
use std::collections::BTreeSet;

/// The time at which a world begins.
const BEGIN_MS: u64 = 1_000_000;

/// How often letters that no queue has taken are waited for at the end, at most.
const ROUNDS_OF_LETTERS: usize = 4;

/// The names of further queues.
const EXTRA: [&str; 3] = ["extra 0", "extra 1", "extra 2"];

/// A broker and its model.
pub struct World {
    features: Features,
    disk: FakeDisk,
    running: Option<Running>,
    model: Model,
    queues: Vec<Declared>,
    extra: BTreeSet<&'static str>,
    queues_max: usize,
    next_id: u64,
    seed: u64,
    verbose: bool,
}

impl World {
    /// A broker with the queues and exchanges of a row.
    pub fn new(features: &Features, seed: u64, verbose: bool) -> Result<Self, String> {
        let disk = FakeDisk::new(seed);
        let running = Some(Running::start(&disk, features.has_copies(), seed, BEGIN_MS));
        let (queues, features) = (topology::queues(features), features.clone());
        let queues_max = queues.len() + 1;
        let model = Model::new(BEGIN_MS);
        let (extra, next_id) = (BTreeSet::new(), 1);
        let mut world = World {
            features,
            disk,
            running,
            model,
            queues,
            extra,
            queues_max,
            next_id,
            seed,
            verbose,
        };
        world.declare_all()?;
        Ok(world)
    }

    fn running(&mut self) -> &mut Running {
        self.running.as_mut().expect("it runs")
    }

    fn declare_all(&mut self) -> Result<(), String> {
        let features = self.features.clone();
        self.running().declare_exchanges(&features);
        let marks = self.marks();
        let exchanges = &mut self.model.exchanges;
        exchanges.has_alternate = features.has(Feature::Alternate);
        exchanges.delays_in_front = features.has(Feature::Chain);
        exchanges.remember(marks);
        for at in 0..self.queues.len() {
            self.declare(at)?;
        }
        if features.has(Feature::VhostLimit) {
            let queues_max = Some(self.queues_max as u64);
            let limits = VhostLimits { queues_max, ..VhostLimits::default() };
            self.running()
                .broker
                .admin()
                .change_vhost("/", |vhost| vhost.limits = limits)
                .map_err(|why| why.to_string())?;
        }
        if features.has(Feature::UserLimits) {
            self.running().limit_user();
        }
        self.listen()
    }

    /// How many marks the direct exchange remembers, if any.
    fn marks(&self) -> Option<usize> {
        (self.features.value(Feature::Deduplication) == "exchange").then_some(MARKS)
    }

    /// Declares the queue with this number, which the broker and the model have from now on.
    fn declare(&mut self, at: usize) -> Result<(), String> {
        let World { running, queues, features, model, .. } = self;
        let declared = &queues[at];
        let running = running.as_mut().expect("it runs");
        running.declare_bound(declared, features).map_err(|why| why.to_string())?;
        if let Some(queue) = model.queues.get_mut(declared.name) {
            queue.touch(model.now_ms);
        } else if !model.exists(declared.name) {
            let queue = declared.queue(model.now_ms).map(|queue| (declared.name, queue));
            model.queues.extend(queue);
            if declared.name == WORK {
                model.exchanges.hashed.clear();
            }
            model.streams.extend(declared.stream().map(|stream| (declared.name, stream)));
        }
        Ok(())
    }

    /// Does some operations and finds out whether model and broker agree.
    pub fn run(&mut self, operations: &[Operation]) -> Result<(), String> {
        for (at, operation) in operations.iter().enumerate() {
            self.tell(|| format!("{at}: {operation:?}"));
            let done = self.step(operation).and_then(|()| self.compare());
            done.map_err(|why| format!("operation {at}, {operation:?}: {why}"))?;
        }
        self.drain().map_err(|why| format!("at the end: {why}"))
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", what());
        }
    }

    /// Does everything that is due now, and hears what clients are sent.
    fn listen(&mut self) -> Result<(), String> {
        let World { running, model, verbose, .. } = self;
        let running = running.as_mut().expect("it runs");
        loop {
            let now_ms = model.now_ms;
            let is_due = running.broker.tick(now_ms).is_some_and(|next_ms| next_ms <= now_ms);
            let heard = running.hear();
            let is_done = heard.is_empty() && !is_due;
            for (connection, heard) in heard {
                if *verbose {
                    heard.iter().for_each(|one| println!("    {connection}: {one:?}"));
                }
                model.observed.add(connection, heard);
            }
            if is_done {
                self.see_letters();
                return self.see_streams();
            }
        }
    }

    /// Sees which letters have arrived.
    fn see_letters(&mut self) {
        if !self.features.has(Feature::AtLeastOnce) {
            return;
        }
        let waiting = self.ids(DEAD).unwrap_or_default();
        self.model.see_letters(waiting.into_iter().map(|(id, _)| id));
    }

    /// Sees where each stream begins: how much leaves it when is only promised within bounds.
    pub(super) fn see_streams(&mut self) -> Result<(), String> {
        let World { running, model, .. } = self;
        let admin = running.as_ref().expect("it runs").broker.admin();
        for (name, stream) in &mut model.streams {
            let view = admin.queue("/", name.as_bytes()).ok().and_then(|queue| queue.stream);
            view.into_iter().for_each(|view| stream.see_first(view.first_offset as usize));
        }
        Ok(())
    }

    fn step(&mut self, operation: &Operation) -> Result<(), String> {
        match operation {
            Operation::Publish(batch) => self.publish(batch),
            Operation::Get { queue, channel, no_ack } => self.get(*queue, *channel, *no_ack),
            Operation::Consume(new) => self.consume(new),
            Operation::TakeTurns => self.take_turns(),
            Operation::Flow { which, on } => self.flow(CONSUMERS[which % CONSUMERS.len()], *on),
            Operation::Recover(which) => self.recover(*which),
            Operation::Cancel(which) => self.cancel(*which),
            Operation::Settle { which, multiple, settlement } => {
                self.settle(*which, *multiple, *settlement)
            }
            Operation::Commit => self.commit(),
            Operation::Rollback => {
                self.send((PUBLISHER, TX), &Method::TxRollback(Default::default()))?;
                self.listen()?;
                self.model.channels.roll_back((PUBLISHER, TX));
                Ok(())
            }
            Operation::Wait { seconds } => self.wait(*seconds),
            Operation::Policy(number) => self.set_policy(*number),
            Operation::Pause(on) => self.pause(*on),
            Operation::Purge(which) => self.purge(*which),
            Operation::CloseChannel(which) => {
                let mut channels = CONSUMERS.to_vec();
                channels.extend([(PUBLISHER, GETS), (PUBLISHER, TX)]);
                self.close_channel(channels[which % channels.len()])
            }
            Operation::Disconnect(connection) => self.disconnect(*connection).map(|()| {
                self.running().reconnect(*connection);
            }),
            Operation::Declare => self.declare_work(),
            Operation::Delete => self.delete_work(),
            Operation::Brief => {
                let on = !self.model.exchanges.has_brief;
                self.model.exchanges.has_brief = on;
                self.running().toggle_brief(on);
                self.listen()
            }
            Operation::DeadQueue => self.toggle_dead(),
            Operation::Extra(which) => self.toggle_extra(EXTRA[*which]),
            Operation::IdleConnection(which) => self.toggle_idle(|running| {
                let is_there = running.idle().0.contains(which);
                let is_full = !is_there && !running.idle().0.is_empty();
                (running.toggle_idle_connection(*which), is_full)
            }),
            Operation::IdleChannel(which) => self.toggle_idle(|running| {
                let is_there = running.idle().1.contains(which);
                let is_full = !is_there && !running.idle().1.is_empty();
                (running.toggle_idle_channel(*which), is_full)
            }),
            Operation::Restart { how, with_checkpoint } => self.restart(*how, *with_checkpoint),
            Operation::LoseTail(operations, how) => self.lose_tail(operations, *how),
            Operation::Tear { operation, appends, how } => self.tear(operation, *appends, *how),
        }
    }

    fn send(&mut self, channel: ChannelId, method: &Method<'_>) -> Result<(), String> {
        self.running().send(channel, method).map_err(|why| format!("{}: {why}", method.name()))
    }

    /// Lets time pass, from one thing that is due to the next.
    fn wait(&mut self, seconds: u64) -> Result<(), String> {
        let end_ms = self.model.now_ms + seconds * 1000;
        while self.model.now_ms < end_ms {
            let now_ms = self.model.now_ms;
            let of_broker = self.running().broker.tick(now_ms);
            let next_ms = of_broker.into_iter().chain(self.model.next_ms()).min();
            self.model.now_ms = next_ms.map_or(end_ms, |next_ms| next_ms.clamp(now_ms + 1, end_ms));
            self.listen()?;
            self.tick()?;
        }
        Ok(())
    }

    fn tick(&mut self) -> Result<(), String> {
        let overdue = self.model.tick()?;
        let closed = self.model.observed.take_closed();
        let mut channels: Vec<_> = closed.iter().map(|(channel, _)| *channel).collect();
        channels.sort_unstable();
        if channels != overdue {
            return Err(format!(
                "{overdue:?} are overdue at {}, not {closed:?}",
                self.model.now_ms
            ));
        }
        channels.into_iter().try_for_each(|channel| self.close_channel(channel))
    }

    /// Takes out everything that is left, to see what it says of its way.
    fn drain(&mut self) -> Result<(), String> {
        self.pause(false)?;
        (1..CONNECTIONS).try_for_each(|connection| self.disconnect(connection))?;
        self.close_channel((PUBLISHER, GETS))?;
        self.close_channel((PUBLISHER, TX))?;
        if self.model.queues.values().any(|queue| queue.counts().1 > 0) {
            self.wait(RETRY_MAX_MS.div_ceil(1000))?;
        }
        self.empty_queues()?;
        // Letters that no queue has taken come as soon as one does.
        for _ in 0..ROUNDS_OF_LETTERS {
            if !self.model.queues.values().any(Queue::has_stranded) {
                break;
            }
            if !self.model.exists(DEAD) {
                self.toggle_dead()?;
            }
            self.wait(1)?;
            self.compare()?;
            self.empty_queues()?;
        }
        self.compare()
    }

    fn empty_queues(&mut self) -> Result<(), String> {
        let names: Vec<_> = self.model.queues.keys().copied().collect();
        for (at, name) in names.iter().enumerate() {
            while self.model.queues.get(name).is_some_and(|queue| queue.counts().0 > 0) {
                self.get(at, GETS, true)?;
            }
        }
        Ok(())
    }
}
