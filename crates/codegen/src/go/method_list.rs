//! `method_list_gen.go`: the numbers of all methods, what is known of each, and a view and an owned value of each.

use super::begin;
use super::fields::{self, Form};
use super::methods::type_name;
use crate::model::{Class, Field, Method, Protocol};
use crate::source::Source;

fn methods(protocol: &Protocol) -> impl Iterator<Item = (&Class, &Method)> {
    protocol
        .classes
        .iter()
        .flat_map(|class| class.methods.iter().map(move |method| (class, method)))
}

pub(super) fn render(protocol: &Protocol) -> Source {
    let mut source = begin(&[]);
    numbers(&mut source, protocol);
    lookup(&mut source, protocol);
    infos(&mut source, protocol);
    new_method(&mut source, protocol);
    parser(&mut source, protocol);
    source
}

fn numbers(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// The methods by number.");
    source.line("const (");
    for (class, method) in methods(protocol) {
        let name = type_name(class, method, Form::Owned);
        source.line(format!(
            "\t// {name}ID is the number of [{name}], {}.{}.",
            class.name, method.name
        ));
        source.line(format!("\t{name}ID MethodID = {}<<16 | {}", class.id, method.id));
    }
    source.line(")");
}

fn lookup(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// info returns what is known of a method, nil when there is no such method.");
    source.block("func (id MethodID) info() *methodInfo", |source| {
        source.line("switch id {");
        for (index, (class, method)) in methods(protocol).enumerate() {
            source.line(format!("case {}ID:", type_name(class, method, Form::Owned)));
            source.line(format!("\treturn &methodInfos[{index}]"));
        }
        source.line("default:");
        source.line("\treturn nil");
        source.line("}");
    });
    source.line("");
    source.line("// knownClass reports whether there is a class with this number.");
    source.block("func knownClass(id uint16) bool", |source| {
        source.line("switch id {");
        let ids: Vec<_> = protocol.classes.iter().map(|class| class.id.to_string()).collect();
        source.line(format!("case {}:", ids.join(", ")));
        source.line("\treturn true");
        source.line("default:");
        source.line("\treturn false");
        source.line("}");
    });
}

fn infos(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// methodInfos is never written to.");
    source.line("var methodInfos = [...]methodInfo{");
    for (class, method) in methods(protocol) {
        let content = if method.content { ", content: true" } else { "" };
        let name = format!("name: \"{}.{}\"{content}", class.name, method.name);
        if method.fields.is_empty() {
            source.line(format!("\t{{{name}}},"));
            continue;
        }
        source.line(format!("\t{{{name}, fields: []fieldInfo{{"));
        for piece in fields::pieces(method) {
            match piece {
                fields::Piece::Bits(bits) => {
                    for (at, field) in bits.into_iter().enumerate() {
                        field_info(source, field, at);
                    }
                }
                fields::Piece::One(field) => field_info(source, field, 0),
            }
        }
        source.line("\t}},");
    }
    source.line("}");
}

fn field_info(source: &mut Source, field: &Field, bit: usize) {
    let reserved = if field.reserved { ", reserved: true" } else { "" };
    let bit = if bit > 0 { format!(", bit: {bit}") } else { String::new() };
    let (name, kind) = (&field.name, fields::kind(field.wire));
    source.line(format!("\t\t{{name: \"{name}\", kind: {kind}{reserved}{bit}}},"));
}

fn new_method(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// NewMethod returns an owned method of this number with zero fields, nil when there is no such method.");
    source.block("func NewMethod(id MethodID) OwnedMethod", |source| {
        source.line("switch id {");
        for (class, method) in methods(protocol) {
            let name = type_name(class, method, Form::Owned);
            source.line(format!("case {name}ID:"));
            source.line(format!("\treturn new({name})"));
        }
        source.line("default:");
        source.line("\treturn nil");
        source.line("}");
    });
}

fn parser(source: &mut Source, protocol: &Protocol) {
    source.line("");
    source.line("// methodViews has a view of every method.");
    source.block("type methodViews struct", |source| {
        let member = |class, method| lower_first(&type_name(class, method, Form::Owned));
        let width = methods(protocol).map(|(class, method)| member(class, method).len()).max();
        for (class, method) in methods(protocol) {
            let (member, name) = (member(class, method), type_name(class, method, Form::View));
            source.line(format!("{member:width$} {name}", width = width.unwrap_or(0)));
        }
    });
    source.line("");
    source.line(
        "// view returns that of the method with this number, nil when there is no such method.",
    );
    source.block("func (v *methodViews) view(id MethodID) MethodView", |source| {
        source.line("switch id {");
        for (class, method) in methods(protocol) {
            let name = type_name(class, method, Form::Owned);
            source.line(format!("case {name}ID:"));
            source.line(format!("\treturn &v.{}", lower_first(&name)));
        }
        source.line("default:");
        source.line("\treturn nil");
        source.line("}");
    });
}

fn lower_first(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
