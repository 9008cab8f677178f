//! A client of a simulated broker: the machine of its connection, on a wire, and what it waits for.

mod turn;

use super::route::Route;
use super::wire::Wire;
use super::world::World;
use crate::clock;
use courser_codec::{Method, RawProperties, ShortStr, basic, confirm, queue};
use courser_connection::Credentials;
use courser_connection::client::{Config, Connection};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The channel that a client uses.
const CHANNEL: u16 = 1;
/// One without confirms.
const FLOOD_CHANNEL: u16 = 2;
/// How long a message of a WebSocket may take to come whole, where the network is slow.
const MESSAGE_TIME: Duration = Duration::from_secs(20);
/// Bytes of the number that a message begins with.
const NUMBER_BYTES: usize = 8;

/// Why a connection is over.
#[derive(Debug)]
pub(super) struct Gone(pub String);

pub(super) type Lives<T> = Result<T, Gone>;

/// A delivery that is not acknowledged.
struct Unacknowledged {
    tag: u64,
    message: u64,
}

/// A client.
pub(super) struct Client {
    pub world: Arc<World>,
    pub name: String,
    wire: Box<dyn Wire>,
    route: Route,
    machine: Connection,
    input: Vec<u8>,
    output: VecDeque<u8>,
    /// Bytes that it reads before it stops.
    to_read: usize,
    pub is_reading: bool,
    /// When it has last read something, or begun to.
    read_at: Instant,
    /// It says nothing by itself.
    pub is_silent: bool,
    /// When it was let in.
    let_in_at: Option<Instant>,
    /// The broker has said that it reads nothing more of it for now, and when it has said that it does again.
    is_blocked: bool,
    unblocked_at: Instant,
    channels: u16,
    /// What it has published and not heard of, and since when.
    unconfirmed: BTreeMap<u64, (u64, Instant)>,
    unacknowledged: VecDeque<Unacknowledged>,
    /// Requests that are not answered.
    requests: usize,
    asked_at: Instant,
    answered_at: Instant,
    /// When the network has last taken something of it.
    wrote_at: Instant,
    /// Since when it takes nothing of what there is.
    unsent_since: Option<Instant>,
    /// Messages that it was handed.
    pub received: u64,
    /// What it is handed counts as acknowledged.
    pub acknowledges: bool,
    sleep: Pin<Box<Sleep>>,
}

