//! Where things lie in a Ruby object. Reading them in place is what makes the extension fast: a call for each would cost
//! more than the bytes it gives.
//!
//! | | 3.0, 3.1 | 3.2 | 3.3 and later |
//! |---|---|---|---|
//! | `nil` | 8 | 4 | 4 |
//! | length of an embedded string | in the flags | in front of its bytes | in front of both kinds |
//! | length of an embedded array | two bits of the flags | seven bits | seven bits |
//!
//! The version is that of the build; [`check`] refuses any other, and holds these layouts against Ruby's own functions.

use std::ffi::{c_char, c_int, c_long, c_void};
use std::mem::MaybeUninit;
use std::{ptr, slice};

use super::api::{self, DataType, FREE_IMMEDIATELY, Value};
use super::value;

#[cfg(not(target_pointer_width = "64"))]
compile_error!("words of 64 bits are assumed throughout");

pub(crate) const FALSE: Value = 0;
pub(crate) const TRUE: Value = 0x14;
#[cfg(ruby_3_2)]
pub(crate) const NIL: Value = 0x04;
#[cfg(not(ruby_3_2))]
pub(crate) const NIL: Value = 0x08;
/// No value at all; never seen by Ruby code.
#[cfg(ruby_3_2)]
pub(crate) const UNDEF: Value = 0x24;
#[cfg(not(ruby_3_2))]
pub(crate) const UNDEF: Value = 0x34;

const USER_FLAGS_SHIFT: usize = 12;
const ENCODING_SHIFT: usize = USER_FLAGS_SHIFT + 10;
const ENCODING_MASK: usize = 127;
/// Set in a string that lies outside its object, and in an array that lies within.
const USER_1: usize = 1 << (USER_FLAGS_SHIFT + 1);
const ARRAY_LEN_SHIFT: usize = USER_FLAGS_SHIFT + 3;
#[cfg(ruby_3_2)]
const ARRAY_LEN_MASK: usize = 0x7f;
#[cfg(not(ruby_3_2))]
const ARRAY_LEN_MASK: usize = 0x03;

/// The flag of an object with instance variables in a table outside it.
const HAS_VARIABLES: usize = 1 << 10;

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Nil,
    True,
    False,
    SmallInteger,
    BigInteger,
    Float,
    String,
    Symbol,
    Array,
    Hash,
    Other,
}

#[repr(C)]
struct Basic {
    flags: usize,
    class: Value,
}

#[repr(C)]
struct Outside {
    basic: Basic,
    len: c_long,
    bytes: *const c_char,
}

/// An object around memory of ours.
#[cfg(not(ruby_3_5))]
#[repr(C)]
struct TypedData {
    basic: Basic,
    kind: *const DataType,
    flag: Value,
    data: *mut c_void,
}

#[cfg(ruby_3_3)]
#[repr(C)]
struct Within {
    basic: Basic,
    len: c_long,
    bytes: [*const c_char; 1],
}

#[cfg(all(ruby_3_2, not(ruby_3_3)))]
#[repr(C)]
struct Within {
    basic: Basic,
    len: c_long,
    bytes: [c_char; 1],
}

#[cfg(not(ruby_3_2))]
#[repr(C)]
struct Within {
    basic: Basic,
    bytes: [c_char; 24],
}

/// The word of flags of an object.
#[inline(always)]
fn flags(object: Value) -> usize {
    debug_assert!(!is_immediate(object));
    // SAFETY: a value that is not immediate points to an object, which begins with its flags.
    unsafe { (*(object as *const Basic)).flags }
}

#[inline(always)]
fn is_immediate(value: Value) -> bool {
    value & 7 != 0 || !is_truthy(value)
}

/// Whether a condition takes the value as true.
#[inline(always)]
pub(crate) fn is_truthy(value: Value) -> bool {
    value & !NIL != 0
}

/// What a value is.
#[inline(always)]
pub(crate) fn kind(value: Value) -> Kind {
    if is_immediate(value) {
        return immediate_kind(value);
    }
    match flags(value) & 0x1f {
        0x05 => Kind::String,
        0x08 => Kind::Hash,
        0x07 => Kind::Array,
        0x04 => Kind::Float,
        0x0a => Kind::BigInteger,
        0x14 => Kind::Symbol,
        _ => Kind::Other,
    }
}

