//! Imports whatever the fuzzer comes upon as definitions: what was made once can be made again, and changes nothing.
#![no_main]

use courser_broker::{Broker, Limits};
use courser_management::import;
use courser_store::{MemoryGauge, MemoryStore, Store};
use std::sync::Arc;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let gauge = Arc::new(MemoryGauge::default());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&gauge)));
    let broker = Broker::new(store, gauge, Limits::default(), 7);
    let admin = broker.admin();
    let groups = if input.first() == Some(&b' ') { 3 } else { 1 };
    let import = || import(&admin, input, Default::default(), groups);
    if let Ok(made) = import() {
        let queues = admin.queues(None).map(|queues| queues.len()).ok();
        assert_eq!(import(), Ok(made));
        assert_eq!(admin.queues(None).map(|queues| queues.len()).ok(), queues);
    }
});
