//! What a log has done, and what it takes: for operators, not for the code that uses the log.

use std::ops::AddAssign;
use std::time::Duration;

/// Up to how long a sync takes to be counted in each place of [`Figures::syncs_by_duration`]; all
/// others take longer than the last.
pub const SYNC_DURATIONS: [Duration; 14] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// What a log has done since it was opened, and what it takes on the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// What tells the log from others, and is the same after a restart; 0 for none. It says nothing of what the log is written
    /// with.
    pub id: u32,
    /// Batches appended.
    pub appends: u64,
    /// Records in them.
    pub records: u64,
    /// Writes to its files.
    pub writes: u64,
    /// Bytes of these.
    pub written_bytes: u64,
    /// How long they took together.
    pub write_time: Duration,
    /// Syncs by how long each took: up to the first of [`SYNC_DURATIONS`], up to the second, and so on;
    /// then the longer ones.
    pub syncs_by_duration: [u64; SYNC_DURATIONS.len() + 1],
    /// How long they took together.
    pub sync_time: Duration,
    /// Reads of its files while it was open.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
    /// How long they took together.
    pub read_time: Duration,
    /// Checkpoints made.
    pub checkpoints: u64,
    /// How long they took together.
    pub checkpoint_time: Duration,
    /// Bytes of the last checkpoint.
    pub checkpoint_bytes: u64,
    /// Files that hold log.
    pub segments: u64,
    /// Bytes of these.
    pub log_bytes: u64,
    /// Estimate of the bytes in them that are still needed.
    pub live_bytes: u64,
    /// Bytes of files that are ready to be used.
    pub spare_bytes: u64,
}

impl Figures {
    /// How many syncs there were.
    pub fn syncs(&self) -> u64 {
        self.syncs_by_duration.iter().sum()
    }
}

/// Adds another log's. The identity stays.
impl AddAssign<&Figures> for Figures {
    fn add_assign(&mut self, more: &Figures) {
        let counts = [
            (&mut self.appends, more.appends),
            (&mut self.records, more.records),
            (&mut self.writes, more.writes),
            (&mut self.written_bytes, more.written_bytes),
            (&mut self.reads, more.reads),
            (&mut self.read_bytes, more.read_bytes),
            (&mut self.checkpoints, more.checkpoints),
            (&mut self.checkpoint_bytes, more.checkpoint_bytes),
            (&mut self.segments, more.segments),
            (&mut self.log_bytes, more.log_bytes),
            (&mut self.live_bytes, more.live_bytes),
            (&mut self.spare_bytes, more.spare_bytes),
        ];
        counts.into_iter().for_each(|(sum, more)| *sum += more);
        for (sum, more) in self.syncs_by_duration.iter_mut().zip(more.syncs_by_duration) {
            *sum += more;
        }
        self.write_time += more.write_time;
        self.sync_time += more.sync_time;
        self.read_time += more.read_time;
        self.checkpoint_time += more.checkpoint_time;
    }
}
