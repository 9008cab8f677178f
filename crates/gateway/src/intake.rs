//! Where the messages of peers come from, with who sent them.
//!
//! Where all peers of an endpoint work as the same user, that is the socket. Otherwise a task takes what comes in, and
//! gives each message to the account of its sender. It has room for one message of each account: one whose messages the
//! broker does not take holds the others back.

use crate::accounts::Roster;
use crate::metrics::Metrics;
use bytes::Bytes;
use omq_tokio::engine::AuthenticatedRecvItem;
use omq_tokio::{Error, Message, Socket, SocketType};
use tokio::sync::{mpsc, watch};

/// A message of a peer.
pub(crate) struct Received {
    /// What a router sends the reply to.
    pub identity: Bytes,
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
                Ok(Received { identity: receipt.identity_bytes().unwrap_or_default(), message })
            }
            Intake::Socket(socket) => {
                Ok(Received { identity: Bytes::new(), message: socket.recv().await? })
            }
            Intake::Sorted(received) => received.recv().await.ok_or(Error::Closed),
        }
    }

    /// What is left of a pull or sub socket whose peers are disconnected.
    pub async fn rest(&mut self) -> Option<Received> {
        match self {
            Intake::Socket(socket) => {
                let message = socket.try_recv().ok()?;
                Some(Received { identity: Bytes::new(), message })
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
                let peer = receipt.peer_identity();
                let place = peer.and_then(|peer| roster.find(&peer.peer_info().authentication));
                let identity = receipt.identity_bytes().unwrap_or_default();
                Ok((place, Received { identity, message }))
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
    let received = Received { identity: Bytes::new(), message };
    (roster.find(&peer.authentication), received)
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
        match place.and_then(|place| accounts.get(place)) {
            Some(account) if account.send(received).await.is_err() => return,
            Some(_) => {}
            None => Metrics::add(&metrics.dropped, 1),
        }
    }
}
