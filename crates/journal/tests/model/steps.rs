//! What happens to a running journal.

use crate::{
    owner::{Appended, Entry, encode_state, live_after},
    world::World,
};
use courser_journal::{
    AppendError, AppendMode, Batch, CheckpointError, Lsn, ReadError, testing::Faults,
};

impl World {
    /// Does one thing of all that can be done.
    pub fn step(&mut self) {
        match self.rng.below(100) {
            0..50 => self.append(),
            50..62 => self.flush(),
            62..66 => {
                let end = self.journal().end();
                let waited = self.journal().wait_durable(end);
                assert!(waited.is_err() || self.journal().durable() >= end);
            }
            66..80 => self.read_some(),
            80..86 => self.checkpoint(),
            86..88 => self.earlier = Some(self.journal().end()),
            88..92 => self.journal().maintain_once(),
            92..95 if self.faults => self.change_capacity(),
            95..100 if self.faults => self.change_faults(),
            _ => self.checkpoint(),
        }
    }

    pub fn flush(&mut self) {
        let end = self.journal().end();
        self.journal().flush_once();
        if self.journal().failed().is_none() {
            self.written = end;
        }
    }

    fn entry_len(&mut self) -> u64 {
        if let Some(len) = self.uniform_len {
            return len;
        }
        match self.rng.below(60) {
            0 => self.rng.below(60_000),
            1..20 => self.rng.below(5_000),
            _ => self.rng.below(300),
        }
    }

    fn append(&mut self) {
        let mode = AppendMode { sync: self.rng.one_in(3), reserve: self.rng.one_in(4) };
        let mut live = live_after(&self.batches);
        let mut entries = Vec::new();
        let count = if self.uniform_len.is_some() { 1 } else { self.rng.below(5) };
        for _ in 0..count {
            let ack = live.keys().nth(self.rng.below(live.len() as u64 + 1) as usize).copied();
            let entry = match ack
                .filter(|_| self.rng.one_in(if self.uniform_len.is_some() { 5 } else { 2 }))
            {
                Some(position) => {
                    live.remove(&position);
                    Entry::Ack(position)
                }
                None => {
                    let mut bytes = vec![0; self.entry_len() as usize];
                    // Bytes that look like positions try to pass for frames.
                    let fill = self.rng.number() as u8;
                    let end = self.journal().end().0;
                    for (index, chunk) in bytes.chunks_mut(8).enumerate() {
                        let lookalike = (end + 40 + 8 * index as u64).to_le_bytes();
                        let len = chunk.len();
                        chunk.copy_from_slice(&lookalike[..len]);
                        if !fill.is_multiple_of(4) {
                            chunk.fill(fill.wrapping_add(index as u8));
                        }
                    }
                    Entry::Payload(bytes)
                }
            };
            entries.push(entry);
        }
        self.append_entries(entries, mode);
    }

    /// Appends these in one batch.
    pub fn append_entries(&mut self, entries: Vec<Entry>, mode: AppendMode) {
        let mut batch = Batch::new();
        for entry in &entries {
            batch.push(&[&entry.encode()]);
        }
        let journal = self.journal.as_ref().unwrap();
        let count = batch.len();
        match journal.append(&mut batch, mode) {
            Ok(appended) => {
                let (start, end) = (appended.start(), appended.end());
                let at = |(index, entry)| (appended.position(index), entry);
                let entries: Vec<_> = entries.into_iter().enumerate().map(at).collect();
                for (position, entry) in &entries {
                    match entry {
                        Entry::Payload(_) => journal.hold(*position, 1),
                        Entry::Ack(of) => journal.release(&[(*of).into()]),
                    }
                }
                self.say(format_args!("append {start}..{end} {mode:?}"));
                if count > 0 {
                    self.batches.push(Appended { start, end, entries });
                }
            }
            Err(AppendError::Full | AppendError::Failed(_)) => assert_eq!(batch.len(), count),
            Err(error) => panic!("{error}"),
        }
    }

    pub fn read_some(&mut self) {
        let live = live_after(&self.batches);
        if self.rng.one_in(4) {
            self.cache.clear();
        }
        let skip = self.rng.below(live.len() as u64 + 1) as usize;
        let journal = self.journal.as_ref().unwrap();
        for (position, bytes) in live.iter().skip(skip).take(5) {
            let read = match journal.read(*position, &mut self.cache) {
                // The disk was to refuse this. It is there for who asks again.
                Err(ReadError::Io { .. }) if self.is_once => {
                    journal.read(*position, &mut self.cache).unwrap()
                }
                read => read.unwrap(),
            };
            assert!(Entry::decode(read) == Entry::Payload(bytes.clone()), "at {position}");
        }
    }

    pub fn checkpoint(&mut self) {
        let start = match self.earlier.take() {
            Some(earlier) if self.rng.one_in(2) => earlier,
            _ => self.journal().end(),
        };
        let live = live_after(&self.batches);
        let state = encode_state(&live);
        let journal = self.journal.as_ref().unwrap();
        let wanted = journal.wants_checkpoint();
        let result = journal.checkpoint(
            &mut || start,
            &mut |each| live.keys().filter(|position| **position < start).for_each(|p| each(*p)),
            &mut |out| out.write_all(&state),
        );
        self.say(format_args!("checkpoint {start} wanted {wanted}: {result:?}"));
        match result {
            Ok(_) => {
                let last = |(of, _): &&(Lsn, Vec<u8>)| *of == self.checkpoint;
                self.before = self.checkpoints.iter().find(last).cloned().unwrap_or_default();
                self.checkpoints = vec![(start, state)];
                self.checkpoint = start;
            }
            Err(CheckpointError::BadStart(_)) => assert!(start < self.checkpoint),
            Err(_) => self.checkpoints.push((start, state)),
        }
    }

    fn change_capacity(&mut self) {
        if self.rng.one_in(2) {
            let used = self.disk.used_bytes();
            self.disk.set_capacity(used + self.rng.below(50_000));
        } else {
            self.disk.set_capacity(u64::MAX);
            self.journal().maintain_once();
            assert!(self.journal().has_room() || self.journal().failed().is_some());
        }
    }

    fn change_faults(&mut self) {
        let mut faults = Faults { short_write_one_in: self.rng.below(4), ..Faults::default() };
        let after = Some(self.rng.below(30));
        match self.rng.below(8) {
            0..2 => faults.power_off_after = after,
            2 => faults.fail_write_after = after,
            3 => faults.fail_sync_after = after,
            _ => {}
        }
        self.say(format_args!("{faults:?}"));
        self.disk.set_faults(faults);
    }
}
