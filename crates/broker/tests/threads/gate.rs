//! The gate of a shard: passed by two threads, watched by a checkpoint. The model follows `Gate`, the flush
//! of a batch, and `StateOfShard`.

use loom::sync::{Arc, Mutex, RwLock};
use loom::thread;

const PASSERS: usize = 2;

#[derive(Default)]
struct Shard {
    /// One part for each thread that passes.
    gate: [RwLock<()>; PASSERS],
    end: Mutex<u64>,
    /// Positions in the log of what has taken effect.
    effects: Mutex<Vec<u64>>,
}

impl Shard {
    /// Appends a change to the log and has it take effect.
    fn change(&self, thread: usize) {
        let _gate = self.gate[thread].read().unwrap();
        let position = {
            let mut end = self.end.lock().unwrap();
            *end += 1;
            *end
        };
        self.effects.lock().unwrap().push(position);
    }

    /// Writes what has taken effect before the checkpoint's start, for which who is in `parts` of the gate is waited for.
    fn checkpoint(&self, parts: usize) {
        let start = *self.end.lock().unwrap();
        for part in &self.gate[..parts] {
            drop(part.write().unwrap());
        }
        let mut written = self.effects.lock().unwrap().clone();
        written.retain(|position| *position <= start);
        written.sort_unstable();
        assert_eq!(written, Vec::from_iter(1..=start), "the log is freed up to {start}");
    }
}

fn checkpoint_among_changes(parts: usize) {
    loom::model(move || {
        let shard = Arc::new(Shard::default());
        let threads: Vec<_> = (0..PASSERS)
            .map(|number| {
                let shard = Arc::clone(&shard);
                thread::spawn(move || shard.change(number))
            })
            .collect();
        shard.checkpoint(parts);
        for thread in threads {
            thread.join().unwrap();
        }
        shard.checkpoint(parts);
    });
}

#[test]
fn a_checkpoint_has_all_changes_before_its_start() {
    checkpoint_among_changes(PASSERS);
}

#[test]
#[should_panic(expected = "the log is freed up to")]
fn a_checkpoint_that_waits_for_a_part_of_the_gate_misses_a_change() {
    checkpoint_among_changes(PASSERS - 1);
}
