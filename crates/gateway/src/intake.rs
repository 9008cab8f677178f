//! Where the messages of peers come from, with who sent them.
//!
//! Where all peers of an endpoint work as the same user, that is the socket. Otherwise a task takes what comes in, and
//! gives each message to the account of its sender. It has room for one message of each account: one whose messages the
//! broker does not take holds the others back.

use crate::accounts::Roster;
use crate::holders::Addressee;
use crate::metrics::Metrics;
use omq_tokio::engine::AuthenticatedRecvItem;
use omq_tokio::{Error, Message, ReceiveReceipt, Socket, SocketType};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// A message of a peer.
pub(crate) struct Received {
    /// Who a router sends the reply to.
    pub sender: Addressee,
    pub message: Message,
}

/// Where an account's messages come from.
pub(crate) enum Intake {
    Socket(Socket),
    Sorted(mpsc::Receiver<Received>),
}

impl Intake {
    pub async fn recv(&mut self) -> Result<Received, Error> {
        match self {
            Intake::Socket(socket) if socket.socket_type() == SocketType::Router => {
                let (receipt, message) = socket.recv_with_receipt(None).await?;
                Ok(Received { sender: sender(&receipt), message })
            }
            Intake::Socket(socket) => {
                Ok(Received { sender: Addressee::default(), message: socket.recv().await? })
            }
            Intake::Sorted(received) => received.recv().await.ok_or(Error::Closed),
        }
    }

    /// What is left of a pull or sub socket whose peers are disconnected.
    pub async fn rest(&mut self) -> Option<Received> {
        match self {
            Intake::Socket(socket) => {
                let message = socket.try_recv().ok()?;
                Some(Received { sender: Addressee::default(), message })
            }
            Intake::Sorted(received) => received.recv().await,
        }
    }
}

/// The messages of all peers, each with who it is of.
pub(crate) enum Senders {
    /// What a pull or sub socket puts into a channel, since its receiving does not tell the sender.
    Channel(mpsc::Receiver<AuthenticatedRecvItem>),
    Router(Socket),
}

impl Senders {
    /// The next message, and the account of its sender.
    async fn recv(&mut self, roster: &Roster) -> Result<(Option<usize>, Received), Error> {
        match self {
            Senders::Channel(channel) => {
                channel.recv().await.map(|item| known(item, roster)).ok_or(Error::Closed)
            }
            Senders::Router(socket) => {
                let (receipt, message) = socket.recv_with_receipt(None).await?;
                let sender = sender(&receipt);
                Ok((roster.find(&sender.authentication), Received { sender, message }))
            }
        }
    }

    /// What is left when peers are disconnected. What a router still has could not be answered.
    fn rest(&mut self, roster: &Roster) -> Option<(Option<usize>, Received)> {
        match self {
            Senders::Channel(channel) => channel.try_recv().ok().map(|item| known(item, roster)),
            Senders::Router(_) => None,
        }
    }
}

fn known(item: AuthenticatedRecvItem, roster: &Roster) -> (Option<usize>, Received) {
    let (message, peer) = item.into_parts();
    let received = Received { sender: Addressee::default(), message };
    (roster.find(&peer.authentication), received)
}

/// Who a message of a router is of.
fn sender(receipt: &ReceiveReceipt) -> Addressee {
    let Some(peer) = receipt.peer_identity() else { return Addressee::default() };
    let authentication = Arc::clone(&peer.peer_info().authentication);
    Addressee { identity: peer.to_bytes(), authentication }
}

/// Gives every message to the account of the peer that sent it, until the socket is closed or, when the gateway stops,
/// until nothing is left.
pub(crate) async fn sort(
    mut senders: Senders,
    roster: &Roster,
    accounts: Vec<mpsc::Sender<Received>>,
    metrics: &Metrics,
    halting: &mut watch::Receiver<bool>,
) {
    loop {
        let next = tokio::select! {
            biased;
            received = senders.recv(roster) => received.ok(),
            // An error means that the gateway is gone.
            _ = halting.wait_for(|halt| *halt) => senders.rest(roster),
        };
        let Some((place, received)) = next else { return };
        let is_taken = match place.and_then(|place| accounts.get(place)) {
            // It fails when the account has ended, as it does at a stop while the broker does not let it in.
            Some(account) => account.send(received).await.is_ok(),
            None => false,
        };
        if !is_taken {
            Metrics::add(&metrics.dropped, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::EndpointConfig;
    use crate::socket::Bound;
    use serde_json::{Value, json};
    use std::time::Duration;

    /// Longer than anything takes, also on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    async fn open(endpoint: Value, knows_senders: bool) -> (EndpointConfig, Bound) {
        let config: EndpointConfig = serde_json::from_value(endpoint).expect("settings");
        let bound = Bound::open(&config, 10, knows_senders, &Arc::default()).await;
        (config, bound.expect("a socket"))
    }

    #[tokio::test]
    async fn an_account_that_has_ended_holds_up_no_messages_of_others() {
        let users = json!({"alice": "a", "bob": {"secret": "b", "vhost": "missing"}});
        let pull = json!({
            "socket": "pull", "bind": "tcp://127.0.0.1:0", "queue": "tasks",
            "security": {"mechanism": "plain", "users": users},
        });
        let (config, mut bound) = open(pull, true).await;
        let mut peers = Vec::new();
        for (username, password) in [("alice", "a"), ("bob", "b")] {
            let push = json!({
                "socket": "push", "connect": bound.address, "queue": "tasks",
                "security": {"mechanism": "plain", "username": username, "password": password},
            });
            peers.push(open(push, false).await.1);
        }
        let (roster, metrics) = (Roster::of(&config), Metrics::default());
        let is_alice = |place: usize| roster.logins[place].vhost == "/";
        let (mut alice, mut inlets) = (None, Vec::new());
        for place in 0..roster.logins.len() {
            let (inlet, sorted) = mpsc::channel(1);
            inlets.push(inlet);
            // The other one's end is dropped.
            alice = if is_alice(place) { Some(sorted) } else { alice };
        }
        let mut alice = alice.expect("an account");
        let (halt, mut halting) = watch::channel(false);
        let senders = bound.senders.take().expect("what comes in, with its sender");
        let sorting = sort(senders, &roster, inlets, &metrics, &mut halting);
        let using = async {
            peers[1].socket.send(Message::single("lost")).await.expect("an open socket");
            while metrics.snapshot().dropped == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            peers[0].socket.send(Message::single("kept")).await.expect("an open socket");
            alice.recv().await.expect("a message")
        };
        let both = async {
            tokio::select! {
                () = sorting => panic!("nothing is sorted any more"),
                received = using => received,
            }
        };
        let received = tokio::time::timeout(LONG, both).await.expect("it comes");
        assert_eq!(received.message.get(0), Some(&b"kept"[..]));
        drop(halt);
    }
}
