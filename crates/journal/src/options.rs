//! What can be set about a journal.

use courser_store::Noting;
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Sizes and bounds of a [`Journal`](crate::Journal).
#[derive(Clone, Debug)]
pub struct Options {
    /// Size of a segment file, header included; rounded up to 4 KiB. A batch that does not fit
    /// gets a segment of its own size. May differ from one start to the next.
    pub segment_bytes: u64,
    /// Most bytes that may wait in memory for the log thread; an append beyond blocks until the
    /// disk has taken some. This is the back-pressure on the threads that append.
    pub buffer_bytes: usize,
    /// Bytes written without a wish for durability are synced at the latest when this many have
    /// gathered.
    pub unsynced_bytes: u64,
    /// Longest time from one sync to the next that the log thread may leave for more to come in. How
    /// much of it is used follows what a sync costs and how busy the processors are; none where syncs
    /// carry one record each. Zero leaves no gaps.
    pub gather: Duration,
    /// Largest batch that is taken; at most 2 GiB.
    pub batch_bytes: u64,
    /// A checkpoint is wanted when this much log has gathered since the last one, or four times
    /// the size of the last one if that is more.
    pub checkpoint_after_bytes: u64,
    /// A checkpoint is also wanted, for the space it frees, when the log takes more than twice
    /// what is live in it and this much more.
    pub dead_bytes: u64,
    /// Pre-written segments that are kept ready, at least three. When the disk is full, one of
    /// them is for batches with [`AppendMode::reserve`](crate::AppendMode), and the room of
    /// another one for a checkpoint.
    pub spare_segments: usize,
    /// Without a new segment for this long, one of the spare ones beyond [`Options::spare_segments`],
    /// which a burst has left, is given back to the file system; another one after as long again.
    pub quiet: Duration,
    /// Whether the journal runs its own two threads. Without them the owner drives it by
    /// [`Journal::flush_once`](crate::Journal::flush_once) and
    /// [`Journal::maintain_once`](crate::Journal::maintain_once), and calls that would block do
    /// that work themselves: for seeded tests.
    pub threads: bool,
    /// What a replay notes of the messages that it reads. Without, the owner reads those again that it has to know more of.
    pub noting: Option<&'static dyn Noting>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_bytes: 64 * MIB,
            buffer_bytes: 16 << 20,
            unsynced_bytes: 4 * MIB,
            gather: Duration::from_millis(1),
            batch_bytes: 1024 * MIB,
            checkpoint_after_bytes: 256 * MIB,
            dead_bytes: 1024 * MIB,
            spare_segments: 3,
            quiet: Duration::from_secs(30),
            threads: true,
            noting: None,
        }
    }
}
