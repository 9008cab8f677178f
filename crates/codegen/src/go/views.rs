//! One file a class with the views of its methods.

use super::fields::{self, Form};
use super::methods::{declaration, type_name, writing};
use super::{begin, identifier, parse};
use crate::model::{Class, Field, Method, Wire};
use crate::source::Source;

pub(super) fn render(class: &Class) -> Source {
    let methods = || class.methods.iter().filter(|method| fields::has_view(method));
    let number = |field: &Field| matches!(field.wire, Wire::Short | Wire::Long | Wire::LongLong);
    let needs_binary = methods().any(|method| fields::visible(method).any(number));
    let imports: &[_] = if needs_binary { &["encoding/binary"] } else { &[] };
    let mut source = begin(imports);
    for method in methods() {
        let owned = type_name(class, method, Form::Owned);
        let name = type_name(class, method, Form::View);
        source.line("");
        let method_name = format!("{}.{}", class.name, method.name);
        source.line(format!(
            "// {name} is {method_name} as a view: its strings and tables alias the payload; see [{owned}]."
        ));
        declaration(&mut source, method, &name, Form::View);
        writing(&mut source, class, method, Form::View);
        source.line("");
        parse::render(&mut source, method, &name);
        source.line("");
        to_owned(&mut source, method, &name, &owned);
    }
    source
}

fn to_owned(source: &mut Source, method: &Method, name: &str, owned: &str) {
    let fallible = fields::has_table(method);
    let result = if fallible {
        source.line("// Owned returns the owned form. The error is that of a malformed table; its offset counts in the payload.");
        format!("({owned}, error)")
    } else {
        source.line("// Owned returns the owned form.");
        owned.to_owned()
    };
    source.block(format!("func (m *{name}) Owned() {result}"), |source| {
        source.line(format!("var owned {owned}"));
        for field in fields::visible(method).filter(|field| !fields::is_variable(field.wire)) {
            let member = identifier(&field.name);
            source.line(format!("owned.{member} = m.{member}"));
        }
        strings(source, method);
        for field in fields::visible(method).filter(|field| field.wire == Wire::Table) {
            table(source, method, field, owned);
        }
        source.line(if fallible { "return owned, nil" } else { "return owned" });
    });
}

/// All strings of a method are parts of one.
fn strings(source: &mut Source, method: &Method) {
    let strings = fields::visible(method)
        .filter(|field| matches!(field.wire, Wire::ShortStr | Wire::LongStr))
        .map(|field| identifier(&field.name));
    own_strings(source, "m", &strings.collect::<Vec<_>>());
}

/// Statements that copy these members of `view` to `owned`, with one allocation for all.
pub(super) fn own_strings(source: &mut Source, view: &str, members: &[String]) {
    match members {
        [] => {}
        [one] => source.line(format!("owned.{one} = string({view}.{one})")),
        [first @ .., last] => {
            source.line("text := ownedText(");
            for member in members {
                source.line(format!("\t{view}.{member},"));
            }
            source.line(")");
            for member in first {
                let length = format!("len({view}.{member})");
                source.line(format!("owned.{member}, text = text[:{length}], text[{length}:]"));
            }
            source.line(format!("owned.{last} = text"));
        }
    }
}

fn table(source: &mut Source, method: &Method, field: &Field, owned: &str) {
    let member = identifier(&field.name);
    source.line("var err error");
    source.block(format!("if owned.{member}, err = m.{member}.Map(); err != nil"), |source| {
        source.line(format!("return {owned}{{}}, shifted(err, {})", entries_offset(method, field)));
    });
}

/// Where the entries of a table begin in the payload, as an expression.
fn entries_offset(method: &Method, table: &Field) -> String {
    let mut fixed = 4;
    let mut variable = Vec::new();
    for piece in fields::pieces(method) {
        fixed += piece.fixed_len();
        if let fields::Piece::One(field) = piece {
            if field.name == table.name {
                break;
            }
            if fields::is_variable(field.wire) && !field.reserved {
                variable.push(format!("len(m.{})", identifier(&field.name)));
            }
        }
    }
    std::iter::once(fixed.to_string()).chain(variable).collect::<Vec<_>>().join("+")
}
