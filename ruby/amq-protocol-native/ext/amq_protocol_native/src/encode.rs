//! Ruby values to field tables.

use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use courser_codec::{Decimal, MAX_NESTING, Sink, Value as Wire, constants::field_type};

use crate::classes;
use crate::decimal;
use crate::out::Out;
use crate::plain::{self, Written};
use crate::ruby::api::{self, ST_CONTINUE, ST_STOP, Value};
use crate::ruby::error::{Raise, Result, panicked};
use crate::ruby::layout::{self, Kind};
use crate::ruby::value::{
    Name, call, expect_hash, is_a, low_64_bits, signed_64_bits, small_number, to_s,
};

static TO_I: Name = Name::new("to_i");
static VALUE: Name = Name::new("value");

/// Longest short string.
const SHORT_MAX: usize = 255;

/// Writes a short string: any object, by its `to_s`.
#[inline]
pub(crate) fn put_short(out: &mut Out, value: Value) -> Result<()> {
    if plain::put_short(out, value) { Ok(()) } else { put_other_short(out, value) }
}

#[inline(never)]
fn put_other_short(out: &mut Out, value: Value) -> Result<()> {
    let string = to_s(value);
    let len = short_len(string)?;
    out.reserve(1 + len);
    // SAFETY: there is room, so no Ruby code runs until the bytes are copied.
    let bytes = unsafe { layout::bytes(string) };
    out.put_with(1 + len, |window| {
        window.put_u8(len as u8);
        window.put(bytes);
    });
    Ok(())
}

/// The length of a string that is to be a short one.
#[inline(always)]
fn short_len(string: Value) -> Result<usize> {
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::bytes(string) }.len();
    if len > SHORT_MAX { Err(too_long(len)) } else { Ok(len) }
}

/// The length of a string that is to be a long one, also as it goes on the wire.
#[inline(always)]
fn long_len(string: Value) -> Result<(usize, u32)> {
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::bytes(string) }.len();
    match u32::try_from(len) {
        Ok(wire_len) => Ok((len, wire_len)),
        Err(_) => Err(Raise::range("more than 4 GiB in a long string")),
    }
}

#[cold]
fn too_long(len: usize) -> Raise {
    Raise::range(&format!("{len} bytes in a short string, which holds at most {SHORT_MAX}"))
}

/// Writes a long string: any object, by its `to_s`.
#[inline]
pub(crate) fn put_long(out: &mut Out, value: Value) -> Result<()> {
    let string = to_s(value);
    let (len, wire_len) = long_len(string)?;
    out.reserve(4 + len);
    // SAFETY: there is room, so no Ruby code runs until the bytes are copied.
    let bytes = unsafe { layout::bytes(string) };
    out.put_with(4 + len, |window| {
        window.put_u32(wire_len);
        window.put(bytes);
    });
    Ok(())
}

/// Writes a table with its length; nil is an empty one.
pub(crate) fn put_table(out: &mut Out, table: Value) -> Result<()> {
    match layout::kind(table) {
        Kind::Hash => put_hash(out, table, 0),
        Kind::Nil | Kind::False => {
            out.put_u32(0);
            Ok(())
        }
        _ => put_hash(out, expect_hash(table)?, 0),
    }
}

/// What the entries of a hash are written with.
struct Entries<'o> {
    out: &'o mut Out,
    depth: usize,
    error: Option<Raise>,
}

fn put_hash(out: &mut Out, hash: Value, depth: usize) -> Result<()> {
    check_depth(depth)?;
    let start = out.begin_length();
    let mut entries = Entries { out, depth: depth + 1, error: None };
    // SAFETY: `hash` is a Hash, and `entries` outlives the iteration.
    unsafe { api::rb_hash_foreach(hash, put_entry, (&raw mut entries).cast::<c_void>() as Value) };
    if let Some(error) = entries.error {
        return Err(error);
    }
    out.end_length(start)
}

