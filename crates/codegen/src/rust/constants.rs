//! `constants.rs`: numbers with names.

use super::begin;
use crate::model::{Closes, FieldType, Protocol, ReplyCode};
use crate::names::screaming;
use crate::source::Source;

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin(
        "Numbers of the protocol: frame types, sizes, reply codes, tags of field-table values.",
    );
    let facts = &protocol.facts;
    let (major, minor, revision) = (facts.major, facts.minor, facts.revision);
    source.line("/// What a client sends first: the name and the version of the protocol.");
    let header = format!("*b\"{}\\x00\\x{major:02x}\\x{minor:02x}\\x{revision:02x}\"", facts.name);
    source.line(format!("pub const PROTOCOL_HEADER: [u8; 8] = {header};"));
    constant(&mut source, "Major version of the protocol.", "VERSION_MAJOR: u8", major);
    constant(&mut source, "Minor version of the protocol.", "VERSION_MINOR: u8", minor);
    constant(&mut source, "TCP port of a server.", "PORT: u16", facts.port);
    constant(&mut source, "TCP port of a server that speaks TLS.", "TLS_PORT: u16", facts.tls_port);
    let doc = "Frame size in bytes that every peer takes, also before limits are settled.";
    constant(&mut source, doc, "FRAME_MIN_SIZE: u32", facts.frame_min_size);
    constant(
        &mut source,
        "The byte behind every frame.",
        "FRAME_END: u8",
        format!("{:#04X}", facts.frame_end),
    );
    for frame in &protocol.frames {
        constant(
            &mut source,
            &frame.doc,
            &format!("FRAME_{}: u8", screaming(&frame.name)),
            frame.id,
        );
    }
    reply_codes(&mut source, &protocol.reply_codes);
    field_types(&mut source, &protocol.field_types);
    source
}

fn constant(source: &mut Source, doc: &str, name_and_type: &str, value: impl std::fmt::Display) {
    source.line(format!("/// {doc}"));
    source.line(format!("pub const {name_and_type} = {value};"));
}

fn reply_codes(source: &mut Source, codes: &[ReplyCode]) {
    source.line("");
    source
        .line("/// Reply codes: why a channel or a connection is closed, or a message comes back.");
    source.block("pub mod reply_code", |source| {
        for code in codes {
            let closes = match code.closes {
                Some(Closes::Channel) => " Closes the channel.",
                Some(Closes::Connection) => " Closes the connection.",
                None => "",
            };
            let doc = format!("{}{closes}", code.doc);
            constant(source, &doc, &format!("{}: u16", screaming(&code.name)), code.value);
        }
        source.line("");
        source.line(
            "/// Whether an error with this code ends the connection, and not only the channel.",
        );
        source.line("#[must_use]");
        source.block("pub const fn closes_connection(code: u16) -> bool", |source| {
            let hard: Vec<_> =
                codes.iter().filter(|code| code.closes == Some(Closes::Connection)).collect();
            let names: Vec<_> = hard.iter().map(|code| screaming(&code.name)).collect();
            source.line(format!("matches!(code, {})", names.join(" | ")));
        });
        source.line("");
        source.line("/// The name that reply texts begin with.");
        source.line("#[must_use]");
        source.block("pub const fn name(code: u16) -> Option<&'static str>", |source| {
            source.block("Some(match code", |source| {
                for code in codes {
                    let name = screaming(&code.name);
                    source.line(format!("{name} => \"{name}\","));
                }
                source.line("_ => return None,");
            });
            source.line(")");
        });
    });
}

fn field_types(source: &mut Source, types: &[FieldType]) {
    source.line("");
    source.line("/// Tags of field-table values.");
    source.block("pub mod field_type", |source| {
        for kind in types {
            let name = screaming(&kind.name);
            constant(source, &kind.doc, &format!("{name}: u8"), format!("b'{}'", kind.tag));
            if let Some(tag) = kind.also_read {
                let doc = format!("Read as [`{name}`], never written.");
                constant(source, &doc, &format!("{name}_ALSO_READ: u8"), format!("b'{tag}'"));
            }
        }
        source.line("");
        source.line("/// RabbitMQ's name of the type with this tag, as its error texts use it.");
        source.line("#[must_use]");
        source.block("pub const fn rabbitmq_name(tag: u8) -> &'static str", |source| {
            source.block("match tag", |source| {
                for kind in types {
                    let name = screaming(&kind.name);
                    let also =
                        kind.also_read.map_or_else(String::new, |_| format!(" | {name}_ALSO_READ"));
                    source.line(format!("{name}{also} => \"{}\",", kind.rabbitmq_name));
                }
                source.line("_ => \"unknown\",");
            });
        });
    });
}
