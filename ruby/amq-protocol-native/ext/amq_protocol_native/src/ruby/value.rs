//! Ruby values out of Rust ones, and back.

use std::ffi::{CStr, c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::api::{self, DataType, Id, Method, Value};
use super::error::{Raise, Result};
use super::layout::{self, FALSE, Kind, NIL, TRUE};

/// The encoding of bytes that are no text, `ASCII-8BIT`; Ruby's first one.
pub(crate) const BINARY: c_int = 0;
/// The encoding UTF-8; Ruby's second one.
pub(crate) const UTF8: c_int = 1;

/// The highest integer that a word of Ruby's holds besides its tag.
const SMALL_MAX: i64 = if size_of::<c_long>() == 8 { i64::MAX / 2 } else { i32::MAX as i64 / 2 };
const SMALL_MIN: i64 = -SMALL_MAX - 1;

/// An interned name.
pub(crate) fn intern(name: &str) -> Id {
    // SAFETY: the bytes are there for the call.
    unsafe { api::rb_intern2(name.as_ptr().cast(), name.len() as c_long) }
}

/// A symbol.
pub(crate) fn symbol(name: &str) -> Value {
    // SAFETY: the name was just interned.
    unsafe { api::rb_id2sym(intern(name)) }
}

#[inline(always)]
pub(crate) fn boolean(value: bool) -> Value {
    if value { TRUE } else { FALSE }
}

#[inline(always)]
pub(crate) fn integer(number: i64) -> Value {
    if (SMALL_MIN..=SMALL_MAX).contains(&number) {
        small(number)
    } else {
        // SAFETY: makes an Integer.
        unsafe { api::rb_ll2inum(number) }
    }
}

#[inline(always)]
pub(crate) fn unsigned(number: u64) -> Value {
    if number <= SMALL_MAX as u64 {
        small(number as i64)
    } else {
        // SAFETY: makes an Integer.
        unsafe { api::rb_ull2inum(number) }
    }
}

/// An integer of at most 62 bits (30 on Windows).
#[inline(always)]
pub(crate) const fn small(number: i64) -> Value {
    (number as usize) << 1 | 1
}

/// The number in a word that holds a small one.
#[inline(always)]
pub(crate) const fn small_number(value: Value) -> i64 {
    (value as i64) >> 1
}

/// The 64 bits of an integer, signed in two's complement or unsigned, or of what converts to one.
///
/// Raises a RangeError for an integer of more bits, and a TypeError for anything else.
#[inline]
pub(crate) fn low_64_bits(value: Value) -> u64 {
    if value & 1 == 1 { small_number(value) as u64 } else { low_64_bits_of_object(value) }
}

#[cold]
fn low_64_bits_of_object(value: Value) -> u64 {
    // SAFETY: whatever does not convert raises, and no frame up to here owns anything.
    let value = unsafe { api::rb_to_int(value) };
    if value & 1 == 1 {
        return small_number(value) as u64;
    }
    // SAFETY: `value` is an Integer that is not small; one that has no room raises, as above.
    unsafe { api::rb_big2ull(value) }
}

/// The number of an Integer that is not small, if it fits into 64 signed bits.
#[cold]
pub(crate) fn signed_64_bits(value: Value) -> Result<i64> {
    let mut word = 0_i64;
    // SAFETY: `value` is an Integer, and one word of eight bytes is there.
    let sign = unsafe {
        let word = (&raw mut word).cast::<c_void>();
        api::rb_integer_pack(value, word, 1, 8, 0, api::PACK_LOW_64_BITS)
    };
    // Beyond -1 and 1 there are more than 64 bits; within, the highest bit may not be the sign.
    if (sign == 1 && word > 0) || (sign == -1 && word < 0) {
        return Ok(word);
    }
    Err(Raise::range("an Integer in a table has 64 bits at most, with its sign"))
}

/// A new binary string of these bytes.
#[inline(always)]
pub(crate) fn binary(bytes: &[u8]) -> Value {
    // SAFETY: the bytes are there for the call.
    unsafe { api::rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }
}

/// A new binary string of `len` bytes, which have no value yet.
#[inline(always)]
pub(crate) fn binary_room(len: usize) -> Value {
    // SAFETY: without bytes to copy, only room is made.
    unsafe { api::rb_str_new(std::ptr::null(), len as c_long) }
}

/// A new string of these bytes in an encoding.
#[inline(always)]
pub(crate) fn string(bytes: &[u8], encoding: c_int) -> Value {
    // SAFETY: the bytes are there for the call.
    unsafe {
        match encoding {
            BINARY => api::rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long),
            UTF8 => api::rb_utf8_str_new(bytes.as_ptr().cast(), bytes.len() as c_long),
            _ => api::rb_enc_associate_index(binary(bytes), encoding),
        }
    }
}

/// A string with the text, for messages.
pub(crate) fn text(text: &str) -> Value {
    string(text.as_bytes(), UTF8)
}

/// The value as a string, by `to_s` where it is none. `nil` gives an empty one.
#[inline(always)]
pub(crate) fn to_s(value: Value) -> Value {
    if layout::is_string(value) { value } else { to_s_of_other(value) }
}

