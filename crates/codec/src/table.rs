//! Field tables and arrays as borrowed views of their encoded form.
//!
//! Taking a table out of a method costs nothing: its entries stay as they came and are read when
//! the caller iterates. Hence a malformed entry is an error of the iteration, not of the method.
//! [`Table::validate`] reads everything at once.

use core::fmt;

use crate::error::{DecodeError, DecodeErrorKind};
use crate::reader::Reader;
use crate::value::wire_len;
use crate::{FieldTable, FieldValue, MAX_NESTING, ShortStr, Sink, Value};
use alloc::vec::Vec;

/// The encoded entries of a field table, without the length before them.
///
/// Two tables are equal when their bytes are. Keys may come more than once; the first one counts.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Table<'a>(&'a [u8]);

/// The encoded elements of an array, without the length before them.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Array<'a>(&'a [u8]);

/// The entries of a [`Table`]. Ends after the first error.
#[derive(Clone)]
pub struct TableIter<'a>(Reader<'a>);

/// The elements of an [`Array`]. Ends after the first error.
#[derive(Clone)]
pub struct ArrayIter<'a>(Reader<'a>);

/// Refuses one table or array more within `outer_levels` of them.
pub(crate) fn check_nesting(outer_levels: usize) -> Result<(), DecodeError> {
    if outer_levels < MAX_NESTING {
        Ok(())
    } else {
        Err(DecodeError::new(0, DecodeErrorKind::TooDeep))
    }
}

impl<'a> Table<'a> {
    /// The table without entries.
    pub const EMPTY: Self = Self(b"");

    /// A view of encoded entries; they are looked at when they are asked for.
    #[inline]
    #[must_use]
    pub const fn from_entries(entries: &'a [u8]) -> Self {
        Self(entries)
    }

    /// Takes a table with the length before it off the front of `input`: the table and how many
    /// bytes that was.
    ///
    /// # Errors
    /// When the input ends before the table does.
    #[inline]
    pub fn parse(input: &'a [u8]) -> Result<(Self, usize), DecodeError> {
        let mut reader = Reader::new(input);
        let table = reader.table()?;
        Ok((table, reader.offset()))
    }

    /// The encoded entries.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether there are no entries.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The entries in their order. Tables in them stay encoded: a caller that walks down into them
    /// has to mind the depth, or call [`Table::validate`] before.
    #[inline]
    #[must_use]
    pub const fn iter(self) -> TableIter<'a> {
        TableIter(Reader::new(self.0))
    }

    /// The value of the first entry with this key.
    ///
    /// # Errors
    /// When an entry up to there is malformed.
    pub fn get(self, key: impl AsRef<[u8]>) -> Result<Option<Value<'a>>, DecodeError> {
        let key = key.as_ref();
        for entry in self.iter() {
            let (name, value) = entry?;
            if name.as_bytes() == key {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }

    /// Reads everything, also in nested tables and arrays.
    ///
    /// # Errors
    /// When an entry is malformed, or tables are nested deeper than [`MAX_NESTING`].
    pub fn validate(self) -> Result<(), DecodeError> {
        self.validate_at(0)
    }

    pub(crate) fn validate_at(self, outer_levels: usize) -> Result<(), DecodeError> {
        let mut iter = self.iter();
        while let Some(entry) = iter.next() {
            let (_, value) = entry?;
            // A nested table or array ends where its value does, which is where the iteration
            // stands now.
            value
                .validate_at(outer_levels + 1)
                .map_err(|error| error.shifted(iter.0.offset() - nested_len(value)))?;
        }
        Ok(())
    }

    /// The owned form.
    ///
    /// # Errors
    /// As [`Table::validate`].
    pub fn to_owned(self) -> Result<FieldTable, DecodeError> {
        self.to_owned_at(0)
    }

    pub(crate) fn to_owned_at(self, outer_levels: usize) -> Result<FieldTable, DecodeError> {
        check_nesting(outer_levels)?;
        let mut table = FieldTable::with_capacity(usual_count(self.0));
        let mut iter = self.iter();
        while let Some(entry) = iter.next() {
            let (key, value) = entry?;
            value
                .to_owned_in(table.push_key(key), outer_levels + 1)
                .map_err(|error| error.shifted(iter.0.offset() - nested_len(value)))?;
        }
        Ok(table)
    }

    /// Bytes that [`Table::encode`] writes, the length before the entries included.
    #[inline]
    #[must_use]
    pub const fn encoded_len(self) -> usize {
        4 + self.0.len()
    }

    /// Writes the length and the entries.
    #[inline]
    pub fn encode(self, sink: &mut impl Sink) {
        sink.put_u32(wire_len(self.0.len()));
        sink.put(self.0);
    }
}

