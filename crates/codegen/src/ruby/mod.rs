//! The Ruby writer: the method classes, reply codes and signatures of `ruby/amq-protocol-native`, and the table by which
//! its extension encodes and decodes them.
//!
//! The gem offers the interface of the `amq-protocol` gem, which differs from the description in small ways; they are
//! gathered in `interface`.

mod classes;
mod descriptors;
mod errors;
mod interface;
mod lines;
mod signatures;

use std::io;
use std::path::PathBuf;

use crate::model::Protocol;
use crate::{GeneratedFile, SPEC_PATH};

const GEM: &str = "ruby/amq-protocol-native";

/// All files of the Ruby gem that come from the description.
///
/// # Errors
/// When rustfmt is missing or fails.
pub fn render(protocol: &Protocol) -> io::Result<Vec<GeneratedFile>> {
    let library = PathBuf::from(GEM).join("lib/amq/protocol");
    let mut files = vec![
        GeneratedFile {
            path: PathBuf::from(GEM).join("ext/amq_protocol_native/src/generated.rs"),
            text: crate::rust::formatted(&descriptors::render(protocol))?,
        },
        GeneratedFile { path: library.join("reply_codes.rb"), text: errors::render(protocol) },
        GeneratedFile {
            path: PathBuf::from(GEM).join("sig/amq/protocol/methods.rbs"),
            text: signatures::render(protocol),
        },
    ];
    files.extend(protocol.classes.iter().map(|class| GeneratedFile {
        path: library.join("methods").join(&class.name).with_extension("rb"),
        text: classes::render(class),
    }));
    Ok(files)
}

/// The first lines of a Ruby file.
fn notice() -> [String; 1] {
    [format!("# Generated from {SPEC_PATH} by `cargo run -p courser-codegen`; not to be edited.")]
}
