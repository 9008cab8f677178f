//! What nodes ask each other for a move, and answer.

use courser_cluster::GroupNumber;
use serde::{Deserialize, Serialize};

/// What the nodes that lead groups ask each other for a move.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Request {
    /// Take this vhost in, from the group that has it.
    Take {
        vhost: String,
        from: GroupNumber,
        to: GroupNumber,
        /// Of the move, here and below: 0 if a version asks that has none.
        #[serde(default)]
        number: u64,
    },
    /// How far is that? The answer is [`Progress`].
    Taking {
        vhost: String,
        #[serde(default)]
        number: u64,
    },
    /// Which vhosts have arrived, or stand still? The answer is [`Open`].
    Open { group: GroupNumber },
    /// It is not moved by this move, or by one before it: let it go on if this is where it is, else forget what has arrived of it.
    GiveUp {
        vhost: String,
        group: GroupNumber,
        #[serde(default)]
        number: u64,
        /// This is where home says that the vhost is: what has arrived of it is not forgotten, as it may be all there is of it.
        #[serde(default)]
        keeps_arrival: bool,
    },
}

/// How far a vhost is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum Progress {
    Running,
    /// It has arrived, with so many messages.
    Done(u64),
    Failed(String),
}

/// Vhosts that are being moved, or of which is not known yet where they are.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Open {
    /// They stand still.
    pub held: Vec<String>,
    pub arrived: Vec<String>,
}
