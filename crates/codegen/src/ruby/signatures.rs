//! Signatures of the method classes in RBS.

use super::interface::{self, fields, ruby_type};
use super::lines::Lines;
use super::notice;
use crate::model::{Class, Closes, Method, Protocol, Wire};
use crate::names::{pascal, snake};

pub(super) fn render(protocol: &Protocol) -> String {
    let mut lines = Lines::default();
    notice().iter().for_each(|line| lines.line(line));
    lines.line("");
    lines.block("module AMQ", |lines| {
        lines.block("module Protocol", |lines| {
            for code in &protocol.reply_codes {
                let parent = match code.closes {
                    Some(Closes::Channel) => "SoftError",
                    Some(Closes::Connection) => "HardError",
                    None => continue,
                };
                lines.block(format!("class {} < {parent}", pascal(&code.name)), |lines| {
                    lines.line("VALUE: Integer");
                });
            }
            for class in &protocol.classes {
                lines.line("");
                class_body(lines, class);
            }
        });
    });
    lines.into_text()
}

fn class_body(lines: &mut Lines, class: &Class) {
    lines.block(format!("class {} < Protocol::Class", pascal(&class.name)), |lines| {
        if !class.properties.is_empty() {
            lines.line("PROPERTIES: Array[Symbol]");
            lines.line("DECODE_PROPERTIES: Hash[Integer, Symbol]");
            lines.line("DECODE_PROPERTIES_TYPE: Hash[Integer, Symbol]");
            lines.line("DECODE_PROPERTIES_KEYS: Array[Integer]");
            lines.line("def self.encode_properties: (Integer body_size, Hash[Symbol, untyped] properties) -> String");
            lines.line("def self.decode_properties: (String data) -> Hash[Symbol, untyped]");
            for property in &class.properties {
                let name = snake(&property.name);
                lines.line(format!("def self.encode_{name}: (untyped value) -> [Integer, Integer, String]"));
            }
        }
        for method in &class.methods {
            method_class(lines, class, method);
        }
    });
}

fn method_class(lines: &mut Lines, class: &Class, method: &Method) {
    let fields = fields(class, method);
    let name = pascal(&method.name);
    lines.block(format!("class {name} < Protocol::Method"), |lines| {
        if interface::is_publish(class, method) {
            let arguments = "(Integer channel, String payload, Hash[Symbol, untyped] user_headers, _ToS exchange, \
                             _ToS routing_key, boolish mandatory, boolish immediate, Integer frame_size)";
            lines.line(format!("def self.encode: {arguments} -> Array[FrameSubclass]"));
            lines.line(format!("def self.encode_to_string: {arguments} -> String"));
        } else if interface::encodes(class, method) {
            let channel = interface::takes_channel(class).then(|| "Integer channel".to_owned());
            let rest = fields.iter().map(|(name, field)| format!("{} {}", argument(field.wire), escaped(name)));
            let arguments: Vec<_> = channel.into_iter().chain(rest).collect();
            lines.line(format!("def self.encode: ({}) -> MethodFrame", arguments.join(", ")));
        }
        if interface::decodes(class, method) {
            lines.line("def self.decode: (String data) -> instance");
            let arguments: Vec<_> =
                fields.iter().map(|(name, field)| format!("{} {}", value(field.wire), escaped(name))).collect();
            lines.line(format!("def initialize: ({}) -> void", arguments.join(", ")));
            for (name, field) in &fields {
                lines.line(format!("attr_reader {name}: {}", value(field.wire)));
            }
        }
        lines.line("def self.has_content?: () -> bool");
    });
}

/// Names that RBS takes for something else are written without one.
fn escaped(name: &str) -> &str {
    if name == "type" { "kind" } else { name }
}

fn value(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "bool",
        Wire::Table => "Hash[String, untyped]",
        wire => ruby_type(wire),
    }
}

fn argument(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "boolish",
        Wire::ShortStr | Wire::LongStr => "_ToS",
        Wire::Table => "Hash[untyped, untyped]?",
        wire => value(wire),
    }
}
