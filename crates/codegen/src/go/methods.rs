//! One file a class with its methods: the owned types, and how they and the views are written.

use super::fields::{self, Form, Piece};
use super::{begin, identifier, parse};
use crate::model::{Class, Field, From, Method, Wire};
use crate::source::Source;

pub(super) fn render(class: &Class) -> Source {
    let needs_binary = class.methods.iter().any(|method| {
        let wide = |field: &Field| matches!(field.wire, Wire::Long | Wire::LongLong);
        let parsed = |field: &Field| field.wire == Wire::Short && !field.reserved;
        fields::visible(method).any(wide)
            || (!fields::has_view(method) && fields::visible(method).any(parsed))
    });
    let imports: &[_] = if needs_binary { &["encoding/binary"] } else { &[] };
    let mut source = begin(imports);
    for method in &class.methods {
        let name = type_name(class, method, Form::Owned);
        source.line("");
        describe(&mut source, class, method, &name);
        declaration(&mut source, method, &name, Form::Owned);
        writing(&mut source, class, method, Form::Owned);
        source.line("");
        if fields::has_view(method) {
            unmarshal(&mut source, method, &name);
        } else {
            parse::render(&mut source, method, &name);
            source.line("");
            source.line(
                "// UnmarshalBinary is Parse: the method has nothing that a view could alias.",
            );
            source.block(
                format!("func (m *{name}) UnmarshalBinary(payload []byte) error"),
                |source| {
                    source.line("return m.Parse(payload)");
                },
            );
        }
    }
    source
}

/// The name of a method's type.
pub(super) fn type_name(class: &Class, method: &Method, form: Form) -> String {
    let name = identifier(&class.name) + &identifier(&method.name);
    if form == Form::View && fields::has_view(method) { name + "View" } else { name }
}

fn describe(source: &mut Source, class: &Class, method: &Method, name: &str) {
    source.line(format!("// {name} is {}.{}: {}", class.name, method.name, lower(&method.doc)));
    source.line("//");
    let sender = match method.from {
        From::Client => "Clients send it",
        From::Server => "Servers send it",
        From::Both => "Both sides send it",
    };
    let content = if method.content { "; a content header and body frames follow" } else { "" };
    let extension = if method.rabbitmq { " It is RabbitMQ's addition." } else { "" };
    source.line(format!("// {sender}{content}.{extension}"));
}

/// A sentence that goes on behind a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// The struct.
pub(super) fn declaration(source: &mut Source, method: &Method, name: &str, form: Form) {
    if fields::visible(method).next().is_none() {
        source.line(format!("type {name} struct{{}}"));
        return;
    }
    source.block(format!("type {name} struct"), |source| {
        for field in fields::visible(method) {
            source.line(format!("// {}", field.doc));
            source.line(format!("{} {}", identifier(&field.name), fields::go_type(field, form)));
        }
    });
}

/// `ID` and all that appends.
pub(super) fn writing(source: &mut Source, class: &Class, method: &Method, form: Form) {
    let name = type_name(class, method, form);
    let id = type_name(class, method, Form::Owned) + "ID";
    let fallible = fields::has_view(method);
    source.line("");
    source.line(format!("// ID returns [{id}]."));
    source.line(format!("func (*{name}) ID() MethodID {{ return {id} }}"));
    if method.fields.is_empty() {
        without_fields(source, class, method, &name);
        return;
    }
    source.line("");
    source.block(format!("func (m *{name}) size() int"), |source| {
        source.line(format!("return {}", size(method, form)));
    });
    source.line("");
    source.line("// AppendTo appends the payload of the method's frame; see [Method].");
    if fallible {
        source.block(format!("func (m *{name}) AppendTo(dst []byte) []byte"), |source| {
            source.line("return must(m.AppendBinary(dst))");
        });
    } else {
        source.block(format!("func (m *{name}) AppendTo(dst []byte) []byte"), |source| {
            source.line("dst = withRoom(dst, m.size(), 0)");
            append_fields(source, class, method, form, false);
        });
    }
    source.line("");
    source.line("// AppendBinary appends the payload of the method's frame; see [Method].");
    let signature = format!("func (m *{name}) AppendBinary(dst []byte) ([]byte, error)");
    if fallible {
        source.block(signature, |source| {
            check_lengths(source, class, method, form);
            if form == Form::Owned && fields::has_table(method) {
                source.line("start := len(dst)");
            }
            source.line(format!("dst = withRoom(dst, m.size(), {})", guess(method, form)));
            append_fields(source, class, method, form, true);
        });
    } else {
        source.block(signature, |source| source.line("return m.AppendTo(dst), nil"));
    }
    let room = format!("withRoom(dst, FrameOverhead+m.size(), {})", guess(method, form));
    append_frame(source, &name, &room);
}

