//! `by_name.rs`, which tests use: methods and properties from values by name, as test vectors hold them.

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
    source.line("use super::values::Values;");
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
