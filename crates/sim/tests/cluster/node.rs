//! One node: a copy of the group's log on a disk that crashes, and a broker while it serves.

use crate::linear::Question;
use crate::model::Model;
use courser_broker::{Broker, Fault, Limits};
use courser_cluster::{
    CopySink, CopySource, Driver, Identity, Leadership, Member, MemberConfig, NodeId, Options,
    Origin, Packet, Peers,
};
use courser_codec::{Method, basic, queue};
use courser_journal::testing::{FakeDisk, Faults, Rng};
use courser_sim::{Client, PLAIN, QUESTIONS, Received, TOPOLOGY, TX, short, state};
use courser_store::{MemoryGauge, OpenShard, Opening, ShardId, Shards, Store};
use parking_lot::Mutex;
use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub const QUEUE: &str = "q";
pub const IDENTITY: Identity = Identity { group: 0x0c0_ffee, segment_bytes: 32 << 10 };

/// Packets that a node has sent, until the network takes them.
#[derive(Default)]
pub struct Sent(pub Mutex<Vec<Packet>>);

impl Peers for Sent {
    fn send(&self, _to: NodeId, packets: Vec<Packet>) {
        self.0.lock().extend(packets);
    }
}

/// A node that runs.
pub struct Running {
    pub member: Member,
    pub driver: Driver,
    pub sent: Arc<Sent>,
    /// The broker of the term that it serves in.
    pub serving: Option<Serving>,
    /// The brokers of terms that are over, whose clients have not noticed.
    pub deposed: Vec<Serving>,
}

/// A broker, and its client.
pub struct Serving {
    pub term: u64,
    pub store: Arc<dyn Store>,
    shard: Arc<dyn OpenShard>,
    pub broker: Arc<Broker>,
    pub client: Client,
    /// Publishes that wait for their confirm: its number, and the message's.
    unconfirmed: VecDeque<(u64, u64)>,
    /// Acknowledgements that are not durable yet: the message, and the end of the log behind it.
    unsettled: Vec<(u64, u64)>,
    /// What a consumer does with what it gets next, one for each that it has asked for: whether it acknowledges that.
    gotten: VecDeque<bool>,
    /// What the consumer has, and has not acknowledged.
    held: BTreeSet<u64>,
    /// What changes of queues were answered with.
    pub answers: Vec<&'static str>,
    /// A question that is not answered yet, and what others were answered with.
    asked: Option<Question>,
    pub told: Vec<&'static str>,
}

/// What a group says after a turn.
pub enum Turned {
    GoesOn,
    /// Its disk has failed.
    PowerOff,
    /// It needs a copy of the leader's log.
    Lacks,
}

/// A copy that a node is brought.
pub struct Copying {
    pub source: CopySource,
    pub sink: CopySink,
    /// Which node gives it.
    pub from: usize,
}

pub struct Node {
    pub id: NodeId,
    pub disk: FakeDisk,
    pub running: Option<Running>,
    /// It can't run without a copy.
    pub lacks: bool,
    pub copying: Option<Copying>,
    founders: Vec<NodeId>,
}

impl Node {
    pub fn new(id: NodeId, founders: &[NodeId], seed: u64) -> Self {
        let disk = FakeDisk::new(seed ^ id.0 << 40);
        let founders = founders.to_vec();
        Node { id, disk, running: None, lacks: false, copying: None, founders }
    }

    fn config(&self, seed: u64) -> MemberConfig {
        let journal = courser_journal::Options {
            buffer_bytes: 64 << 10,
            checkpoint_after_bytes: 48 << 10,
            dead_bytes: 32 << 10,
            threads: false,
            ..courser_journal::Options::default()
        };
        MemberConfig {
            dir: PathBuf::from("group"),
            disk: Arc::new(self.disk.clone()),
            identity: IDENTITY,
            origin: Origin::Founders(self.founders.clone()),
            options: Options {
                seed,
                packet_bytes: 2000,
                uncommitted_bytes: 64 << 10,
                ..Options::new(self.id)
            },
            tick: Duration::ZERO,
            journal,
        }
    }

    /// Starts a node that is down.
    pub fn start(&mut self, seed: u64) {
        if self.running.is_some() || self.copying.is_some() {
            return;
        }
        self.disk.set_faults(Faults::default());
        let sent = Arc::new(Sent::default());
        match Member::idle(self.config(seed), Arc::clone(&sent) as Arc<dyn Peers>) {
            Ok((member, driver)) => {
                let (serving, deposed) = (None, Vec::new());
                self.running = Some(Running { member, driver, sent, serving, deposed });
                self.lacks = false;
            }
            Err(error) if error.needs_copy() => self.lacks = true,
            Err(error) => panic!("node {} does not start: {error}", self.id),
        }
    }

