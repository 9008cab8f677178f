//! `by_name.rs`, which tests use: methods and properties from values by name, as test vectors hold them.

use std::collections::BTreeMap;

use super::fields::fixed_len;
use super::methods::type_name;
use super::{begin, content_class, identifier};
use crate::model::{Protocol, Wire};
use crate::names::{pascal, snake};
use crate::source::Source;

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin("Methods and properties built from values by name.");
    let classes: Vec<_> = protocol.classes.iter().map(|class| snake(&class.name)).collect();
    source.line(format!("use courser_codec::{{Method, Properties, {}}};", classes.join(", ")));
    source.line("");
    source.line("use super::values::{FieldKind, Values};");
    lists(&mut source, protocol);
    source.line("");
    source.line(
        "/// The method of this name with these values; `None` when there is no such method.",
    );
    source.block(
        "pub fn method<'a>(name: &str, values: &'a Values) -> Option<Method<'a>>",
        |source| {
            source.block("Some(match name", |source| {
                for class in &protocol.classes {
                    for method in &class.methods {
                        let fields = method.fields.iter().filter(|field| !field.reserved);
                        let fields: Vec<_> = fields
                            .map(|f| {
                                format!(
                                    "{}: values.{}(\"{}\")",
                                    identifier(&f.name),
                                    getter(f.wire),
                                    f.name
                                )
                            })
                            .collect();
                        let fields = if fields.is_empty() {
                            String::new()
                        } else {
                            format!("{{ {} }}", fields.join(", "))
                        };
                        let path = format!("{}::{}", snake(&class.name), type_name(method, ""));
                        let variant = pascal(&class.name) + &pascal(&method.name);
                        source.line(format!(
                            "\"{}.{}\" => Method::{variant}({path}{fields}),",
                            class.name, method.name
                        ));
                    }
                }
                source.line("_ => return None,");
            });
            source.line(")");
        },
    );
    source.line("");
    source.line("/// Properties with these values; those without one are not set.");
    source.block("pub fn properties(values: &Values) -> Properties<'_>", |source| {
        source.block("Properties", |source| {
            for property in content_class(protocol).map_or(&[][..], |class| &class.properties) {
                let (field, name) = (identifier(&property.name), &property.name);
                source.line(format!(
                    "{field}: values.has(\"{name}\").then(|| values.{}(\"{name}\")),",
                    getter(property.wire)
                ));
            }
        });
    });
    source
}

/// All methods, and all names of fields and properties. A name stands for the same kind of value wherever it appears.
fn lists(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("/// All methods by name.");
    source.line("pub const METHODS: &[&str] = &[");
    for class in &protocol.classes {
        for method in &class.methods {
            source.line(format!("\"{}.{}\",", class.name, method.name));
        }
    }
    source.line("];");
    let fields =
        protocol.classes.iter().flat_map(|class| &class.methods).flat_map(|method| &method.fields);
    let fields =
        fields.filter(|field| !field.reserved).map(|field| (field.name.as_str(), field.wire));
    let properties = protocol.classes.iter().flat_map(|class| &class.properties);
    let properties = properties.map(|property| (property.name.as_str(), property.wire));
    let names: BTreeMap<&str, Wire> = fields.chain(properties).collect();
    source.line("");
    source.line("/// All fields and properties by name.");
    source.line("pub const FIELDS: &[(&str, FieldKind)] = &[");
    for (name, wire) in names {
        let kind = match wire {
            Wire::Bit => "Bit".to_owned(),
            Wire::ShortStr => "ShortStr".to_owned(),
            Wire::LongStr => "LongStr".to_owned(),
            Wire::Table => "Table".to_owned(),
            number => format!("Number {{ bits: {} }}", 8 * fixed_len(number)),
        };
        source.line(format!("(\"{name}\", FieldKind::{kind}),"));
    }
    source.line("];");
}

fn getter(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "bit",
        Wire::Octet => "u8",
        Wire::Short => "u16",
        Wire::Long => "u32",
        Wire::LongLong | Wire::Timestamp => "u64",
        Wire::ShortStr => "short_str",
        Wire::LongStr => "long_str",
        Wire::Table => "table",
    }
}
