//! Replies on their way to peers.
//!
//! A reply for a peer that has no room for it waits, and the next ones for the same peer wait behind it, while the replies of
//! others go past. For a peer that takes none in time nothing waits any more until it takes some. A peer whose identity
//! another one holds by now counts as gone.

use crate::holders::{Addressee, Holders};
use crate::metrics::Metrics;
use bytes::Bytes;
use omq_tokio::{Message, Socket, TrySendError};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long a reply waits for room, from when it is the first of its peer's.
pub(crate) const ROOM_TIMEOUT: Duration = Duration::from_millis(500);
/// Peers that are known not to read. Of more, one is forgotten.
const SILENT_MAX: usize = 1024;

pub(crate) struct Replies {
    socket: Socket,
    holders: Holders,
    metrics: Arc<Metrics>,
    room_timeout: Duration,
    /// The first of each peer that has no room.
    sending: JoinSet<Sent>,
    /// Those behind it, in their order.
    behind: HashMap<Bytes, VecDeque<(Addressee, Message)>>,
    /// Peers for which a reply has waited in vain, and none was sent since.
    silent: HashSet<Bytes>,
    waiting: usize,
    waiting_bytes: usize,
}

/// What has come of a reply that has waited.
struct Sent {
    identity: Bytes,
    size_bytes: usize,
    is_sent: bool,
}

impl Replies {
    pub fn new(socket: &Socket, metrics: &Arc<Metrics>, room_timeout: Duration) -> Self {
        Replies {
            socket: socket.clone(),
            holders: Holders::new(socket),
            metrics: Arc::clone(metrics),
            room_timeout,
            sending: JoinSet::new(),
            behind: HashMap::new(),
            silent: HashSet::new(),
            waiting: 0,
            waiting_bytes: 0,
        }
    }

    /// How many wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// The bytes of these.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Sends a reply, or has it wait. One for a peer that is gone, or does not read, is dropped.
    pub async fn send(&mut self, peer: Addressee, message: Message) {
        let size_bytes = message.byte_len();
        if let Some(behind) = self.behind.get_mut(&peer.identity) {
            behind.push_back((peer, message));
            self.note_waiting(size_bytes);
            return;
        }
        if !self.holders.is_held_by(&peer).await {
            self.drop_some(1);
            return;
        }
        match self.socket.try_send_to(&peer.identity, message) {
            Ok(()) => self.note_sent(&peer.identity, size_bytes),
            Err(TrySendError::Full(message)) if !self.silent.contains(&peer.identity) => {
                self.behind.insert(peer.identity.clone(), VecDeque::new());
                self.note_waiting(size_bytes);
                self.begin(peer, message);
            }
            Err(_) => self.drop_some(1),
        }
    }

    /// Waits until something has come of one that waits. Never ends where none does.
    pub async fn next_settled(&mut self) {
        match self.sending.join_next().await {
            Some(Ok(sent)) => self.settle(sent),
            // The library has panicked: it is not known whose this was.
            Some(Err(_)) => self.give_up(),
            None => std::future::pending().await,
        }
    }

    fn begin(&mut self, peer: Addressee, message: Message) {
        let (socket, holders) = (self.socket.clone(), self.holders.clone());
        let room_timeout = self.room_timeout;
        self.sending.spawn(async move {
            let size_bytes = message.byte_len();
            let sending = send_with_room(&socket, holders, &peer, message);
            let is_sent = tokio::time::timeout(room_timeout, sending).await.unwrap_or(false);
            Sent { identity: peer.identity, size_bytes, is_sent }
        });
    }

    fn settle(&mut self, Sent { identity, size_bytes, is_sent }: Sent) {
        self.waiting -= 1;
        self.waiting_bytes -= size_bytes;
        if is_sent {
            self.note_sent(&identity, size_bytes);
            match self.behind.get_mut(&identity).and_then(VecDeque::pop_front) {
                Some((peer, next)) => self.begin(peer, next),
                None => drop(self.behind.remove(&identity)),
            }
            return;
        }
        let behind = self.behind.remove(&identity).unwrap_or_default();
        self.waiting -= behind.len();
        self.waiting_bytes -= behind.iter().map(|(_, message)| message.byte_len()).sum::<usize>();
        self.drop_some(1 + behind.len());
        if self.silent.len() >= SILENT_MAX
            && let Some(forgotten) = self.silent.iter().next().cloned()
        {
            self.silent.remove(&forgotten);
        }
        self.silent.insert(identity);
    }

