//! `properties_gen.go`: a content's properties, owned and as views, and access to single ones.

use super::fields::{self, Form};
use super::views::own_strings;
use super::{begin, content_class, identifier};
use crate::model::{Property, Protocol, Wire};
use crate::source::Source;

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin(&["encoding/binary", "time"]);
    let properties = content_class(protocol).map_or(&[][..], |class| &class.properties);
    flags(&mut source, properties);
    infos(&mut source, properties);
    for form in [Form::Owned, Form::View] {
        declaration(&mut source, properties, form);
        present(&mut source, properties, form);
        size(&mut source, properties, form);
        append(&mut source, properties, form);
    }
    parse(&mut source, properties);
    to_owned(&mut source, properties);
    accessors(&mut source, properties);
    source
}

fn type_name(form: Form) -> &'static str {
    if form == Form::Owned { "Properties" } else { "PropertiesView" }
}

fn flag(property: &Property) -> String {
    format!("Flag{}", identifier(&property.name))
}

fn flags(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("// The flags of the properties.");
    source.line("const (");
    for property in properties {
        source.line(format!("\t// {} is the flag of {}.", flag(property), property.name));
        source.line(format!("\t{} PropertyFlags = 1 << {}", flag(property), property.flag));
    }
    source.line(")");
    let known = properties.iter().fold(0u16, |flags, property| flags | 1 << property.flag);
    source.line("");
    source.line("// knownPropertyFlags are those that a property has.");
    source.line(format!("const knownPropertyFlags PropertyFlags = {known:#06x}"));
}

fn infos(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("// propertyInfos has the properties by the number of flags above their own; it is never written to.");
    source.line("var propertyInfos = [...]fieldInfo{");
    for property in properties {
        let kind = fields::kind(property.wire);
        source.line(format!("\t{{name: \"{}\", kind: {kind}}},", property.name));
    }
    source.line("}");
}

fn declaration(source: &mut Source, properties: &[Property], form: Form) {
    source.line("");
    if form == Form::Owned {
        source.line("// Properties say what a message is. A property is there when it is not zero or its flag is set.");
    } else {
        source.line("// PropertiesView is the properties of a message as views: strings and headers alias what they were read from. A");
        source.line("// property is there when it is not zero or its flag is set.");
    }
    source.block(format!("type {} struct", type_name(form)), |source| {
        source.line("// Which properties are there although they are zero. Reading sets the flags of all that are there; writing");
        source.line("// needs none of them for a value that is not zero.");
        source.line("Flags PropertyFlags");
        for property in properties {
            source.line(format!("// {}", property.doc));
            let kind = fields::wire_type(property.wire, form);
            source.line(format!("{} {kind}", identifier(&property.name)));
        }
    });
}

/// The condition that a property is not zero.
fn is_set(property: &Property, form: Form) -> String {
    let member = format!("p.{}", identifier(&property.name));
    match (property.wire, form) {
        (Wire::Timestamp, Form::Owned) => format!("!{member}.IsZero()"),
        (wire, _) if fields::is_variable(wire) => format!("len({member}) > 0"),
        _ => format!("{member} != 0"),
    }
}

fn present(source: &mut Source, properties: &[Property], form: Form) {
    source.line("");
    source.line("// Present returns the flags of the properties that are there.");
    source.block(format!("func (p *{}) Present() PropertyFlags", type_name(form)), |source| {
        source.line("flags := p.Flags & knownPropertyFlags");
        for property in properties {
            source.block(format!("if {}", is_set(property, form)), |source| {
                source.line(format!("flags |= {}", flag(property)));
            });
        }
        source.line("return flags");
    });
}

fn size(source: &mut Source, properties: &[Property], form: Form) {
    source.line("");
    source.line("// size is room enough for all properties, but for the entries of a map, which are guessed.");
    source.block(format!("func (p *{}) size() int", type_name(form)), |source| {
        let fixed: usize = properties.iter().map(|property| fields::fixed_len(property.wire)).sum();
        source.line(format!("size := {}", 2 + fixed));
        for property in properties.iter().filter(|property| fields::is_variable(property.wire)) {
            let member = identifier(&property.name);
            source.line(if form == Form::Owned && property.wire == Wire::Table {
                format!("size += guess(p.{member})")
            } else {
                format!("size += len(p.{member})")
            });
        }
        source.line("return size");
    });
}

fn append(source: &mut Source, properties: &[Property], form: Form) {
    let name = type_name(form);
    source.line("");
    source.line("// AppendTo appends the flags and the values behind them. It panics where AppendBinary fails.");
    source.block(format!("func (p *{name}) AppendTo(dst []byte) []byte"), |source| {
        source.line("return must(p.AppendBinary(dst))");
    });
    source.line("");
    source.line("// AppendBinary appends the flags and the values behind them. The error, an [EncodeError], is that of a property that");
    source.line("// cannot be written.");
    source.block(format!("func (p *{name}) AppendBinary(dst []byte) ([]byte, error)"), |source| {
        source.line("start, flags := len(dst), p.Present()");
        source.block("if cap(dst) == 0", |source| source.line("dst = make([]byte, 0, p.size())"));
        source.line("dst = append(dst, byte(flags>>8), byte(flags))");
        for property in properties {
            source.block(format!("if flags&{} != 0", flag(property)), |source| {
                append_one(source, property, form);
            });
        }
        source.line("return dst, nil");
    });
}

