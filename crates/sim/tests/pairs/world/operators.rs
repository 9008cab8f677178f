//! What operators do, and the clients that declare and delete.

use super::World;
use crate::broker::{CONNECTIONS, CONSUMERS, GETS, PUBLISHER, Running, Stop, TOPOLOGY, TX};
use crate::features::Feature;
use crate::model::ChannelId;
use crate::topology::{self, DEAD, WORK};
use courser_broker::admin::{Policy, PolicyKind};
use courser_broker::{ApplyTo, Fault};
use courser_codec::{FieldTable, Method, queue};
use courser_sim::short;

impl World {
    pub(super) fn set_policy(&mut self, number: Option<usize>) -> Result<(), String> {
        if self.features.is_stream() && number == Some(topology::BYTES_POLICY) {
            // How much of a stream leaves at once is not promised.
            return Ok(());
        }
        let admin = self.running().broker.admin();
        let (definition, settings) = match number {
            Some(number) => topology::policies()[number].clone(),
            None => Default::default(),
        };
        let (name, pattern) = ("policy".to_owned(), format!("^{WORK}$"));
        let policy = Policy { name, pattern, apply_to: ApplyTo::Queues, priority: 0, definition };
        let set = match number {
            Some(_) => admin.set_policy("/", PolicyKind::User, policy),
            None => admin.clear_policy("/", PolicyKind::User, "policy"),
        };
        set.map_err(|why| why.to_string())?;
        self.listen()?;
        self.model.policy = settings.clone();
        if self.model.queues.contains_key(WORK) {
            self.model.with_queue(WORK, |queue, at| queue.set_policy(&settings, at))?;
        }
        self.tick()
    }

    pub(super) fn pause(&mut self, on: bool) -> Result<(), String> {
        if !self.model.exists(WORK) {
            return Ok(());
        }
        let admin = self.running().broker.admin();
        let name = WORK.as_bytes();
        let changed = if on { admin.pause_queue("/", name) } else { admin.resume_queue("/", name) };
        changed.map_err(|why| why.to_string())?;
        self.listen()?;
        match self.model.streams.contains_key(WORK) {
            true => self.model.with_stream(WORK, |stream, at| stream.pause(on, at)),
            false => self.model.with_queue(WORK, |queue, at| queue.pause(on, at)),
        }
    }

    pub(super) fn purge(&mut self, which: usize) -> Result<(), String> {
        let names: Vec<_> = self.model.queues.keys().copied().collect();
        let name = names[which % names.len()];
        let purge = queue::Purge { queue: short(name), nowait: false };
        self.send((PUBLISHER, TOPOLOGY), &Method::QueuePurge(purge))?;
        self.listen()?;
        self.model.with_queue(name, |queue, _| {
            queue.purge();
            Ok(())
        })
    }

    pub(super) fn close_channel(&mut self, channel: ChannelId) -> Result<(), String> {
        self.running().reopen_channel(channel);
        self.listen()?;
        self.model.close_channels(&[channel], (PUBLISHER, TX))
    }

    pub(super) fn disconnect(&mut self, connection: usize) -> Result<(), String> {
        self.running().disconnect(connection);
        self.listen()?;
        let of_consumers = CONSUMERS.into_iter().filter(|(at, _)| *at == connection);
        let of_publisher = [TX, GETS].map(|number| (PUBLISHER, number));
        let of_publisher = of_publisher.into_iter().filter(|(at, _)| *at == connection);
        let channels: Vec<_> = of_publisher.chain(of_consumers).collect();
        self.model.close_channels(&channels, (PUBLISHER, TX))
    }

    pub(super) fn declare_work(&mut self) -> Result<(), String> {
        if !self.model.exists(WORK) && self.is_full() {
            return Ok(());
        }
        self.declare(0)?;
        self.listen()?;
        let policy = self.model.policy.clone();
        if self.model.queues.contains_key(WORK) {
            self.model.with_queue(WORK, |queue, at| queue.set_policy(&policy, at))?;
        }
        Ok(())
    }

    pub(super) fn delete_work(&mut self) -> Result<(), String> {
        if !self.model.exists(WORK) {
            return Ok(());
        }
        let delete = queue::Delete { queue: short(WORK), ..Default::default() };
        self.send((PUBLISHER, TOPOLOGY), &Method::QueueDelete(delete))?;
        self.listen()?;
        self.model.delete_queue(WORK)
    }

    pub(super) fn toggle_dead(&mut self) -> Result<(), String> {
        if self.model.exists(DEAD) {
            let delete = queue::Delete { queue: short(DEAD), ..Default::default() };
            self.send((PUBLISHER, TOPOLOGY), &Method::QueueDelete(delete))?;
            self.listen()?;
            return self.model.delete_queue(DEAD);
        }
        let dead = self.queues.iter().position(|declared| declared.name == DEAD);
        let Some(dead) = dead.filter(|_| !self.is_full()) else { return Ok(()) };
        self.declare(dead)?;
        self.listen()
    }

    /// Whether the vhost has as many queues as it may have.
    fn is_full(&self) -> bool {
        let queues = self.model.queues.len() + self.model.streams.len() + self.extra.len();
        self.features.has(Feature::VhostLimit) && queues >= self.queues_max
    }

    pub(super) fn toggle_extra(&mut self, name: &'static str) -> Result<(), String> {
        if self.extra.remove(name) {
            let delete = queue::Delete { queue: short(name), ..Default::default() };
            self.send((PUBLISHER, TOPOLOGY), &Method::QueueDelete(delete))?;
            return self.listen();
        }
        let is_full = self.is_full();
        let declared = self.running().declare(name, &FieldTable::new());
        match (&declared, is_full) {
            (Ok(()), false) => {
                self.extra.insert(name);
                self.listen()
            }
            (Err(Fault { code: 406, .. }), true) => {
                self.running().reopen_channel((PUBLISHER, TOPOLOGY));
                Ok(())
            }
            _ => Err(format!("full: {is_full}, yet {declared:?}")),
        }
    }

    /// A connection or a channel that is idle comes or goes. It is refused where the user has as many as
    /// it may have.
    pub(super) fn toggle_idle(
        &mut self,
        toggle: impl FnOnce(&mut Running) -> (Result<(), Fault>, bool),
    ) -> Result<(), String> {
        let (toggled, is_full) = toggle(self.running());
        self.listen()?;
        match (&toggled, is_full) {
            (Ok(()), false) | (Err(Fault { code: 530, .. }), true) => Ok(()),
            _ => Err(format!("full: {is_full}, yet {toggled:?}")),
        }
    }

    pub(super) fn restart(&mut self, how: Stop, with_checkpoint: bool) -> Result<(), String> {
        if how == Stop::Clean {
            (0..CONNECTIONS).try_for_each(|connection| self.disconnect(connection))?;
        }
        self.start_again(how, with_checkpoint)?;
        self.model.restart(self.marks(), false)
    }

    /// Stops the broker and starts it with what is on the disk.
    pub(super) fn start_again(&mut self, how: Stop, with_checkpoint: bool) -> Result<(), String> {
        let running = self.running.take().expect("it runs");
        running.stop(how, with_checkpoint, &self.disk);
        self.running = Some(Running::start(
            &self.disk,
            self.features.has_copies(),
            self.seed,
            self.model.now_ms,
        ));
        self.listen()
    }
}
