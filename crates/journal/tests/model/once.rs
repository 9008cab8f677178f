//! A history in which everything happens that the journal does on a disk, for one operation of that to fail.

use crate::{
    owner::{Entry, live_after},
    world::World,
};
use courser_journal::{
    AppendMode, OpenError,
    testing::{FakeDisk, Faults},
};

const SYNC: AppendMode = AppendMode { sync: true, reserve: false };

/// What happens in each life. After a failure of the journal, nothing more does in this one.
const LIFE: &[fn(&mut World)] = &[
    |world| world.append_some(90),
    World::flush,
    // Some of the segments are free then, and in others one record lives.
    |world| world.acknowledge_but_one_in(40),
    World::checkpoint,
    // It punches holes.
    World::checkpoint,
    World::read_some,
    // It needs a segment of its own.
    |world| world.append_entries(vec![Entry::Payload(vec![1; 40_000])], SYNC),
    World::flush,
    |world| world.append_some(10),
    // Also those with holes are free then.
    |world| world.acknowledge_but_one_in(usize::MAX),
    World::checkpoint,
    World::checkpoint,
    // A checkpoint takes a spare segment's room.
    |world| world.disk.set_capacity(world.disk.used_bytes()),
    |world| world.append_some(70),
    World::checkpoint,
    |world| world.disk.set_capacity(u64::MAX),
    |world| world.journal().maintain_once(),
    |world| world.append_some(5),
    World::read_some,
];

impl World {
    /// A world for this history, in which the disk loses something else each time.
    pub fn once(seed: u64, time: u64, verbose: bool) -> Self {
        let mut world = World::new(seed, verbose);
        world.disk = FakeDisk::new(seed ^ time << 32);
        world.options.segment_bytes = 32 << 10;
        world.is_once = true;
        world
    }

    /// Two lives with one fault: either the power goes when it has come, or all goes on as long as it does. After a start that
    /// fails comes another one. Returns whether it came to the fault.
    pub fn live_with(&mut self, faults: Faults, power_goes: bool) -> bool {
        self.disk.set_faults(faults);
        let ends: [fn(&mut World); 2] = match power_goes {
            true => [World::kill, World::stop],
            false => [World::stop, World::kill],
        };
        for end in ends {
            let (is_to_come, mut is_over) = (self.disk.has_fault_left(), false);
            self.start_once();
            for step in LIFE {
                step(self);
                self.observe();
                is_over = power_goes && is_to_come && !self.disk.has_fault_left();
                if is_over || self.journal().failed().is_some() {
                    break;
                }
            }
            let faults = self.disk.faults();
            if is_over {
                self.lose_power()
            } else {
                end(self)
            }
            // It may come up at the next start, or behind it.
            self.disk.set_capacity(u64::MAX);
            self.disk.set_faults(faults);
        }
        !self.disk.has_fault_left()
    }

    fn start_once(&mut self) {
        self.cache.clear();
        let started = self.try_start().or_else(|error| {
            self.say(format_args!("the start fails: {error}"));
            assert!(!self.disk.has_fault_left(), "{error}");
            assert!(matches!(error, OpenError::Io { .. }), "it names what was refused: {error}");
            self.try_start()
        });
        self.journal = Some(started.expect("nothing fails any more"));
        let end = self.journal().end();
        (self.durable, self.written) = (end, end);
    }

    fn append_some(&mut self, count: usize) {
        for fill in 0..count {
            if self.journal().failed().is_none() {
                self.append_entries(vec![Entry::Payload(vec![fill as u8; 1000])], SYNC);
            }
            if fill % 10 == 9 {
                self.flush();
            }
        }
    }

    fn acknowledge_but_one_in(&mut self, kept: usize) {
        let live = live_after(&self.batches).into_keys().enumerate();
        let gone = live.filter(|(index, _)| index % kept != kept / 2);
        let acks = gone.map(|(_, position)| Entry::Ack(position)).collect();
        self.append_entries(acks, AppendMode { sync: true, reserve: true });
        self.flush();
    }
}
