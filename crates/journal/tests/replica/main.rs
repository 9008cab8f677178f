//! Copies of a replicated log on disks that crash, held against a model.

mod adopting;
mod bootstrap;
mod closed;
mod copy;
mod damage;
mod deposed;
mod each_call;
mod entries;
mod holes;
mod leading;
mod mend;
mod pair;
mod random;
