//! A disk that crashes and fails as a seed says, and a store at which a test can look.
//!
//! [`FakeDisk`] keeps two images of every file and of the folder: the live one, which a running
//! process sees, and the durable one, which a loss of power leaves. A sync carries changes from
//! one to the other. What was not synced when the power went is there in part: each sector of 512
//! bytes has any of the contents that it had since the last sync, each change of a file's size
//! and each change of a name happened or did not.

pub use crate::log::pace::Pace;

mod disk;
mod rng;
mod watched;

pub use crate::log::{Outlook, Turn};
pub use disk::{FailsOnce, FakeDisk, Faults, Hold};
pub use rng::Rng;
pub use watched::{Call, WatchedStore};
