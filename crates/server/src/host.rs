//! Who serves the clients that are let in: the broker of this process, or, at a node of a cluster, whichever node leads.

use crate::cluster::Front;
use crate::driver::{self, ClientStream, Shared};
use crate::peer::Peer;
use crate::places::{Place, Places};
use crate::throttle::Throttles;
use std::sync::Arc;
use tokio::sync::watch;

/// Serves the clients that are let in.
pub(crate) struct Host {
    pub places: Arc<Places>,
    pub throttles: Arc<Throttles>,
    who: Who,
}

enum Who {
    Own(Arc<Shared>),
    Node(Arc<Front>),
}

impl Host {
    /// The broker of this process.
    pub fn own(shared: &Arc<Shared>) -> Arc<Self> {
        Arc::new(Host {
            places: Arc::clone(&shared.places),
            throttles: Arc::clone(&shared.throttles),
            who: Who::Own(Arc::clone(shared)),
        })
    }

    /// The node that leads.
    pub fn node(front: &Arc<Front>) -> Arc<Self> {
        Arc::new(Host {
            places: Arc::clone(&front.places),
            throttles: Arc::clone(&front.throttles),
            who: Who::Node(Arc::clone(front)),
        })
    }

    /// Waits until no client is to be let in any more, or clients are again.
    pub async fn turns_away(&self, wanted: bool) {
        match &self.who {
            Who::Own(shared) => shared.suspension.becomes(wanted).await,
            Who::Node(front) => front.turns_away(wanted).await,
        }
    }

    /// Whether an operator has suspended the listeners.
    pub fn is_suspended(&self) -> bool {
        matches!(&self.who, Who::Own(shared) if shared.suspension.is_on())
    }

    /// Serves a client until its end. `name` is what the operator sees it by.
    pub async fn serve<S: ClientStream>(
        self: Arc<Self>,
        stream: S,
        peer: Peer,
        place: Place,
        name: String,
        stopping: watch::Receiver<bool>,
    ) {
        match &self.who {
            Who::Own(shared) => {
                let shared = Arc::clone(shared);
                drop(self);
                driver::serve(stream, peer, place, name, shared, stopping).await;
            }
            // In a box: the task of a client that is served here needs no room for it.
            Who::Node(front) => {
                let front = Arc::clone(front);
                Box::pin(front.serve_amqp(stream, peer, place, name, stopping)).await;
            }
        }
    }
}
