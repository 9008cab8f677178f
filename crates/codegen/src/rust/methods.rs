//! One file for each class: a struct for each of its methods.

use super::fields::{self, Piece};
use super::{begin, identifier};
use crate::model::{Class, Field, From, Method, Wire};
use crate::names::pascal;
use crate::source::Source;

pub(super) fn render(class: &Class) -> Source {
    let mut source = begin(&format!("Class `{}`: {}", class.name, class.doc));
    imports(&mut source, class);
    source.line("/// Number of the class.");
    source.line(format!("pub const CLASS_ID: u16 = {};", class.id));
    for method in &class.methods {
        declaration(&mut source, class, method);
        implementation(&mut source, class, method);
    }
    source
}

fn imports(source: &mut Source, class: &Class) {
    let every = || class.methods.iter().flat_map(|method| &method.fields);
    let named = |wire| every().any(|field| field.wire == wire && !field.reserved);
    let mut names = vec!["DecodeError", "Frame", "Sink"];
    names.extend(named(Wire::ShortStr).then_some("ShortStr"));
    names.extend(named(Wire::Table).then_some("Table"));
    source.line("use crate::constants::FRAME_END;");
    source.line("use crate::frame::begin_method_frame;");
    source.line("use crate::reader::Reader;");
    source.line("use crate::sink::put_filled;");
    if named(Wire::LongStr) {
        source.line("use crate::value::wire_len;");
    }
    source.line(format!("use crate::{{{}}};", names.join(", ")));
    source.line("");
}

fn visible(method: &Method) -> impl Iterator<Item = &Field> {
    method.fields.iter().filter(|field| !field.reserved)
}

/// `Publish<'a>` or `Ack`.
pub(super) fn type_name(method: &Method, lifetime: &str) -> String {
    let borrows = visible(method).any(|field| fields::borrows(field.wire));
    format!("{}{}", pascal(&method.name), if borrows { lifetime } else { "" })
}

fn declaration(source: &mut Source, class: &Class, method: &Method) {
    let sender = match method.from {
        From::Client => "Sent by clients",
        From::Server => "Sent by servers",
        From::Both => "Sent by either side",
    };
    let addition = if method.rabbitmq { "; RabbitMQ's addition to AMQP 0-9-1" } else { "" };
    let content = if method.content { "; a content follows" } else { "" };
    source.line("");
    source.line(format!("/// `{}.{}`: {}", class.name, method.name, method.doc));
    source.line("///");
    source.line(format!("/// {sender}{content}{addition}."));
    source.line("#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]");
    let name = type_name(method, "<'a>");
    if visible(method).next().is_none() {
        source.line(format!("pub struct {name};"));
        return;
    }
    source.block(format!("pub struct {name}"), |source| {
        for field in visible(method) {
            source.line(format!("/// {}", field.doc));
            source.line(format!(
                "pub {}: {},",
                identifier(&field.name),
                fields::borrowed_type(field.wire)
            ));
        }
    });
}

fn implementation(source: &mut Source, class: &Class, method: &Method) {
    let name = type_name(method, "<'a>");
    let generics = if name.ends_with('>') { "<'a>" } else { "" };
    source.line("");
    source.block(format!("impl{generics} {name}"), |source| {
        source.line("/// Number of the class.");
        source.line("pub const CLASS_ID: u16 = CLASS_ID;");
        source.line("/// Number of the method in its class.");
        source.line(format!("pub const METHOD_ID: u16 = {};", method.id));
        source.line("/// Class and method by name.");
        source.line(format!("pub const NAME: &'static str = \"{}.{}\";", class.name, method.name));
        decode(source, method, generics);
        encoded_len(source, method);
        encode(source, method);
        write_frame(source);
    });
}

