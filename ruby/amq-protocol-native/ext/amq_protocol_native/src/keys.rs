//! Keys of tables that were read before: the same few come with every message, and making an interned string of one
//! costs several times what finding it here does.
//!
//! A cache of fixed size. A key has one place, with room for two: those of one table would else drive each other out
//! where two have the same place. The strings are frozen and interned, as Ruby makes those of literals, so
//! Ractors may share them. Each is one word: a thread that reads an old or a new one reads a whole string, and a string
//! that is being replaced stays alive until the next collection, which stops every thread.

use std::ffi::{c_int, c_long, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ruby::api::{self, DataType, FREE_IMMEDIATELY, Value};
use crate::ruby::layout;
use crate::ruby::value::class_named;

/// Places, of two strings each; a power of two.
const PLACES: usize = 512;
/// Longer keys are not kept.
const LONGEST: usize = 64;

/// Strings, or 0.
static CACHE: [[AtomicUsize; 2]; PLACES] = [const { [const { AtomicUsize::new(0) }; 2] }; PLACES];

static OWNER: DataType = DataType {
    name: c"AMQ::Protocol key cache".as_ptr(),
    mark: Some(mark),
    free: std::ptr::null(),
    size: None,
    compact: None,
    reserved: [std::ptr::null_mut()],
    parent: std::ptr::null(),
    data: std::ptr::null_mut(),
    flags: FREE_IMMEDIATELY,
};

/// Keeps the cached strings alive and in their places.
unsafe extern "C-unwind" fn mark(_: *mut c_void) {
    for word in CACHE.as_flattened() {
        let key = word.load(Ordering::Relaxed);
        if key != 0 {
            // SAFETY: every word in the cache is a live string.
            unsafe { api::rb_gc_mark(key) };
        }
    }
}

/// Makes the object through which the collector sees the cache. It has no write barriers, so every collection looks.
pub(crate) fn load() {
    // SAFETY: the data pointer is not used; `mark` reads the cache itself.
    unsafe {
        let owner = api::rb_data_typed_object_wrap(
            class_named(c"Object"),
            (&raw const CACHE) as *mut c_void,
            &OWNER,
        );
        api::rb_gc_register_mark_object(owner);
    }
}

/// A frozen string of these bytes.
#[inline]
pub(crate) fn key(bytes: &[u8], encoding: c_int) -> Value {
    if bytes.len() > LONGEST {
        return interned(bytes, encoding);
    }
    let [place, other] = &CACHE[place(bytes, encoding)];
    let cached = place.load(Ordering::Relaxed);
    if is(cached, bytes, encoding) {
        return cached;
    }
    let second = other.load(Ordering::Relaxed);
    if is(second, bytes, encoding) {
        return second;
    }
    let key = interned(bytes, encoding);
    other.store(cached, Ordering::Relaxed);
    place.store(key, Ordering::Relaxed);
    key
}

/// Whether what a word of the cache stands for is this key.
#[inline(always)]
fn is(cached: Value, bytes: &[u8], encoding: c_int) -> bool {
    // SAFETY: every word in the cache but 0 is a live, frozen string.
    cached != 0 && unsafe { layout::bytes(cached) } == bytes && layout::encoding(cached) == encoding
}

#[inline]
fn place(bytes: &[u8], encoding: c_int) -> usize {
    let len = bytes.len();
    let (first, last) = ends(bytes);
    let mixed = (first ^ (len as u64) << 8 ^ encoding as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29 ^ last).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    // The upper bits: those that depend on all of both words.
    (mixed >> (u64::BITS - PLACES.ilog2())) as usize
}

/// The first and the last bytes: of up to 16 all that there are, and without a loop.
#[inline(always)]
fn ends(bytes: &[u8]) -> (u64, u64) {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u64::from_le_bytes(*first), u64::from_le_bytes(*last));
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        return (u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into());
    }
    match *bytes {
        [first, .., last] => (first.into(), u64::from(bytes[1]) << 8 | u64::from(last)),
        [only] => (only.into(), 0),
        [] => (0, 0),
    }
}

#[inline(never)]
fn interned(bytes: &[u8], encoding: c_int) -> Value {
    // SAFETY: the bytes are there for the call.
    unsafe {
        let encoding = api::rb_enc_from_index(encoding);
        api::rb_enc_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long, encoding)
    }
}