fn without_fields(source: &mut Source, class: &Class, method: &Method, name: &str) {
    let id = id_bytes(class, method);
    source.line("");
    source.line("// AppendTo appends the payload of the method's frame; see [Method].");
    source.block(format!("func (*{name}) AppendTo(dst []byte) []byte"), |source| {
        source.line(format!("return append(dst, {id})"));
    });
    source.line("");
    source.line("// AppendBinary appends the payload of the method's frame; see [Method].");
    let signature = format!("func (m *{name}) AppendBinary(dst []byte) ([]byte, error)");
    source.block(signature, |source| source.line("return m.AppendTo(dst), nil"));
    append_frame(source, name, "dst");
}

fn append_frame(source: &mut Source, name: &str, room: &str) {
    source.line("");
    source.line("// AppendFrame appends a whole method frame; see [Method].");
    let signature = "AppendFrame(dst []byte, channel uint16) ([]byte, error)";
    source.block(format!("func (m *{name}) {signature}"), |source| {
        source.line("start := len(dst)");
        source
            .line(format!("dst, err := m.AppendBinary(beginFrame({room}, FrameMethod, channel))"));
        source.line("return endFrame(dst, start, err)");
    });
}

/// About the bytes of the entries of maps, as an expression.
fn guess(method: &Method, form: Form) -> String {
    let maps = fields::visible(method)
        .filter(|field| form == Form::Owned && field.wire == Wire::Table)
        .map(|field| format!("guess(m.{})", identifier(&field.name)));
    let maps: Vec<_> = maps.collect();
    if maps.is_empty() { "0".to_owned() } else { maps.join("+") }
}

/// The bytes of the payload, without the entries of maps.
fn size(method: &Method, form: Form) -> String {
    let fixed: usize = fields::pieces(method).iter().map(Piece::fixed_len).sum();
    let variable = fields::visible(method).filter(|field| {
        fields::is_variable(field.wire) && (form == Form::View || field.wire != Wire::Table)
    });
    let variable = variable.map(|field| format!("len(m.{})", identifier(&field.name)));
    std::iter::once((4 + fixed).to_string()).chain(variable).collect::<Vec<_>>().join(" + ")
}

fn check_lengths(source: &mut Source, class: &Class, method: &Method, form: Form) {
    for field in fields::visible(method) {
        let member = identifier(&field.name);
        let condition = match field.wire {
            Wire::ShortStr => format!("len(m.{member}) > maxShortLen"),
            Wire::LongStr => format!("!fitsLong(len(m.{member}))"),
            Wire::Table if form == Form::View => format!("!fitsLong(len(m.{member}))"),
            _ => continue,
        };
        source.block(format!("if {condition}"), |source| {
            let path = format!("\"{}.{}\", \"{}\"", class.name, method.name, field.name);
            source.line(format!("return dst, tooLong({path})"));
        });
    }
}