fn decode(source: &mut Source, method: &Method, generics: &str) {
    let input = if generics.is_empty() { "&[u8]" } else { "&'a [u8]" };
    source.line("");
    source.line("/// Reads the arguments, which follow class and method number in a payload.");
    source.line("///");
    source.line("/// # Errors");
    source.line("/// When the arguments are cut short, or bytes follow the last one.");
    source.line("#[inline]");
    source.block(format!("pub fn decode(args: {input}) -> Result<Self, DecodeError>"), |source| {
        let mutable = if method.fields.is_empty() { "" } else { "mut " };
        source.line(format!("let {mutable}reader = Reader::new(args);"));
        for piece in fields::pieces(&method.fields) {
            match piece {
                Piece::Bits(bits) if bits.iter().all(|bit| bit.reserved) => {
                    source.line("reader.u8()?;")
                }
                Piece::Bits(_) => source.line("let bits = reader.u8()?;"),
                Piece::One(field) => {
                    let binding = if field.reserved {
                        String::new()
                    } else {
                        format!("let {} = ", identifier(&field.name))
                    };
                    source
                        .line(format!("{binding}reader.{}()?;", fields::reader_method(field.wire)));
                }
            }
        }
        source.line("reader.finish()?;");
        let values: Vec<_> = fields::pieces(&method.fields).iter().flat_map(construction).collect();
        let values =
            if values.is_empty() { String::new() } else { format!(" {{ {} }}", values.join(", ")) };
        source.line(format!("Ok(Self{values})"));
    });
}

/// The fields of a piece in a struct expression.
fn construction(piece: &Piece<'_>) -> Vec<String> {
    match piece {
        Piece::One(field) if field.reserved => Vec::new(),
        Piece::One(field) => vec![identifier(&field.name)],
        Piece::Bits(bits) => bits
            .iter()
            .enumerate()
            .filter(|(_, bit)| !bit.reserved)
            .map(|(at, bit)| format!("{}: bits & {} != 0", identifier(&bit.name), 1 << at))
            .collect(),
    }
}

fn encoded_len(source: &mut Source, method: &Method) {
    let fixed: usize = fields::pieces(&method.fields)
        .iter()
        .map(|piece| match piece {
            Piece::Bits(_) => 1,
            Piece::One(field) => fields::fixed_len(field.wire),
        })
        .sum();
    let variable = visible(method).filter_map(|field| {
        fields::variable_len(field.wire, &format!("self.{}", identifier(&field.name)))
    });
    let terms: Vec<_> = std::iter::once(fixed.to_string()).chain(variable).collect();
    source.line("");
    source.line("/// Bytes of the arguments.");
    source.line("#[inline]");
    source.line("#[must_use]");
    source
        .block("pub const fn encoded_len(&self) -> usize", |source| source.line(terms.join(" + ")));
}

fn encode(source: &mut Source, method: &Method) {
    source.line("");
    source.line("/// Writes the arguments.");
    source.line("#[inline]");
    source.block("pub fn encode(&self, sink: &mut impl Sink)", |source| {
        source.line("put_filled!(sink, self.encoded_len(), |window| self.fill(window));");
    });
    source.line("");
    source.line("#[inline]");
    let sink = if method.fields.is_empty() { "_sink" } else { "sink" };
    source.block(format!("fn fill(&self, {sink}: &mut impl Sink)"), |source| {
        for piece in fields::pieces(&method.fields) {
            match piece {
                Piece::Bits(bits) => source.line(put_bits(&bits)),
                Piece::One(field) if field.reserved => {
                    source.line(fields::put_reserved(field.wire))
                }
                Piece::One(field) => {
                    for statement in
                        fields::put(field.wire, &format!("self.{}", identifier(&field.name)))
                    {
                        source.line(statement);
                    }
                }
            }
        }
    });
}

fn put_bits(bits: &[&Field]) -> String {
    let terms: Vec<_> = bits
        .iter()
        .enumerate()
        .filter(|(_, bit)| !bit.reserved)
        .map(|(at, bit)| {
            let value = format!("u8::from(self.{})", identifier(&bit.name));
            if at == 0 { value } else { format!("{value} << {at}") }
        })
        .collect();
    let octet = if terms.is_empty() { "0".to_owned() } else { terms.join(" | ") };
    format!("sink.put_u8({octet});")
}

fn write_frame(source: &mut Source) {
    source.line("");
    source.line("/// Writes a whole method frame.");
    source.line("#[inline]");
    source.block("pub fn write_frame(&self, channel: u16, sink: &mut impl Sink)", |source| {
        source.line("let args_len = self.encoded_len();");
        source.line("put_filled!(sink, Frame::OVERHEAD + 4 + args_len, |window| {");
        source.line("let ids = (Self::CLASS_ID, Self::METHOD_ID);");
        source.line("begin_method_frame(ids, channel, args_len, window);");
        source.line("self.fill(window);");
        source.line("window.put_u8(FRAME_END);");
        source.line("});");
    });
}
