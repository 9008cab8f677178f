//! How one field is declared, read, measured and written in Rust; methods and properties share it.

use crate::model::{Field, Wire};

/// The borrowed Rust type.
pub(super) fn borrowed_type(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "bool",
        Wire::Octet => "u8",
        Wire::Short => "u16",
        Wire::Long => "u32",
        Wire::LongLong | Wire::Timestamp => "u64",
        Wire::ShortStr => "ShortStr<'a>",
        Wire::LongStr => "&'a [u8]",
        Wire::Table => "Table<'a>",
    }
}

/// The owned Rust type.
pub(super) fn owned_type(wire: Wire) -> &'static str {
    match wire {
        Wire::ShortStr => "ShortString",
        Wire::LongStr => "Vec<u8>",
        Wire::Table => "FieldTable",
        other => borrowed_type(other),
    }
}

/// Whether the borrowed type borrows.
pub(super) fn borrows(wire: Wire) -> bool {
    matches!(wire, Wire::ShortStr | Wire::LongStr | Wire::Table)
}

/// The method of `Reader` that takes such a value.
pub(super) fn reader_method(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit | Wire::Octet => "u8",
        Wire::Short => "u16",
        Wire::Long => "u32",
        Wire::LongLong | Wire::Timestamp => "u64",
        Wire::ShortStr => "short_str",
        Wire::LongStr => "long_str",
        Wire::Table => "table",
    }
}

/// Bytes that the value has whatever it is; for a string or a table those of its length.
pub(super) fn fixed_len(wire: Wire) -> usize {
    match wire {
        Wire::Bit | Wire::Octet | Wire::ShortStr => 1,
        Wire::Short => 2,
        Wire::Long | Wire::LongStr | Wire::Table => 4,
        Wire::LongLong | Wire::Timestamp => 8,
    }
}

/// Bytes that it has beyond these, as an expression.
pub(super) fn variable_len(wire: Wire, value: &str) -> Option<String> {
    match wire {
        Wire::ShortStr | Wire::LongStr => Some(format!("{value}.len()")),
        Wire::Table => Some(format!("{value}.as_bytes().len()")),
        _ => None,
    }
}

/// Statements that write the value to `sink`.
pub(super) fn put(wire: Wire, value: &str) -> Vec<String> {
    match wire {
        Wire::Bit => vec![format!("sink.put_u8(u8::from({value}));")],
        Wire::Octet => vec![format!("sink.put_u8({value});")],
        Wire::Short => vec![format!("sink.put_u16({value});")],
        Wire::Long => vec![format!("sink.put_u32({value});")],
        Wire::LongLong | Wire::Timestamp => vec![format!("sink.put_u64({value});")],
        Wire::ShortStr => vec![format!("sink.put_short_str({value});")],
        Wire::LongStr => {
            vec![format!("sink.put_u32(wire_len({value}.len()));"), format!("sink.put({value});")]
        }
        Wire::Table => vec![format!("{value}.encode(sink);")],
    }
}

/// Statements that write a reserved field.
pub(super) fn put_reserved(wire: Wire) -> String {
    match fixed_len(wire) {
        1 => "sink.put_u8(0);".to_owned(),
        2 => "sink.put_u16(0);".to_owned(),
        4 => "sink.put_u32(0);".to_owned(),
        _ => "sink.put_u64(0);".to_owned(),
    }
}

/// What lies in one piece on the wire: a field, or bits that share a byte.
pub(super) enum Piece<'f> {
    /// Up to eight bits, the first the lowest.
    Bits(Vec<&'f Field>),
    /// Any other field.
    One(&'f Field),
}

/// A method's fields as they lie on the wire.
pub(super) fn pieces(fields: &[Field]) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for field in fields {
        match (field.wire, pieces.last_mut()) {
            (Wire::Bit, Some(Piece::Bits(bits))) if bits.len() < 8 => bits.push(field),
            (Wire::Bit, _) => pieces.push(Piece::Bits(vec![field])),
            _ => pieces.push(Piece::One(field)),
        }
    }
    pieces
}
