//! Values of test vectors: from JSON to what the codec takes.

use std::collections::BTreeMap;

use courser_codec::{Decimal, FieldTable, FieldValue, ShortStr, ShortString, Table};
use serde_json::Value as Json;

/// The fields of a method or the properties of a message by name, tables and strings as bytes.
#[derive(Debug)]
pub struct Values(BTreeMap<String, Held>);

/// A value as it is kept until a method borrows it.
#[derive(Clone, Debug)]
pub enum Held {
    Number(u64),
    Bit(bool),
    Bytes(Vec<u8>),
}

/// What a field takes.
#[derive(Clone, Copy, Debug)]
pub enum FieldKind {
    Bit,
    Number { bits: u32 },
    ShortStr,
    LongStr,
    Table,
}

impl FromIterator<(String, Held)> for Values {
    fn from_iter<I: IntoIterator<Item = (String, Held)>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

impl Values {
    pub fn new(object: &Json) -> Self {
        let members = object.as_object().expect("an object");
        Self(members.iter().map(|(name, value)| (name.clone(), Held::new(value))).collect())
    }

    /// Those whose number `wanted` says yes to.
    pub fn only(self, wanted: impl Fn(usize) -> bool) -> Self {
        self.0
            .into_iter()
            .enumerate()
            .filter(|(index, _)| wanted(*index))
            .map(|(_, entry)| entry)
            .collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn bit(&self, name: &str) -> bool {
        matches!(self.0[name], Held::Bit(true))
    }

    pub fn u8(&self, name: &str) -> u8 {
        self.u64(name).try_into().expect("8 bits")
    }

    pub fn u16(&self, name: &str) -> u16 {
        self.u64(name).try_into().expect("16 bits")
    }

    pub fn u32(&self, name: &str) -> u32 {
        self.u64(name).try_into().expect("32 bits")
    }

    pub fn u64(&self, name: &str) -> u64 {
        match self.0[name] {
            Held::Number(number) => number,
            _ => panic!("{name} is no number"),
        }
    }

    pub fn short_str(&self, name: &str) -> ShortStr<'_> {
        self.long_str(name).try_into().expect("255 bytes at most")
    }

    pub fn long_str(&self, name: &str) -> &[u8] {
        match &self.0[name] {
            Held::Bytes(bytes) => bytes,
            _ => panic!("{name} is neither string nor table"),
        }
    }

    pub fn table(&self, name: &str) -> Table<'_> {
        Table::from_entries(self.long_str(name))
    }
}

impl Held {
    fn new(value: &Json) -> Self {
        match value {
            Json::Bool(bit) => Self::Bit(*bit),
            Json::Number(number) => Self::Number(number.as_u64().expect("64 unsigned bits")),
            Json::Array(_) => Self::Bytes(entries(value)),
            _ => Self::Bytes(string(value)),
        }
    }
}

/// The encoded entries of a table. Written one by one, since a key may come twice.
pub fn entries(table: &Json) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in table.as_array().expect("a table") {
        let key = ShortString::new(&string(&entry[0])).expect("255 bytes at most");
        let mut one = FieldTable::new();
        one.insert(key, field(&entry[1]));
        bytes.extend(one.to_entries());
    }
    bytes
}

/// A table without keys that come twice.
pub fn field_table(table: &Json) -> FieldTable {
    let entries = table.as_array().expect("a table");
    let key = |entry: &Json| ShortString::new(&string(&entry[0])).expect("255 bytes at most");
    entries.iter().map(|entry| (key(entry), field(&entry[1]))).collect()
}

fn field(value: &Json) -> FieldValue {
    let (tag, content) =
        value.as_object().and_then(|members| members.iter().next()).expect("a value with its tag");
    let signed = || content.as_i64().expect("64 signed bits");
    let unsigned = || content.as_u64().expect("64 unsigned bits");
    let bits =
        || u64::from_str_radix(content.as_str().expect("hexadecimal"), 16).expect("hexadecimal");
    match tag.as_str() {
        "t" => FieldValue::Bool(content.as_bool().expect("a truth value")),
        "b" => FieldValue::I8(signed().try_into().expect("8 bits")),
        "B" => FieldValue::U8(unsigned().try_into().expect("8 bits")),
        "s" => FieldValue::I16(signed().try_into().expect("16 bits")),
        "u" => FieldValue::U16(unsigned().try_into().expect("16 bits")),
        "I" => FieldValue::I32(signed().try_into().expect("32 bits")),
        "i" => FieldValue::U32(unsigned().try_into().expect("32 bits")),
        "l" => FieldValue::I64(signed()),
        "T" => FieldValue::Timestamp(unsigned()),
        "f" => FieldValue::F32(f32::from_bits(bits().try_into().expect("32 bits"))),
        "d" => FieldValue::F64(f64::from_bits(bits())),
        "D" => FieldValue::Decimal(Decimal {
            scale: content["scale"]
                .as_u64()
                .and_then(|scale| scale.try_into().ok())
                .expect("8 bits"),
            digits: content["digits"]
                .as_u64()
                .and_then(|digits| digits.try_into().ok())
                .expect("32 bits"),
        }),
        "S" => FieldValue::LongStr(string(content)),
        "x" => FieldValue::Bytes(from_hex(content.as_str().expect("hexadecimal"))),
        "A" => FieldValue::Array(content.as_array().expect("a list").iter().map(field).collect()),
        "F" => FieldValue::Table(field_table(content)),
        "V" => FieldValue::Void,
        other => panic!("unknown tag {other:?}"),
    }
}

fn string(value: &Json) -> Vec<u8> {
    match value {
        Json::String(text) => text.clone().into_bytes(),
        other => from_hex(other["hex"].as_str().expect("a string")),
    }
}

pub fn from_hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("ASCII"), 16).expect("hexadecimal")
    };
    pairs.map(byte).collect()
}
