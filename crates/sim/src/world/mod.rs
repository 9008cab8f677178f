//! One random history of a broker, over several lives.

mod bounded;
mod delays;
mod operations;
mod syncs;

use crate::client::{Client, PLAIN, Received, short};
use crate::full::use_up_all_room;
use crate::history::{History, Op, QueueState, State};
use crate::start::{Start, checkpoint};
use courser_broker::Broker;
use courser_codec::{Method, basic};
use courser_journal::testing::{FakeDisk, Faults, Rng, WatchedStore};
use courser_journal::{JournalStore, Options};
use courser_store::Log;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

const QUEUES: [&str; 4] = ["a", "b", "c", "../../d"];
/// A queue whose dead letters go to [`DEAD`].
const DYING: &str = "b";
const DEAD: &str = "a";
const FANOUT: &str = "amq.fanout";
/// The time at which a world begins.
const BEGIN_MS: u64 = 1_000_000;

/// The world of one seed.
pub struct World {
    rng: Rng,
    disk: FakeDisk,
    options: Options,
    spill_bytes: u64,
    broker: Option<Running>,
    history: History,
    next_id: u64,
    now_ms: u64,
    /// There is a queue whose messages expire; nothing is delayed then, and the disk is never full, so
    /// that one thing happens at a time.
    expires: bool,
    /// The disk has been filled.
    is_full: bool,
    /// The end of the log before this step.
    end_before: u64,
    verbose: bool,
}

/// A broker that runs, and its client.
struct Running {
    store: Arc<JournalStore>,
    /// Between the journal and the broker.
    watched: Arc<WatchedStore>,
    broker: Arc<Broker>,
    client: Client,
    /// Publishes that wait for their confirm: number, end of the log behind them.
    unconfirmed: VecDeque<(u64, u64)>,
    /// Of these the ones that a queue has refused, by number.
    refused: BTreeSet<u64>,
    /// Commits that wait for their answer.
    uncommitted: VecDeque<u64>,
    /// Changes of the topology that wait for theirs: its name, end of the log behind them.
    unanswered: VecDeque<(&'static str, u64)>,
    /// The end of the log behind the last change of the topology.
    topology_end: u64,
    /// Deliveries that wait for an acknowledgement: tag, queue, number, whether it survives.
    unacked: Vec<(u64, String, u64)>,
    /// When transient messages are due that wait.
    delayed: BTreeSet<u64>,
}

impl World {
    /// The world of `seed`. A verbose one tells what happens.
    pub fn new(seed: u64, verbose: bool) -> Self {
        let mut rng = Rng::new(seed);
        let disk = FakeDisk::new(rng.number());
        let options = Options {
            segment_bytes: [16 << 10, 64 << 10][rng.below(2) as usize],
            buffer_bytes: 1 << (12 + rng.below(6)),
            unsynced_bytes: 1 << (10 + rng.below(6)),
            checkpoint_after_bytes: 64 << 10,
            dead_bytes: 32 << 10,
            threads: false,
            noting: seed.is_multiple_of(2).then_some(courser_broker::NOTING),
            ..Options::default()
        };
        let spill_bytes = [0, 4096, u64::MAX][rng.below(3) as usize];
        World {
            expires: rng.one_in(2),
            rng,
            disk,
            options,
            spill_bytes,
            broker: None,
            history: History::default(),
            next_id: 1,
            now_ms: BEGIN_MS,
            is_full: false,
            end_before: 0,
            verbose,
        }
    }

