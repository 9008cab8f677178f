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
use tokio::sync::mpsc;

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
                let (message, peer) = channel.recv().await.ok_or(Error::Closed)?.into_parts();
                let received = Received { identity: Bytes::new(), message };
                Ok((roster.find(&peer.authentication), received))
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
}

/// Gives every message to the account of the peer that sent it, until the socket is closed or the accounts have ended.
pub(crate) async fn sort(
    mut senders: Senders,
    roster: &Roster,
    accounts: &[mpsc::Sender<Received>],
    metrics: &Metrics,
) {
    while let Ok((place, received)) = senders.recv(roster).await {
        match place.and_then(|place| accounts.get(place)) {
            Some(account) if account.send(received).await.is_err() => return,
            Some(_) => {}
            None => Metrics::add(&metrics.dropped, 1),
        }
    }
}
