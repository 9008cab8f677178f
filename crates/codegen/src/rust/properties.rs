//! `properties.rs`: a content's properties, borrowed and owned, and access to single ones.

use super::fields;
use super::{begin, content_class, identifier};
use crate::model::{Property, Protocol, Wire};
use crate::names::{screaming, snake};
use crate::source::Source;

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin("The properties of a message.");
    let properties = content_class(protocol).map_or(&[][..], |class| &class.properties);
    let class = content_class(protocol).map_or_else(String::new, |class| snake(&class.name));
    source.line(format!("use super::{class}::CLASS_ID;"));
    source.line("use super::constants::FRAME_END;");
    source.line("use crate::content::{CONTENT_HEADER_FIXED_LEN, begin_header_frame, put_fixed};");
    source.line("use crate::error::DecodeError;");
    source.line("use crate::properties::PropertyKind;");
    source.line("use crate::reader::Reader;");
    source.line("use crate::sink::put_filled;");
    source
        .line("use crate::{FieldTable, Frame, RawProperties, ShortStr, ShortString, Sink, Table};");
    source.line("");
    let known = properties.iter().fold(0u16, |flags, property| flags | 1 << property.flag);
    source.line("/// Flags that a property has.");
    source.line(format!("pub(crate) const KNOWN_FLAGS: u16 = {known:#06x};"));
    source.line("");
    kinds(&mut source, properties);
    borrowed(&mut source, properties);
    accessors(&mut source, properties);
    owned(&mut source, properties);
    source
}

fn kinds(source: &mut Source, properties: &[Property]) {
    source.line("/// How each property lies on the wire, by the number of flags above its own.");
    let kinds: Vec<_> = properties
        .iter()
        .map(|property| match property.wire {
            Wire::Table => "PropertyKind::Table",
            Wire::Octet => "PropertyKind::Octet",
            Wire::Timestamp => "PropertyKind::Timestamp",
            _ => "PropertyKind::ShortStr",
        })
        .collect();
    let len = kinds.len();
    source.line(format!(
        "pub(crate) const PROPERTY_KINDS: [PropertyKind; {len}] = [{}];",
        kinds.join(", ")
    ));
}

fn flag(property: &Property) -> String {
    format!("{}_FLAG", screaming(&property.name))
}

fn borrowed(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("/// Properties of a message, borrowed; headers stay encoded.");
    source.line("#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]");
    source.block("pub struct Properties<'a>", |source| {
        for property in properties {
            source.line(format!("/// {}", property.doc));
            source.line(format!(
                "pub {}: Option<{}>,",
                identifier(&property.name),
                fields::borrowed_type(property.wire)
            ));
        }
    });
    source.line("");
    source.block("impl<'a> Properties<'a>", |source| {
        for property in properties {
            source.line(format!("/// Flag of the property `{}`.", property.name));
            source.line(format!(
                "pub const {}: u16 = {:#06x};",
                flag(property),
                1u32 << property.flag
            ));
        }
        source.line("");
        source.line("/// Reads the values whose flags are set.");
        let signature =
            "pub(crate) fn read(flags: u16, reader: &mut Reader<'a>) -> Result<Self, DecodeError>";
        source.block(signature, |source| {
            source.line("let mut properties = Self::default();");
            for property in properties {
                source.block(format!("if flags & Self::{} != 0", flag(property)), |source| {
                    let name = identifier(&property.name);
                    source.line(format!(
                        "properties.{name} = Some(reader.{}()?);",
                        fields::reader_method(property.wire)
                    ));
                });
            }
            source.line("reader.finish()?;");
            source.line("Ok(properties)");
        });
        measure_and_write(source, properties, false);
        source.line("");
        source.line("/// The owned form, headers decoded.");
        source.line("///");
        source.line("/// # Errors");
        source.line("/// When the headers are malformed; the offset counts within them.");
        source.block("pub fn to_owned(&self) -> Result<OwnedProperties, DecodeError>", |source| {
            source.block("Ok(OwnedProperties", |source| {
                for property in properties {
                    let name = identifier(&property.name);
                    source.line(match property.wire {
                        Wire::Table => {
                            format!("{name}: self.{name}.map(Table::to_owned).transpose()?,")
                        }
                        Wire::ShortStr => {
                            format!("{name}: self.{name}.map(ShortString::from),")
                        }
                        _ => format!("{name}: self.{name},"),
                    });
                }
            });
            source.line(")");
        });
    });
}

fn accessors(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("/// Single properties; those before the wanted one are skipped, not decoded. An error means that a value");
    source.line("/// up to the wanted one is cut short.");
    source.line("#[allow(clippy::missing_errors_doc, reason = \"said once above\")]");
    source.block("impl<'a> RawProperties<'a>", |source| {
        for property in properties {
            let name = identifier(&property.name);
            let kind = fields::borrowed_type(property.wire);
            source.line(format!("/// {}", property.doc));
            source.block(
                format!("pub fn {name}(&self) -> Result<Option<{kind}>, DecodeError>"),
                |source| {
                    let read =
                        format!("|mut reader| reader.{}()", fields::reader_method(property.wire));
                    source.line(format!(
                        "self.reader_at(Properties::{})?.map({read}).transpose()",
                        flag(property)
                    ));
                },
            );
            source.line("");
        }
    });
}