    /// Gets ready for a copy, if the disk works.
    pub fn sink(&mut self) -> Result<CopySink, courser_cluster::MemberError> {
        CopySink::new(&self.config(0))
    }

    /// Stops it at once: killed, or with its power lost.
    pub fn crash(&mut self, power_too: bool) {
        // The crash comes first: what is dropped after it reaches nothing any more.
        if power_too {
            self.disk.lose_power()
        } else {
            self.disk.kill()
        }
        self.running = None;
        self.copying = None;
        self.lacks = false;
    }

    pub fn serving(&mut self) -> Option<&mut Serving> {
        self.running.as_mut()?.serving.as_mut()
    }
}

impl Running {
    /// One round of the log's threads.
    pub fn flush(&mut self) {
        let replica = Arc::clone(self.driver.group().log().replica());
        replica.flush_once();
        replica.maintain_once();
    }

    /// One turn of the group's thread.
    pub fn turn(&mut self, ticked: bool, rng: &mut Rng, model: &mut Model) -> Turned {
        match self.driver.turn(ticked) {
            Ok(true) => {}
            Ok(false) => return Turned::Lacks,
            Err(error) => {
                assert!(error.to_string().contains("the power is off"), "{error}");
                return Turned::PowerOff;
            }
        }
        self.notice(rng, model);
        Turned::GoesOn
    }

    /// Opens and drops brokers as the lead changes.
    fn notice(&mut self, rng: &mut Rng, model: &mut Model) {
        let serves = match *self.member.leadership().borrow() {
            Leadership::Serving { term } => Some(term),
            _ => None,
        };
        let is_over = |serving: &mut Serving| serves != Some(serving.term);
        if let Some(over) = self.serving.take_if(is_over) {
            self.deposed.push(over);
        }
        if let Some(term) = serves
            && self.serving.is_none()
        {
            self.serving = Some(Serving::open(&self.member, term, rng, model));
        }
    }

    /// Makes a checkpoint, of the broker or of what a follower knows.
    pub fn checkpoint(&mut self) {
        match &self.serving {
            Some(serving) => {
                // It is not made if something is not committed yet.
                let _ = serving.shard.checkpoint(&state(&serving.broker));
            }
            None => drop(self.member.checkpoint()),
        }
    }

    /// Makes one if one is wanted; a broker whenever it is asked.
    pub fn keep_house(&mut self) {
        if self.serving.is_some() || self.member.wants_checkpoint() {
            self.checkpoint();
        }
    }
}

impl Serving {
    fn open(member: &Member, term: u64, rng: &mut Rng, model: &mut Model) -> Self {
        let gauge = Arc::new(MemoryGauge::default());
        let shards = member.shards(term, Arc::clone(&gauge));
        let opened = shards.open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
        let opened = opened.expect("this node serves");
        assert!(
            shards.open(ShardId::HOME, Opening::Existing, &mut |_| {}).is_err(),
            "a shard is opened twice"
        );
        let store = opened.shard.store();
        let broker = Broker::new(Arc::clone(&store), gauge, Limits::default(), rng.number().into());
        broker.restore(opened.recovered).expect("what was written can be read");
        let mut client = Client::new(&broker);
        let vhost = broker.vhost("/").expect("always there");
        if vhost.queue(QUEUE.as_bytes()).is_none() {
            assert!(!model.has_confirmed() || model.is_over(term), "the queue is gone");
            client.declare(QUEUE, None).expect("the log has room");
        }
        // With a client of its own: what it is answered last waits until this node has proven its lead.
        model.serves(term, &ids_in(&mut Client::new(&broker)));
        client.request(PLAIN, &Method::ConfirmSelect(Default::default())).expect("supported");
        client.receive();
        Serving {
            term,
            store,
            shard: opened.shard,
            broker,
            client,
            unconfirmed: VecDeque::new(),
            unsettled: Vec::new(),
            gotten: VecDeque::new(),
            held: BTreeSet::new(),
            answers: Vec::new(),
            asked: None,
            told: Vec::new(),
        }
    }

    /// Publishes some messages as one batch.
    pub fn publish(&mut self, ids: &[u64], rng: &mut Rng) {
        let messages: Vec<_> =
            ids.iter().map(|id| (*id, [10, 300, 3000][rng.below(3) as usize])).collect();
        self.publish_sized(&messages);
    }

