//! Messages read from the log.

use super::MalformedRecord;
use crate::{Journal, ReadCache, ReadError, Repeated};
use courser_store::change::message_of;
use courser_store::critical::{self, Work};
use courser_store::{Location, MessageRef, Reader, StoreError};
use std::sync::Arc;
use std::time::Instant;

/// Reads messages from the log.
pub(super) struct LogReader {
    pub journal: Arc<Journal>,
    pub cache: ReadCache,
    pub failed_reads: Arc<Repeated>,
}

impl std::fmt::Debug for LogReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogReader").finish_non_exhaustive()
    }
}

impl Reader for LogReader {
    fn read_while<'a>(
        &'a mut self,
        location: &'a Location,
        is_kept: &dyn Fn() -> bool,
    ) -> Result<MessageRef<'a>, StoreError> {
        let position = match location {
            Location::Log { position, .. } => *position,
            Location::Memory { .. } => {
                let gone = || StoreError::Failed("a message is not in memory".into());
                return location.in_memory().ok_or_else(gone);
            }
        };
        let lost = |error: &dyn std::fmt::Display| {
            tracing::error!(%error, "a message is lost");
            StoreError::Lost(error.to_string())
        };
        let reading = critical::begin(Work::Message);
        let read = self.journal.read(position.into(), &mut self.cache);
        drop(reading);
        // A leader that is deposed has lost nothing, and what it finds may be what the next one has put there. Asked behind
        // the read, which may have come upon either.
        if self.journal.deposed().is_some() {
            return Err(StoreError::Deposed);
        }
        let record = match read {
            Ok(record) => record,
            Err(error) if !is_kept() => return Err(StoreError::Lost(error.to_string())),
            Err(error)
                if self.journal.asks_others(position.into(), &error)
                    || matches!(error, ReadError::Io { .. }) =>
            {
                if let Some(others) = self.failed_reads.line(Instant::now()) {
                    tracing::error!(%error, others, "a message can't be read, which is tried again");
                }
                return Err(StoreError::Unread(error.to_string()));
            }
            Err(error) => return Err(lost(&error)),
        };
        message_of(record).ok_or_else(|| lost(&MalformedRecord(position)))
    }

    fn is_at_hand(&self, location: &Location) -> bool {
        location.position().is_none_or(|position| self.cache.has(position.into()))
    }

    fn held_bytes(&self) -> usize {
        self.cache.held_bytes()
    }
}
