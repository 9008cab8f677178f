//! The Rust writer: `crates/codec/src/generated/`, and what the codec's tests need beside it.
//!
//! One file a class, one for the enum of all methods, one for properties, one for constants. The
//! text goes through rustfmt, so that what is committed is what `cargo fmt` would leave alone.

mod by_name;
mod constants;
mod fields;
mod method_enum;
mod methods;
mod properties;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::model::{Class, Protocol};
use crate::names::snake;
use crate::source::Source;
use crate::{GeneratedFile, SPEC_PATH, repository_root};

const DIRECTORY: &str = "crates/codec/src/generated";
const TEST_DIRECTORY: &str = "crates/codec/tests/codec/support";

/// All files of the Rust codec that come from the description.
///
/// # Errors
/// When rustfmt is missing or fails.
pub fn render(protocol: &Protocol) -> io::Result<Vec<GeneratedFile>> {
    let mut sources = vec![
        (DIRECTORY, "mod".to_owned(), module_list(protocol)),
        (DIRECTORY, "constants".to_owned(), constants::render(protocol)),
        (DIRECTORY, "method".to_owned(), method_enum::render(protocol)),
        (DIRECTORY, "properties".to_owned(), properties::render(protocol)),
        (TEST_DIRECTORY, "by_name".to_owned(), by_name::render(protocol)),
    ];
    sources.extend(
        protocol
            .classes
            .iter()
            .map(|class| (DIRECTORY, snake(&class.name), methods::render(class))),
    );
    sources
        .into_iter()
        .map(|(directory, name, source)| {
            let path = PathBuf::from(directory).join(name).with_extension("rs");
            Ok(GeneratedFile { path, text: formatted(&source.into_text())? })
        })
        .collect()
}

/// A file's first lines.
fn begin(purpose: &str) -> Source {
    let mut source = Source::default();
    source.line(format!("//! {purpose}"));
    source.line("//!");
    source.line(format!(
        "//! Generated from `{SPEC_PATH}` by `cargo run -p courser-codegen`; not to be edited."
    ));
    source.line("");
    source
}

fn module_list(protocol: &Protocol) -> Source {
    let mut source = begin("What the description of the protocol says, as Rust.");
    for module in ["constants", "method", "properties"] {
        source.line(format!("pub mod {module};"));
    }
    for class in &protocol.classes {
        source.line(format!("pub mod {};", snake(&class.name)));
    }
    source
}

/// The class whose contents have properties.
fn content_class(protocol: &Protocol) -> Option<&Class> {
    protocol.classes.iter().find(|class| !class.properties.is_empty())
}

/// A name as a Rust identifier. `type` cannot be one.
fn identifier(name: &str) -> String {
    if name == "type" { "kind".to_owned() } else { snake(name) }
}

/// The text as rustfmt leaves it.
pub(crate) fn formatted(text: &str) -> io::Result<String> {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--quiet"])
        .current_dir(repository_root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot run rustfmt: {error}")))?;
    if let Some(mut input) = rustfmt.stdin.take() {
        input.write_all(text.as_bytes())?;
    }
    let output = rustfmt.wait_with_output()?;
    if !output.status.success() {
        return Err(io::Error::other(format!("rustfmt refused this source:\n{text}")));
    }
    String::from_utf8(output.stdout).map_err(io::Error::other)
}
