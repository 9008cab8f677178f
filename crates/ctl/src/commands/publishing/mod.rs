//! Messages by hand: one or a few that are published, taken or followed without a client program.

mod consume;
mod get;
mod publish;

use crate::spec::Spec;

pub(super) const COMMANDS: &[Spec] = &[publish::SPEC, get::SPEC, consume::SPEC];
