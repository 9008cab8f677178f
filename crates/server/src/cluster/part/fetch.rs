//! A copy of the log for a node that can't follow with what the others still have of it.

use super::super::copies::{self, NoCopy};
use super::super::group::Group;
use super::super::node::Inner;
use super::ROOM_INTERVAL;
use courser_cluster::transport::Formation;
use courser_cluster::{NodeId, Origin};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long to wait before a copy of the log is asked for again.
const COPY_INTERVAL: Duration = Duration::from_secs(1);

impl Inner {
    /// Takes a copy of the log from the node that leads, however long that takes. A node with a whole log, which was
    /// offered one, asks each of the others once: before that they may need its vote to have a leader.
    pub(super) async fn fetch_copy(
        &self,
        group: &Group,
        formation: &Formation,
        origin: &Origin,
        offered_by: Option<NodeId>,
    ) {
        let number = group.number;
        tracing::info!(group = number.0, "this node takes a copy of the log from another node");
        loop {
            let mut pause = COPY_INTERVAL;
            let known = self.roster.others();
            let first = known.iter().filter(|node| Some(node.id) == offered_by);
            let others = known.iter().filter(|node| Some(node.id) != offered_by);
            for node in first.chain(others) {
                let config = self.member_config(number, formation, origin.clone());
                let (endpoint, address) = (Arc::clone(&self.endpoint), node.address.clone());
                let runtime = Handle::current();
                let fetching = tokio::task::spawn_blocking(move || {
                    copies::fetch(number, &config?, &endpoint, &address, &runtime)
                });
                let fetched = fetching.await.map_err(|error| NoCopy::from(error.to_string()));
                match fetched.and_then(|done| done) {
                    Ok(()) => {
                        return tracing::info!(from = node.name, "this node has a copy of the log");
                    }
                    Err(NoCopy { why, lacks_room: true }) => {
                        tracing::warn!(
                            from = node.name,
                            why,
                            group = number.0,
                            "no room for a copy of the log; it is asked for until there is"
                        );
                        // Another node's is as large.
                        pause = ROOM_INTERVAL;
                        break;
                    }
                    Err(NoCopy { why, .. }) => {
                        tracing::info!(from = node.name, why, "no copy of the log");
                    }
                }
            }
            tokio::time::sleep(pause).await;
            if offered_by.is_some() {
                return;
            }
        }
    }
}
