//! A group's log as the shard that a broker is on.
//!
//! On the leader it is a [`JournalStore`] whose appends are proposed to the others, and durable when a majority has them.
//! What a broker begins with is read from the last checkpoint and the committed entries behind it. A follower serves
//! no clients: now and then it makes a checkpoint of what is committed, so that its log does not grow, and that it can serve
//! soon when it is elected.

mod follower;
mod open;
mod restore;

pub use follower::FollowerCheckpointError;
pub(crate) use follower::{
    CheckpointThread, is_wanted as is_checkpoint_wanted, make as make_checkpoint,
};

use crate::member::{Lead, Shared};
use courser_journal::{JournalStore, public_id};
use courser_store::{
    MemoryGauge, OpenReport, Opened, Opening, Progress, ShardError, ShardId, Shards,
};
use open::ReplicatedShard;
pub use restore::RestoreError;
use restore::Restored;
use std::sync::Arc;

/// The shards of a group, while this node serves in one term: the home shard, which can be opened once.
///
/// When the term ends, the store takes nothing any more, confirms nothing any more, and says so by its failure. The
/// broker on it is dropped then, and opened anew in the next term that this node serves in.
pub struct ReplicatedShards {
    shared: Arc<Shared>,
    term: u64,
    gauge: Arc<MemoryGauge>,
}

/// Why a shard of a group can't be opened or removed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("a cluster has one shard: shard {0} can't be had in it")]
    NoOther(ShardId),
    #[error("this node does not lead the group any more")]
    NotLeading,
    #[error(transparent)]
    Restore(#[from] RestoreError),
    #[error(
        "the message at position {0} is in no segment: this copy must be rebuilt from another one"
    )]
    Missing(courser_store::Lsn),
}

impl ReplicatedShards {
    pub(crate) fn new(shared: Arc<Shared>, term: u64, gauge: Arc<MemoryGauge>) -> Self {
        ReplicatedShards { shared, term, gauge }
    }

    fn open_home(&self, progress: &mut dyn FnMut(Progress)) -> Result<Opened, Refused> {
        // A checkpoint of this node as a follower ends first: it counts what is live too.
        let _alone = self.shared.restoring.lock();
        let is_own = |lead: &Lead| lead.term == self.term;
        let own = |lead: &Lead| is_own(lead).then(|| (Arc::clone(&lead.journal), lead.last));
        let lead = self.shared.lead.lock().as_ref().and_then(own);
        let (journal, last) = lead.ok_or(Refused::NotLeading)?;
        let Restored { recovered, records } =
            restore::restore(&self.shared.replica, last, &mut || true, progress)?;
        journal
            .count_live(&mut |each| {
                recovered.for_each_position(&mut |position| each(position.into()));
            })
            .map_err(Refused::Missing)?;
        // At the end: where something fails it may be tried again, as what is damaged can come from another node.
        let lead = self.shared.lead.lock().take_if(|lead| is_own(lead));
        lead.ok_or(Refused::NotLeading)?;
        let report = OpenReport { records, end: journal.end(), torn: false };
        let store = Arc::new(JournalStore::on_lead(journal, Arc::clone(&self.gauge)));
        Ok(Opened { shard: Arc::new(ReplicatedShard::new(store)), recovered, report })
    }

    fn error(&self, refused: Refused) -> ShardError {
        let place = format!("group {:08x}", public_id(self.shared.replica.identity().group));
        ShardError { place, error: refused.into() }
    }
}

impl Shards for ReplicatedShards {
    fn open(
        &self,
        shard: ShardId,
        _opening: Opening,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Opened, ShardError> {
        let opened = match shard {
            ShardId::HOME => self.open_home(progress),
            other => Err(Refused::NoOther(other)),
        };
        opened.map_err(|refused| self.error(refused))
    }

    fn remove(&self, shard: ShardId) -> Result<(), ShardError> {
        Err(self.error(Refused::NoOther(shard)))
    }

    fn has_others(&self) -> bool {
        false
    }
}
