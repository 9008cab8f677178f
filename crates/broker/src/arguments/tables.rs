//! Whether two tables hold the same, in whatever order: clients that keep them in hash tables send another order each time.

use crate::keyed;
use crate::work;
use courser_codec::{FieldTable, FieldValue, ShortString};
use std::hash::{Hash, Hasher};
use std::mem;

/// Whether two tables hold the same.
pub(crate) fn same_table(a: &FieldTable, b: &FieldTable) -> bool {
    in_order(a, b) || digest(a) == digest(b) && in_any_order(a, b)
}

/// Whether they hold the same in the same order: mostly the answer, and one look at each entry.
fn in_order(a: &FieldTable, b: &FieldTable) -> bool {
    work::count(a.len());
    a.len() == b.len()
        && a.iter().zip(b.iter()).all(|((name, value), (other_name, other))| {
            name == other_name && same_value(value, other, in_order)
        })
}

/// As [`in_order`], with each table put into order first.
fn in_any_order(a: &FieldTable, b: &FieldTable) -> bool {
    work::count(a.len());
    let both = || sorted(a).into_iter().zip(sorted(b));
    a.len() == b.len()
        && both().all(|((name, value), (other_name, other))| {
            name == other_name && same_value(value, other, in_any_order)
        })
}

fn sorted(table: &FieldTable) -> Vec<(&ShortString, &FieldValue)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.as_bytes().cmp(b.as_bytes()));
    entries
}

/// Whether two values are the same, with tables in them compared by `same_table`.
fn same_value(
    a: &FieldValue,
    b: &FieldValue,
    same_table: fn(&FieldTable, &FieldTable) -> bool,
) -> bool {
    match (a, b) {
        (FieldValue::Table(a), FieldValue::Table(b)) => same_table(a, b),
        (FieldValue::Array(a), FieldValue::Array(b)) => {
            work::count(a.len());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b, same_table))
        }
        // What is no number equals nothing by itself, and what is bound with it could not be unbound.
        (FieldValue::F32(a), FieldValue::F32(b)) => a == b || a.is_nan() && b.is_nan(),
        (FieldValue::F64(a), FieldValue::F64(b)) => a == b || a.is_nan() && b.is_nan(),
        _ => a == b,
    }
}

/// The same number for tables that are the same. No client can choose tables that have one number and are not the same.
pub(crate) fn digest(table: &FieldTable) -> u64 {
    work::count(table.len());
    table.iter().fold(0, |sum, (name, value)| {
        let mut hasher = keyed::hasher();
        write_bytes(name.as_bytes(), &mut hasher);
        write(value, &mut hasher);
        sum.wrapping_add(hasher.finish())
    })
}

/// Values that are not the same write different things.
fn write(value: &FieldValue, hasher: &mut impl Hasher) {
    mem::discriminant(value).hash(hasher);
    match value {
        FieldValue::Void => {}
        FieldValue::Bool(flag) => hasher.write_u8(u8::from(*flag)),
        FieldValue::F32(number) => write_float(f64::from(*number), hasher),
        FieldValue::F64(number) => write_float(*number, hasher),
        FieldValue::Decimal(decimal) => {
            hasher.write_u8(decimal.scale);
            hasher.write_u32(decimal.digits);
        }
        FieldValue::Timestamp(seconds) => hasher.write_u64(*seconds),
        FieldValue::LongStr(bytes) | FieldValue::Bytes(bytes) => write_bytes(bytes, hasher),
        FieldValue::Array(elements) => {
            work::count(elements.len());
            hasher.write_usize(elements.len());
            elements.iter().for_each(|element| write(element, hasher));
        }
        FieldValue::Table(table) => hasher.write_u64(digest(table)),
        integer => hasher.write_i64(integer.as_integer().unwrap_or_default()),
    }
}

/// Zeros are the same whatever their sign, and so is all that is no number.
fn write_float(number: f64, hasher: &mut impl Hasher) {
    let number = if number.is_nan() { f64::NAN } else { number + 0.0 };
    hasher.write_u64(number.to_bits());
}

fn write_bytes(bytes: &[u8], hasher: &mut impl Hasher) {
    hasher.write_usize(bytes.len());
    hasher.write(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(entries: &[(&str, FieldValue)]) -> FieldTable {
        let entries = entries.iter().cloned();
        entries.fold(FieldTable::new(), |table, (name, value)| table.with(name, value))
    }

    #[test]
    fn tables_are_the_same_whatever_the_order_of_their_entries() {
        let numbers = |order: &mut dyn Iterator<Item = i64>| {
            order.fold(FieldTable::new(), |table, n| table.with(&n.to_string(), n))
        };
        for count in [2, 300] {
            let (up, down) = (numbers(&mut (0..count)), numbers(&mut (0..count).rev()));
            assert!(same_table(&up, &down));
            assert_eq!(digest(&up), digest(&down));
            let other = down.with("0", count);
            assert!(!same_table(&up, &other));
        }
    }

    #[test]
    fn values_that_differ_have_different_digests() {
        let array = |elements: &[FieldValue]| FieldValue::Array(elements.to_vec());
        let values = [
            FieldValue::Void,
            FieldValue::Bool(false),
            FieldValue::I8(0),
            FieldValue::I64(0),
            FieldValue::F32(0.0),
            FieldValue::F64(0.0),
            FieldValue::F64(1.5),
            FieldValue::F64(2.5),
            FieldValue::F64(f64::NAN),
            FieldValue::Decimal(courser_codec::Decimal { scale: 0, digits: 5 }),
            FieldValue::Decimal(courser_codec::Decimal { scale: 1, digits: 5 }),
            FieldValue::Timestamp(0),
            "".into(),
            "a".into(),
            FieldValue::Bytes(b"a".to_vec()),
            array(&[]),
            array(&[array(&[])]),
            array(&[array(&[]), array(&[])]),
            array(&[array(&[array(&[])])]),
            array(&["ab".into(), "c".into()]),
            array(&["a".into(), "bc".into()]),
            FieldValue::Table(FieldTable::new()),
            FieldValue::Table(table(&[("a", FieldValue::Void)])),
        ];
        for (at, value) in values.iter().enumerate() {
            let one = table(&[("k", value.clone())]);
            assert!(same_table(&one, &one.clone()), "{value:?}");
            assert_eq!(digest(&one), digest(&one.clone()), "{value:?}");
            for other in &values[..at] {
                let other_table = table(&[("k", other.clone())]);
                assert!(!same_table(&one, &other_table), "{value:?} {other:?}");
                assert_ne!(digest(&one), digest(&other_table), "{value:?} {other:?}");
            }
        }
    }

    #[test]
    fn deep_tables_in_another_order_are_compared_entry_by_entry() {
        let nested = |turned: bool| {
            (0..60).fold(FieldTable::new(), |inner, _| {
                let mut entries = [("n", FieldValue::Table(inner)), ("k", FieldValue::I64(1))];
                if turned {
                    entries.reverse();
                }
                table(&entries)
            })
        };
        let (one, other) = (nested(false), nested(true));
        let before = work::steps();
        assert!(same_table(&one, &other));
        let taken = work::steps() - before;
        assert!(taken < 1000, "{taken}");
    }

    #[test]
    fn zeros_are_the_same_whatever_their_sign() {
        let [plus, minus] = [0.0, -0.0].map(|zero| table(&[("k", FieldValue::F64(zero))]));
        assert!(same_table(&plus, &minus));
        assert_eq!(digest(&plus), digest(&minus));
    }
}