impl Client {
    pub fn new(
        world: &Arc<World>,
        name: String,
        (wire, route): (Box<dyn Wire>, Route),
        heartbeat_s: u16,
    ) -> Self {
        let config =
            Config { credentials: Credentials::Anonymous, heartbeat_s, ..Config::default() };
        Client {
            world: Arc::clone(world),
            name,
            wire,
            route,
            machine: Connection::new(Arc::new(config), clock::now()),
            input: Vec::new(),
            output: VecDeque::new(),
            to_read: usize::MAX,
            is_reading: true,
            read_at: Instant::now(),
            is_silent: false,
            let_in_at: None,
            is_blocked: false,
            unblocked_at: Instant::now(),
            channels: 0,
            unconfirmed: BTreeMap::new(),
            unacknowledged: VecDeque::new(),
            requests: 0,
            asked_at: Instant::now(),
            answered_at: Instant::now(),
            wrote_at: Instant::now(),
            unsent_since: None,
            received: 0,
            acknowledges: true,
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    /// Logs in and opens its channel, with confirms.
    pub async fn open(&mut self) -> Lives<()> {
        self.wait("to be let in", |client| client.let_in_at.is_some()).await?;
        self.open_channel().await?;
        let select = confirm::Select { nowait: false };
        self.request(&Method::ConfirmSelect(select)).await
    }

    /// Opens the next channel.
    pub async fn open_channel(&mut self) -> Lives<()> {
        let Ok(channel) = self.machine.open_channel() else { return Ok(()) };
        self.wait("for a channel", |client| client.channels == channel).await
    }

    /// Waits for something, no longer than it may.
    async fn wait(&mut self, what: &str, is_so: impl Fn(&Client) -> bool) -> Lives<()> {
        let since = Instant::now();
        while !self.go_on(Instant::now() + self.world.limit(), &is_so).await? {
            if self.is_too_long(since) {
                self.fail(&format!("waits {what}"));
            }
        }
        Ok(())
    }

    fn is_too_long(&self, since: Instant) -> bool {
        let since = since.max(self.unblocked_at);
        let limit = match self.let_in_at {
            Some(_) => self.world.limit_since(since),
            None => self.world.limit_to_enter(since),
        };
        !self.is_blocked && since.elapsed() >= limit
    }

    /// Asks for something, and waits for the answer.
    pub async fn request(&mut self, method: &Method<'_>) -> Lives<()> {
        self.ask(method);
        while self.requests > 0 {
            self.rest(self.world.limit() / 8).await?;
        }
        Ok(())
    }

    /// Asks for something, of which the answer may come later.
    pub fn ask(&mut self, method: &Method<'_>) {
        if self.requests == 0 {
            self.answered_at = Instant::now();
        }
        self.requests += 1;
        self.asked_at = Instant::now();
        self.say(method);
    }

    fn say(&mut self, method: &Method<'_>) {
        let said = self.machine.request(CHANNEL, method);
        assert!(said.is_ok() || self.machine.is_closing(), "{said:?}");
    }

    pub async fn declare(&mut self, name: &str, is_shared: bool) -> Lives<()> {
        let declare = queue::Declare {
            queue: ShortStr::cut(name),
            durable: is_shared,
            exclusive: !is_shared,
            ..queue::Declare::default()
        };
        self.request(&Method::QueueDeclare(declare)).await
    }

    pub async fn delete(&mut self, name: &str) -> Lives<()> {
        let delete = queue::Delete { queue: ShortStr::cut(name), ..queue::Delete::default() };
        self.request(&Method::QueueDelete(delete)).await
    }

    pub async fn consume(&mut self, name: &str, prefetch_count: u16) -> Lives<()> {
        let qos = basic::Qos { prefetch_count, ..basic::Qos::default() };
        self.request(&Method::BasicQos(qos)).await?;
        let consume = basic::Consume {
            queue: ShortStr::cut(name),
            no_ack: !self.acknowledges,
            ..basic::Consume::default()
        };
        self.request(&Method::BasicConsume(consume)).await
    }

    /// Publishes a message of its own, and takes note if it is one that must not be lost.
    pub fn publish(&mut self, name: &str, bytes: usize, is_persistent: bool) {
        let message = self.world.new_message(name, is_persistent);
        let mut body = message.to_be_bytes().to_vec();
        body.resize(bytes.max(NUMBER_BYTES), b'.');
        let publish =
            basic::Publish { routing_key: ShortStr::cut(name), ..basic::Publish::default() };
        // Delivery mode 2.
        let persistent = RawProperties::from_encoded(&[0x10, 0, 2]).expect("a property");
        let properties = if is_persistent { persistent } else { RawProperties::EMPTY };
        if let Some(seq) = self.publish_on(CHANNEL, &publish, properties, &body) {
            self.unconfirmed.insert(seq, (message, Instant::now()));
        }
    }

    fn publish_on(
        &mut self,
        channel: u16,
        publish: &basic::Publish<'_>,
        properties: RawProperties<'_>,
        body: &[u8],
    ) -> Option<u64> {
        let mut out = std::mem::take(self.machine.output());
        let published = self.machine.publish(channel, publish, properties, body, &mut out);
        self.output.extend(out);
        assert!(published.is_ok() || self.machine.is_closing(), "{published:?}");
        published.ok()
    }

    /// Publishes messages that no queue gets, and of which nothing is heard, until a time. More than is read at once is
    /// always on its way.
    pub async fn flood(&mut self, until: Instant) -> Lives<()> {
        let body = [b'.'; 900];
        while self.go_on(until, |client| client.output.len() < 10 * body.len()).await? {
            let publish = basic::Publish::default();
            if self.publish_on(FLOOD_CHANNEL, &publish, RawProperties::EMPTY, &body).is_none() {
                break;
            }
        }
        self.wait("to be heard", |client| client.output.is_empty()).await
    }

    /// Acknowledges so many of what it was handed, or gives it back.
    pub fn settle(&mut self, count: usize, gives_back: bool) {
        for _ in 0..count.min(self.unacknowledged.len()) {
            let Some(Unacknowledged { tag, message }) = self.unacknowledged.pop_front() else {
                return;
            };
            let method = if gives_back {
                Method::BasicReject(basic::Reject { delivery_tag: tag, requeue: true })
            } else {
                self.world.settled(message);
                Method::BasicAck(basic::Ack { delivery_tag: tag, multiple: false })
            };
            self.say(&method);
        }
    }

    pub fn unacknowledged(&self) -> usize {
        self.unacknowledged.len()
    }

    /// Waits until all that it has published is confirmed.
    pub async fn confirmed(&mut self) -> Lives<()> {
        while !self.unconfirmed.is_empty() {
            self.rest(self.world.limit() / 8).await?;
        }
        Ok(())
    }

    /// Says goodbye, and waits for the answer.
    pub async fn close(&mut self) -> Lives<()> {
        self.machine.close(200, "done", clock::now());
        match self.wait("for an answer to its goodbye", |_| false).await {
            Err(_) if self.machine.is_close_answered() => Ok(()),
            // It is held back, so that its goodbye is not read either.
            Err(_) if self.is_blocked && self.world.has_alarm() => Ok(()),
            ended => ended,
        }
    }

    /// Sends the beginning of a frame, and what stands before that.
    pub async fn say_half(&mut self) -> Lives<()> {
        let most = self.output.len() + 20;
        self.publish("half", 100, true);
        let out = std::mem::take(self.machine.output());
        self.output.extend(out);
        self.output.truncate(most);
        self.is_silent = true;
        self.rest(Duration::from_millis(50)).await
    }

    /// Goes on for so long, or until something is heard that it waits for.
    pub async fn rest(&mut self, time: Duration) -> Lives<()> {
        let waits = (self.requests, self.unconfirmed.len());
        let is_less = |client: &Client| {
            client.requests < waits.0 || waits.1 > 0 && client.unconfirmed.is_empty()
        };
        self.go_on(Instant::now() + time, is_less).await.map(drop)
    }

    /// Reads and writes until something is so: then true, or until a time.
    pub async fn go_on(&mut self, until: Instant, is_so: impl Fn(&Client) -> bool) -> Lives<bool> {
        loop {
            if is_so(self) {
                return Ok(true);
            }
            let is_time = poll_fn(|cx| self.poll(cx, until)).await?;
            self.check_patience();
            if is_time {
                return Ok(false);
            }
        }
    }

    /// Has what was said while nothing was read count from now on.
    pub fn read_again(&mut self) {
        (self.is_reading, self.read_at) = (true, Instant::now());
        (self.answered_at, self.wrote_at) = (Instant::now(), Instant::now());
        self.unsent_since = None;
        self.unconfirmed.values_mut().for_each(|(_, since)| *since = Instant::now());
        self.machine.set_reading(true, clock::now());
    }

    /// The broker reads what it says again.
    fn unblocked(&mut self) {
        (self.is_blocked, self.unblocked_at) = (false, Instant::now());
    }

    /// Reads so many bytes, as far as they come at once.
    pub async fn read_some(&mut self, bytes: usize) -> Lives<()> {
        self.to_read = bytes;
        let until = Instant::now() + Duration::from_millis(500);
        let read = self.go_on(until, |client| client.to_read == 0).await;
        self.to_read = usize::MAX;
        read.map(drop)
    }

    /// Stops to read.
    pub fn read_no_more(&mut self) {
        self.is_reading = false;
        self.machine.set_reading(false, clock::now());
    }

    pub fn fail(&self, what: &str) -> ! {
        panic!("{} {what} at {:?}", self.name, self.world.age())
    }

    fn check_patience(&self) {
        if !self.is_reading || self.is_silent {
            return;
        }
        if self.route.is_relayed {
            self.check_ended();
        }
        let published = self.unconfirmed.values().next().map(|(_, since)| *since);
        // What waits for the network was not published yet.
        let published = published.map(|since| since.max(self.wrote_at));
        let asked = (self.requests > 0).then_some(self.answered_at.max(self.wrote_at));
        let waits = [
            (published, "a confirm"),
            (asked, "an answer"),
            (self.unsent_since, "the broker to read"),
        ];
        for (since, what) in waits {
            if since.is_some_and(|since| self.is_too_long(since)) {
                self.fail(&format!("waits for {what}"));
            }
        }
    }

    /// Sees that it hears of it in time when it is served no more by way of another node.
    fn check_ended(&self) {
        let ended_at = self.let_in_at.and_then(|let_in_at| self.world.ended_for(let_in_at));
        let mut limit = self.world.limit();
        if self.route.is_web_socket {
            limit += MESSAGE_TIME;
        }
        if ended_at.is_some_and(|at| at.max(self.read_at).elapsed() >= limit) {
            self.fail("is passed on still");
        }
    }
}
