//! Groups in groups: how deep they are, how often they are repeated, and what refers to them.
//!
//! An engine that backtracks puts what a group has in place of each reference to it, also where that refers to another. It
//! takes the stack for each group in a group, and multiplies the numbers of repetitions in repetitions. All that happens
//! before it looks at any bound.

use super::{refuse, refuse_costly};
use crate::pattern::PatternError;

/// Groups in one another. Without optimisation, each takes up to 35 KiB of the stack of the engine that backtracks.
const DEPTH_MAX: usize = 20;
/// Back-references.
const REFERENCES_MAX: usize = 6;
/// The most times that something can be asked to be repeated.
pub(super) const REPEATED_MAX: u32 = 65_535;

/// What a parenthesis opens.
pub(super) enum Group<'a> {
    /// A group that captures, and its name.
    Capture(Option<&'a str>),
    /// Another one, or a look-ahead.
    Other,
    LookBehind,
    /// Nothing: it changes options of what follows.
    Options,
    /// Nothing: it refers to a group by its name.
    Reference(&'a str),
}

/// What a back-reference says of its group.
pub(super) enum Target<'a> {
    Number(usize),
    Name(&'a str),
}

#[derive(Default)]
pub(super) struct Nesting<'a> {
    open: Vec<Open>,
    captures: Vec<Capture<'a>>,
    references: Vec<(usize, Target<'a>)>,
    /// How often something in the last item is repeated at least.
    repeated: u32,
}

struct Open {
    /// Which of the groups that capture it is.
    capture: Option<usize>,
    is_look_behind: bool,
    /// How often something in the items before the last one is repeated at least.
    repeated: u32,
}

struct Capture<'a> {
    name: Option<&'a str>,
    has_reference: bool,
}

impl<'a> Nesting<'a> {
    /// Something begins that is no quantifier.
    pub fn item(&mut self) {
        if let Some(group) = self.open.last_mut() {
            group.repeated = group.repeated.max(self.repeated);
        }
        self.repeated = 1;
    }

    pub fn open(&mut self, at: usize, group: Group<'a>) -> Result<(), PatternError> {
        if self.open.len() == DEPTH_MAX {
            return refuse_costly("(", at, "groups are nested more than 20 deep");
        }
        let is_look_behind = matches!(group, Group::LookBehind);
        let capture = match group {
            Group::Capture(name) => {
                if name.is_some() && self.captures.iter().any(|capture| capture.name == name) {
                    return refuse("(?<", at, "another group has that name");
                }
                self.captures.push(Capture { name, has_reference: false });
                Some(self.captures.len() - 1)
            }
            _ => None,
        };
        self.open.push(Open { capture, is_look_behind, repeated: 1 });
        Ok(())
    }

    /// The last group that is open ends. The engines refuse a parenthesis that closes none.
    pub fn close(&mut self) {
        if let Some(group) = self.open.pop() {
            self.repeated = group.repeated.max(self.repeated);
        }
    }

    /// Whether the last item may be repeated so often.
    pub fn repeat(&mut self, least: u32) -> bool {
        self.repeated = self.repeated.saturating_mul(least.max(1));
        self.repeated <= REPEATED_MAX
    }

    pub fn refer(&mut self, at: usize, target: Target<'a>) -> Result<(), PatternError> {
        if self.references.len() == REFERENCES_MAX {
            return refuse_costly("\\", at, "there may be six back-references");
        }
        if self.open.iter().any(|group| group.is_look_behind) {
            // All of its group would be compiled once more for each of them, backwards.
            return refuse_costly("\\", at, "no back-reference may stand in a look-behind");
        }
        self.references.push((at, target));
        for capture in self.open.iter().filter_map(|group| group.capture) {
            self.captures[capture].has_reference = true;
        }
        Ok(())
    }

    /// Refuses references to groups that have references themselves.
    pub fn check_references(&self) -> Result<(), PatternError> {
        for (at, target) in &self.references {
            let capture = match target {
                Target::Number(number) => self.captures.get(number.wrapping_sub(1)),
                Target::Name(name) => {
                    self.captures.iter().find(|capture| capture.name == Some(*name))
                }
            };
            if capture.is_some_and(|capture| capture.has_reference) {
                return refuse_costly(
                    "\\",
                    *at,
                    "it refers to a group that has a back-reference itself",
                );
            }
        }
        Ok(())
    }
}
