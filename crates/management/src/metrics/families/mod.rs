//! The tables of metrics, by what they are of. A name stands here and nowhere else.

pub(crate) mod channels;
pub(crate) mod cluster;
pub(crate) mod exchanges;
pub(crate) mod node;
pub(crate) mod own;
pub(crate) mod protocols;
pub(crate) mod queues;
