//! What a restart needs of the broker itself: definitions in the log, the state that a checkpoint
//! writes, and taking both back.

pub(crate) mod checkpoint;
pub(crate) mod definition;
pub(crate) mod definition_changes;
pub(crate) mod gone;
mod group_definitions;
pub(crate) mod moves;
mod noting;
pub(crate) mod restore;
pub(crate) mod scope;

pub use checkpoint::StateOfShard;
pub use group_definitions::GroupDefinitions;
pub use noting::NOTING;
pub use restore::{RestoreError, Restored, names_in_log, shards_in_log};
