//! An endpoint at work: a socket, and a task for each account that its peers work as.

use crate::accounts::Roster;
use crate::config::SocketKind;
use crate::intake::{self, Intake};
use crate::link::Link;
use crate::socket::Bound;
use crate::subscriptions::Budget;
use crate::{dealer, inbound, push, router, xpub};
use omq_tokio::Socket;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

pub(crate) struct Endpoint {
    pub kind: SocketKind,
    /// One for each account, in the roster's order.
    pub links: Vec<Link>,
    pub roster: Roster,
    pub bound: Bound,
    /// Tells the accounts that the end has come.
    pub halt: watch::Sender<bool>,
}

impl Endpoint {
    /// Serves until the gateway stops.
    pub async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let metrics = self.links.first().map(|link| Arc::clone(&link.metrics)).unwrap_or_default();
        let senders = self.bound.senders.take();
        let mut accounts = JoinSet::new();
        let mut inlets = Vec::new();
        for link in self.links {
            let intake = if senders.is_some() {
                let (inlet, sorted) = mpsc::channel(1);
                inlets.push(inlet);
                Intake::Sorted(sorted)
            } else {
                Intake::Socket(self.bound.socket.clone())
            };
            let (socket, budget) = (self.bound.socket.clone(), Arc::clone(&self.bound.budget));
            accounts.spawn(serve(self.kind, link, intake, socket, budget));
        }
        let (bound, halt, mut halting) = (&self.bound, &self.halt, self.halt.subscribe());
        let halt = async {
            // An error means that the gateway is gone, and this task with it.
            let _ = stopping.wait_for(|stop| *stop).await;
            if matches!(self.kind, SocketKind::Pull | SocketKind::Sub) {
                // What they would send from now on would be lost.
                bound.hang_up().await;
            }
            halt.send_replace(true);
            std::future::pending().await
        };
        let sort = async {
            if let Some(senders) = senders {
                intake::sort(senders, &self.roster, inlets, &metrics, &mut halting).await;
            }
            std::future::pending().await
        };
        tokio::select! {
            () = async { while accounts.join_next().await.is_some() {} } => {}
            () = sort => {}
            () = halt => {}
        }
        self.bound.close().await;
    }
}

/// Serves an account until the gateway stops.
async fn serve(kind: SocketKind, link: Link, intake: Intake, socket: Socket, budget: Arc<Budget>) {
    match kind {
        SocketKind::Pull | SocketKind::Sub => inbound::run(link, intake).await,
        SocketKind::Push => push::run(link, &socket).await,
        SocketKind::Xpub => xpub::run(link, &socket, &budget).await,
        SocketKind::Router => router::run(link, intake, &socket).await,
        SocketKind::Dealer => dealer::run(link, &socket).await,
    }
}