#[inline(always)]
fn immediate_kind(value: Value) -> Kind {
    if value & 1 == 1 {
        Kind::SmallInteger
    } else if value & 3 == 2 {
        Kind::Float
    } else if value & 0xff == 0x0c {
        Kind::Symbol
    } else {
        match value {
            NIL => Kind::Nil,
            TRUE => Kind::True,
            FALSE => Kind::False,
            _ => Kind::Other,
        }
    }
}

#[inline(always)]
pub(crate) fn is_string(value: Value) -> bool {
    !is_immediate(value) && flags(value) & 0x1f == 0x05
}

/// The bytes of a string.
///
/// # Safety
/// `string` is a String that lives as long as the slice is used, and nothing changes it meanwhile.
#[inline(always)]
pub(crate) unsafe fn bytes<'a>(string: Value) -> &'a [u8] {
    let flags = flags(string);
    // SAFETY: this is how a string of this Ruby lies in memory, and the caller answers for its life.
    unsafe {
        if flags & USER_1 != 0 {
            let outside = &*(string as *const Outside);
            return slice::from_raw_parts(outside.bytes.cast(), outside.len as usize);
        }
        let (len, bytes) = within(string);
        slice::from_raw_parts(bytes, len)
    }
}

/// Length and bytes of a string that lies within its object.
///
/// # Safety
/// It does.
#[inline(always)]
unsafe fn within(string: Value) -> (usize, *const u8) {
    let within = string as *const Within;
    // SAFETY: this is how such a string of this Ruby lies in memory.
    unsafe {
        #[cfg(ruby_3_2)]
        let len = (*within).len as usize;
        #[cfg(not(ruby_3_2))]
        let len = flags(string) >> (USER_FLAGS_SHIFT + 2) & 0x1f;
        (len, (&raw const (*within).bytes).cast())
    }
}

/// Bytes that every object of a string has for one that lies within it: what the smallest object has behind its head.
#[cfg(ruby_3_2)]
pub(crate) const WITHIN: usize = 16;
#[cfg(not(ruby_3_2))]
pub(crate) const WITHIN: usize = 24;

/// A string within its object, of at most [`WITHIN`] bytes.
pub(crate) struct Short {
    pub len: usize,
    bytes: *const [MaybeUninit<u8>; WITHIN],
}

impl Short {
    /// Copies the bytes, and those that follow them in the object: [`WITHIN`] in any case, which needs no loop.
    ///
    /// # Safety
    /// The string still lives, and there is room for as many bytes.
    #[inline(always)]
    pub(crate) unsafe fn copy_to(&self, room: *mut u8) {
        // SAFETY: the object has all of them; nothing is assumed of those behind the string.
        unsafe { room.cast::<[MaybeUninit<u8>; WITHIN]>().write(self.bytes.read()) };
    }
}

/// The value as a short string, if it is a String and lies within its object.
#[inline(always)]
pub(crate) fn short_string(value: Value) -> Option<Short> {
    if is_immediate(value) {
        return None;
    }
    if flags(value) & (0x1f | USER_1) != 0x05 {
        return None;
    }
    // SAFETY: that was just checked.
    let (len, bytes) = unsafe { within(value) };
    // Objects have several sizes since Ruby 3.2.
    (!cfg!(ruby_3_2) || len <= WITHIN).then_some(Short { len, bytes: bytes.cast() })
}

/// The bytes of a string that was just made, to be filled.
///
/// # Safety
/// As [`bytes`]; besides nothing else holds the string yet.
#[inline(always)]
pub(crate) unsafe fn room(string: Value) -> *mut u8 {
    // SAFETY: passed on to the caller.
    unsafe { bytes(string) }.as_ptr().cast_mut()
}

/// The number of a string's encoding. The few that do not fit into the flags are asked for.
#[inline(always)]
pub(crate) fn encoding(string: Value) -> c_int {
    let index = flags(string) >> ENCODING_SHIFT & ENCODING_MASK;
    if index == ENCODING_MASK {
        // SAFETY: any object may be asked.
        return unsafe { api::rb_enc_get_index(string) };
    }
    index as c_int
}

