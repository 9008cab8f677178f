//! The groups of the cluster as the HTTP API of home knows them: how it reaches the brokers of the others.

use super::front::{Front, Serves};
use super::sockets::NO_SOCKETS;
use super::tunnel::{Note, What};
use crate::service::Service;
use courser_cluster::GroupNumber;
use courser_cluster::transport::ByteStream;
use courser_management::{Groups, Later, RelayStream, Settled};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use tokio::sync::watch;

/// The groups of the node that a front belongs to.
pub(crate) struct Apis(Weak<Front>);

impl Apis {
    /// `None` for a broker by itself.
    pub fn of(front: &Weak<Front>) -> Option<Arc<dyn Groups>> {
        front.upgrade().map(|_| Arc::new(Apis(Weak::clone(front))) as _)
    }
}

impl Groups for Apis {
    fn others(&self) -> Vec<u16> {
        let Some(front) = self.0.upgrade() else { return Vec::new() };
        let (all, unknown) = front.groups.all_and_unknown();
        let known = all.iter().filter(|group| !group.is_home()).map(|group| group.number);
        let mut others: Vec<u16> = known.chain(unknown).map(|number| number.0).collect();
        others.sort_unstable();
        others
    }

    fn without_part(&self) -> Vec<u16> {
        let Some(front) = self.0.upgrade() else { return Vec::new() };
        let is_unreachable = |number: &u16| {
            let group = front.groups.get(GroupNumber(*number));
            group.is_none_or(|group| matches!(group.serves(), Serves::Unknown))
        };
        front.spreading.notices.waiting_groups().into_iter().filter(is_unreachable).collect()
    }

    fn led(&self) -> Vec<u16> {
        let Some(front) = self.0.upgrade() else { return Vec::new() };
        let all = front.groups.all().into_iter();
        let led =
            all.filter(|group| !group.is_home() && !matches!(group.serves(), Serves::Unknown));
        led.map(|group| group.number.0).collect()
    }

    fn connect(&self, group: u16) -> Later<io::Result<RelayStream>> {
        let front = self.0.upgrade();
        Box::pin(async move {
            let front = front.ok_or(io::ErrorKind::NotConnected)?;
            front.connect_inside(GroupNumber(group)).await
        })
    }

    fn settled(&self) -> Later<Settled> {
        let front = self.0.upgrade();
        Box::pin(async move { front?.moves.settled().await })
    }

    fn changed(&self) -> Later<Vec<u16>> {
        let front = self.0.upgrade();
        Box::pin(async move {
            match front {
                Some(front) => front.spread_definitions().await,
                None => Vec::new(),
            }
        })
    }
}

impl Front {
    /// A connection to the HTTP API of a group, for that of home.
    pub(super) async fn connect_inside(&self, number: GroupNumber) -> io::Result<RelayStream> {
        let no_part = || io::Error::new(io::ErrorKind::NotFound, "this node has no part in it yet");
        let group = self.groups.get(number).ok_or_else(no_part)?;
        self.connect_to(&group, Note::inside(number)).await
    }

    /// Serves metrics: those of the brokers on this node together, those of the node itself if there is none.
    pub async fn serve_metrics<S: ByteStream + 'static>(
        self: Arc<Self>,
        stream: S,
        peer: SocketAddr,
        stopping: watch::Receiver<bool>,
    ) {
        // It ends with the first of them, which it must not keep.
        if let Some(first) = self.services().next() {
            let (exporter, stopping) = (Arc::clone(&first.exporter), first.stopping());
            drop(first);
            let all = || self.services().map(|one| Arc::clone(&one.exporter)).collect();
            return exporter.serve_with(all, stream, peer, stopping).await;
        }
        if let Some(metrics) = self.metrics.get() {
            let connect = || self.connect(Note::http(What::Http, peer, peer, None));
            metrics.serve(stream, peer, false, connect, NO_SOCKETS, stopping).await;
        }
    }

    /// The brokers that serve on this node, that of home first.
    fn services(&self) -> impl Iterator<Item = Arc<Service>> {
        self.groups.all().into_iter().filter_map(|group| match group.serves() {
            Serves::Here(service) => Some(service),
            _ => None,
        })
    }
}
