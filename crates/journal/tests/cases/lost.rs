//! What a reader does not find in the log.

use crate::support::{dir, options};
use courser_journal::JournalStore;
use courser_journal::testing::FakeDisk;
use courser_store::{BodySize, Location, Messages, Position, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Counts what is logged as an error.
#[derive(Default)]
struct Errors(AtomicUsize);

impl Subscriber for Errors {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn what_was_let_go_of_during_the_read_is_not_told_as_lost() {
    let (disk, gauge) = (Arc::new(FakeDisk::new(7)), Arc::default());
    let opened = JournalStore::open(&dir(), options(), disk, gauge, u64::MAX, &mut |_| {});
    let (store, ..) = opened.expect("an empty journal");
    let mut reader = store.reader();
    let nowhere = Location::Log { position: Position(1 << 20), body: BodySize::UNKNOWN, marks: 0 };
    let errors = Arc::new(Errors::default());
    tracing::subscriber::with_default(Arc::clone(&errors), || {
        for (is_kept, told) in [(false, 0), (true, 1)] {
            let read = reader.read_while(&nowhere, &|| is_kept);
            assert!(matches!(read, Err(StoreError::Lost(_))), "{read:?}");
            assert_eq!(errors.0.load(Ordering::Relaxed), told);
        }
    });
}
