//! One file a class with its methods: names, numbers and documentation. What they do is in the extension.

use super::interface::{self, fields, full_name, ruby_type};
use super::lines::Lines;
use super::notice;
use crate::model::{Class, Field, From, Method, Property, Wire};
use crate::names::{pascal, snake};

pub(super) fn render(class: &Class) -> String {
    let mut lines = Lines::default();
    lines.line("# frozen_string_literal: true");
    lines.line("");
    notice().iter().for_each(|line| lines.line(line));
    lines.line("");
    lines.block("module AMQ", |lines| {
        lines.block("module Protocol", |lines| class_body(lines, class));
    });
    lines.into_text()
}

fn class_body(lines: &mut Lines, class: &Class) {
    lines.comment(&class.doc);
    lines.block(format!("class {} < Protocol::Class", pascal(&class.name)), |lines| {
        lines.line(format!("@name = {:?}", class.name));
        lines.line(format!("@method_id = {}", class.id));
        if !class.properties.is_empty() {
            properties(lines, class);
        }
        for method in &class.methods {
            lines.line("");
            method_class(lines, class, method);
        }
    });
}

fn method_class(lines: &mut Lines, class: &Class, method: &Method) {
    lines.comment(&method.doc);
    lines.line("#");
    lines.comment(&remarks(method));
    let name = pascal(&method.name);
    lines.block(format!("class {name} < Protocol::Method"), |lines| {
        lines.line(format!("@name = {:?}", full_name(class, method)));
        lines.line(format!("@method_id = {}", method.id));
        let index = u32::from(class.id) << 16 | u32::from(method.id);
        lines.line(format!("@index = 0x{index:08X}"));
        lines.line("");
        if interface::encodes(class, method) {
            if interface::is_publish(class, method) {
                publish(lines)
            } else {
                encode(lines, class, method)
            }
        }
        if interface::decodes(class, method) {
            decode(lines, class, method, &name);
        }
        lines.comment(&format!("@return [Boolean] #{}", method.content));
        lines.block("def self.has_content?", |lines| lines.line(method.content.to_string()));
        lines.line("");
        lines.line(format!("Native.define_method_class(self, {}, {})", class.id, method.id));
    });
}

fn remarks(method: &Method) -> String {
    let sender = match method.from {
        From::Client => "Sent by clients",
        From::Server => "Sent by servers",
        From::Both => "Sent by both sides",
    };
    let content = if method.content { ", with a content behind it" } else { "" };
    let addition = if method.rabbitmq { " An addition of RabbitMQ's." } else { "" };
    format!("{sender}{content}.{addition}")
}

/// The arguments of `encode`, after the channel.
fn encode(lines: &mut Lines, class: &Class, method: &Method) {
    let fields = fields(class, method);
    let mut arguments: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
    if interface::takes_channel(class) {
        arguments.insert(0, "channel");
    }
    lines.line(format!("# @!method self.encode({})", arguments.join(", ")));
    if interface::takes_channel(class) {
        lines.comment("  @param channel [Integer] Number of the channel.");
    }
    for (name, field) in &fields {
        lines.comment(&format!(
            "  @param {name} [{}] {}",
            argument_type(field),
            interface::doc(field)
        ));
    }
    lines.comment("  @return [MethodFrame]");
    lines.line("");
}

fn argument_type(field: &Field) -> &'static str {
    match field.wire {
        Wire::Bit => "Boolean",
        Wire::ShortStr | Wire::LongStr => "String, #to_s",
        Wire::Table => "Hash, nil",
        wire => ruby_type(wire),
    }
}

fn decode(lines: &mut Lines, class: &Class, method: &Method, name: &str) {
    let fields = fields(class, method);
    lines.line("# @!method self.decode(data)");
    lines.comment("  @param data [String] What follows the numbers of class and method in the payload of a frame.");
    lines.comment(&format!("  @return [{name}]"));
    lines.comment("  @raise [MalformedInputError] When the bytes are not this method's.");
    lines.line("");
    for (field_name, field) in &fields {
        lines.line(format!("# @!attribute [r] {field_name}"));
        lines.comment(&format!("  @return [{}] {}", ruby_type(field.wire), interface::doc(field)));
        lines.line("");
    }
}

