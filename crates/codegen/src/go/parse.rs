//! `Parse`, which reads a method's fields out of a payload: neighbours of known size at once, the others one by one.

use super::fields::{self, Piece};
use super::identifier;
use crate::model::{Field, Method, Wire};
use crate::source::Source;

/// The function, for the type of this name.
pub(super) fn render(source: &mut Source, method: &Method, name: &str) {
    source.line("// Parse reads the payload of the method's frame; see [MethodView].");
    let receiver = if fields::visible(method).next().is_none() { "" } else { "m " };
    let id = name.strip_suffix("View").unwrap_or(name);
    source.block(format!("func ({receiver}*{name}) Parse(payload []byte) error"), |source| {
        source.line(format!("b, err := fieldsOf(payload, {id}ID)"));
        source.block("if err != nil", |source| source.line("return err"));
        let pieces = fields::pieces(method);
        if pieces.iter().any(Piece::is_variable) {
            source.line("var ok bool");
        }
        for group in groups(&pieces) {
            match group {
                [Piece::One(field)] if fields::is_variable(field.wire) => variable(source, field),
                fixed => fixed_group(source, fixed),
            }
        }
        source.block("if len(b) > 0", |source| source.line("return trailing(payload, b)"));
        source.line("return nil");
    });
}

/// Neighbours of known size together, every other piece alone.
fn groups<'p, 'f>(pieces: &'p [Piece<'f>]) -> impl Iterator<Item = &'p [Piece<'f>]> {
    pieces.chunk_by(|first, second| !first.is_variable() && !second.is_variable())
}

fn variable(source: &mut Source, field: &Field) {
    let target =
        if field.reserved { "_".to_owned() } else { format!("m.{}", identifier(&field.name)) };
    let cut = if field.wire == Wire::ShortStr { "CutShortString" } else { "CutLongString" };
    source.block(format!("if {target}, b, ok = {cut}(b); !ok"), |source| {
        source.line("return truncated(payload, b)");
    });
}

fn fixed_group(source: &mut Source, pieces: &[Piece<'_>]) {
    let sizes: Vec<_> = pieces.iter().map(Piece::fixed_len).collect();
    let total: usize = sizes.iter().sum();
    source.block(format!("if len(b) < {total}"), |source| match &sizes[..] {
        [_] => source.line("return truncated(payload, b)"),
        several => {
            let several: Vec<_> = several.iter().map(ToString::to_string).collect();
            source.line(format!("return truncatedIn(payload, b, {})", several.join(", ")));
        }
    });
    let mut offset = 0;
    for piece in pieces {
        match piece {
            Piece::Bits(bits) => {
                for (at, field) in bits.iter().enumerate().filter(|(_, field)| !field.reserved) {
                    let (member, mask) = (identifier(&field.name), 1 << at);
                    source.line(format!("m.{member} = b[{offset}]&{mask} != 0"));
                }
            }
            Piece::One(field) if field.reserved => {}
            Piece::One(field) => {
                let member = identifier(&field.name);
                source.line(format!("m.{member} = {}", number(field, offset)));
            }
        }
        offset += piece.fixed_len();
    }
    source.line(format!("b = b[{total}:]"));
}

/// The number that lies at an offset, as an expression.
fn number(field: &Field, offset: usize) -> String {
    let from = if offset == 0 { "b".to_owned() } else { format!("b[{offset}:]") };
    let value = match field.wire {
        Wire::Short => format!("binary.BigEndian.Uint16({from})"),
        Wire::Long => format!("binary.BigEndian.Uint32({from})"),
        Wire::LongLong | Wire::Timestamp => format!("binary.BigEndian.Uint64({from})"),
        _ => return format!("b[{offset}]"),
    };
    let reply_code = field.domain.as_deref() == Some("reply-code");
    if reply_code { format!("ReplyCode({value})") } else { value }
}