    /// Publishes these numbers, each with so many bytes.
    pub fn publish_sized(&mut self, ids: &[(u64, usize)]) {
        let Ok(last) = self.client.publish(PLAIN, "", QUEUE, ids, true) else { return };
        let first = last + 1 - ids.len() as u64;
        self.unconfirmed.extend((first..).zip(ids.iter().map(|(id, _)| *id)));
    }

    /// Takes the first message: for good, or without an acknowledgement.
    pub fn take(&mut self, model: &mut Model, for_good: bool) {
        let get = basic::Get { queue: short(QUEUE), no_ack: false };
        if self.client.request(PLAIN, &Method::BasicGet(get)).is_ok() {
            self.gotten.push_back(for_good);
            self.receive(model);
        }
    }

    /// A consumer has got a message.
    fn gets(&mut self, id: u64, tag: u64, model: &mut Model) {
        model.delivers(id);
        self.held.insert(id);
        if self.gotten.pop_front() == Some(true) {
            self.acknowledge(PLAIN, tag, id, model);
        }
    }

    /// Acknowledges a message, for good.
    fn acknowledge(&mut self, channel: u16, delivery_tag: u64, id: u64, model: &mut Model) {
        let ack = basic::Ack { delivery_tag, multiple: false };
        if self.client.request(channel, &Method::BasicAck(ack)).is_ok() {
            self.held.remove(&id);
            model.acknowledges(id);
            self.unsettled.push((id, self.store.end().0));
        }
    }

    /// Whether a question is not answered yet: another one waits for that.
    pub fn is_asked(&self) -> bool {
        self.asked.is_some()
    }

    pub fn ask(&mut self, question: Question, model: &mut Model) {
        let asked = self.client.ask(&question.method(QUEUE));
        self.asked = Some(question);
        // Whose connection ends gets no answer.
        if asked.is_ok() {
            self.receive(model);
        }
    }

    /// Declares a durable queue.
    pub fn declare(&mut self, name: &str) -> Result<(), Fault> {
        self.client.declare(name, None)
    }

    /// Deletes a queue.
    pub fn delete(&mut self, name: &str) -> Result<(), Fault> {
        let delete = queue::Delete { queue: short(name), ..queue::Delete::default() };
        self.client.request(TOPOLOGY, &Method::QueueDelete(delete))
    }

    pub fn has_queue(&self, name: &str) -> bool {
        self.broker.vhost("/").expect("always there").queue(name.as_bytes()).is_some()
    }

    /// Takes in what the broker has sent.
    pub fn receive(&mut self, model: &mut Model) {
        for received in self.client.receive() {
            match received {
                Received::Confirmed(through) => self.confirmed(through, model),
                Received::Answered(name) => self.answers.push(name),
                Received::Told(answer) => {
                    self.told.push(answer);
                    if let Some(asked) = self.asked.take() {
                        model.answers(asked, answer, &self.held);
                    }
                }
                Received::Message { tag, id, channel: PLAIN, .. } => self.gets(id, tag, model),
                Received::Message { channel, tag, id, .. } => {
                    if channel == QUESTIONS {
                        self.asked = None;
                    }
                    model.delivers(id);
                    self.held.insert(id);
                    self.acknowledge(channel, tag, id, model);
                }
                Received::Other("basic.get-empty") => {
                    self.gotten.pop_front();
                }
                _ => {}
            }
        }
        let durable = self.store.durable().0;
        self.unsettled.retain(|(id, end)| {
            let is_durable = *end <= durable;
            if is_durable {
                model.settles(*id);
            }
            !is_durable
        });
    }

    fn confirmed(&mut self, through: u64, model: &mut Model) {
        while let Some((_, id)) = self.unconfirmed.pop_front_if(|(number, _)| *number <= through) {
            model.confirms(id);
        }
    }

    /// Publishes a message in a transaction of its own.
    pub fn transact(&mut self, id: u64) {
        let published = self.client.publish(TX, "", QUEUE, &[(id, 20)], true);
        if published.is_ok() {
            let _ = self.client.request(TX, &Method::TxCommit(Default::default()));
        }
    }
}

/// What is in the queue, which stays as it is.
fn ids_in(client: &mut Client) -> Vec<u64> {
    let mut ids = Vec::new();
    loop {
        let get = basic::Get { queue: short(QUEUE), no_ack: false };
        client.request(PLAIN, &Method::BasicGet(get)).expect("it is there");
        let got = client.receive().into_iter().find_map(|received| match received {
            Received::Message { id, .. } => Some(id),
            _ => None,
        });
        let Some(id) = got else { return ids };
        ids.push(id);
    }
}