fn append_one(source: &mut Source, property: &Property, form: Form) {
    let member = format!("p.{}", identifier(&property.name));
    let path = format!("\"properties\", \"{}\"", property.name);
    match (property.wire, form) {
        (Wire::ShortStr, _) => {
            source.block(format!("if len({member}) > maxShortLen"), |source| {
                source.line(format!("return dst[:start], tooLong({path})"));
            });
            source.line(format!("dst = append(dst, byte(len({member})))"));
            source.line(format!("dst = append(dst, {member}...)"));
        }
        (Wire::Table, Form::Owned) => {
            source.line("var err error");
            source.block(
                format!("if dst, err = appendMap(dst, {member}, 0); err != nil"),
                |source| {
                    let inner = format!("within(\"{}\", err)", property.name);
                    source.line(format!("return dst[:start], within(\"properties\", {inner})"));
                },
            );
        }
        (Wire::Table | Wire::LongStr, _) => {
            source.block(format!("if !fitsLong(len({member}))"), |source| {
                source.line(format!("return dst[:start], tooLong({path})"));
            });
            source.line(format!("dst = appendLong(dst, {member})"));
        }
        (Wire::Timestamp, Form::Owned) => source
            .line(format!("dst = binary.BigEndian.AppendUint64(dst, uint64({member}.Unix()))")),
        (Wire::Timestamp, Form::View) => {
            source.line(format!("dst = binary.BigEndian.AppendUint64(dst, {member})"));
        }
        _ => source.line(format!("dst = append(dst, {member})")),
    }
}

fn parse(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("// Parse reads encoded properties, such as [RawProperties] are. The error, a [DecodeError], is that of flags without a");
    source.line(
        "// meaning, a value cut short, or bytes behind the last one. Headers are not looked into.",
    );
    source.block("func (p *PropertiesView) Parse(src []byte) error", |source| {
        source.block("if len(src) < 2", |source| source.line("return truncated(src, src)"));
        source.line("flags := PropertyFlags(binary.BigEndian.Uint16(src))");
        source.block("if flags&^knownPropertyFlags != 0", |source| {
            source.line("return unknownFlags(flags)");
        });
        source.line("*p = PropertiesView{Flags: flags}");
        source.line("b, ok := src[2:], true");
        for property in properties {
            source.block(format!("if flags&{} != 0", flag(property)), |source| {
                let member = identifier(&property.name);
                let cut = match property.wire {
                    Wire::Table | Wire::LongStr => "CutLongString",
                    Wire::Timestamp => "cutTimestamp",
                    Wire::ShortStr => "CutShortString",
                    _ => "cutOctet",
                };
                source.block(format!("if p.{member}, b, ok = {cut}(b); !ok"), |source| {
                    source.line("return truncated(src, b)");
                });
            });
        }
        source.block("if len(b) > 0", |source| source.line("return trailing(src, b)"));
        source.line("return nil");
    });
}

fn to_owned(source: &mut Source, properties: &[Property]) {
    source.line("");
    source.line("// Owned returns the owned form. The error is that of malformed headers; its offset counts in the encoded properties.");
    source.block("func (p *PropertiesView) Owned() (Properties, error)", |source| {
        source.line("var owned Properties");
        source.block("if err := p.own(&owned); err != nil", |source| {
            source.line("return Properties{}, err");
        });
        source.line("return owned, nil");
    });
    source.line("");
    source.line("// own sets the owned form.");
    source.block("func (p *PropertiesView) own(owned *Properties) error", |source| {
        let strings = properties.iter().filter(|property| property.wire == Wire::ShortStr);
        let strings: Vec<_> = strings.map(|property| identifier(&property.name)).collect();
        source.line("flags := p.Present()");
        source.line("*owned = Properties{Flags: p.Flags}");
        own_strings(source, "p", &strings);
        for property in properties.iter().filter(|p| p.wire != Wire::ShortStr) {
            let member = identifier(&property.name);
            match property.wire {
                Wire::Table => owned_table(source, property, properties),
                Wire::Timestamp => {
                    source.block(format!("if flags&{} != 0", flag(property)), |source| {
                        source.line(format!("owned.{member} = unixTime(p.{member})"));
                    });
                }
                _ => source.line(format!("owned.{member} = p.{member}")),
            }
        }
        source.line("return nil");
    });
}

fn owned_table(source: &mut Source, property: &Property, properties: &[Property]) {
    let member = identifier(&property.name);
    let has = format!("if flags&{} != 0", flag(property));
    source.block(has, |source| {
        source.line("var err error");
        source.block(format!("if owned.{member}, err = p.{member}.Map(); err != nil"), |source| {
            source.line("offset := 2 + 4");
            for before in properties.iter().take_while(|before| before.flag > property.flag) {
                let fixed = fields::fixed_len(before.wire);
                source.block(format!("if flags&{} != 0", flag(before)), |source| {
                    source.line(if fields::is_variable(before.wire) {
                        format!("offset += {fixed} + len(p.{})", identifier(&before.name))
                    } else {
                        format!("offset += {fixed}")
                    });
                });
            }
            source.line("return shifted(err, offset)");
        });
    });
}

fn accessors(source: &mut Source, properties: &[Property]) {
    for property in properties {
        let name = identifier(&property.name);
        let kind = fields::wire_type(property.wire, Form::View);
        let getter = match property.wire {
            Wire::Table | Wire::LongStr => "table",
            Wire::Timestamp => "timestamp",
            Wire::ShortStr => "shortString",
            _ => "octet",
        };
        source.line("");
        source.line(format!(
            "// {name} returns the property {}, and whether it is there.",
            property.name
        ));
        source.block(format!("func (p RawProperties) {name}() ({kind}, bool)"), |source| {
            source.line(format!("return p.{getter}({})", flag(property)));
        });
    }
}