#[inline(never)]
fn to_s_of_other(value: Value) -> Value {
    // SAFETY: both give a string or raise, and no frame up to here owns anything.
    unsafe {
        match layout::kind(value) {
            Kind::Symbol => api::rb_sym2str(value),
            _ => api::rb_obj_as_string(value),
        }
    }
}

/// An argument that has to be a string, by `to_str` where it is none.
#[inline(always)]
pub(crate) fn expect_string(mut value: Value) -> Value {
    if layout::is_string(value) {
        return value;
    }
    // SAFETY: gives a string or raises a TypeError.
    unsafe { api::rb_string_value(&raw mut value) }
}

/// An argument that has to be a Hash, by `to_h` where it is none.
#[inline]
pub(crate) fn expect_hash(value: Value) -> Result<Value> {
    if layout::kind(value) == Kind::Hash {
        return Ok(value);
    }
    let hash = call(value, "to_h", &[]);
    match layout::kind(hash) {
        Kind::Hash => Ok(hash),
        _ => Err(Raise::type_error("to_h has to give a Hash")),
    }
}

/// Calls a method.
pub(crate) fn call(object: Value, name: &str, arguments: &[Value]) -> Value {
    // SAFETY: the arguments are there for the call.
    unsafe { api::rb_funcallv(object, intern(name), arguments.len() as c_int, arguments.as_ptr()) }
}

/// The name of a method that is called often.
pub(crate) struct Name {
    text: &'static str,
    id: AtomicUsize,
}

impl Name {
    pub(crate) const fn new(text: &'static str) -> Self {
        Self { text, id: AtomicUsize::new(0) }
    }

    /// Calls the method, without arguments.
    pub(crate) fn call(&self, object: Value) -> Value {
        let mut id = self.id.load(Ordering::Relaxed);
        if id == 0 {
            id = intern(self.text);
            self.id.store(id, Ordering::Relaxed);
        }
        // SAFETY: there are no arguments.
        unsafe { api::rb_funcallv(object, id, 0, std::ptr::null()) }
    }
}

/// The class or module with this full name.
pub(crate) fn class_named(path: &CStr) -> Value {
    // SAFETY: raises when there is none.
    unsafe { api::rb_path2class(path.as_ptr()) }
}

/// Whether the object is of the class or of one below.
pub(crate) fn is_a(object: Value, class: Value) -> bool {
    // SAFETY: any object may be asked.
    layout::is_truthy(unsafe { api::rb_obj_is_kind_of(object, class) })
}

/// Arguments of a method that takes from `min` to `max` of them.
///
/// # Safety
/// `argv` holds `argc` values, as Ruby passes them.
#[inline(always)]
pub(crate) unsafe fn arguments<'a>(
    argc: c_int,
    argv: *const Value,
    min: c_int,
    max: c_int,
) -> &'a [Value] {
    if argc < min || argc > max {
        // SAFETY: raises; no frame up to here owns anything.
        unsafe { api::rb_error_arity(argc, min, max) };
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(argv, argc as usize) }
}

/// Defines a method of an object itself, such as a class.
pub(crate) fn define_singleton_method(object: Value, name: &CStr, method: Method) {
    // SAFETY: -1 is for the signature of `Method`.
    unsafe { api::rb_define_singleton_method(object, name.as_ptr(), method as *const c_void, -1) };
}

/// Defines a method of a class's instances.
pub(crate) fn define_method(class: Value, name: &CStr, method: Method) {
    // SAFETY: -1 is for the signature of `Method`.
    unsafe { api::rb_define_method(class, name.as_ptr(), method as *const c_void, -1) };
}

/// Defines a method of a class's instances that takes no argument.
pub(crate) fn define_reader(class: Value, name: &CStr, reader: api::Reader) {
    // SAFETY: 0 is for the signature of `Reader`.
    unsafe { api::rb_define_method(class, name.as_ptr(), reader as *const c_void, 0) };
}

/// The memory of ours that an object of this kind has. Raises a TypeError for any other object.
#[inline(always)]
pub(crate) fn memory_of(object: Value, kind: &'static DataType) -> *mut c_void {
    // SAFETY: any object may be asked.
    layout::typed_data(object, kind)
        .unwrap_or_else(|| unsafe { api::rb_check_typeddata(object, kind) })
}

/// The element of an offset argument: an Integer that is not negative.
pub(crate) fn offset(value: Value) -> Result<usize> {
    match layout::kind(value) {
        Kind::SmallInteger if small_number(value) >= 0 => Ok(small_number(value) as usize),
        _ => Err(Raise::argument("the offset has to be an Integer that is not negative")),
    }
}

/// `nil`, for methods without a result.
pub(crate) const NOTHING: Value = NIL;

/// Keeps a value on the stack up to here, where the collector sees it.
#[inline(always)]
pub(crate) fn keep(value: Value) {
    std::hint::black_box(value);
}

/// Tells the collector that an object refers to a value from now on.
///
/// # Safety
/// `object` is one with write barriers.
pub(crate) unsafe fn tell_collector(object: Value, value: Value) {
    if value & 7 == 0 && layout::is_truthy(value) {
        // SAFETY: both are objects.
        unsafe { api::rb_gc_writebarrier(object, value) };
    }
}
