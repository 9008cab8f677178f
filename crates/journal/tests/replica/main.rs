//! Copies of a replicated log on disks that crash, held against a model.

mod adopting;
mod aside;
mod bootstrap;
mod checkpointed;
mod closed;
mod copy;
mod damage;
mod deposed;
mod each_call;
mod entries;
mod holes;
mod leading;
mod mark;
mod mend;
mod pair;
mod parts;
mod proofs;
mod random;
mod room;
mod scrubbed;
mod unreadable;
