//! How many messages a part of a queue has and how large they are, by where they are kept. Counted
//! when a message comes or leaves, from what its location says.

use super::backlog::SPILLED;
use courser_store::Location;

/// Messages, and bytes of their bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many messages.
    pub messages: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
}

/// The messages that wait in a queue, or those that are handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    in_memory: Amount,
    /// In the log, as they are persistent.
    in_log: Amount,
    /// In the log, as memory was short.
    spilled: Amount,
    /// In the log, with bodies of unknown size.
    of_unknown_size: Amount,
}

impl Amounts {
    /// The amount that a message belongs to, and the bytes of its body.
    #[inline]
    fn part(&mut self, location: &Location) -> (&mut Amount, u64) {
        match location {
            Location::Memory { chunk, offset, .. } => {
                (&mut self.in_memory, chunk.body_len(*offset).into())
            }
            Location::Log { body, marks, .. } => match body.bytes() {
                None => (&mut self.of_unknown_size, 0),
                Some(bytes) if marks & SPILLED == 0 => (&mut self.in_log, bytes.into()),
                Some(bytes) => (&mut self.spilled, bytes.into()),
            },
        }
    }

    /// A message comes.
    #[inline]
    pub fn add(&mut self, location: &Location) {
        let (amount, bytes) = self.part(location);
        amount.messages += 1;
        amount.bytes += bytes;
    }

    /// Other messages come.
    pub fn add_all(&mut self, more: &Amounts) {
        let Amounts { in_memory, in_log, spilled, of_unknown_size } = self;
        for (amount, more) in [
            (in_memory, more.in_memory),
            (in_log, more.in_log),
            (spilled, more.spilled),
            (of_unknown_size, more.of_unknown_size),
        ] {
            amount.messages += more.messages;
            amount.bytes += more.bytes;
        }
    }

    /// A message leaves, with the location that it came with.
    #[inline]
    pub fn sub(&mut self, location: &Location) {
        let (amount, bytes) = self.part(location);
        amount.messages -= 1;
        amount.bytes -= bytes;
    }

    /// Bytes of all whose size is known.
    pub fn known_bytes(&self) -> u64 {
        self.in_memory.bytes + self.in_log.bytes + self.spilled.bytes
    }

    /// Bytes of all; none while the size of one is not known.
    pub fn bytes(&self) -> Option<u64> {
        let bytes = self.in_memory.bytes + self.in_log.bytes + self.spilled.bytes;
        (self.of_unknown_size.messages == 0).then_some(bytes)
    }

    /// Those that are in memory.
    pub fn in_memory(&self) -> Amount {
        self.in_memory
    }

    /// How many are persistent and in the log.
    pub fn in_log(&self) -> u64 {
        self.in_log.messages + self.of_unknown_size.messages
    }

    /// Whether any has to be read from the log.
    pub fn has_logged(&self) -> bool {
        self.in_log() + self.spilled.messages > 0
    }

    /// Bytes of those that are persistent and in the log, as far as they are known.
    pub fn in_log_bytes(&self) -> u64 {
        self.in_log.bytes
    }
}
