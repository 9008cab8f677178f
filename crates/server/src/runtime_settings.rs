//! Settings that change while the broker runs: what is logged, and from when on publishers are held back.
//!
//! An operator's change holds until the process ends or the configuration is read again.

mod log_level;

pub use log_level::log_filter;

use crate::clock::Clock;
use crate::config::{Config, memory_fraction_bytes, memory_high_bytes, warn_of_memory};
use courser_broker::Broker;
use courser_management::{AskedSetting, NewLimit, RuntimeSetting, SettingInEffect};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// A setting that an operator may have changed.
struct Changeable<T> {
    configured: T,
    value: T,
    /// Who has changed it, and when.
    changed: Option<(String, u64)>,
}

impl<T: Clone + Into<serde_json::Value>> Changeable<T> {
    fn new(configured: T) -> Self {
        Changeable { value: configured.clone(), configured, changed: None }
    }

    /// Returns what it was.
    fn set(&mut self, value: T, by: &str, now_ms: u64) -> T {
        self.changed = Some((by.to_owned(), now_ms));
        std::mem::replace(&mut self.value, value)
    }

    fn shown(&self, before: Option<T>) -> SettingInEffect {
        let (changed_by, changed_at_ms) = self.changed.clone().unzip();
        SettingInEffect {
            value: self.value.clone().into(),
            before: before.map(Into::into),
            configured: self.configured.clone().into(),
            changed_by,
            changed_at_ms,
        }
    }
}

/// Those of one broker by itself, or of one node; the log is the process's.
pub(crate) struct RuntimeSettings {
    clock: Clock,
    /// As they were read last.
    configured: Mutex<Config>,
    memory: Mutex<MemoryLimit>,
}

struct MemoryLimit {
    /// In bytes.
    limit: Changeable<u64>,
    /// The brokers that follow it, each with how many share it.
    brokers: Vec<(Weak<Broker>, u64)>,
}

impl RuntimeSettings {
    /// As they are configured.
    pub fn new(config: &Config, clock: &Clock) -> Arc<Self> {
        let limit = Changeable::new(memory_high_bytes(config.limits.memory_high_bytes));
        let memory = Mutex::new(MemoryLimit { limit, brokers: Vec::new() });
        let configured = Mutex::new(config.clone());
        Arc::new(RuntimeSettings { clock: clock.clone(), configured, memory })
    }

    /// Takes over what the configuration says now, in the place of what operators have changed.
    pub fn configure(&self, config: &Config) {
        self.configured.lock().clone_from(config);
        log_level::configure(&config.log.level);
        let mut memory = self.memory.lock();
        let before = memory.limit.value;
        memory.limit = Changeable::new(memory_high_bytes(config.limits.memory_high_bytes));
        if memory.limit.value != before {
            let bytes = memory.limit.value;
            tracing::info!(bytes, before, "the memory limit is that of the configuration");
            config.limits.warn_of_memory();
        }
        let there = memory.apply();
        drop(memory);
        drop(there);
    }

    /// All settings of a broker that was started with these, without secrets, as they have been read again since.
    pub fn in_effect(&self, started: &Config) -> serde_json::Value {
        started.with_reloaded(&self.configured.lock()).without_secrets()
    }

    /// From how many bytes on this node holds publishers back.
    pub fn memory_high_bytes(&self) -> u64 {
        self.memory.lock().limit.value
    }

    /// Has a broker follow the memory limit from now on, which it shares with others of the node: `sharing` of them, with itself.
    pub fn follow_memory_limit(&self, broker: &Arc<Broker>, sharing: u64) {
        let mut memory = self.memory.lock();
        memory.brokers.push((Arc::downgrade(broker), sharing));
        let there = memory.apply();
        drop(memory);
        drop(there);
    }

    /// Answers what an operator asks.
    ///
    /// # Errors
    /// Why it can't be what is asked for.
    pub fn ask(&self, asked: &AskedSetting) -> Result<SettingInEffect, String> {
        let AskedSetting { setting, by } = asked;
        match setting {
            RuntimeSetting::LogLevel(None) => log_level::shown(),
            RuntimeSetting::LogLevel(Some(new)) => log_level::set(new, by, self.clock.now_ms()),
            RuntimeSetting::MemoryLimit(None) => Ok(self.memory.lock().limit.shown(None)),
            RuntimeSetting::MemoryLimit(Some(new)) => self.set_memory_limit(*new, by),
        }
    }

