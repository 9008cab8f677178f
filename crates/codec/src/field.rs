//! Field tables that are kept or built.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::{Decimal, ShortStr, ShortString};

/// An owned field table: entries in the order in which they were put in.
#[derive(Clone, Default, PartialEq)]
pub struct FieldTable {
    entries: Vec<(ShortString, FieldValue)>,
}

/// A value of an owned field table; see [`Value`](crate::Value) for the tags.
#[derive(Clone, PartialEq)]
pub enum FieldValue {
    /// A truth value.
    Bool(bool),
    /// A signed integer of 8 bits.
    I8(i8),
    /// An unsigned integer of 8 bits.
    U8(u8),
    /// A signed integer of 16 bits.
    I16(i16),
    /// An unsigned integer of 16 bits.
    U16(u16),
    /// A signed integer of 32 bits.
    I32(i32),
    /// An unsigned integer of 32 bits.
    U32(u32),
    /// A signed integer of 64 bits.
    I64(i64),
    /// A floating-point number of 32 bits.
    F32(f32),
    /// A floating-point number of 64 bits.
    F64(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// Text by convention, any bytes in fact.
    LongStr(Vec<u8>),
    /// Values one behind the other.
    Array(Vec<FieldValue>),
    /// Seconds since 1970.
    Timestamp(u64),
    /// A table in the table.
    Table(FieldTable),
    /// No value.
    Void,
    /// Bytes that are no text.
    Bytes(Vec<u8>),
}

impl FieldTable {
    /// A table without entries.
    #[must_use]
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// A table without entries, with room for so many.
    #[must_use]
    pub fn with_capacity(entries: usize) -> Self {
        Self { entries: Vec::with_capacity(entries) }
    }

    /// Sets the value of a key: in its place when the key is there, behind all others when not.
    pub fn insert(&mut self, key: ShortString, value: impl Into<FieldValue>) {
        let value = value.into();
        match self.entries.iter_mut().find(|(name, _)| *name == key) {
            Some((_, old)) => *old = value,
            None => self.entries.push((key, value)),
        }
    }

    /// Appends an entry without a look at the others, as they came off the wire; gives its value,
    /// which is still to be written.
    pub(crate) fn push_key(&mut self, key: ShortStr<'_>) -> &mut FieldValue {
        let (name, value) = self.entries.push_mut((ShortString::default(), FieldValue::Void));
        name.assign(key);
        value
    }

    /// The table with one more entry, for building with literals.
    ///
    /// # Panics
    /// When the key has more than 255 bytes.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<FieldValue>) -> Self {
        self.insert(key.try_into().expect("a key of at most 255 bytes"), value);
        self
    }

    /// The value of the first entry with this key.
    #[must_use]
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<&FieldValue> {
        let key = key.as_ref();
        self.entries.iter().find(|(name, _)| name.as_bytes() == key).map(|(_, value)| value)
    }

    /// Takes the first entry with this key out.
    pub fn remove(&mut self, key: impl AsRef<[u8]>) -> Option<FieldValue> {
        let key = key.as_ref();
        let at = self.entries.iter().position(|(name, _)| name.as_bytes() == key)?;
        Some(self.entries.remove(at).1)
    }

    /// Takes all entries out that `keep` does not hold for.
    pub fn retain(&mut self, mut keep: impl FnMut(&ShortString, &FieldValue) -> bool) {
        self.entries.retain(|(name, value)| keep(name, value));
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ShortString, &FieldValue)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }
}

impl IntoIterator for FieldTable {
    type Item = (ShortString, FieldValue);
    type IntoIter = alloc::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

/// Later entries take the place of earlier ones with the same key.
impl FromIterator<(ShortString, FieldValue)> for FieldTable {
    fn from_iter<I: IntoIterator<Item = (ShortString, FieldValue)>>(entries: I) -> Self {
        let mut table = Self::new();
        table.extend(entries);
        table
    }
}

impl Extend<(ShortString, FieldValue)> for FieldTable {
    fn extend<I: IntoIterator<Item = (ShortString, FieldValue)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl FieldValue {
    /// The number, when the value is an integer of any width. Timestamps are none.
    #[must_use]
    pub fn as_integer(&self) -> Option<i64> {
        self.as_scalar().and_then(|value| value.as_integer())
    }

    /// The bytes, when the value is a long string.
    #[must_use]
    pub fn as_long_str(&self) -> Option<&[u8]> {
        match self {
            Self::LongStr(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text, when the value is a long string of UTF-8.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        self.as_long_str().and_then(|bytes| core::str::from_utf8(bytes).ok())
    }

    /// The truth value, when it is one.
    #[must_use]
    pub const fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The table, when it is one.
    #[must_use]
    pub const fn as_table(&self) -> Option<&FieldTable> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The elements, when the value is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[FieldValue]> {
        match self {
            Self::Array(elements) => Some(elements),
            _ => None,
        }
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self::LongStr(text.into())
    }
}

impl From<String> for FieldValue {
    fn from(text: String) -> Self {
        Self::LongStr(text.into_bytes())
    }
}

macro_rules! field_value_from {
    ($($variant:ident: $type:ty),*) => {$(
        impl From<$type> for FieldValue {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

field_value_from!(Bool: bool, I8: i8, U8: u8, I16: i16, U16: u16, I32: i32, U32: u32, I64: i64, F32: f32, F64: f64);
field_value_from!(Decimal: Decimal, Array: Vec<FieldValue>, Table: FieldTable);

impl fmt::Debug for FieldTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl fmt::Debug for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Array(elements) => f.debug_list().entries(elements).finish(),
            Self::Table(table) => fmt::Debug::fmt(table, f),
            other => other.as_scalar().map_or(Ok(()), |value| fmt::Debug::fmt(&value, f)),
        }
    }
}
