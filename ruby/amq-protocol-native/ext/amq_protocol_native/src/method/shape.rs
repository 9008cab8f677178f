//! Where the attributes of a method lie in its bytes: what decoding walks over, worked out when this is compiled.

use courser_codec::{DecodeError, Reader};

use super::{Field, Spec, Wire};
use crate::generated::{COUNT, METHODS};
use crate::ruby::error::Result;

/// The most attributes that a method has.
pub(super) const ATTRIBUTES_MAX: usize = 9;
/// The most fields that a method has.
const FIELDS_MAX: usize = 12;

/// Where attributes begin, by their number. A bit begins with the byte it is in.
pub(super) type Starts = [u32; ATTRIBUTES_MAX];

/// An attribute, once its first byte is found.
#[derive(Clone, Copy)]
pub(super) struct Attribute {
    pub wire: Wire,
    /// How many bits of the byte come before a bit.
    pub bit: u32,
}

/// What one field adds to the length.
#[derive(Clone, Copy)]
struct Step {
    /// Its bytes, or those of its length. A bit that is followed by another has none.
    len: u8,
    has_length: bool,
    is_attribute: bool,
}

/// A method's fields.
pub(super) struct Shape {
    steps: [Step; FIELDS_MAX],
    step_count: usize,
    attributes: [Attribute; ATTRIBUTES_MAX],
    count: usize,
}

/// The shape of each method, in the order of [`METHODS`].
pub(super) static SHAPES: [Shape; COUNT] = shapes();

const fn shapes() -> [Shape; COUNT] {
    let mut shapes = [const { Shape::empty() }; COUNT];
    let mut at = 0;
    while at < COUNT {
        shapes[at] = Shape::of(METHODS[at].fields);
        at += 1;
    }
    shapes
}

impl Shape {
    const fn empty() -> Self {
        let step = Step { len: 0, has_length: false, is_attribute: false };
        let attribute = Attribute { wire: Wire::Octet, bit: 0 };
        Self {
            steps: [step; FIELDS_MAX],
            step_count: 0,
            attributes: [attribute; ATTRIBUTES_MAX],
            count: 0,
        }
    }

    const fn of(fields: &[Field]) -> Self {
        let mut shape = Self::empty();
        let (mut index, mut bit) = (0, 0);
        while index < fields.len() {
            let Field { wire, name } = &fields[index];
            if name.is_some() {
                shape.attributes[shape.count] = Attribute { wire: *wire, bit };
                shape.count += 1;
            }
            let shares_byte = matches!(wire, Wire::Bit)
                && index + 1 < fields.len()
                && matches!(fields[index + 1].wire, Wire::Bit);
            bit = if shares_byte { bit + 1 } else { 0 };
            shape.steps[index] = Step {
                len: match wire {
                    Wire::Bit if shares_byte => 0,
                    Wire::Bit | Wire::Octet | Wire::ShortStr => 1,
                    Wire::Short => 2,
                    Wire::Long | Wire::LongStr | Wire::Table => 4,
                    Wire::LongLong => 8,
                },
                has_length: matches!(wire, Wire::ShortStr | Wire::LongStr | Wire::Table),
                is_attribute: name.is_some(),
            };
            index += 1;
        }
        shape.step_count = fields.len();
        shape
    }

    /// The attributes in their order.
    #[inline(always)]
    pub(super) fn attributes(&self) -> &[Attribute] {
        &self.attributes[..self.count]
    }

    /// Where the attributes begin; nothing if the bytes are not the fields of this method, and nothing else.
    #[inline(always)]
    fn starts(&self, bytes: &[u8]) -> Option<Starts> {
        let mut starts = [0; ATTRIBUTES_MAX];
        let (mut rest, mut number) = (bytes, 0);
        for step in &self.steps[..self.step_count] {
            if step.is_attribute {
                *starts.get_mut(number)? = u32::try_from(bytes.len() - rest.len()).ok()?;
                number += 1;
            }
            let (field, behind) = rest.split_at_checked(usize::from(step.len))?;
            rest = behind;
            if step.has_length {
                let len = match *field {
                    [len] => usize::from(len),
                    [a, b, c, d] => u32::from_be_bytes([a, b, c, d]) as usize,
                    _ => return None,
                };
                rest = rest.get(len..)?;
            }
        }
        rest.is_empty().then_some(starts)
    }
}

/// Checks that the bytes are the fields of a method, and nothing else. Gives where its attributes begin.
#[inline(always)]
pub(super) fn check(at: usize, bytes: &[u8]) -> Result<Starts> {
    match SHAPES[at].starts(bytes) {
        Some(starts) => Ok(starts),
        None => refuse(&METHODS[at], bytes),
    }
}

/// Finds out what is wrong with the bytes.
#[cold]
#[inline(never)]
fn refuse(spec: &Spec, bytes: &[u8]) -> Result<Starts> {
    let mut reader = Reader::new(bytes);
    let mut fields = spec.fields.iter().peekable();
    while let Some(field) = fields.next() {
        let shares_byte =
            field.wire == Wire::Bit && fields.peek().is_some_and(|next| next.wire == Wire::Bit);
        if !shares_byte {
            skip(&mut reader, field.wire)?;
        }
    }
    reader.finish()?;
    Err(crate::ruby::error::Raise::malformed("the method is longer than 4 GiB"))
}

fn skip(reader: &mut Reader<'_>, wire: Wire) -> std::result::Result<(), DecodeError> {
    match wire {
        Wire::Bit | Wire::Octet => reader.u8().map(drop),
        Wire::Short => reader.u16().map(drop),
        Wire::Long => reader.u32().map(drop),
        Wire::LongLong => reader.u64().map(drop),
        Wire::ShortStr => reader.short_str().map(drop),
        Wire::LongStr | Wire::Table => reader.long_str().map(drop),
    }
}
