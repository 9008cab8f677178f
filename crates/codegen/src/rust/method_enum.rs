//! `method.rs`: one enum over all methods.

use super::begin;
use super::methods::type_name;
use crate::model::{Class, Method, Protocol};
use crate::names::{pascal, snake};
use crate::source::Source;

/// Every method with the name of its variant.
fn variants(protocol: &Protocol) -> impl Iterator<Item = (&Class, &Method, String)> {
    protocol.classes.iter().flat_map(|class| {
        class
            .methods
            .iter()
            .map(move |method| (class, method, pascal(&class.name) + &pascal(&method.name)))
    })
}

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin("All methods in one enum.");
    source.line("use crate::error::{DecodeError, DecodeErrorKind};");
    let classes: Vec<_> = protocol.classes.iter().map(|class| snake(&class.name)).collect();
    source.line(format!("use crate::{{Sink, {}}};", classes.join(", ")));
    source.line("");
    source.line("/// Any method.");
    source.line("#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]");
    source.block("pub enum Method<'a>", |source| {
        for (class, method, variant) in variants(protocol) {
            source.line(format!("/// {}", method.doc));
            source.line(format!(
                "{variant}({}::{}),",
                snake(&class.name),
                type_name(method, "<'a>")
            ));
        }
    });
    source.line("");
    source.block("impl<'a> Method<'a>", |source| {
        decode(source, protocol);
        facts(source, protocol);
        encode(source, protocol);
    });
    unknown(&mut source, protocol);
    conversions(&mut source, protocol);
    source
}

fn decode(source: &mut Source, protocol: &Protocol) {
    source.line("/// Reads the payload of a method frame.");
    source.line("///");
    source.line("/// # Errors");
    source.line("/// When class or method do not exist, or the arguments are not the method's.");
    source.block("pub fn decode(payload: &'a [u8]) -> Result<Self, DecodeError>", |source| {
        source.block("let Some((ids, args)) = payload.split_first_chunk::<4>() else", |source| {
            source.line("let offset = if payload.len() < 2 { 0 } else { 2 };");
            source.line("return Err(DecodeError::new(offset, DecodeErrorKind::Truncated));");
        });
        source.line(";");
        source.line("let class_id = u16::from_be_bytes([ids[0], ids[1]]);");
        source.line("let method_id = u16::from_be_bytes([ids[2], ids[3]]);");
        source.block("let decoded = match (class_id, method_id)", |source| {
            for (class, method, variant) in variants(protocol) {
                let path = format!("{}::{}", snake(&class.name), pascal(&method.name));
                let pattern = format!("({}, {})", class.id, method.id);
                source.line(format!("{pattern} => {path}::decode(args).map(Self::{variant}),"));
            }
            source.line("_ => return Err(unknown(class_id, method_id)),");
        });
        source.line(";");
        source.line("decoded.map_err(|error| error.shifted(4))");
    });
}

fn facts(source: &mut Source, protocol: &Protocol) {
    let per_variant =
        |source: &mut Source, signature: &str, value: &dyn Fn(&Class, &Method) -> String| {
            source.line("#[must_use]");
            source.block(format!("pub const fn {signature}"), |source| {
                source.block("match self", |source| {
                    for (class, method, variant) in variants(protocol) {
                        source.line(format!("Self::{variant}(_) => {},", value(class, method)));
                    }
                });
            });
        };
    let path = |class: &Class, method: &Method| {
        format!("{}::{}", snake(&class.name), pascal(&method.name))
    };
    source.line("");
    source.line("/// Number of the class.");
    per_variant(source, "class_id(&self) -> u16", &|class, _| {
        format!("{}::CLASS_ID", snake(&class.name))
    });
    source.line("");
    source.line("/// Number of the method in its class.");
    per_variant(source, "method_id(&self) -> u16", &|class, method| {
        format!("{}::METHOD_ID", path(class, method))
    });
    source.line("");
    source.line("/// Class and method by name, such as `basic.publish`.");
    per_variant(source, "name(&self) -> &'static str", &|class, method| {
        format!("{}::NAME", path(class, method))
    });
    source.line("");
    source.line("/// Whether a content header and bodies follow the method.");
    source.line("#[must_use]");
    source.block("pub const fn has_content(&self) -> bool", |source| {
        let with: Vec<_> = variants(protocol)
            .filter(|(_, m, _)| m.content)
            .map(|(_, _, v)| format!("Self::{v}(_)"))
            .collect();
        source.line(format!("matches!(self, {})", with.join(" | ")));
    });
}

fn encode(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("/// Bytes of the payload: class and method number and arguments.");
    source.line("#[must_use]");
    source.block("pub const fn encoded_len(&self) -> usize", |source| {
        source.block("4 + match self", |source| {
            for (_, _, variant) in variants(protocol) {
                source.line(format!("Self::{variant}(method) => method.encoded_len(),"));
            }
        });
    });
    source.line("");
    source.line("/// Writes a whole method frame.");
    source.block("pub fn write_frame(&self, channel: u16, sink: &mut impl Sink)", |source| {
        source.block("match self", |source| {
            for (_, _, variant) in variants(protocol) {
                source
                    .line(format!("Self::{variant}(method) => method.write_frame(channel, sink),"));
            }
        });
    });
}

fn unknown(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("#[cold]");
    source.block("fn unknown(class_id: u16, method_id: u16) -> DecodeError", |source| {
        source.block("match class_id", |source| {
            let known: Vec<_> = protocol
                .classes
                .iter()
                .map(|class| format!("{}::CLASS_ID", snake(&class.name)))
                .collect();
            let kind = "DecodeErrorKind::UnknownMethod { class_id, method_id }";
            source.line(format!("{} => DecodeError::new(2, {kind}),", known.join(" | ")));
            source.line("_ => DecodeError::new(0, DecodeErrorKind::UnknownClass(class_id)),");
        });
    });
}

fn conversions(source: &mut Source, protocol: &Protocol) {
    for (class, method, variant) in variants(protocol) {
        let name = type_name(method, "<'a>");
        let path = format!("{}::{name}", snake(&class.name));
        let header = if name.ends_with('>') {
            format!("impl<'a> From<{path}> for Method<'a>")
        } else {
            format!("impl From<{path}> for Method<'_>")
        };
        source.line("");
        source.block(header, |source| {
            source.block(format!("fn from(method: {path}) -> Self"), |source| {
                source.line(format!("Self::{variant}(method)"));
            });
        });
    }
}
