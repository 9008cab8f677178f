//! What comes from other nodes.

use super::copies;
use super::front::Front;
use super::groups::Groups;
use super::members::Members;
use super::roster::Roster;
use courser_cluster::transport::{About, Answer, Incoming, Links, Stream};
use courser_cluster::{GroupNumber, NodeId, Packet, Peers};
use std::sync::Arc;
use tokio::runtime::Handle;

/// Passes on what comes, and what goes.
pub(super) struct Switch {
    pub roster: Arc<Roster>,
    pub front: Arc<Front>,
    pub members: Arc<Members>,
    pub groups: Arc<Groups>,
}

impl Incoming for Switch {
    fn thread(&self, group: GroupNumber) -> Option<Handle> {
        self.groups.get(group).map(|group| group.thread.handle().clone())
    }

    fn takes_part(&self, group: GroupNumber) -> bool {
        self.groups.get(group).is_some_and(|group| group.member().is_some())
    }

    fn packet(&self, group: GroupNumber, _from: NodeId, packet: Packet) {
        if let Some(member) = self.groups.get(group).and_then(|group| group.member()) {
            member.receive(packet);
        }
    }

    fn met(&self, other: &About) {
        self.roster.met(other);
    }

    fn copy(&self, group: GroupNumber, from: About, note: String, stream: Stream) {
        let Some(group) = self.groups.get(group) else { return };
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            tracing::info!(
                node = from.name,
                group = group.number.0,
                "the node wants a copy of the log"
            );
            match copies::send(&group, from.node, &note, stream, &runtime) {
                Ok(()) => tracing::info!(node = from.name, "the node has a copy of the log"),
                Err(why) => {
                    tracing::info!(node = from.name, why, "the node got no copy of the log")
                }
            }
        });
    }

    fn ask(&self, from: About, question: String) -> Answer {
        let members = Arc::clone(&self.members);
        Box::pin(async move { members.answer(&from, &question).await })
    }

    fn tunnel(&self, from: About, note: String, stream: Stream) {
        match serde_json::from_str(&note) {
            Ok(note) => drop(tokio::spawn(Arc::clone(&self.front).serve_tunnel(note, stream))),
            Err(error) => {
                tracing::warn!(node = from.name, %error, "a client was passed on without a good note")
            }
        }
    }
}

/// Sends what the group says.
pub(super) struct Outgoing(pub Arc<Links>);

impl Peers for Outgoing {
    fn send(&self, to: NodeId, packets: Vec<Packet>) {
        self.0.send(to, packets);
    }
}
