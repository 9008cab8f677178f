//! The Go writer: the generated files of `go/amqpcodec`, a package of its own with the rest of the codec.
//!
//! A class has a file of its methods and one of their views; there is one for the list of all methods, one for
//! properties, one for constants. The text is written as gofmt would leave it, so that this needs no Go.

mod constants;
mod fields;
mod method_list;
mod methods;
mod parse;
mod properties;
mod views;

use std::io;
use std::path::PathBuf;

use crate::model::{Class, Protocol};
use crate::names::{pascal, snake};
use crate::source::Source;
use crate::{GeneratedFile, SPEC_PATH};

const DIRECTORY: &str = "go/amqpcodec";

/// All files of the Go codec that come from the description.
///
/// # Errors
/// None at present; the type is that of every writer.
pub fn render(protocol: &Protocol) -> io::Result<Vec<GeneratedFile>> {
    let mut sources = vec![
        ("constants".to_owned(), constants::render(protocol)),
        ("method_list".to_owned(), method_list::render(protocol)),
        ("properties".to_owned(), properties::render(protocol)),
    ];
    for class in &protocol.classes {
        sources.push((snake(&class.name), methods::render(class)));
        if class.methods.iter().any(fields::has_view) {
            sources.push((format!("{}_view", snake(&class.name)), views::render(class)));
        }
    }
    let files = sources.into_iter().map(|(name, source)| {
        let path = PathBuf::from(DIRECTORY).join(format!("{name}_gen.go"));
        GeneratedFile { path, text: with_tabs(&source.into_text()) }
    });
    Ok(files.collect())
}

/// A file's first lines; `imports` are those of the standard library that it needs.
fn begin(imports: &[&str]) -> Source {
    let mut source = Source::default();
    source.line(format!(
        "// Code generated from {SPEC_PATH} by cargo run -p courser-codegen. DO NOT EDIT."
    ));
    source.line("");
    source.line("package amqpcodec");
    match imports {
        [] => {}
        [one] => {
            source.line("");
            source.line(format!("import \"{one}\""));
        }
        several => {
            source.line("");
            source.line("import (");
            for import in several {
                source.line(format!("\t\"{import}\""));
            }
            source.line(")");
        }
    }
    source
}

/// The class whose contents have properties.
fn content_class(protocol: &Protocol) -> Option<&Class> {
    protocol.classes.iter().find(|class| !class.properties.is_empty())
}

/// A name as an exported Go identifier: `ConsumerTag`, `MessageID`, `NoWait`.
fn identifier(name: &str) -> String {
    name.split('-')
        .map(|word| match word {
            "id" => "ID".to_owned(),
            "nowait" => "NoWait".to_owned(),
            word => pascal(word),
        })
        .collect()
}

/// Indents by tabs instead of the four spaces that [`Source`] writes.
fn with_tabs(text: &str) -> String {
    let mut tabbed = String::with_capacity(text.len());
    for line in text.lines() {
        let mut rest = line;
        while let Some(deeper) = rest.strip_prefix("    ") {
            tabbed.push('\t');
            rest = deeper;
        }
        tabbed.push_str(rest);
        tabbed.push('\n');
    }
    tabbed
}