fn owned(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("/// Properties of a message, owned.");
    source.line("#[derive(Clone, Debug, Default, PartialEq)]");
    source.block("pub struct OwnedProperties", |source| {
        for property in properties {
            source.line(format!("/// {}", property.doc));
            source.line(format!(
                "pub {}: Option<{}>,",
                identifier(&property.name),
                fields::owned_type(property.wire)
            ));
        }
    });
    source.line("");
    source.block("impl OwnedProperties", |source| measure_and_write(source, properties, true));
}

/// `flags`, `encoded_len` and `encode`, which the borrowed and the owned form have alike.
fn measure_and_write(source: &mut Source, properties: &[Property], owned: bool) {
    source.line("");
    source.line("/// The word of flags that stands before the values.");
    source.line("#[must_use]");
    source.block("pub fn flags(&self) -> u16", |source| source.line("self.measure().0"));
    source.line("");
    source.line("/// Bytes that `encode` writes.");
    source.line("#[must_use]");
    source.block("pub fn encoded_len(&self) -> usize", |source| source.line("self.measure().1"));
    source.line("");
    source.line("/// Whether no property is set.");
    source.line("#[inline]");
    source.line("#[must_use]");
    source.block("pub const fn is_empty(&self) -> bool", |source| {
        let set: Vec<_> =
            properties.iter().map(|p| format!("self.{}.is_some()", identifier(&p.name))).collect();
        // Not `||`: that would be a jump for each.
        source.line(format!("!({})", set.join(" | ")));
    });
    source.line("");
    source.line("/// The flags, and the bytes of these and all values.");
    source.line("#[inline]");
    source.block("fn measure(&self) -> (u16, usize)", |source| {
        source.line("if self.is_empty() { (0, 2) } else { self.measure_values() }");
    });
    source.line("");
    source.block("fn measure_values(&self) -> (u16, usize)", |source| {
        source.line("let (mut flags, mut len) = (0, 2);");
        for property in properties {
            let len = match (property.wire, fields::variable_len(property.wire, "value")) {
                (Wire::Table, _) => "value.encoded_len()".to_owned(),
                (wire, Some(variable)) => format!("{} + {variable}", fields::fixed_len(wire)),
                (wire, None) => fields::fixed_len(wire).to_string(),
            };
            let field = identifier(&property.name);
            let condition = if len.contains("value") {
                format!("if let Some(value) = &self.{field}")
            } else {
                format!("if self.{field}.is_some()")
            };
            source.block(condition, |source| {
                source.line(format!("flags |= Properties::{};", flag(property)));
                source.line(format!("len += {len};"));
            });
        }
        source.line("(flags, len)");
    });
    source.line("");
    source.line("/// Writes the flags and the values behind them.");
    source.block("pub fn encode(&self, sink: &mut impl Sink)", |source| {
        source.line("let (flags, len) = self.measure();");
        source.line("put_filled!(sink, len, |window| self.fill(flags, window));");
    });
    source.line("");
    source.line("/// Writes a whole header frame, for a body of `body_size` bytes.");
    source.block(
        "pub fn write_header_frame(&self, channel: u16, body_size: u64, sink: &mut impl Sink)",
        |source| {
            source.line("let (flags, len) = self.measure();");
            source.line(
                "put_filled!(sink, Frame::OVERHEAD + CONTENT_HEADER_FIXED_LEN + len, |window| {",
            );
            source.line("begin_header_frame(channel, len, window);");
            source.line("put_fixed(CLASS_ID, body_size, window);");
            source.line("self.fill(flags, window);");
            source.line("window.put_u8(FRAME_END);");
            source.line("});");
        },
    );
    source.line("");
    source.line("/// Writes the payload of a header frame, for a body of `body_size` bytes.");
    source.block("pub fn encode_header(&self, body_size: u64, sink: &mut impl Sink)", |source| {
        source.line("let (flags, len) = self.measure();");
        source.line("put_filled!(sink, CONTENT_HEADER_FIXED_LEN + len, |window| {");
        source.line("put_fixed(CLASS_ID, body_size, window);");
        source.line("self.fill(flags, window);");
        source.line("});");
    });
    source.line("");
    source.line("#[inline]");
    source.block("fn fill(&self, flags: u16, sink: &mut impl Sink)", |source| {
        source.line("sink.put_u16(flags);");
        source.block("if flags != 0", |source| source.line("self.fill_values(sink);"));
    });
    source.line("");
    source.block("fn fill_values(&self, sink: &mut impl Sink)", |source| {
        for property in properties {
            let value = format!("self.{}", identifier(&property.name));
            let statements = match property.wire {
                Wire::ShortStr if owned => fields::put(Wire::ShortStr, "value.as_short_str()"),
                Wire::Table => fields::put(property.wire, "value"),
                wire => fields::put(wire, "*value"),
            };
            let_some(source, &value, &statements.join("\n"));
        }
    });
}

fn let_some(source: &mut Source, value: &str, statements: &str) {
    source.block(format!("if let Some(value) = &{value}"), |source| source.line(statements));
}
