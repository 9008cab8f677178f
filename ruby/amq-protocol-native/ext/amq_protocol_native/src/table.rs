//! `AMQ::Protocol::Table`, and the helpers that encode and decode single values.

use courser_codec::{Array, Decimal, DecodeError, DecodeErrorKind, Reader, Table, Value as Wire};

use crate::decode::{self, Source};
use crate::encode;
use crate::out::Out;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout;
use crate::ruby::value::{
    define_singleton_method, expect_string, integer, keep, offset, small, string, unsigned,
};

/// The bytes of a string argument, and what strings in them look like.
///
/// # Safety
/// The slice ends before Ruby code runs that could change the string, and the caller keeps the string alive.
pub(crate) unsafe fn source<'a>(data: Value) -> (&'a [u8], Source) {
    // SAFETY: passed on.
    let bytes = unsafe { layout::bytes(data) };
    (bytes, Source { encoding: layout::encoding(data), string: data })
}

ruby_method! {
    fn encode(arguments: 1..=1, _class) {
        let mut out = Out::new();
        encode::put_table(&mut out, arguments[0])?;
        Ok(out.finish())
    }
}

/// Bytes before the entries of a table or the elements of an array: their length.
const LENGTH: usize = 4;

/// What is wrong in a table or an array, with the offset from where the input begins: decoding counts from where the innermost
/// one does. No Ruby code has run since it was decoded.
#[cold]
fn located(error: Raise, value: Wire<'_>, start: usize) -> Raise {
    let wrong = match value {
        Wire::Table(table) => table.validate(),
        Wire::Array(array) => array.validate(),
        _ => Ok(()),
    };
    match wrong {
        Err(wrong) if wrong.kind != DecodeErrorKind::TooDeep => wrong.shifted(start).into(),
        _ => error,
    }
}

ruby_method! {
    fn decode(arguments: 1..=1, _class) {
        let data = expect_string(arguments[0]);
        // SAFETY: the string is kept below, and locked where Ruby code runs.
        let (bytes, source) = unsafe { source(data) };
        let (table, _) = Table::parse(bytes)?;
        let hash = decode::table(table, source).map_err(|error| located(error, Wire::Table(table), LENGTH))?;
        keep(data);
        Ok(hash)
    }
}

ruby_method! {
    fn length(arguments: 1..=1, _class) {
        let data = expect_string(arguments[0]);
        // SAFETY: no Ruby code runs meanwhile.
        let Some(len) = unsafe { layout::bytes(data) }.first_chunk() else {
            return Err(Raise::malformed("a table begins with four bytes of length"));
        };
        Ok(integer(u32::from_be_bytes(*len).into()))
    }
}

ruby_method! {
    /// The bytes of a table without its length: what encoding it gives.
    fn hash_size(arguments: 1..=1, _class) {
        let mut out = Out::new();
        encode::put_table(&mut out, arguments[0])?;
        Ok(unsigned(out.len() as u64 - 4))
    }
}

ruby_method! {
    fn encode_value(arguments: 1..=1, _class) {
        let mut out = Out::new();
        encode::put_value(&mut out, arguments[0], 0)?;
        Ok(out.finish())
    }
}

ruby_method! {
    fn value_size(arguments: 1..=1, _class) {
        let mut out = Out::new();
        encode::put_value(&mut out, arguments[0], 0)?;
        Ok(unsigned(out.len() as u64))
    }
}

ruby_method! {
    /// The bytes of the elements of an array, without tag and length.
    fn array_size(arguments: 1..=1, _class) {
        let mut out = Out::new();
        encode::put_value(&mut out, arguments[0], 0)?;
        Ok(unsigned(out.len().saturating_sub(5) as u64))
    }
}

/// Two values as Ruby's helpers return them.
fn pair(value: Value, offset: usize) -> Value {
    let values = [value, unsigned(offset as u64)];
    // SAFETY: there are two.
    unsafe { api::rb_ary_new_from_values(2, values.as_ptr()) }
}

/// `(data, offset)`, and the bytes from there on.
///
/// # Safety
/// As [`source`].
unsafe fn data_at<'a>(arguments: &[Value]) -> Result<(&'a [u8], usize, Source)> {
    let data = expect_string(arguments[0]);
    let offset = offset(arguments[1])?;
    // SAFETY: passed on.
    let (bytes, source) = unsafe { source(data) };
    match bytes.get(offset..) {
        Some(rest) => Ok((rest, offset, source)),
        None => Err(Raise::malformed("the offset lies behind the data")),
    }
}

ruby_method! {
    fn decode_table_key(arguments: 2..=2, _class) {
        // SAFETY: no Ruby code runs while the key is copied.
        let (rest, offset, source) = unsafe { data_at(arguments) }?;
        let key = Reader::new(rest).short_str().map_err(|error| error.shifted(offset))?;
        let end = offset + key.encoded_len();
        Ok(pair(string(key.as_bytes(), source.encoding), end))
    }
}

