//! Any input gives a value or an error; any value is written and read alike, from any split of its
//! bytes.

use crate::support::by_name::{self, FIELDS, METHODS};
use crate::support::exercise;
use crate::support::values::{FieldKind, Held, Values};
use courser_codec::{
    Decimal, FieldTable, FieldValue, Frame, FrameKind, Method, ShortString, Table,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn short() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..12), 1 => vec(any::<u8>(), 250..256)]
}

fn scalar() -> impl Strategy<Value = FieldValue> {
    prop_oneof![
        any::<bool>().prop_map(FieldValue::Bool),
        any::<i8>().prop_map(FieldValue::I8),
        any::<u8>().prop_map(FieldValue::U8),
        any::<i16>().prop_map(FieldValue::I16),
        any::<u16>().prop_map(FieldValue::U16),
        any::<i32>().prop_map(FieldValue::I32),
        any::<u32>().prop_map(FieldValue::U32),
        any::<i64>().prop_map(FieldValue::I64),
        any::<f32>().prop_map(FieldValue::F32),
        any::<f64>().prop_map(FieldValue::F64),
        any::<(u8, u32)>()
            .prop_map(|(scale, digits)| FieldValue::Decimal(Decimal { scale, digits })),
        vec(any::<u8>(), 0..300).prop_map(FieldValue::LongStr),
        any::<u64>().prop_map(FieldValue::Timestamp),
        Just(FieldValue::Void),
        vec(any::<u8>(), 0..300).prop_map(FieldValue::Bytes),
    ]
}

fn field_value() -> impl Strategy<Value = FieldValue> {
    scalar().prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(FieldValue::Array),
            table_of(inner).prop_map(FieldValue::Table)
        ]
    })
}

fn table_of(value: impl Strategy<Value = FieldValue>) -> impl Strategy<Value = FieldTable> {
    let key = short().prop_map(|bytes| ShortString::new(&bytes).expect("255 bytes at most"));
    vec((key, value), 0..6).prop_map(FieldTable::from_iter)
}

fn held(kind: FieldKind) -> BoxedStrategy<Held> {
    match kind {
        FieldKind::Bit => any::<bool>().prop_map(Held::Bit).boxed(),
        FieldKind::Number { bits } => (0..=u64::MAX >> (64 - bits)).prop_map(Held::Number).boxed(),
        FieldKind::ShortStr => short().prop_map(Held::Bytes).boxed(),
        FieldKind::LongStr => vec(any::<u8>(), 0..300).prop_map(Held::Bytes).boxed(),
        FieldKind::Table => {
            table_of(field_value()).prop_map(|table| Held::Bytes(table.to_entries())).boxed()
        }
    }
}

/// A value for each field name that there is; a method takes those that it has.
fn values() -> impl Strategy<Value = Values> {
    let each: Vec<_> = FIELDS
        .iter()
        .map(|(name, kind)| held(*kind).prop_map(|held| (name.to_string(), held)))
        .collect();
    each.prop_map(Values::from_iter)
}

fn frame() -> impl Strategy<Value = (FrameKind, u16, Vec<u8>)> {
    let kind = prop_oneof![
        Just(FrameKind::Method),
        Just(FrameKind::Header),
        Just(FrameKind::Body),
        Just(FrameKind::Heartbeat)
    ];
    (kind, any::<u16>(), vec(any::<u8>(), 0..200))
}

proptest! {
    // A value for every field there is takes a while to make up.
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn any_method_is_read_as_it_was_written(name in prop::sample::select(METHODS), values in values()) {
        let method = by_name::method(name, &values).expect("a known method");
        let mut out = Vec::new();
        method.write_frame(1, &mut out);
        prop_assert_eq!(out.len(), Frame::OVERHEAD + method.encoded_len());
        let (frame, used) = Frame::parse(&out, 0).unwrap().unwrap();
        prop_assert_eq!((used, Method::decode(frame.payload)), (out.len(), Ok(method)));
        exercise::decode_anything(frame.payload);
        exercise::decode_encode_decode(frame.payload);
    }

    #[test]
    fn any_properties_are_read_as_they_were_written(values in values(), flags in any::<u16>()) {
        let values = values.only(|index| flags >> (index % 16) & 1 == 1);
        let properties = by_name::properties(&values);
        let mut out = Vec::new();
        properties.encode(&mut out);
        let raw = courser_codec::RawProperties::from_encoded(&out).unwrap();
        prop_assert_eq!(raw.decode(), Ok(properties));
        prop_assert_eq!(raw.validate(), Ok(()));
        exercise::decode_encode_decode(&out);
    }
}

proptest! {
    #[test]
    fn any_table_is_read_as_it_was_written(table in table_of(field_value())) {
        let entries = table.to_entries();
        let view = Table::from_entries(&entries);
        prop_assert_eq!(view.validate(), Ok(()));
        prop_assert_eq!(view.iter().count(), table.len());
        let again = view.to_owned().unwrap();
        prop_assert_eq!(&again.to_entries(), &entries);
        for (key, value) in view.iter().flatten() {
            prop_assert_eq!(format!("{value:?}"), format!("{:?}", table.get(key).unwrap()));
        }
    }

    #[test]
    fn frames_come_out_alike_however_their_bytes_come_in(
        frames in vec(frame(), 0..8),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut stream = Vec::new();
        for (kind, channel, payload) in &frames {
            Frame { kind: *kind, channel: *channel, payload }.encode(&mut stream);
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.push(stream.len());
        cuts.sort_unstable();
        let (mut found, mut start) = (Vec::new(), 0);
        for end in cuts {
            while let Some((frame, used)) = Frame::parse(&stream[start..end], 4096).unwrap() {
                found.push((frame.kind, frame.channel, frame.payload.to_vec()));
                start += used;
            }
        }
        prop_assert_eq!(start, stream.len());
        prop_assert_eq!(found, frames);
    }

    #[test]
    fn any_bytes_give_a_value_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        exercise::decode_anything(&bytes);
        exercise::decode_encode_decode(&bytes);
    }
}