    fn set_memory_limit(&self, new: NewLimit, by: &str) -> Result<SettingInEffect, String> {
        let bytes = match new {
            NewLimit::Bytes(bytes) => memory_high_bytes(bytes),
            NewLimit::Fraction(fraction) => memory_fraction_bytes(fraction)?,
        };
        let mut memory = self.memory.lock();
        let before = memory.limit.set(bytes, by, self.clock.now_ms());
        tracing::info!(by, bytes, before, "the memory limit was changed");
        warn_of_memory(bytes);
        let (there, shown) = (memory.apply(), memory.limit.shown(Some(before)));
        drop(memory);
        drop(there);
        Ok(shown)
    }
}

/// The part of a limit that one of `sharing` brokers has. None would be held back for good by it.
pub(crate) fn share(bytes: u64, sharing: u64) -> u64 {
    (bytes / sharing.max(1)).max(1)
}

impl MemoryLimit {
    /// Tells it all brokers that there are. Returns them: one that is kept by nothing else is not to end while this is locked.
    #[must_use]
    fn apply(&mut self) -> Vec<Arc<Broker>> {
        let (bytes, mut there) = (self.limit.value, Vec::new());
        self.brokers.retain(|(broker, sharing)| {
            let broker = broker.upgrade();
            if let Some(broker) = &broker {
                broker.set_memory_high_bytes(share(bytes, *sharing));
            }
            let is_there = broker.is_some();
            there.extend(broker);
            is_there
        });
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use courser_broker::Limits;
    use courser_management::NewLimit::{Bytes, Fraction};
    use courser_store::{MemoryGauge, MemoryStore};

    fn broker() -> Arc<Broker> {
        let gauge = Arc::new(MemoryGauge::default());
        let store = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
        Broker::new(store, gauge, Limits::default(), 7)
    }

    fn asked(limit: Option<NewLimit>) -> AskedSetting {
        AskedSetting { setting: RuntimeSetting::MemoryLimit(limit), by: "alice".into() }
    }

    fn limits(brokers: &[Arc<Broker>]) -> Vec<u64> {
        brokers.iter().map(|broker| broker.memory_high_bytes()).collect()
    }

    #[test]
    fn brokers_of_a_node_share_the_limit_whenever_they_come() {
        let mut config = Config::default();
        config.limits.memory_high_bytes = 600;
        let settings = RuntimeSettings::new(&config, &Clock::default());
        let brokers = [broker(), broker()];
        settings.follow_memory_limit(&brokers[0], 3);
        let done = settings.ask(&asked(Some(Bytes(900)))).expect("a limit");
        assert_eq!((done.value, done.before), (900.into(), Some(600.into())));
        settings.follow_memory_limit(&brokers[1], 3);
        assert_eq!(limits(&brokers), [300, 300]);
        let shown = settings.ask(&asked(None)).expect("a limit");
        assert_eq!((shown.value, shown.before, shown.configured), (900.into(), None, 600.into()));
        assert_eq!(shown.changed_by.as_deref(), Some("alice"));

        // 0 would stand for something else.
        settings.ask(&asked(Some(Bytes(2)))).expect("a limit");
        assert_eq!(limits(&brokers), [1, 1]);

        settings.configure(&config);
        assert_eq!(limits(&brokers), [200, 200]);
        assert_eq!(settings.ask(&asked(None)).expect("a limit").changed_by, None);
    }

    #[test]
    fn limits_are_bounded_as_the_setting_is() {
        let settings = RuntimeSettings::new(&Config::default(), &Clock::default());
        let all = settings.ask(&asked(Some(Fraction(1.0)))).expect("the memory").value;
        let default = settings.ask(&asked(Some(Bytes(0)))).expect("the default").value;
        let share = default.as_f64().expect("bytes") / all.as_f64().expect("bytes");
        assert!((0.39..0.41).contains(&share), "{share}");
        let refused = settings.ask(&asked(Some(Fraction(1e-15)))).expect_err("no byte");
        assert!(refused.contains("less than one"), "{refused}");
        for fraction in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            let refused = settings.ask(&asked(Some(Fraction(fraction))));
            assert!(refused.expect_err("no fraction").contains("more than 0 and at most 1"));
        }
        assert_eq!(settings.memory_high_bytes(), default.as_u64().expect("bytes"));
    }
}
