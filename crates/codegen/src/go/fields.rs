//! How one field is declared, measured and written in Go; methods, views and properties share it.

use crate::model::{Field, Method, Wire};

/// Which of the two forms of a method is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Shares nothing with the input: strings and maps.
    Owned,
    /// Strings and tables are slices of the input.
    View,
}

/// The Go type of a field.
pub(super) fn go_type(field: &Field, form: Form) -> &'static str {
    if field.domain.as_deref() == Some("reply-code") {
        return "ReplyCode";
    }
    wire_type(field.wire, form)
}

/// The Go type of a value.
pub(super) fn wire_type(wire: Wire, form: Form) -> &'static str {
    match (wire, form) {
        (Wire::Bit, _) => "bool",
        (Wire::Octet, _) => "uint8",
        (Wire::Short, _) => "uint16",
        (Wire::Long, _) => "uint32",
        (Wire::LongLong, _) | (Wire::Timestamp, Form::View) => "uint64",
        (Wire::ShortStr | Wire::LongStr, Form::Owned) => "string",
        (Wire::ShortStr | Wire::LongStr, Form::View) => "[]byte",
        (Wire::Table, Form::Owned) => "map[string]any",
        (Wire::Table, Form::View) => "TableView",
        (Wire::Timestamp, Form::Owned) => "time.Time",
    }
}

/// The package's name of the kind, a `FieldKind`.
pub(super) fn kind(wire: Wire) -> &'static str {
    match wire {
        Wire::Bit => "KindBit",
        Wire::Octet => "KindOctet",
        Wire::Short => "KindShort",
        Wire::Long => "KindLong",
        Wire::LongLong => "KindLongLong",
        Wire::ShortStr => "KindShortString",
        Wire::LongStr => "KindLongString",
        Wire::Table => "KindTable",
        Wire::Timestamp => "KindTimestamp",
    }
}

/// Whether the value has a length of its own.
pub(super) fn is_variable(wire: Wire) -> bool {
    matches!(wire, Wire::ShortStr | Wire::LongStr | Wire::Table)
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

/// The fields that have a meaning.
pub(super) fn visible(method: &Method) -> impl Iterator<Item = &Field> {
    method.fields.iter().filter(|field| !field.reserved)
}

/// Whether the method has a string or a table, and so a view beside the owned form.
pub(super) fn has_view(method: &Method) -> bool {
    visible(method).any(|field| is_variable(field.wire))
}

/// Whether the method has a table, which can be malformed when all else is fine.
pub(super) fn has_table(method: &Method) -> bool {
    visible(method).any(|field| field.wire == Wire::Table)
}

/// What lies in one piece on the wire: a field, or bits that share a byte.
pub(super) enum Piece<'f> {
    /// Up to eight bits, the first the lowest.
    Bits(Vec<&'f Field>),
    /// Any other field.
    One(&'f Field),
}

impl Piece<'_> {
    /// Bytes of a piece without a length of its own.
    pub(super) fn fixed_len(&self) -> usize {
        match self {
            Self::Bits(_) => 1,
            Self::One(field) => fixed_len(field.wire),
        }
    }

    /// Whether it has a length of its own.
    pub(super) fn is_variable(&self) -> bool {
        matches!(self, Self::One(field) if is_variable(field.wire))
    }
}

/// A method's fields as they lie on the wire.
pub(super) fn pieces(method: &Method) -> Vec<Piece<'_>> {
    let mut pieces: Vec<Piece<'_>> = Vec::new();
    for field in &method.fields {
        match (field.wire, pieces.last_mut()) {
            (Wire::Bit, Some(Piece::Bits(bits))) if bits.len() < 8 => bits.push(field),
            (Wire::Bit, _) => pieces.push(Piece::Bits(vec![field])),
            _ => pieces.push(Piece::One(field)),
        }
    }
    pieces
}