/// Room for so many entries or elements is made before they are read: what usually lies in so many
/// bytes, but not much.
fn usual_count(encoded: &[u8]) -> usize {
    encoded.len().div_ceil(12).min(32)
}

/// Bytes of the entries or elements in a table or array.
fn nested_len(value: Value<'_>) -> usize {
    match value {
        Value::Table(table) => table.0.len(),
        Value::Array(array) => array.0.len(),
        _ => 0,
    }
}

impl<'a> Array<'a> {
    /// The array without elements.
    pub const EMPTY: Self = Self(b"");

    /// A view of encoded elements; they are looked at when they are asked for.
    #[inline]
    #[must_use]
    pub const fn from_elements(elements: &'a [u8]) -> Self {
        Self(elements)
    }

    /// The encoded elements.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// Whether there are no elements.
    #[inline]
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The elements in their order; see [`Table::iter`].
    #[inline]
    #[must_use]
    pub const fn iter(self) -> ArrayIter<'a> {
        ArrayIter(Reader::new(self.0))
    }

    /// Reads everything, also in nested tables and arrays.
    ///
    /// # Errors
    /// When an element is malformed, or arrays are nested deeper than [`MAX_NESTING`].
    pub fn validate(self) -> Result<(), DecodeError> {
        self.validate_at(0)
    }

    pub(crate) fn validate_at(self, outer_levels: usize) -> Result<(), DecodeError> {
        let mut iter = self.iter();
        while let Some(element) = iter.next() {
            let value = element?;
            value
                .validate_at(outer_levels + 1)
                .map_err(|error| error.shifted(iter.0.offset() - nested_len(value)))?;
        }
        Ok(())
    }

    /// The owned form.
    ///
    /// # Errors
    /// As [`Array::validate`].
    pub fn to_owned(self) -> Result<Vec<FieldValue>, DecodeError> {
        self.to_owned_at(0)
    }

    pub(crate) fn to_owned_at(self, outer_levels: usize) -> Result<Vec<FieldValue>, DecodeError> {
        check_nesting(outer_levels)?;
        let mut elements = Vec::with_capacity(usual_count(self.0));
        let mut iter = self.iter();
        while let Some(element) = iter.next() {
            let value = element?;
            value
                .to_owned_in(elements.push_mut(FieldValue::Void), outer_levels + 1)
                .map_err(|error| error.shifted(iter.0.offset() - nested_len(value)))?;
        }
        Ok(elements)
    }
}

impl<'a> Iterator for TableIter<'a> {
    type Item = Result<(ShortStr<'a>, Value<'a>), DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let entry = self.0.short_str().and_then(|key| Ok((key, Value::read(&mut self.0)?)));
        if entry.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(entry)
    }
}

impl<'a> Iterator for ArrayIter<'a> {
    type Item = Result<Value<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let element = Value::read(&mut self.0);
        if element.is_err() {
            self.0 = Reader::new(&[]);
        }
        Some(element)
    }
}

impl core::iter::FusedIterator for TableIter<'_> {}
impl core::iter::FusedIterator for ArrayIter<'_> {}

impl<'a> IntoIterator for Table<'a> {
    type Item = Result<(ShortStr<'a>, Value<'a>), DecodeError>;
    type IntoIter = TableIter<'a>;

    fn into_iter(self) -> TableIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for Array<'a> {
    type Item = Result<Value<'a>, DecodeError>;
    type IntoIter = ArrayIter<'a>;

    fn into_iter(self) -> ArrayIter<'a> {
        self.iter()
    }
}

/// Entries up to the first malformed one, which shows as its error. Nothing is shown of what is
/// nested too deep.
impl fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = self.validate() {
            return write!(f, "<{error}>");
        }
        f.debug_map().entries(self.iter().flatten()).finish()
    }
}

/// As for [`Table`].
impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Err(error) = self.validate() {
            return write!(f, "<{error}>");
        }
        f.debug_list().entries(self.iter().flatten()).finish()
    }
}
