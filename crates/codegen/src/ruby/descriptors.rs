//! The table of methods by which the extension encodes and decodes: Rust that rustfmt still has to format.

use super::interface;
use crate::SPEC_PATH;
use crate::model::{Class, Field, Method, Protocol, Wire};

pub(super) fn render(protocol: &Protocol) -> String {
    let methods: Vec<_> = protocol
        .classes
        .iter()
        .flat_map(|class| class.methods.iter().map(move |method| (class, method)))
        .collect();
    let mut text = format!(
        "//! Every method with its fields.\n//!\n//! Generated from `{SPEC_PATH}` by `cargo run -p courser-codegen`; \
         not to be edited.\n\nuse crate::method::{{Field, Spec, Wire::*}};\n\n"
    );
    text += &format!(
        "/// Number of methods.\npub(crate) const COUNT: usize = {};\n\n\
         /// The methods in the order of the description.\npub(crate) static METHODS: [Spec; COUNT] = [\n",
        methods.len()
    );
    for (class, method) in &methods {
        text += &spec(class, method);
    }
    text += "];\n\n/// The place of a method in [`METHODS`] by the numbers of class and method.\n\
             #[inline]\npub(crate) fn place(class_id: u16, method_id: u16) -> Option<usize> {\n\
             Some(match (class_id, method_id) {\n";
    for (at, (class, method)) in methods.iter().enumerate() {
        text += &format!("({}, {}) => {at},\n", class.id, method.id);
    }
    text += "_ => return None,\n})\n}\n";
    text
}

fn spec(class: &Class, method: &Method) -> String {
    let fields: String = method.fields.iter().map(|field| describe(class, method, field)).collect();
    format!(
        "// {}\nSpec {{ class_id: {}, method_id: {}, encodes: {}, decodes: {}, content: {}, takes_channel: {}, \
         fields: &[{fields}] }},\n",
        interface::full_name(class, method),
        class.id,
        method.id,
        interface::encodes(class, method),
        interface::decodes(class, method),
        method.content,
        interface::takes_channel(class),
    )
}

fn describe(class: &Class, method: &Method, field: &Field) -> String {
    let wire = match field.wire {
        Wire::Bit => "Bit",
        Wire::Octet => "Octet",
        Wire::Short => "Short",
        Wire::Long => "Long",
        Wire::LongLong | Wire::Timestamp => "LongLong",
        Wire::ShortStr => "ShortStr",
        Wire::LongStr => "LongStr",
        Wire::Table => "Table",
    };
    match interface::field_name(class, method, field) {
        Some(name) => format!("Field::named({wire}, c{name:?}),"),
        None => format!("Field::reserved({wire}),"),
    }
}
