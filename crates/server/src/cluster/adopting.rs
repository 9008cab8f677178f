//! A node that begins its cluster with the data that a broker by itself has left in its folder.

use super::node::Inner;
use crate::config::Config;
use crate::storage::Disk;
use courser_cluster::forming::Folder;
use courser_cluster::transport::Formation;
use courser_cluster::{AdoptError, GroupNumber};
use courser_store::Progress;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What takes longer than this tells how far it is.
const QUIET: Duration = Duration::from_secs(1);

impl Inner {
    /// Makes the broker's journal the first copy of the cluster's log, as soon as there is room for that. One that was interrupted
    /// is begun anew: until the end, the folder is still that of the broker.
    ///
    /// # Errors
    /// Why it is still that.
    pub(super) async fn adopt(&self) -> Result<Formation, String> {
        tracing::info!("this node begins the cluster with the data in its folder");
        let folder = Arc::clone(&self.folder);
        let dir = self.blocking(move || folder.copy_dir(GroupNumber::HOME)).await?;
        let dir = dir.map_err(|error| error.to_string())?;
        loop {
            let (journal, config) = (dir.clone(), self.config());
            let (disk, folder) = (Arc::clone(&self.disk), Arc::clone(&self.folder));
            let begun = Instant::now();
            let adopting = self.blocking(move || adopt(&journal, &config, disk, &folder));
            let journal = dir.display();
            match adopting.await? {
                Ok(formation) => return Ok(formation),
                Err(error) if error.lacks_room() => {
                    let why = format!(
                        "the journal in {journal} can't begin a cluster before its disk has more room, and is as it was: {error}"
                    );
                    self.try_later(GroupNumber::HOME, begun.elapsed(), why).await;
                }
                Err(error) => {
                    return Err(format!(
                        "the journal in {journal} can't begin a cluster, and is as it was: {error}"
                    ));
                }
            }
        }
    }
}

/// Blocks while the journal is read, and tells the log how far that is.
fn adopt(
    journal: &Path,
    config: &Config,
    disk: Arc<dyn Disk>,
    folder: &Folder,
) -> Result<Formation, AdoptError> {
    let mut told = Instant::now();
    let mut tell = |progress: Progress| {
        if told.elapsed() >= QUIET {
            told = Instant::now();
            let (read, total) = (progress.read_bytes >> 20, progress.total_bytes >> 20);
            tracing::info!("replaying the journal: {read} of {total} MiB");
        }
    };
    let (options, node) = (config.journal_options(), folder.node());
    courser_cluster::adopt(journal, options, disk, node, &mut tell, |identity| {
        let decided = Formation {
            group: identity.group,
            segment_bytes: identity.segment_bytes,
            founders: vec![node],
            recovery: None,
        };
        folder.set_formation(&decided)?;
        Ok(decided)
    })
}