/// Called by Ruby for each entry of a hash; no panic may leave it.
unsafe extern "C-unwind" fn put_entry(key: Value, value: Value, entries: Value) -> c_int {
    // SAFETY: this is what `put_hash` passed, and no other code uses it meanwhile.
    let entries = unsafe { &mut *(entries as *mut Entries<'_>) };
    match plain::put_entry(entries.out, key, value) {
        Written::All => ST_CONTINUE,
        Written::Key => entries.put_value(value),
        Written::Nothing => entries.put_key_and_value(key, value),
    }
}

// Neither is in line: where everything is plain, nothing has to be saved for them.
impl Entries<'_> {
    #[inline(never)]
    fn put_value(&mut self, value: Value) -> c_int {
        self.go_on_after(|out, depth| put_other_value(out, value, depth))
    }

    #[inline(never)]
    fn put_key_and_value(&mut self, key: Value, value: Value) -> c_int {
        self.go_on_after(|out, depth| {
            let key = to_s(key);
            match plain::put_entry(out, key, value) {
                Written::All => return Ok(()),
                Written::Key => {}
                Written::Nothing => put_short(out, key)?,
            }
            put_value(out, value, depth)
        })
    }

    /// Does what may fail, and says whether the iteration goes on.
    #[inline(always)]
    fn go_on_after(&mut self, write: impl FnOnce(&mut Out, usize) -> Result<()>) -> c_int {
        match catch_unwind(AssertUnwindSafe(|| write(self.out, self.depth))) {
            Ok(Ok(())) => return ST_CONTINUE,
            Ok(Err(error)) => self.error = Some(error),
            Err(panic) => self.error = Some(panicked(panic)),
        }
        ST_STOP
    }
}

/// Tables that lie within each other have to end somewhere: one can hold itself.
fn check_depth(depth: usize) -> Result<()> {
    if depth < MAX_NESTING {
        return Ok(());
    }
    Err(Raise::argument(&format!("tables and arrays are nested deeper than {MAX_NESTING}")))
}

/// Writes a value with its tag; `depth` tables and arrays are around it.
#[inline(always)]
pub(crate) fn put_value(out: &mut Out, value: Value, depth: usize) -> Result<()> {
    if plain::put_value(out, value) { Ok(()) } else { put_other_value(out, value, depth) }
}

#[inline(never)]
fn put_other_value(out: &mut Out, value: Value, depth: usize) -> Result<()> {
    match layout::kind(value) {
        Kind::String => put_text(out, value),
        Kind::SmallInteger => put(out, Wire::I64(small_number(value))),
        Kind::True => put(out, Wire::Bool(true)),
        Kind::False => put(out, Wire::Bool(false)),
        Kind::Nil => put(out, Wire::Void),
        Kind::Symbol => put_text(out, to_s(value)),
        // SAFETY: the value is a Float.
        Kind::Float => put(out, Wire::F64(unsafe { api::rb_float_value(value) })),
        Kind::Hash => {
            out.put(&[field_type::TABLE]);
            put_hash(out, value, depth)
        }
        Kind::Array => put_array(out, value, depth),
        Kind::BigInteger => put(out, Wire::I64(signed_64_bits(value)?)),
        Kind::Other => put_other(out, value),
    }
}

#[inline(always)]
fn put(out: &mut Out, value: Wire<'_>) -> Result<()> {
    value.encode(out);
    Ok(())
}

#[inline(always)]
fn put_text(out: &mut Out, string: Value) -> Result<()> {
    out.put(&[field_type::LONG_STR]);
    put_long(out, string)
}

/// An array can change while its elements are written, by a `to_s` of a key within: it is asked each time.
fn put_array(out: &mut Out, array: Value, depth: usize) -> Result<()> {
    check_depth(depth)?;
    out.put(&[field_type::ARRAY]);
    let start = out.begin_length();
    let mut index = 0;
    while index < layout::array_len(array) {
        // SAFETY: `array` is an Array; beyond its end there is nil.
        let element = unsafe { api::rb_ary_entry(array, index as _) };
        put_value(out, element, depth + 1)?;
        index += 1;
    }
    out.end_length(start)
}

#[inline(never)]
fn put_other(out: &mut Out, value: Value) -> Result<()> {
    if is_a(value, classes::TIME.get()) {
        let seconds = low_64_bits(TO_I.call(value));
        return put(out, Wire::Timestamp(seconds));
    }
    if is_a(value, classes::FLOAT_32_BIT.get()) {
        let number = VALUE.call(value);
        // SAFETY: what is no number raises.
        let number = unsafe { api::rb_num2dbl(number) };
        return put(out, Wire::F32(number as f32));
    }
    if let Some(class) = decimal::class()
        && is_a(value, class)
    {
        let Decimal { scale, digits } = decimal::to_wire(value)?;
        return put(out, Wire::Decimal(Decimal { scale, digits }));
    }
    Err(unsupported(value))
}

#[cold]
fn unsupported(value: Value) -> Raise {
    let inspected = to_s(call(value, "inspect", &[]));
    // SAFETY: any object has a class.
    let class = to_s(call(unsafe { api::rb_obj_class(value) }, "name", &[]));
    // SAFETY: no Ruby code runs until the texts are copied, and the copies are gone before anything is raised.
    let (inspected, class) = unsafe { (layout::bytes(inspected), layout::bytes(class)) };
    let (inspected, class) = (String::from_utf8_lossy(inspected), String::from_utf8_lossy(class));
    Raise::argument(&format!("Unsupported value {inspected} of type {class}"))
}