/// Class and method as bytes.
fn id_bytes(class: &Class, method: &Method) -> String {
    let [class0, class1] = class.id.to_be_bytes();
    let [method0, method1] = method.id.to_be_bytes();
    format!("{class0}, {class1}, {method0}, {method1}")
}

/// Statements that append class, method and fields; single bytes are gathered into one call.
fn append_fields(source: &mut Source, class: &Class, method: &Method, form: Form, fallible: bool) {
    let mut bytes = vec![id_bytes(class, method)];
    for piece in fields::pieces(method) {
        let field = match piece {
            Piece::Bits(bits) => {
                bytes.push(bits_octet(&bits));
                continue;
            }
            Piece::One(field) if field.reserved => {
                bytes.extend(vec!["0".to_owned(); fields::fixed_len(field.wire)]);
                continue;
            }
            Piece::One(field) => field,
        };
        let member = format!("m.{}", identifier(&field.name));
        match field.wire {
            Wire::Octet => bytes.push(member),
            Wire::Short => bytes.push(format!("byte({member}>>8), byte({member})")),
            Wire::ShortStr => {
                bytes.push(format!("byte(len({member}))"));
                flush(source, &mut bytes);
                source.line(format!("dst = append(dst, {member}...)"));
            }
            wire => {
                flush(source, &mut bytes);
                append_wide(source, class, method, field, (wire, form), &member);
            }
        }
    }
    let failure = if fallible { ", nil" } else { "" };
    if bytes.is_empty() {
        source.line(format!("return dst{failure}"));
    } else {
        source.line(format!("return append(dst, {}){failure}", bytes.join(", ")));
    }
}

fn append_wide(
    source: &mut Source,
    class: &Class,
    method: &Method,
    field: &Field,
    (wire, form): (Wire, Form),
    member: &str,
) {
    match wire {
        Wire::Long => source.line(format!("dst = binary.BigEndian.AppendUint32(dst, {member})")),
        Wire::LongLong | Wire::Timestamp => {
            source.line(format!("dst = binary.BigEndian.AppendUint64(dst, {member})"));
        }
        Wire::Table if form == Form::Owned => {
            source.line("var err error");
            source.block(
                format!("if dst, err = appendMap(dst, {member}, 0); err != nil"),
                |source| {
                    let name = format!("{}.{}", class.name, method.name);
                    source.line(format!(
                        "return dst[:start], within(\"{name}\", within(\"{}\", err))",
                        field.name
                    ));
                },
            );
        }
        _ => source.line(format!("dst = appendLong(dst, {member})")),
    }
}

fn flush(source: &mut Source, bytes: &mut Vec<String>) {
    if !bytes.is_empty() {
        source.line(format!("dst = append(dst, {})", bytes.join(", ")));
        bytes.clear();
    }
}

fn bits_octet(bits: &[&Field]) -> String {
    let terms: Vec<_> = bits
        .iter()
        .enumerate()
        .filter(|(_, bit)| !bit.reserved)
        .map(|(at, field)| {
            let value = format!("bit(m.{})", identifier(&field.name));
            if at == 0 { value } else { format!("{value}<<{at}") }
        })
        .collect();
    if terms.is_empty() { "0".to_owned() } else { terms.join("|") }
}

/// `UnmarshalBinary` by way of the view.
fn unmarshal(source: &mut Source, method: &Method, name: &str) {
    source.line("// UnmarshalBinary reads the payload of the method's frame; see [OwnedMethod].");
    source.block(format!("func (m *{name}) UnmarshalBinary(payload []byte) error"), |source| {
        source.line(format!("var view {name}View"));
        source
            .block("if err := view.Parse(payload); err != nil", |source| source.line("return err"));
        if fields::has_table(method) {
            source.line("owned, err := view.Owned()");
            source.block("if err == nil", |source| source.line("*m = owned"));
            source.line("return err");
        } else {
            source.line("*m = view.Owned()");
            source.line("return nil");
        }
    });
}