/// Number of an array's elements.
#[inline(always)]
pub(crate) fn array_len(array: Value) -> usize {
    let flags = flags(array);
    if flags & USER_1 != 0 {
        return flags >> ARRAY_LEN_SHIFT & ARRAY_LEN_MASK;
    }
    // SAFETY: an array outside its object has its length where a string has.
    unsafe { (*(array as *const Outside)).len as usize }
}

/// Whether instance variables may have been set on an object that is not a plain one.
#[inline(always)]
pub(crate) fn may_have_variables(object: Value) -> bool {
    cfg!(ruby_3_5) || flags(object) & HAS_VARIABLES != 0
}

/// The memory of ours that an object of this kind has; nothing for any other object.
#[cfg(not(ruby_3_5))]
#[inline(always)]
pub(crate) fn typed_data(object: Value, kind: &'static DataType) -> Option<*mut c_void> {
    if is_immediate(object) || flags(object) & 0x1f != 0x0c {
        return None;
    }
    // SAFETY: objects around memory lie so; one without a kind has a function in its place, which is none of ours.
    let object = unsafe { &*(object as *const TypedData) };
    ptr::eq(object.kind, kind).then_some(object.data)
}

#[cfg(ruby_3_5)]
pub(crate) fn typed_data(_: Value, _: &'static DataType) -> Option<*mut c_void> {
    None
}

/// The class of an object, a singleton class included.
#[inline(always)]
pub(crate) fn class_pointer(object: Value) -> Value {
    debug_assert!(!is_immediate(object));
    // SAFETY: as for the flags.
    unsafe { (*(object as *const Basic)).class }
}

/// Whether the running Ruby is the one that this was built for, and lays its objects out as assumed.
pub(crate) fn check() -> Result<(), &'static str> {
    // SAFETY: a constant of Ruby's.
    let [major, minor, _] = unsafe { api::ruby_api_version };
    let built_for = (env!("BUILT_FOR_RUBY_MAJOR"), env!("BUILT_FOR_RUBY_MINOR"));
    if built_for.0.parse() != Ok(major) || built_for.1.parse() != Ok(minor) {
        return Err(concat!(
            "amq_protocol_native was compiled for Ruby ",
            env!("BUILT_FOR_RUBY_MAJOR"),
            ".",
            env!("BUILT_FOR_RUBY_MINOR"),
            "; reinstall the gem with this one"
        ));
    }
    let text = [b'x'; 4096];
    for len in [0, 1, 23, 24, 300, 4096] {
        // SAFETY: a string of `len` bytes is made of as many, and kept alive by `string`.
        let (string, found) = unsafe {
            let string = api::rb_utf8_str_new(text.as_ptr().cast(), len as c_long);
            (string, bytes(string).len())
        };
        // SAFETY: any object may be asked.
        let utf8 = unsafe { api::rb_utf8_encindex() };
        let short = short_string(string).map_or(found, |short| short.len);
        if kind(string) != Kind::String || found != len || short != len || encoding(string) != utf8
        {
            return Err(
                "strings do not lie in memory as assumed; amq_protocol_native cannot run on this Ruby",
            );
        }
    }
    for len in [0, 1, 3, 4, 200] {
        let nils = [NIL; 200];
        // SAFETY: there are at least `len` values.
        let array = unsafe { api::rb_ary_new_from_values(len as c_long, nils.as_ptr()) };
        if kind(array) != Kind::Array || array_len(array) != len {
            return Err(
                "arrays do not lie in memory as assumed; amq_protocol_native cannot run on this Ruby",
            );
        }
    }
    // SAFETY: the object is made around memory that stays, and only asked.
    let (object, memory) = unsafe {
        let memory = (&raw const SAMPLE).cast_mut().cast();
        (api::rb_data_typed_object_wrap(value::class_named(c"Object"), memory, &SAMPLE), memory)
    };
    if !cfg!(ruby_3_5) && typed_data(object, &SAMPLE) != Some(memory) {
        return Err(
            "objects around memory do not lie as assumed; amq_protocol_native cannot run on this Ruby",
        );
    }
    Ok(())
}

/// The kind of the object that [`check`] looks at.
static SAMPLE: DataType = DataType {
    name: c"AMQ::Protocol sample".as_ptr(),
    mark: None,
    free: ptr::null(),
    size: None,
    compact: None,
    reserved: [ptr::null_mut()],
    parent: ptr::null(),
    data: ptr::null_mut(),
    flags: FREE_IMMEDIATELY,
};
