//! A vhost on its way from one broker to another, with everything in it that survives a restart.
//!
//! The one it leaves has it stand still, and reads out pieces ([`Export`]) until there are no more. The one it comes to takes
//! them in as they come ([`Import`]): under new numbers, at new places of its own log, into a hidden vhost.
//! Its log knows such a vhost by a definition of its own, an *arrival*. One that has arrived as a whole stays hidden until
//! it is accepted, so that the mover can decide in between where it is; half of one is thrown away by a restart.
//!
//! What is carried is what a restart finds: messages that survive one, each once however many queues hold it, with what
//! is noted of them. It is kept so in the order of each queue, and the other broker's log has it in that order from the start.
//!
//! # Form
//!
//! ```text
//! pieces   parts of one sequence of bytes, cut anywhere
//! item     u32 length of what follows, byte, then by that byte
//!   0xf0     begin: u32 version, name of the vhost
//!   0xf1     end: u64 definitions, u64 messages
//!   others   a record of the log (see `courser_store::change`), by the numbers of the broker that the vhost leaves:
//!            defined, stream, message and delayed; returned tells of the message before it, whose position is 0.
//!            A count of 0 says that it has come back where that is not counted.
//! ```
//! Definitions come first: parameters, policies, exchanges and queues, bindings. Integers are little-endian.

mod arrivals;
mod batch;
mod export;
mod import;
mod item;
mod merged;

pub use arrivals::Arrival;
pub(crate) use arrivals::{Arrivals, another_one};
pub use export::{Export, LeftBehind};
pub use import::Import;

/// Bytes of a piece, but for the last, which has fewer.
const PIECE_BYTES: usize = 1 << 20;
