//! A node that is about to be stopped: it takes no new clients, and closes the connections of those that it has passed on,
//! some at a time, so that they do not all connect anew at once.

use super::front::{Front, Serves};
use super::members::Members;
use super::questions::Question;
use courser_cluster::transport::{DialError, Node};
use courser_cluster::{GroupNumber, NodeId, Status};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// Connections that are closed together, at most: their names have to fit into a question between nodes.
pub(super) const GROUP_MAX: usize = 250;
/// Between two groups, at most.
pub(super) const PAUSE_MS_MAX: u64 = 60_000;
/// What clients are told: RabbitMQ's words.
const REASON: &str = "Node was put into maintenance mode";
/// How long clients have to take note.
pub(super) const FAREWELL: Duration = Duration::from_secs(5);
/// How often this node looks whether another one leads by now.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// How many connections are closed at a time, and how long the pauses between are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pace {
    pub group: usize,
    pub pause_ms: u64,
}

/// The clients that came to this node and are served by another one.
#[derive(Default)]
pub(super) struct Clients {
    table: Mutex<Table>,
    /// Since when no new ones are taken. Changes while the table is locked.
    draining: watch::Sender<Option<u64>>,
}

#[derive(Default)]
struct Table {
    /// The next number of a client, or of a time that the node is drained.
    next: u64,
    by_number: BTreeMap<u64, Client>,
}

/// One of them.
#[derive(Clone)]
struct Client {
    name: String,
    /// The group whose leader serves it.
    group: GroupNumber,
    ended: Arc<Notify>,
}

impl Table {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// One of them, as long as it is passed on.
pub(super) struct PassedOn<'a> {
    clients: &'a Clients,
    number: u64,
    ended: Arc<Notify>,
}

impl Clients {
    /// Takes note of a client, by the name of its connection; of none while the node is drained.
    pub fn enter(&self, name: &str, group: GroupNumber) -> Option<PassedOn<'_>> {
        let ended = Arc::<Notify>::default();
        let mut table = self.table.lock();
        if self.is_draining() {
            return None;
        }
        let number = table.number();
        let client = Client { name: name.to_owned(), group, ended: Arc::clone(&ended) };
        table.by_number.insert(number, client);
        Some(PassedOn { clients: self, number, ended })
    }

    /// Whether no new ones are taken.
    pub fn is_draining(&self) -> bool {
        self.draining.borrow().is_some()
    }

    /// Learns when that changes.
    pub fn subscribe(&self) -> watch::Receiver<Option<u64>> {
        self.draining.subscribe()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.table.lock().by_number.len()
    }

    /// Has no new ones taken: since when, unless that was so before.
    fn drain(&self) -> Option<u64> {
        let mut table = self.table.lock();
        if self.is_draining() {
            return None;
        }
        let since = table.number();
        self.draining.send_replace(Some(since));
        Some(since)
    }

    /// Has new ones taken again.
    pub fn resume(&self) {
        let _table = self.table.lock();
        if self.draining.send_replace(None).is_some() {
            tracing::info!("this node takes clients again");
        }
    }

    fn is_drained_since(&self, since: u64) -> bool {
        *self.draining.borrow() == Some(since)
    }

    /// Those that come next, from this number on.
    fn some(&self, from: u64, most: usize) -> Vec<(u64, Client)> {
        let table = self.table.lock();
        let next = table.by_number.range(from..).take(most);
        next.map(|(number, client)| (*number, client.clone())).collect()
    }

    /// Ends those of some that have not gone by themselves.
    fn end(&self, some: &[(u64, Client)]) {
        let table = self.table.lock();
        for (number, _) in some {
            if let Some(client) = table.by_number.get(number) {
                client.ended.notify_one();
            }
        }
    }
}

impl PassedOn<'_> {
    /// Waits until the connection has to end.
    pub async fn ended(&self) {
        self.ended.notified().await;
    }
}

impl Drop for PassedOn<'_> {
    fn drop(&mut self) {
        self.clients.table.lock().by_number.remove(&self.number);
    }
}

impl Front {
    /// Begins to take no new clients, and to close the connections of those that are there as soon as another node leads.
    /// One that has begun goes on as it was.
    pub(super) fn drain(self: &Arc<Self>, pace: Pace) {
        let Some(since) = self.clients.drain() else { return };
        tracing::info!(
            group = pace.group,
            pause_ms = pace.pause_ms,
            "this node is drained: it takes no new clients, and closes the connections of those that it has"
        );
        tokio::spawn(Arc::clone(self).close_clients(pace, since));
    }

    /// How many clients there are, if other nodes lead all groups.
    pub(super) fn clients_left(&self) -> Option<usize> {
        self.groups.are_led_elsewhere().then(|| self.clients.count())
    }

    async fn close_clients(self: Arc<Self>, pace: Pace, since: u64) {
        let (mut from, mut closed) = (0, 0);
        while self.clients.is_drained_since(since) {
            if !self.groups.are_led_elsewhere() {
                tokio::time::sleep(LOOK_INTERVAL).await;
                continue;
            }
            let some = self.clients.some(from, pace.group.clamp(1, GROUP_MAX));
            let Some((last, _)) = some.last() else {
                tracing::info!(closed, "this node is drained: no client is connected by way of it");
                return;
            };
            (from, closed) = (last + 1, closed + some.len());
            self.say_goodbye_to(&some).await;
            let front = Arc::clone(&self);
            tokio::spawn(async move {
                tokio::time::sleep(FAREWELL).await;
                front.clients.end(&some);
            });
            tokio::time::sleep(Duration::from_millis(pace.pause_ms)).await;
        }
    }

    /// Has those who serve these clients close their connections.
    async fn say_goodbye_to(&self, some: &[(u64, Client)]) {
        let mut by_group = BTreeMap::<GroupNumber, Vec<String>>::new();
        for (_, client) in some {
            by_group.entry(client.group).or_default().push(client.name.clone());
        }
        for (group, names) in by_group {
            let leader = self.groups.get(group).map(|group| group.serves());
            let Some(Serves::There(leader)) = leader else { continue };
            if let Err(error) = self.ask(leader, &Question::Close { group, names }).await {
                tracing::warn!(%error, "the node that leads can't say goodbye to clients of this one");
            }
        }
    }

    /// Closes connections that came by way of another node, if this one leads their group.
    pub(super) fn close_named(&self, group: GroupNumber, names: &[String]) -> Result<(), String> {
        let Some(Serves::Here(service)) = self.groups.get(group).map(|group| group.serves()) else {
            return Err("this node does not lead the group".into());
        };
        let admin = service.shared.broker.admin();
        for name in names.iter().take(GROUP_MAX) {
            // One that has gone meanwhile is not there any more.
            let _ = admin.close_connection(name, REASON);
        }
        Ok(())
    }

    pub(super) async fn ask(&self, node: NodeId, question: &Question) -> Result<String, DialError> {
        let question = serde_json::to_string(question);
        let question = question.map_err(|error| DialError::Refused(error.to_string()))?;
        self.others.ask(node, question).await
    }
}

impl Members {
    /// Whether a node besides this one is there and not drained.
    pub(super) fn another_takes_clients(&self, status: &Status, node: &Node) -> bool {
        let others = status.members.voters.iter().copied().filter(|id| *id != node.id);
        let there = others.filter(|id| self.is_connected(*id)).collect();
        self.first_of(there, &Question::Drained, str::is_empty).is_some()
    }
}

#[cfg(test)]
mod tests;
