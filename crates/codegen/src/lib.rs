//! Turns `spec/amqp-0-9-1.toml` into source code.
//!
//! [`description`] reads it into [`model`], the protocol as data, checked and resolved, which knows
//! no language. Each language has a module beside it with one function from the model to files;
//! [`TARGETS`] lists them. What they return is committed, and a test compares the two: `cargo run
//! -p courser-codegen` brings the files up to date.
//!
//! To add a language: write a module with a function of the type [`Render`], and a line in
//! [`TARGETS`].
#![forbid(unsafe_code)]

pub mod description;
pub mod go;
pub mod model;
pub mod names;
pub mod ruby;
pub mod rust;
pub mod source;

use std::io;
use std::path::{Path, PathBuf};

use model::Protocol;

/// A file that a writer made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GeneratedFile {
    /// Where it belongs, from the root of the repository.
    pub path: PathBuf,
    /// All of its text, formatted as it is committed.
    pub text: String,
}

/// A writer: the protocol in, files out. Errors are those of the formatter it calls.
pub type Render = fn(&Protocol) -> io::Result<Vec<GeneratedFile>>;

/// A language that is written.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Name on the command line.
    pub name: &'static str,
    /// The writer.
    pub render: Render,
}

/// Every language that is written.
pub const TARGETS: &[Target] = &[
    Target { name: "rust", render: rust::render },
    Target { name: "go", render: go::render },
    Target { name: "ruby", render: ruby::render },
];

/// Where the description lies, from the root of the repository.
pub const SPEC_PATH: &str = "spec/amqp-0-9-1.toml";

/// The root of the repository that this crate was built in.
#[must_use]
pub fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads and checks the description.
///
/// # Errors
/// When the file cannot be read, or what it says does not hold together.
pub fn load(root: &Path) -> io::Result<Protocol> {
    let text = std::fs::read_to_string(root.join(SPEC_PATH))?;
    description::parse(&text).map_err(|problem| io::Error::new(io::ErrorKind::InvalidData, problem))
}
