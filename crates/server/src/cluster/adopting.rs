//! A node that begins its cluster with the data that a broker by itself has left in its folder.

use super::node::Inner;
use courser_cluster::GroupNumber;
use courser_cluster::transport::Formation;
use courser_store::Progress;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What takes longer than this tells how far it is.
const QUIET: Duration = Duration::from_secs(1);

impl Inner {
    /// Makes the broker's journal the first copy of the cluster's log. One that was interrupted is begun anew: until the end,
    /// the folder is still that of the broker.
    ///
    /// # Errors
    /// Why it is still that.
    pub(super) async fn adopt(&self) -> Result<Formation, String> {
        tracing::info!("this node begins the cluster with the data in its folder");
        let (config, folder) = (self.config(), Arc::clone(&self.folder));
        let adopting = self.blocking(move || {
            let dir = folder.copy_dir(GroupNumber::HOME)?;
            let mut told = Instant::now();
            let mut tell = |progress: Progress| {
                if told.elapsed() >= QUIET {
                    told = Instant::now();
                    let (read, total) = (progress.read_bytes >> 20, progress.total_bytes >> 20);
                    tracing::info!("replaying the journal: {read} of {total} MiB");
                }
            };
            let mut formation = None;
            let (options, disk) = (config.journal_options(), config.disk());
            courser_cluster::adopt(&dir, options, disk, folder.node(), &mut tell, |identity| {
                let decided = Formation {
                    group: identity.group,
                    segment_bytes: identity.segment_bytes,
                    founders: vec![folder.node()],
                    recovery: None,
                };
                folder.set_formation(&decided)?;
                formation = Some(decided);
                Ok(())
            })?;
            Ok::<_, courser_cluster::AdoptError>(formation)
        });
        let adopted = adopting.await?;
        let formation = adopted.map_err(|error| {
            format!("the data in the folder can't begin a cluster, and are as they were: {error}")
        })?;
        formation.ok_or_else(|| "nothing was decided".to_owned())
    }
}
