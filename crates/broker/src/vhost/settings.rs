//! What an operator has said of a vhost.

use super::{Vhost, VhostLimits};
use crate::arguments::{QUEUE_TYPE, QueueType, names_type};
use crate::fault::{Fault, store_fault};
use crate::persistence::definition;
use crate::shard::Shard;
use crate::vhost::QueueRequest;
use courser_auth::Record as AccountRecord;
use courser_codec::{FieldValue, ShortStr, ShortString};
use courser_store::Record;

/// Bytes of a vhost's description.
const DESCRIPTION_BYTES_MAX: usize = 4096;
/// Tags of a vhost.
const TAGS_MAX: usize = 32;
/// Bytes of one of them.
const TAG_BYTES_MAX: usize = 255;

/// What an operator says of a vhost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VhostSettings {
    /// What it may have at most.
    pub limits: VhostLimits,
    /// What it is for.
    pub description: String,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The type of the queues that are declared without one: `classic`, `quorum` or `stream`. Those
    /// that are not durable, exclusive or deleted by themselves are classic all the same.
    pub default_queue_type: Option<String>,
    /// Copies of all messages go to `amq.rabbitmq.trace`.
    pub tracing: bool,
    /// It can't be deleted.
    pub protected: bool,
    /// The group of a cluster that it is in, with all that is in it. Said when it is made.
    pub group: u16,
    /// Tells its stay in a group other than 0 from any other there, also of a vhost that had its name.
    pub(crate) stay: u64,
    /// It has come to such a group with what was in it, and was not made there.
    pub(crate) has_moved: bool,
}

impl VhostSettings {
    /// Refuses what can't be meant or is too much.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if self.description.len() > DESCRIPTION_BYTES_MAX {
            return Err(Fault::precondition_failed(format_args!(
                "the description of a vhost has {DESCRIPTION_BYTES_MAX} bytes at most"
            )));
        }
        let tags = &self.tags;
        if tags.len() > TAGS_MAX || tags.iter().any(|tag| tag.len() > TAG_BYTES_MAX) {
            return Err(Fault::precondition_failed(format_args!(
                "a vhost has {TAGS_MAX} tags of {TAG_BYTES_MAX} bytes at most"
            )));
        }
        match &self.default_queue_type {
            Some(name) if QueueType::named(name).is_none() => {
                Err(Fault::precondition_failed(format_args!("{name} is not a valid queue type")))
            }
            _ => Ok(()),
        }
    }
}

impl Vhost {
    /// What an operator has said of it, if anything.
    pub fn settings(&self) -> Option<VhostSettings> {
        self.settings.lock().clone()
    }

    /// What it may have at most, if an operator has said anything of it.
    pub fn limits(&self) -> Option<VhostLimits> {
        self.settings.lock().as_ref().map(|settings| settings.limits)
    }

    /// The group of a cluster that it is in.
    pub fn group(&self) -> u16 {
        self.settings.lock().as_ref().map_or(0, |settings| settings.group)
    }

    /// Changes what an operator has said of it, in the log first: that of `home`, the broker's own,
    /// wherever the vhost itself is. The caller is in the gate of that, and holds `defined` of the broker, so that the log has the
    /// changes in their order.
    pub(crate) fn change_settings(
        &self,
        home: &Shard,
        change: impl FnOnce(&mut VhostSettings) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.change_settings_along(home, &[], change)
    }

    /// The same, with other definitions along with it in the log.
    fn change_settings_along(
        &self,
        home: &Shard,
        others: &[Record<'_>],
        change: impl FnOnce(&mut VhostSettings) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        // Others read until the log has the change what there was before.
        let before = self.settings();
        let mut new = before.clone().unwrap_or_default();
        change(&mut new)?;
        new.check()?;
        if before.as_ref() != Some(&new) {
            let key = definition::vhost_key(&self.name);
            let value = definition::vhost_value(&new);
            let record = Record::Defined { key: &key, value: &value };
            let records: Vec<_> = [&[record], others].concat();
            home.define(&records).map_err(store_fault)?;
            let tracing = new.tracing;
            *self.settings.lock() = Some(new);
            // That waits for changes of the vhost under way.
            if tracing != self.is_traced() {
                self.set_tracing(tracing);
            }
        }
        Ok(())
    }

    /// Says the first of it, and has the log keep these changes to accounts with that, together or not at all.
    pub(crate) fn begin_with(
        &self,
        home: &Shard,
        settings: VhostSettings,
        accounts: &[AccountRecord],
    ) -> Result<(), Fault> {
        let accounts = accounts.iter().filter_map(|record| Some((record.key(), record.value()?)));
        let accounts: Vec<_> = accounts.collect();
        let accounts: Vec<_> =
            accounts.iter().map(|(key, value)| Record::Defined { key, value }).collect();
        self.change_settings_along(home, &accounts, |new| {
            *new = settings;
            Ok(())
        })
    }

    /// Takes back what was said of it before a restart.
    pub(crate) fn restore_settings(&self, settings: VhostSettings) {
        let tracing = settings.tracing;
        *self.settings.lock() = Some(settings);
        self.set_tracing(tracing);
    }

    /// Gives a queue that is declared without a type that of the vhost, if it can have it. One that is
    /// there already keeps its own.
    pub(super) fn give_default_type(&self, request: &mut QueueRequest) {
        if !request.durable || request.exclusive || request.auto_delete {
            return;
        }
        if names_type(&request.arguments) {
            return;
        }
        let settings = self.settings.lock();
        let named = settings.as_ref().and_then(|settings| settings.default_queue_type.as_deref());
        let Some(default) = named.and_then(QueueType::named) else { return };
        drop(settings);
        let there = self.queue(request.name.as_bytes());
        if there.is_some_and(|queue| QueueType::of(&queue.settings.arguments) != default) {
            return;
        }
        let key = ShortString::from(ShortStr::from_static(QUEUE_TYPE));
        request.arguments.insert(key, FieldValue::from(default.name()));
    }
}
