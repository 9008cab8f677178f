//! What a command is: its name, its arguments, what it asks of the broker and what it shows.

use crate::failure::Failure;
use crate::input::Input;
use crate::session::Session;
use serde_json::Value;

/// A command of the table.
pub(crate) struct Spec {
    pub name: &'static str,
    pub about: &'static str,
    pub arguments: &'static [Argument],
    /// Lines for the help, without the name of the program.
    pub examples: &'static [&'static str],
    /// What is said before anything is done; `{name}` stands for an argument.
    pub intent: &'static str,
    pub action: Action,
}

/// An argument of a command.
pub(crate) struct Argument {
    pub name: &'static str,
    pub help: &'static str,
    pub kind: Kind,
    /// The letter that an option has besides its name.
    pub short: Option<char>,
    /// What it may be; anything if there are none.
    pub values: &'static [&'static str],
}

impl Argument {
    pub const fn short(mut self, letter: char) -> Self {
        self.short = Some(letter);
        self
    }

    pub const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.values = values;
        self
    }
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// In its place; it has to be there.
    Required,
    /// In its place, or not at all.
    Optional,
    /// As many as one likes.
    Any,
    /// As `--name VALUE`.
    Option,
    /// As `--name VALUE`, as often as one likes.
    Options,
    /// As `--name`.
    Flag,
}

pub(crate) const fn required(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Required }
}

pub(crate) const fn optional(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Optional }
}

pub(crate) const fn any(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Any }
}

pub(crate) const fn option(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Option }
}

pub(crate) const fn options(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Options }
}

pub(crate) const fn flag(name: &'static str, help: &'static str) -> Argument {
    Argument { name, help, short: None, values: &[], kind: Kind::Flag }
}

/// What a command does.
pub(crate) enum Action {
    /// Shows what is in a list.
    List(List),
    /// Sends one request that changes something.
    Change(Change),
    /// Anything else.
    Run(fn(&mut Session, &Input) -> Result<Output, Failure>),
    /// Has no meaning here; why, and what to do instead.
    NotHere(&'static str),
}

/// A list of the API.
pub(crate) struct List {
    /// `{vhost}` is the one that is asked for, other names are arguments.
    pub path: &'static str,
    pub columns: &'static [(&'static str, From)],
    /// What is shown where no column is named.
    pub default: &'static [&'static str],
    /// Whether the time that it may take is said first, as RabbitMQ does for long lists.
    pub is_long: bool,
    /// Takes out of what was found what is not asked for, by these members besides those of the columns.
    pub narrowed: Option<(&'static [&'static str], Narrow)>,
    /// What to say where the path is not there; without it, that the vhost is not.
    pub missing: Option<(u8, &'static str)>,
}

/// Leaves of a list what is asked for.
pub(crate) type Narrow = fn(&mut Session, &Input, &mut Vec<Value>) -> Result<(), Failure>;

/// Where the value of a column is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum From {
    /// A member, with dots for members of members.
    Member(&'static str),
    /// A member that is shown as the text of its JSON.
    Json(&'static str),
    /// Always this.
    Always(&'static str),
}

/// A request that changes something.
pub(crate) struct Change {
    pub method: &'static str,
    pub path: &'static str,
    pub body: Body,
    /// What an answer means that is no success.
    pub refusals: &'static [Refused],
    /// What is said when it is done.
    pub done: &'static str,
}

/// The body of a change.
pub(crate) enum Body {
    Nothing,
    Made(fn(&Input) -> Result<Value, Failure>),
}

/// A refusal that has a meaning of its own.
pub(crate) struct Refused {
    pub status: u16,
    /// What the command ends with; 0 if it is no failure.
    pub code: u8,
    pub text: &'static str,
}

/// A status that is a failure with a code and a text of its own.
pub(crate) const fn refused(status: u16, code: u8, text: &'static str) -> Refused {
    Refused { status, code, text }
}

/// A status that is as good as success, which says why.
pub(crate) const fn harmless(status: u16, text: &'static str) -> Refused {
    Refused { status, code: 0, text }
}

/// What a command shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    /// Nothing.
    Nothing,
    /// A sentence.
    Text(String),
    /// A text for people, and the same for programs.
    Both(String, Value),
    /// A table.
    Rows { columns: Vec<String>, rows: Vec<Vec<Value>> },
    /// A document that goes out as it is, without a line break behind it.
    Raw(Vec<u8>),
}
