//! What a broker of a test logs to: a journal, or one copy of a replicated log, on a disk and without a thread of its own.

use crate::{Driver, Identity, Leadership, Member, MemberConfig, NodeId, Origin, Packet, Peers};
use courser_journal::testing::FakeDisk;
use courser_journal::{JournalStore, Options};
use courser_store::{
    MemoryGauge, OpenShard, Opening, Recovered, ShardId, ShardState, Shards, Store,
};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// A log, and its store.
pub enum LogOnDisk {
    /// A journal.
    Alone(Arc<JournalStore>),
    /// One copy of a replicated log.
    Copy(Box<LogOfGroup>),
}

impl LogOnDisk {
    /// The store of it.
    pub fn store(&self) -> Arc<dyn Store> {
        match self {
            LogOnDisk::Alone(store) => Arc::clone(store) as Arc<dyn Store>,
            LogOnDisk::Copy(copy) => copy.shard.store(),
        }
    }

    /// Makes everything durable that was appended, as far as it can.
    pub fn flush(&self) {
        match self {
            LogOnDisk::Alone(store) => while store.journal().flush_once() {},
            LogOnDisk::Copy(copy) => copy.flush(),
        }
    }

    /// Makes a checkpoint; why not, if that fails.
    pub fn checkpoint(&self, state: &dyn ShardState) -> Result<(), String> {
        match self {
            LogOnDisk::Alone(store) => store.checkpoint(state).map(drop).map_err(text),
            LogOnDisk::Copy(copy) => {
                copy.flush();
                copy.shard.checkpoint(state).map(drop).map_err(text)
            }
        }
    }

    /// Stops in order.
    pub fn close(&self) {
        match self {
            LogOnDisk::Alone(store) => store.journal().close().expect("nothing fails"),
            LogOnDisk::Copy(copy) => {
                copy.flush();
                copy.member.close().expect("nothing fails");
            }
        }
    }
}

/// The log of a group that has one node, which leads it.
pub struct LogOfGroup {
    driver: Mutex<Driver>,
    member: Member,
    shard: Arc<dyn OpenShard>,
}

/// There are no others.
struct Alone;

impl Peers for Alone {
    fn send(&self, _to: NodeId, _packets: Vec<Packet>) {}
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl LogOfGroup {
    /// Has the node lead, and opens its shard; why not, if that fails.
    pub fn open(
        disk: &FakeDisk,
        options: Options,
        gauge: Arc<MemoryGauge>,
    ) -> Result<(Self, Recovered), String> {
        let node = NodeId(1);
        let config = MemberConfig {
            dir: PathBuf::from("group"),
            disk: Arc::new(disk.clone()),
            identity: Identity { group: 7, segment_bytes: options.segment_bytes },
            origin: Origin::Founders(vec![node]),
            options: crate::Options::new(node),
            tick: std::time::Duration::ZERO,
            journal: options,
        };
        let (member, mut driver) = Member::idle(config, Arc::new(Alone)).map_err(text)?;
        let term = loop {
            driver.turn(true).map_err(text)?;
            let replica = driver.group().log().replica();
            replica.maintain_once();
            replica.flush_once();
            if let Leadership::Serving { term } = *member.leadership().borrow() {
                break term;
            }
        };
        let opened =
            member.shards(term, gauge).open(ShardId::HOME, Opening::MakeIfMissing, &mut |_| {});
        let opened = opened.map_err(text)?;
        let log = LogOfGroup { driver: Mutex::new(driver), member, shard: opened.shard };
        Ok((log, opened.recovered))
    }

    fn flush(&self) {
        let (mut driver, store) = (self.driver.lock(), self.shard.store());
        loop {
            // An error is one of the disk, which the store knows of too.
            let goes_on = driver.turn(true).unwrap_or(false);
            let wrote = driver.group().log().replica().flush_once();
            let is_over = !goes_on || store.failure().is_some();
            if is_over || !wrote && store.durable() >= store.end() {
                return;
            }
        }
    }
}