fn publish(lines: &mut Lines) {
    let parameters = [
        ("channel", "Integer", "Number of the channel."),
        ("payload", "String", "The body."),
        (
            "user_headers",
            "Hash",
            "Properties by name ({Basic::PROPERTIES}); other keys are not looked at.",
        ),
        ("exchange", "String, #to_s", "Name of the exchange; empty is the default exchange."),
        ("routing_key", "String, #to_s", "What the exchange routes by."),
        ("mandatory", "Boolean", "Return the message when no queue takes it."),
        ("immediate", "Boolean", "Return the message when no consumer takes it at once."),
        ("frame_size", "Integer", "Bytes that a frame may have, header and end included."),
    ];
    let names: Vec<_> = parameters.iter().map(|(name, ..)| *name).collect();
    let describe = |lines: &mut Lines| {
        for (name, kind, doc) in parameters {
            lines.comment(&format!("  @param {name} [{kind}] {doc}"));
        }
    };
    lines.line(format!("# @!method self.encode({})", names.join(", ")));
    describe(lines);
    lines.comment("  @return [Array<Frame>] The method, the content header, and the body in as many frames as it needs.");
    lines.comment("  @raise [RuntimeError] When there are no properties.");
    lines.line("");
    lines.line(format!("# @!method self.encode_to_string({})", names.join(", ")));
    lines.comment("  The same frames as one String, ready to be written. An addition to the interface of `amq-protocol`:");
    lines.comment("  it copies the body once and makes one object.");
    describe(lines);
    lines.comment("  @return [String] A new binary String.");
    lines.comment("  @raise [RuntimeError] When there are no properties.");
    lines.line("");
}

fn properties(lines: &mut Lines, class: &Class) {
    lines.line("");
    lines.comment("Properties of a message in the order of the wire:");
    for property in &class.properties {
        lines.comment(&format!(
            "- `{}` ({}): {}",
            snake(&property.name),
            ruby_type(property.wire),
            property.doc
        ));
    }
    lines.line("PROPERTIES = %i[");
    for property in &class.properties {
        lines.line(format!("  {}", snake(&property.name)));
    }
    lines.line("].freeze");
    lines.line("");
    lines.comment("The name of each property by its flag.");
    by_flag(lines, class, "DECODE_PROPERTIES", &|p| format!("{} => :{}", flag(p), snake(&p.name)));
    lines.line("");
    lines.comment("How each property lies on the wire, by its flag.");
    by_flag(lines, class, "DECODE_PROPERTIES_TYPE", &|p| {
        format!("{} => :{}", flag(p), wire(p.wire))
    });
    lines.line("");
    lines.comment("The flags in the order of the wire.");
    lines.line("DECODE_PROPERTIES_KEYS = DECODE_PROPERTIES.keys.freeze");
    for (index, property) in class.properties.iter().enumerate() {
        let name = snake(&property.name);
        lines.line("");
        lines.line(format!("# @!method self.encode_{name}(value)"));
        lines.comment(&format!(
            "  @return [Array(Integer, Integer, String)] {index}, {}, and the value's bytes.",
            flag(property)
        ));
    }
    lines.line("");
    lines.line("Native.define_properties(self)");
}

fn by_flag(lines: &mut Lines, class: &Class, name: &str, row: &dyn Fn(&Property) -> String) {
    lines.line(format!("{name} = {{"));
    let count = class.properties.len();
    for (at, property) in class.properties.iter().enumerate() {
        let comma = if at + 1 == count { "" } else { "," };
        lines.line(format!("  {}{comma}", row(property)));
    }
    lines.line("}.freeze");
}

fn flag(property: &Property) -> String {
    format!("0x{:04X}", 1_u16 << property.flag)
}

fn wire(wire: Wire) -> &'static str {
    match wire {
        Wire::ShortStr => "shortstr",
        Wire::Table => "table",
        Wire::Octet => "octet",
        Wire::Timestamp => "timestamp",
        Wire::Bit => "bit",
        Wire::Short => "short",
        Wire::Long => "long",
        Wire::LongLong => "longlong",
        Wire::LongStr => "longstr",
    }
}
