//! What stands in the first 16 bytes of a body: when it should have been sent, by which run and producer, and its
//! number.
//!
//! The time makes the latency, the rest tells which message of which producer has arrived. A body that is smaller
//! carries nothing of it; then there is no latency, and loss is counted only.

/// Bytes that a stamp takes.
pub const STAMP_LEN: usize = 16;
/// Producers that a stamp can tell apart.
pub const PRODUCERS_MAX: u16 = 1 << PRODUCER_BITS;
/// Runs that a stamp can tell apart.
pub const RUNS: u16 = 1 << RUN_BITS;

const RUN_BITS: u32 = 12;
const PRODUCER_BITS: u32 = 12;
const NUMBER_BITS: u32 = 40;

/// A message's identity and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// When the message should have been sent, in monotonic nanoseconds.
    pub time_ns: u64,
    /// Which run of the tool it belongs to, below [`RUNS`].
    pub run: u16,
    /// Which of the run's producers sent it, below [`PRODUCERS_MAX`].
    pub producer: u16,
    /// How many that producer has sent before.
    pub number: u64,
}

impl Stamp {
    /// The bytes: the time, then run, producer and number in 12, 12 and 40 bits, all with the high byte first.
    #[inline]
    #[must_use]
    pub fn to_bytes(self) -> [u8; STAMP_LEN] {
        let identity = u64::from(self.run) << (PRODUCER_BITS + NUMBER_BITS)
            | u64::from(self.producer) << NUMBER_BITS
            | self.number & ((1 << NUMBER_BITS) - 1);
        let mut bytes = [0; STAMP_LEN];
        bytes[..8].copy_from_slice(&self.time_ns.to_be_bytes());
        bytes[8..].copy_from_slice(&identity.to_be_bytes());
        bytes
    }

    /// Reads the stamp off a body, if it is large enough to have one.
    #[inline]
    #[must_use]
    pub fn read(body: &[u8]) -> Option<Self> {
        let (time, rest) = body.split_first_chunk()?;
        let identity = u64::from_be_bytes(*rest.first_chunk()?);
        Some(Self {
            time_ns: u64::from_be_bytes(*time),
            run: (identity >> (PRODUCER_BITS + NUMBER_BITS)) as u16,
            producer: (identity >> NUMBER_BITS) as u16 & (PRODUCERS_MAX - 1),
            number: identity & ((1 << NUMBER_BITS) - 1),
        })
    }
}
