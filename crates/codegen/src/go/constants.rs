//! `constants_gen.go`: numbers with names.

use super::{begin, identifier};
use crate::model::{Closes, FieldType, Protocol, ReplyCode};
use crate::names::screaming;
use crate::source::Source;

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin(&["strconv"]);
    facts(&mut source, protocol);
    frame_types(&mut source, protocol);
    reply_codes(&mut source, &protocol.reply_codes);
    tags(&mut source, &protocol.field_types);
    source
}

fn facts(source: &mut Source, protocol: &Protocol) {
    let facts = &protocol.facts;
    let (major, minor, revision) = (facts.major, facts.minor, facts.revision);
    source.line("");
    source.line("// What the protocol is and where it is found.");
    source.line("const (");
    let mut constant = |name: &str, doc: &str, value: String| {
        source.line(format!("\t// {name} is {doc}"));
        source.line(format!("\t{name} = {value}"));
    };
    constant(
        "ProtocolHeader",
        "what a client sends first: the name and the version of the protocol.",
        format!("\"{}\\x00\\x{major:02x}\\x{minor:02x}\\x{revision:02x}\"", facts.name),
    );
    constant("VersionMajor", "the major version of the protocol.", major.to_string());
    constant("VersionMinor", "the minor version of the protocol.", minor.to_string());
    constant("Port", "the TCP port of a server.", facts.port.to_string());
    constant("TLSPort", "the TCP port of a server that speaks TLS.", facts.tls_port.to_string());
    constant(
        "FrameMinSize",
        "the frame size in bytes that every peer takes, also before limits are settled.",
        facts.frame_min_size.to_string(),
    );
    constant("FrameEnd", "the byte behind every frame.", format!("{:#04X}", facts.frame_end));
    source.line(")");
    source.line("");
    source.line("// The classes by number.");
    source.line("const (");
    for class in &protocol.classes {
        let name = format!("Class{}", identifier(&class.name));
        source
            .line(format!("\t// {name} is the number of the class {}: {}", class.name, class.doc));
        source.line(format!("\t{name} uint16 = {}", class.id));
    }
    source.line(")");
}

fn frame_types(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// A FrameType says what the payload of a frame is.");
    source.line("type FrameType uint8");
    source.line("");
    source.line("// The frame types.");
    source.line("const (");
    for frame in &protocol.frames {
        let name = format!("Frame{}", identifier(&frame.name));
        source.line(format!("\t// {name}: {}", frame.doc));
        source.line(format!("\t{name} FrameType = {}", frame.id));
    }
    source.line(")");
    source.line("");
    source.line("// name returns the type's name, nothing when the protocol lacks it.");
    source.block("func (t FrameType) name() string", |source| {
        source.line("switch t {");
        for frame in &protocol.frames {
            source.line(format!("case Frame{}:", identifier(&frame.name)));
            source.line(format!("\treturn \"{}\"", frame.name));
        }
        source.line("default:");
        source.line("\treturn \"\"");
        source.line("}");
    });
}

fn reply_codes(source: &mut Source, codes: &[ReplyCode]) {
    source.line("");
    source.line(
        "// A ReplyCode says why a channel or a connection is closed, or a message comes back.",
    );
    source.line("type ReplyCode uint16");
    source.line("");
    source.line("// The reply codes.");
    source.line("const (");
    let name_of = |code: &ReplyCode| format!("Code{}", identifier(&code.name));
    for code in codes {
        let closes = match code.closes {
            Some(Closes::Channel) => " Closes the channel.",
            Some(Closes::Connection) => " Closes the connection.",
            None => "",
        };
        source.line(format!("\t// {}: {}{closes}", name_of(code), code.doc));
        source.line(format!("\t{} ReplyCode = {}", name_of(code), code.value));
    }
    source.line(")");
    source.line("");
    source.line("// ClosesConnection reports whether an error with this code ends the connection, and not only the channel.");
    source.block("func (c ReplyCode) ClosesConnection() bool", |source| {
        source.line("switch c {");
        for code in codes.iter().filter(|code| code.closes == Some(Closes::Connection)) {
            source.line(format!("case {}:", name_of(code)));
            source.line("\treturn true");
        }
        source.line("default:");
        source.line("\treturn false");
        source.line("}");
    });
    source.line("");
    source.line(
        "// String returns the name that reply texts begin with, such as NOT_FOUND, or the number.",
    );
    source.block("func (c ReplyCode) String() string", |source| {
        source.line("switch c {");
        for code in codes {
            source.line(format!("case {}:", name_of(code)));
            source.line(format!("\treturn \"{}\"", screaming(&code.name)));
        }
        source.line("default:");
        source.line("\treturn strconv.Itoa(int(c))");
        source.line("}");
    });
}

fn tags(source: &mut Source, types: &[FieldType]) {
    source.line("");
    source.line("// A Tag is the letter before a value of a field table, and says its type.");
    source.line("type Tag byte");
    source.line("");
    source.line("// The tags.");
    source.line("const (");
    for kind in types {
        let name = tag_name(kind);
        source.line(format!("\t// {name}: {}", kind.doc));
        source.line(format!("\t{name} Tag = '{}'", kind.tag));
    }
    for kind in types {
        let Some(tag) = kind.also_read else { continue };
        let name = tag_name(kind);
        source.line(format!("\t// Read as {name}, never written."));
        source.line(format!("\tt{}AlsoRead Tag = '{tag}'", name.trim_start_matches('T')));
    }
    source.line(")");
    source.line("");
    source.line("// String returns RabbitMQ's name of the type, as its error texts use it.");
    source.block("func (t Tag) String() string", |source| {
        source.line("switch t {");
        for kind in types {
            let name = tag_name(kind);
            let also = match kind.also_read {
                Some(_) => format!(", t{}AlsoRead", name.trim_start_matches('T')),
                None => String::new(),
            };
            source.line(format!("case {name}{also}:"));
            source.line(format!("\treturn \"{}\"", kind.rabbitmq_name));
        }
        source.line("default:");
        source.line("\treturn \"unknown\"");
        source.line("}");
    });
}

/// The tag's identifier, with Go's names for numbers: `TagInt64`.
fn tag_name(kind: &FieldType) -> String {
    let split = kind.name.find(|letter: char| letter.is_ascii_digit());
    let name = match split.map(|at| kind.name.split_at(at)) {
        Some(("i", bits)) => format!("Int{bits}"),
        Some(("u", bits)) => format!("Uint{bits}"),
        Some(("f", bits)) => format!("Float{bits}"),
        _ if kind.name == "long-str" => "LongString".to_owned(),
        _ => identifier(&kind.name),
    };
    format!("Tag{name}")
}