    /// Lives a few lives.
    pub fn run(&mut self) {
        self.start();
        self.make_delayed_exchange();
        self.stop_in_order();
        for _ in 0..2 + self.rng.below(4) {
            self.start();
            if self.rng.one_in(3) {
                let after = self.rng.below(200);
                let faults = Faults { power_off_after: Some(after), ..Faults::default() };
                self.disk.set_faults(faults);
            }
            for _ in 0..self.rng.below(120) {
                if self.running().store.failure().is_some() {
                    break;
                }
                self.step();
            }
            self.stop();
        }
        self.start();
    }

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", what());
        }
    }

    fn running(&mut self) -> &mut Running {
        self.broker.as_mut().expect("the broker runs")
    }

    /// Starts the broker and compares what it has with what it may have.
    fn start(&mut self) {
        self.start_and_look();
        if self.expires {
            // What is too old by now goes on its way.
            self.do_what_is_due();
            self.note_expired();
        }
    }

    fn start_and_look(&mut self) {
        // Before anything expires, so that what was there can be seen.
        let now_ms = if self.expires { BEGIN_MS } else { self.now_ms };
        self.disk.set_capacity(u64::MAX);
        self.is_full = false;
        let start = Start {
            options: self.options.clone(),
            spill_bytes: self.spill_bytes,
            seed: self.rng.number(),
            now_ms,
            ..Start::default()
        };
        let (store, watched, broker, client) = start.watched_on(&self.disk);
        self.broker = Some(Running {
            store,
            watched,
            broker,
            client,
            unconfirmed: VecDeque::new(),
            refused: BTreeSet::new(),
            uncommitted: VecDeque::new(),
            unanswered: VecDeque::new(),
            topology_end: 0,
            unacked: Vec::new(),
            delayed: BTreeSet::new(),
        });
        let found = self.observe();
        self.tell(|| format!("start: {found:?}"));
        self.history = History::new(found);
    }

    /// What the broker has, without changing it.
    fn observe(&mut self) -> State {
        let running = self.running();
        let vhost = running.broker.vhost("/").expect("always there");
        let mut state = State::default();
        for queue in vhost.queues() {
            let name = queue.name.to_string();
            let waiting = queue.status().ready;
            for _ in 0..waiting {
                let get = basic::Get { queue: short(&name), no_ack: false };
                running.client.request(PLAIN, &Method::BasicGet(get)).expect("it is there");
            }
            let messages = running.client.receive().into_iter().filter_map(|one| match one {
                Received::Message { id, .. } => Some(id),
                _ => None,
            });
            let messages: Vec<u64> = messages.collect();
            assert_eq!(messages.len(), waiting, "queue {name} counts wrongly");
            // What is bound shows where a transient message arrives.
            state.queues.insert(name, QueueState { messages, bound: false });
        }
        running.client.reopen();
        let probe = [(u64::MAX, 0)];
        running.client.publish(PLAIN, FANOUT, "", &probe, false).expect("it is predefined");
        for (name, found) in &mut state.queues {
            let queue = vhost.queue(name.as_bytes()).expect("it was there");
            found.bound = queue.status().ready > found.messages.len();
        }
        // The probe itself leaves again: it is the newest of each queue.
        for (name, found) in &state.queues {
            if !found.bound {
                continue;
            }
            for _ in 0..=found.messages.len() {
                let get = basic::Get { queue: short(name), no_ack: false };
                running.client.request(PLAIN, &Method::BasicGet(get)).expect("it is there");
            }
        }
        for received in running.client.receive() {
            if let Received::Message { tag, id: u64::MAX, .. } = received {
                let ack = basic::Ack { delivery_tag: tag, multiple: false };
                running.client.request(PLAIN, &Method::BasicAck(ack)).expect("delivered before");
            }
        }
        running.client.reopen();
        let select = Method::ConfirmSelect(Default::default());
        running.client.request(PLAIN, &select).expect("confirms are supported");
        running.client.receive();
        state.delayed = self.observe_delayed();
        state
    }

    fn step(&mut self) {
        self.end_before = self.running().store.end().0;
        if self.rng.one_in(3) {
            let appends = self.rng.below(3);
            self.sync_after(appends);
        }
        match self.rng.below(106) {
            100 | 39..=42 if self.expires => self.pass_time(),
            100 => self.fill_the_disk(),
            101 => self.give_room(),
            102..=105 => self.publish_to_refusing(),
            // What waits for room is not what is looked at here.
            39..=44 | 67..=69 | 74..=79 if self.is_full => {}
            0..=7 => self.declare(),
            8..=9 => self.delete(),
            10..=11 => self.bind(),
            12 => self.unbind(),
            13..=14 => self.purge(),
            15..=38 => self.publish(),
            39..=42 => self.delay(),
            43..=44 => self.pass_time(),
            45..=54 => self.get(false),
            55..=59 => self.get(true),
            60..=66 => self.ack(),
            67..=69 => self.reject(),
            70..=73 => self.requeue(),
            74..=79 => self.transact(),
            80..=82 => self.checkpoint(),
            83..=86 => self.running().store.journal().maintain_once(),
            _ => drop(self.running().store.journal().flush_once()),
        }
        self.running().watched.call_nothing();
        self.note_expired();
        self.receive();
    }

    /// Notes changes that were just made, with the end of the log behind them.
    fn note(&mut self, ops: Vec<Op>) {
        let end = self.running().store.end().0;
        let failed = self.running().store.failure().is_some();
        if failed && self.history.end() == Some(end) {
            // The log did not take it any more: an acknowledgement that failed is not answered.
            return;
        }
        if end == self.end_before && self.history.has_all(&ops) {
            return;
        }
        if end == self.end_before && self.is_full && !failed {
            self.tell(|| format!("without room: {ops:?}"));
            return self.history.note_unlogged(ops);
        }
        // Where the log ends after it has failed does not say whether it took this.
        let end = if failed { u64::MAX } else { end };
        self.tell(|| format!("{end}: {ops:?}"));
        self.history.note(end, ops);
    }

    fn fill_the_disk(&mut self) {
        self.tell(|| "the disk is full".into());
        self.is_full = true;
        use_up_all_room(&self.disk.clone(), &self.running().store);
    }

    fn give_room(&mut self) {
        self.tell(|| "there is room".into());
        self.is_full = false;
        self.disk.set_capacity(u64::MAX);
        self.running().store.journal().maintain_once();
    }

    fn checkpoint(&mut self) {
        let running = self.running();
        let made = checkpoint(&running.store, &running.broker);
        let (end, failed) = (running.store.end().0, running.store.failure().is_some());
        self.tell(|| format!("checkpoint: {made}"));
        if made {
            self.history.checkpointed(end);
        } else if failed {
            self.history.checkpoint_failed();
        }
    }

    /// Takes in what the broker sent. Confirms and answers have to be right: everything before them is
    /// durable.
    fn receive(&mut self) -> Vec<Received> {
        let running = self.running();
        let durable = running.store.durable().0;
        let mut others = Vec::new();
        for received in running.client.receive() {
            match received {
                Received::Confirmed(through) | Received::Refused(through) => {
                    let refused = running.refused.remove(&through);
                    assert_eq!(refused, matches!(received, Received::Refused(_)), "{through}");
                    let covered = running.refused.first().is_some_and(|first| *first < through);
                    assert!(!covered, "a confirm of {through} is about what was refused");
                    while let Some((_, end)) =
                        running.unconfirmed.pop_front_if(|(number, _)| *number <= through)
                    {
                        assert!(end <= durable, "confirmed at {durable}, but reaches to {end}");
                    }
                }
                Received::Committed => {
                    let end = running.uncommitted.pop_front().expect("a commit was asked for");
                    assert!(end <= durable, "committed at {durable}, but reaches to {end}");
                }
                Received::Answered(name) => {
                    let (asked, end) = running.unanswered.pop_front().expect("it was asked for");
                    assert_eq!(name, asked, "answers are out of order");
                    assert!(end <= durable, "{name} at {durable}, but reaches to {end}");
                }
                other => others.push(other),
            }
        }
        others
    }

    fn stop(&mut self) {
        let way = self.rng.below(3);
        let failed = self.running().store.failure().is_some();
        if way == 0 && !failed {
            return self.stop_in_order();
        }
        let durable = self.running().store.durable().0;
        let power = way == 1 || failed;
        self.tell(|| format!("{} at {durable}", if power { "power lost" } else { "killed" }));
        // The crash comes first: what is dropped after it reaches nothing any more.
        if power {
            self.disk.lose_power();
        } else {
            self.disk.kill();
        }
        self.broker = None;
        // It may be due while the broker is down.
        self.now_ms += if self.expires { 0 } else { self.rng.below(3000) };
        self.restart_and_compare(durable);
    }

    fn stop_in_order(&mut self) {
        if self.rng.one_in(2) || self.history.has_unlogged() {
            self.checkpoint();
        }
        let closed = self.running().store.journal().close().is_ok();
        if closed {
            self.receive();
            let running = self.running();
            assert!(running.unanswered.is_empty(), "never answered: {:?}", running.unanswered);
            assert!(running.uncommitted.is_empty(), "a commit was never answered");
        }
        let durable = if closed { u64::MAX } else { self.running().store.durable().0 };
        self.tell(|| format!("stopped in order: {closed}"));
        self.broker = None;
        self.disk.set_faults(Faults::default());
        self.restart_and_compare(durable);
    }

    fn restart_and_compare(&mut self, durable: u64) {
        let history = std::mem::take(&mut self.history);
        self.start_and_look();
        let found = self.history.now().clone();
        if let Err(difference) = history.check(durable, &found) {
            panic!("{difference}");
        }
        // And down again, so that every life begins with a start.
        self.running().store.journal().close().expect("nothing fails");
        self.broker = None;
    }
}

/// Whether a message is persistent, by its number.
fn survives(id: u64) -> bool {
    id % 2 == 1
}
