//! A client of the broker: what the driver of a connection does, without the connection.

use super::Message;
use super::heard::{Delivery, Heard, decode};
use courser_broker::wire::WireBuffer;
use courser_broker::{Batch, Fault, Outbox, Pace, Session};
use courser_cluster::testing::LogOnDisk;
use courser_codec::Method;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

thread_local! {
    /// The memory of the last batch, for the next one of any client, as the driver has it.
    static BATCH: Cell<Option<Batch<'static>>> = const { Cell::new(None) };
}

/// Something that a client sends.
#[derive(Clone, Debug)]
pub enum Step<'a> {
    Publish(u16, Message),
    /// A message that came in several frames.
    PublishLarge(u16, Message),
    Call(u16, Method<'a>),
    /// Something that ends the connection at once, as a new secret does that is refused.
    Fatal,
}

/// A client with a session of its own.
pub struct Client {
    session: Option<Session>,
    outbox: Arc<Outbox>,
    frame_max: usize,
    woken: Arc<Woken>,
    /// For channels in confirm mode, the number of the last publish.
    confirms: HashMap<u16, u64>,
    inbox: VecDeque<Heard>,
    /// What its broker logs to, which has no thread of its own, while that runs.
    log: Weak<LogOnDisk>,
}

/// Notes that the connection was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Client {
    pub fn new(session: Session, frame_max: usize, log: Weak<LogOnDisk>) -> Self {
        let outbox = Arc::clone(session.outbox());
        let woken = Arc::new(Woken::default());
        let mut client = Client {
            session: Some(session),
            outbox,
            frame_max,
            woken,
            confirms: HashMap::new(),
            inbox: VecDeque::new(),
            log,
        };
        client.open_channel(1);
        client.take();
        client
    }

    pub fn session(&mut self) -> &mut Session {
        self.session.as_mut().expect("the connection is open")
    }

    /// Whether the connection has been woken since it last looked.
    pub fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }

    pub fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    pub fn open_channel(&mut self, number: u16) {
        self.session().open_channel(number);
    }

    /// Closes a channel as a client does.
    pub fn close_channel(&mut self, number: u16) {
        self.session().close_channel(number);
        self.confirms.remove(&number);
        self.take();
    }

    /// Ends the connection, as a lost socket does.
    pub fn disconnect(&mut self) {
        if let Some(mut session) = self.session.take() {
            session.close();
        }
    }

    /// Hands in one read: everything in it takes effect, as the driver would do it.
    pub fn read(&mut self, steps: &[Step<'_>]) {
        let mut batch = BATCH.take().unwrap_or_default().recycle();
        for step in steps {
            self.step(step, &mut batch);
        }
        let flushed = self.session.as_mut().map(|session| session.flush(&mut batch));
        if let Some(Err(fault)) = &flushed {
            self.close_connection(fault);
        }
        BATCH.set(Some(batch.recycle()));
        if flushed.is_some() {
            self.take();
        }
    }

    fn step<'m>(&mut self, step: &'m Step<'_>, batch: &mut Batch<'m>) {
        let Some(session) = &mut self.session else { return };
        let (number, done) = match step {
            Step::Publish(number, message) => {
                let seq = next_seq(&mut self.confirms, *number);
                (*number, session.publish(batch, message.inbound(*number, seq)))
            }
            Step::PublishLarge(number, message) => {
                let seq = next_seq(&mut self.confirms, *number);
                (
                    *number,
                    session.publish_alone(batch, message.inbound(*number, seq), &message.body),
                )
            }
            Step::Call(number, method) => {
                if matches!(method, Method::ConfirmSelect(_)) {
                    self.confirms.entry(*number).or_default();
                }
                (*number, session.request(batch, *number, method))
            }
            Step::Fatal => return self.close_connection(&Fault::not_allowed("on purpose")),
        };
        if let Err(fault) = done {
            self.fail(number, &fault, batch);
        }
    }

    /// Publishes on channel 1 in a read of its own: with whom to keep pace.
    pub fn publish_and_flush(&mut self, message: &Message) -> Option<Pace> {
        let mut batch = Batch::default();
        self.session().publish(&mut batch, message.inbound(1, 0)).expect("a good publish");
        self.session().flush(&mut batch).expect("room in the store")
    }

    /// Closes the channel, or the connection, for a fault.
    fn fail(&mut self, number: u16, fault: &Fault, batch: &mut Batch<'_>) {
        let flushed = self.session().flush(batch);
        if fault.closes_connection() {
            return self.close_connection(fault);
        }
        if let Err(fault) = flushed {
            return self.close_connection(&fault);
        }
        self.session().close_channel(number);
        self.confirms.remove(&number);
        self.take();
        self.inbox.push_back(Heard::ChannelClosed(fault.to_string()));
    }

    fn close_connection(&mut self, fault: &Fault) {
        let (mut tail, mut bytes) = (WireBuffer::default(), Vec::new());
        if let Some(mut session) = self.session.take() {
            session.close_quietly(&mut tail);
        }
        tail.append_to(&mut bytes);
        self.inbox.extend(decode(&bytes, self.frame_max));
        self.inbox.push_back(Heard::ConnectionClosed(fault.to_string()));
    }

    /// Takes what is to be sent, and lets the queues that waited for that go on, as the driver does it: while there is
    /// something to send, and when it has been woken.
    fn take(&mut self) {
        loop {
            self.await_wake();
            if let Some(session) = &mut self.session {
                session.confirm_durable();
            }
            for (number, fault) in self.outbox.take_faults() {
                self.fail(number, &fault, &mut Batch::default());
            }
            // What has had its turn while nothing was to be sent is taken at once.
            let sends = self.take_some() || self.take_some();
            if self.session.is_none() || !sends && !self.woken.0.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// Takes what is to be sent now. Returns whether there was anything.
    fn take_some(&mut self) -> bool {
        let Some(session) = &mut self.session else { return false };
        let mut wire = WireBuffer::default();
        let taken = self.outbox.take(&mut wire);
        let mut bytes = Vec::new();
        wire.append_to(&mut bytes);
        assert_eq!(bytes.len(), wire.len());
        if !taken.stalled.is_empty() {
            session.resume(taken.stalled);
        }
        self.inbox.extend(decode(&bytes, self.frame_max));
        !bytes.is_empty()
    }

    fn await_wake(&self) {
        // A wake uses up what was registered.
        self.woken.0.store(false, Ordering::SeqCst);
        self.outbox.register(&Waker::from(Arc::clone(&self.woken)));
    }

    /// Everything sent to this client that no test has looked at yet.
    pub fn heard(&mut self) -> Vec<Heard> {
        self.receive();
        self.inbox.drain(..).collect()
    }

    /// Takes in what others caused to be sent, for which this client must have been woken.
    fn receive(&mut self) {
        if !self.outbox.lock().is_empty() {
            assert!(self.woken.0.load(Ordering::SeqCst), "something to send, but not woken");
        }
        self.take();
    }

    /// Forgets everything that was sent to this client, and what this took, as well as what its session keeps for the next time: as the
    /// driver does for a connection that is idle.
    pub fn rest(&mut self) {
        self.receive();
        self.inbox = VecDeque::new();
        if let Some(session) = &mut self.session {
            session.release_memory();
        }
    }

    /// The deliveries among what was heard; all else stays.
    pub fn deliveries(&mut self) -> Vec<Delivery> {
        self.receive();
        let mut deliveries = Vec::new();
        let mut rest = VecDeque::new();
        for heard in self.inbox.drain(..) {
            match heard {
                Heard::Delivery(delivery) => deliveries.push(delivery),
                other => rest.push_back(other),
            }
        }
        self.inbox = rest;
        deliveries
    }

    /// The bodies of the deliveries, as texts.
    pub fn bodies(&mut self) -> Vec<String> {
        self.deliveries().iter().map(|delivery| delivery.text().to_owned()).collect()
    }

    /// Whether a method on channel 1 would take long.
    pub fn takes_long<'m>(&mut self, method: impl Into<Method<'m>>) -> bool {
        self.session().takes_long(1, &method.into())
    }

    /// Sends a method on channel 1; the answer to it.
    pub fn call<'m>(&mut self, method: impl Into<Method<'m>>) -> Heard {
        self.call_on(1, method)
    }

    /// Sends a method; the answer to it, which is neither a delivery nor a cancel of the broker's.
    pub fn call_on<'m>(&mut self, number: u16, method: impl Into<Method<'m>>) -> Heard {
        self.read(&[Step::Call(number, method.into())]);
        let is_answer = |heard: &Heard| !matches!(heard, Heard::Delivery(_) | Heard::Cancelled(_));
        if !self.inbox.iter().any(is_answer)
            && let Some(log) = self.log.upgrade()
        {
            // It waits for the log, as a client would.
            log.flush();
            self.receive();
        }
        let at = self.inbox.iter().position(is_answer).expect("an answer");
        self.inbox.remove(at).expect("an answer")
    }

    /// Sends a method that has no answer, or is asked for none.
    pub fn tell<'m>(&mut self, method: impl Into<Method<'m>>) {
        self.tell_on(1, method);
    }

    pub fn tell_on<'m>(&mut self, number: u16, method: impl Into<Method<'m>>) {
        self.read(&[Step::Call(number, method.into())]);
        let close =
            |heard: &Heard| matches!(heard, Heard::ChannelClosed(_) | Heard::ConnectionClosed(_));
        assert_eq!(self.inbox.iter().find(|heard| close(heard)), None);
    }

    /// Sends a method on channel 1 that closes the channel, and opens it again. The fault's text.
    pub fn refused<'m>(&mut self, method: impl Into<Method<'m>>) -> String {
        let answer = self.call(method);
        let Heard::ChannelClosed(text) = answer else { panic!("not refused: {answer:?}") };
        self.open_channel(1);
        text
    }

    /// Sends a method on channel 1 that ends the connection. The fault's text.
    pub fn fatal<'m>(&mut self, method: impl Into<Method<'m>>) -> String {
        let answer = self.call(method);
        let Heard::ConnectionClosed(text) = answer else { panic!("not closed: {answer:?}") };
        assert!(!self.is_connected());
        text
    }

    /// Publishes a message that closes channel 1, and opens it again. The fault's text.
    pub fn refused_publish(&mut self, message: Message) -> String {
        self.send(message);
        let heard = self.heard();
        let [Heard::ChannelClosed(text)] = &heard[..] else { panic!("not refused: {heard:?}") };
        self.open_channel(1);
        text.clone()
    }

    /// Publishes on channel 1.
    pub fn send(&mut self, message: Message) {
        self.read(&[Step::Publish(1, message)]);
    }

    /// Publishes a text on channel 1.
    pub fn publish(&mut self, exchange: &str, routing_key: &str, body: &str) {
        self.send(Message::new(exchange, routing_key, body));
    }

    /// Publishes texts to a queue, all in one read.
    pub fn fill(&mut self, queue: &str, bodies: &[&str]) {
        let message = |body: &&str| Step::Publish(1, Message::new("", queue, body));
        let steps: Vec<_> = bodies.iter().map(message).collect();
        self.read(&steps);
    }
}

fn next_seq(confirms: &mut HashMap<u16, u64>, number: u16) -> u64 {
    confirms.get_mut(&number).map_or(0, |last| {
        *last += 1;
        *last
    })
}