    /// Drops all that wait.
    pub fn give_up(&mut self) {
        self.drop_some(self.waiting);
        (self.waiting, self.waiting_bytes) = (0, 0);
        self.sending = JoinSet::new();
        self.behind.clear();
    }

    fn note_waiting(&mut self, size_bytes: usize) {
        self.waiting += 1;
        self.waiting_bytes += size_bytes;
    }

    fn note_sent(&mut self, identity: &Bytes, size_bytes: usize) {
        self.silent.remove(identity);
        self.metrics.note_sent(size_bytes);
    }

    fn drop_some(&self, count: usize) {
        Metrics::add(&self.metrics.dropped, count as u64);
    }
}

/// Waits for room at a peer, and sends. False where another has its identity by then, or none.
async fn send_with_room(
    socket: &Socket,
    holders: Holders,
    peer: &Addressee,
    message: Message,
) -> bool {
    loop {
        let generation = socket.connections_generation();
        if !holders.is_held_by(peer).await {
            return false;
        }
        tokio::select! {
            biased;
            changed = socket.connections_changed(generation), if peer.may_be_replaced() => {
                if changed.is_err() {
                    return false;
                }
            }
            sent = socket.send_to(&peer.identity, message.clone()) => return sent.is_ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EndpointConfig;
    use crate::intake::Intake;
    use crate::socket::Bound;
    use omq_tokio::{Endpoint, MechanismSetup, Options, SocketType};
    use serde_json::json;

    /// Longer than anything takes, also on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    /// A router with two peers, `one` and `other`, that hold few messages.
    async fn sockets(name: &str) -> (Socket, Socket, Socket) {
        let endpoint = Endpoint::Inproc { name: name.into() };
        let options = || Options { send_hwm: 2, recv_hwm: 2, ..Options::default() };
        let options = || Options { router_mandatory: true, ..options() };
        let router = Socket::try_new(SocketType::Router, options()).expect("a socket");
        router.bind(endpoint.clone()).await.expect("a free name");
        let mut peers = Vec::new();
        for identity in ["one", "other"] {
            let options = options().identity(Bytes::from_static(identity.as_bytes()));
            let peer = Socket::try_new(SocketType::Dealer, options).expect("a socket");
            peer.connect(endpoint.clone()).await.expect("it is there");
            // Its identity is known once the router has heard of it.
            peer.send(Message::single("hello")).await.expect("it is taken");
            tokio::time::timeout(LONG, router.recv()).await.expect("it comes").expect("a message");
            peers.push(peer);
        }
        let other = peers.pop().expect("two peers");
        (router, peers.pop().expect("two peers"), other)
    }

    /// A peer that needed no name.
    fn peer(identity: &'static str) -> Addressee {
        Addressee { identity: identity.into(), ..Addressee::default() }
    }

    fn text(number: usize) -> Message {
        Message::single(number.to_string())
    }

    /// Sends to a peer until two wait. How many were sent.
    async fn fill(replies: &mut Replies, identity: &'static str) -> usize {
        let mut sent = 0;
        while replies.waiting() < 2 {
            replies.send(peer(identity), text(sent)).await;
            sent += 1;
            assert!(sent < 100_000, "it is never full");
        }
        sent
    }

    #[tokio::test]
    async fn replies_for_others_go_past_those_for_a_peer_without_room() {
        let (router, one, other) = sockets("replies-go-past").await;
        let metrics = Arc::new(Metrics::default());
        let mut replies = Replies::new(&router, &metrics, LONG);
        let count = fill(&mut replies, "one").await;
        replies.send(peer("other"), text(7)).await;
        assert_eq!(replies.waiting(), 2, "those for the first");
        let received = tokio::time::timeout(LONG, other.recv()).await.expect("it comes");
        assert_eq!(received.expect("a message").get(0), Some(&b"7"[..]));
        let reading = async {
            for nth in 0..count {
                let received = tokio::time::timeout(LONG, one.recv()).await.expect("it comes");
                let expected = nth.to_string();
                assert_eq!(received.expect("a message").get(0), Some(expected.as_bytes()));
            }
        };
        tokio::join!(reading, async {
            while replies.waiting() > 0 {
                replies.next_settled().await;
            }
        });
        let counted = metrics.snapshot();
        assert_eq!((counted.sent, counted.dropped), (count as u64 + 1, 0));
    }

    #[tokio::test]
    async fn nothing_waits_for_a_peer_that_takes_nothing() {
        let (router, _one, _other) = sockets("replies-do-not-wait").await;
        let metrics = Arc::new(Metrics::default());
        let mut replies = Replies::new(&router, &metrics, Duration::from_millis(1));
        fill(&mut replies, "one").await;
        replies.next_settled().await;
        assert_eq!((replies.waiting(), replies.waiting_bytes()), (0, 0));
        assert_eq!(metrics.snapshot().dropped, 2);
        replies.send(peer("one"), text(0)).await;
        assert_eq!(replies.waiting(), 0, "it is known not to read");
        assert_eq!(metrics.snapshot().dropped, 3);
    }

    /// A router with two accounts that has got a request of alice, who has chosen her identity and is gone.
    async fn without_its_asker() -> (Bound, Addressee) {
        let users = json!({"alice": "a", "bob": {"secret": "b", "vhost": "tenant"}});
        let config: EndpointConfig = serde_json::from_value(json!({
            "socket": "router", "bind": "tcp://127.0.0.1:0", "queue": "rpc",
            "security": {"mechanism": "plain", "users": users},
        }))
        .expect("settings");
        let bound = Bound::open(&config, 10, false, &Arc::default()).await.expect("a socket");
        let alice = login(&bound, "alice").await;
        alice.send(Message::single("a question")).await.expect("it is taken");
        let mut intake = Intake::Socket(bound.socket.clone());
        let asked = tokio::time::timeout(LONG, intake.recv()).await.expect("it comes");
        let asker = asked.expect("an open socket").sender;
        assert!(asker.may_be_replaced());
        alice.close().await.expect("an open socket");
        peers(&bound, 0).await;
        (bound, asker)
    }

    /// A peer with the identity of all in these tests.
    async fn login(bound: &Bound, name: &str) -> Socket {
        let (username, password) = (name.to_owned(), name[..1].to_owned());
        let mechanism = MechanismSetup::PlainClient { username, password };
        let options = Options { mechanism, ..Options::default() }.identity("client");
        let peer = Socket::try_new(SocketType::Dealer, options).expect("a socket");
        peer.connect(bound.address.as_str()).await.expect("an address");
        peers(bound, 1).await;
        peer
    }

    async fn peers(bound: &Bound, count: usize) {
        let waiting = async {
            while bound.socket.ready_peer_count() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.expect("they are there");
    }

    #[tokio::test]
    async fn a_reply_goes_to_no_other_name_that_has_taken_the_identity() {
        let (bound, alice) = without_its_asker().await;
        let metrics = Arc::new(Metrics::default());
        let mut replies = Replies::new(&bound.socket, &metrics, LONG);
        let bob = login(&bound, "bob").await;
        replies.send(alice.clone(), text(1)).await;
        assert_eq!((metrics.snapshot().sent, metrics.snapshot().dropped), (0, 1));
        // Nor does one that has waited for room meanwhile.
        let holders = Holders::new(&bound.socket);
        assert!(!send_with_room(&bound.socket, holders, &alice, text(2)).await);
        bob.send(Message::single("a question")).await.expect("it is taken");
        let mut intake = Intake::Socket(bound.socket.clone());
        let asked = tokio::time::timeout(LONG, intake.recv()).await.expect("it comes");
        replies.send(asked.expect("an open socket").sender, text(3)).await;
        let received = tokio::time::timeout(LONG, bob.recv()).await.expect("it comes");
        assert_eq!(received.expect("a message").get(0), Some(&b"3"[..]));
    }

    #[tokio::test]
    async fn a_peer_that_is_there_again_gets_its_reply() {
        let (bound, alice) = without_its_asker().await;
        let metrics = Arc::new(Metrics::default());
        let mut replies = Replies::new(&bound.socket, &metrics, LONG);
        replies.send(alice.clone(), text(0)).await;
        assert_eq!(metrics.snapshot().dropped, 1, "it has no connection");
        let again = login(&bound, "alice").await;
        replies.send(alice, text(1)).await;
        let received = tokio::time::timeout(LONG, again.recv()).await.expect("it comes");
        assert_eq!(received.expect("a message").get(0), Some(&b"1"[..]));
    }
}