ruby_method! {
    fn decode_value_type(arguments: 2..=2, _class) {
        // SAFETY: no Ruby code runs while the tag is copied.
        let (rest, offset, source) = unsafe { data_at(arguments) }?;
        let Some(tag) = rest.get(..1) else {
            return Err(Raise::malformed("the data ends where a value's tag should be"));
        };
        Ok(pair(string(tag, source.encoding), offset + 1))
    }
}

/// A value without its tag, at an offset.
fn decode_untagged(
    arguments: &[Value],
    read: for<'a> fn(&mut Reader<'a>) -> std::result::Result<Wire<'a>, DecodeError>,
) -> Result<Value> {
    // SAFETY: the argument keeps the string, and it is locked where Ruby code runs.
    let (rest, offset, source) = unsafe { data_at(arguments) }?;
    let mut reader = Reader::new(rest);
    let value = read(&mut reader).map_err(|error| error.shifted(offset))?;
    let end = offset + reader.offset();
    let decoded = decode::value_at(value, source, 0)
        .map_err(|error| located(error, value, offset + LENGTH))?;
    Ok(pair(decoded, end))
}

macro_rules! decoders {
    ($($name:ident: |$reader:ident| $read:expr;)*) => {
        $(ruby_method! {
            fn $name(arguments: 2..=2, _class) { decode_untagged(arguments, |$reader| Ok($read)) }
        })*
    };
}

decoders! {
    decode_string: |reader| Wire::LongStr(reader.long_str()?);
    decode_integer: |reader| Wire::I32(reader.u32()? as i32);
    decode_long: |reader| Wire::I64(reader.u64()? as i64);
    decode_short: |reader| Wire::I16(reader.u16()? as i16);
    decode_boolean: |reader| Wire::Bool(reader.u8()? != 0);
    decode_time: |reader| Wire::Timestamp(reader.u64()?);
    decode_32bit_float: |reader| Wire::F32(f32::from_bits(reader.u32()?));
    decode_64bit_float: |reader| Wire::F64(f64::from_bits(reader.u64()?));
    decode_big_decimal: |reader| Wire::Decimal(Decimal { scale: reader.u8()?, digits: reader.u32()? });
    decode_hash: |reader| Wire::Table(reader.table()?);
    decode_array: |reader| Wire::Array(Array::from_elements(reader.long_str()?));
}

ruby_method! {
    /// A byte as it is. In a table the tag `b` is a signed number; this helper has always given the byte.
    fn decode_byte(arguments: 2..=2, _class) {
        // SAFETY: no Ruby code runs while the byte is read.
        let (rest, offset, _) = unsafe { data_at(arguments) }?;
        let Some(byte) = rest.first() else {
            return Err(Raise::malformed("the data ends where a byte should be"));
        };
        Ok(pair(small((*byte).into()), offset + 1))
    }
}

ruby_method! {
    pub(crate) fn define_table(arguments: 1..=1, _native) {
        let class = arguments[0];
        define_singleton_method(class, c"encode", encode);
        define_singleton_method(class, c"decode", decode);
        define_singleton_method(class, c"length", length);
        define_singleton_method(class, c"hash_size", hash_size);
        define_singleton_method(class, c"decode_table_key", decode_table_key);
        Ok(class)
    }
}

ruby_method! {
    pub(crate) fn define_value_encoder(arguments: 1..=1, _native) {
        let class = arguments[0];
        define_singleton_method(class, c"encode", encode_value);
        define_singleton_method(class, c"field_value_size", value_size);
        define_singleton_method(class, c"array_size", array_size);
        Ok(class)
    }
}

ruby_method! {
    pub(crate) fn define_value_decoder(arguments: 1..=1, _native) {
        let class = arguments[0];
        define_singleton_method(class, c"decode_value_type", decode_value_type);
        define_singleton_method(class, c"decode_string", decode_string);
        define_singleton_method(class, c"decode_integer", decode_integer);
        define_singleton_method(class, c"decode_long", decode_long);
        define_singleton_method(class, c"decode_short", decode_short);
        define_singleton_method(class, c"decode_byte", decode_byte);
        define_singleton_method(class, c"decode_boolean", decode_boolean);
        define_singleton_method(class, c"decode_time", decode_time);
        define_singleton_method(class, c"decode_32bit_float", decode_32bit_float);
        define_singleton_method(class, c"decode_64bit_float", decode_64bit_float);
        define_singleton_method(class, c"decode_big_decimal", decode_big_decimal);
        define_singleton_method(class, c"decode_hash", decode_hash);
        define_singleton_method(class, c"decode_array", decode_array);
        Ok(class)
    }
}
