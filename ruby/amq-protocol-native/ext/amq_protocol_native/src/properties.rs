//! Properties of messages: Hashes by name on Ruby's side, a word of flags and values on the wire.

use std::ffi::{c_int, c_void};

use courser_codec::{Properties, RawProperties, ShortStr, Sink};

use crate::classes::Slot;
use crate::decode::{self, Source};
use crate::encode::{put_short, put_table};
use crate::out::Out;
use crate::ruby::api::{self, ST_CONTINUE, ST_STOP, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, NIL, UNDEF};
use crate::ruby::value::{
    call, define_singleton_method, expect_hash, expect_string, keep, low_64_bits, small, string,
    symbol, text, to_s,
};
use crate::table::source;

/// Class of the contents that have properties.
const BASIC: u16 = 60;
/// Number of properties.
const COUNT: usize = 14;

/// How the value of a property lies on the wire.
#[derive(Clone, Copy)]
enum Wire {
    ShortStr,
    Table,
    Octet,
    Timestamp,
}

/// The properties in the order of the wire; the first has the highest flag.
const PROPERTIES: [(&str, Wire); COUNT] = [
    ("content_type", Wire::ShortStr),
    ("content_encoding", Wire::ShortStr),
    ("headers", Wire::Table),
    ("delivery_mode", Wire::Octet),
    ("priority", Wire::Octet),
    ("correlation_id", Wire::ShortStr),
    ("reply_to", Wire::ShortStr),
    ("expiration", Wire::ShortStr),
    ("message_id", Wire::ShortStr),
    ("timestamp", Wire::Timestamp),
    ("type", Wire::ShortStr),
    ("user_id", Wire::ShortStr),
    ("app_id", Wire::ShortStr),
    ("cluster_id", Wire::ShortStr),
];

const fn flag(at: usize) -> u16 {
    0x8000 >> at
}

/// The names as symbols.
static SYMBOLS: [Slot; COUNT] = [const { Slot::empty() }; COUNT];

/// What a Hash says of each property.
struct Found {
    /// The values of those in `flags`.
    values: [Value; COUNT],
    /// The properties that are there and not nil.
    flags: u16,
    /// Entries that are properties, also those that are nil.
    count: usize,
    /// A key that is no property, if there is one with a value.
    unknown: Value,
    /// Whether keys may be strings.
    by_text: bool,
}

impl Found {
    fn new(by_text: bool) -> Self {
        Self { values: [NIL; COUNT], flags: 0, count: 0, unknown: UNDEF, by_text }
    }

    /// Looks at all entries; done in place, since what is found is too large to be handed on.
    #[inline(always)]
    fn look_into(&mut self, hash: Value) -> Result<()> {
        let hash = expect_hash(hash)?;
        // SAFETY: `hash` is a Hash, and `self` outlives the iteration.
        unsafe { api::rb_hash_foreach(hash, find, (&raw mut *self).cast::<c_void>() as Value) };
        Ok(())
    }

    #[inline(always)]
    fn note(&mut self, at: usize, value: Value) {
        self.count += 1;
        self.values[at] = value;
        if value == NIL {
            self.flags &= !flag(at);
        } else {
            self.flags |= flag(at);
        }
    }

    /// The same for a key that is none of the symbols. Says whether the iteration goes on.
    #[cold]
    #[inline(never)]
    fn note_by_text(&mut self, key: Value, value: Value) -> c_int {
        let Some(at) = find_by_text(key) else {
            self.unknown = key;
            return ST_STOP;
        };
        self.note(at, value);
        ST_CONTINUE
    }
}

/// Called by Ruby for each entry; nothing in it panics or runs Ruby code, but a key's `to_s`.
unsafe extern "C-unwind" fn find(key: Value, value: Value, found: Value) -> c_int {
    // SAFETY: this is what `Found::look_into` passed, and no other code uses it meanwhile.
    let found = unsafe { &mut *(found as *mut Found) };
    match SYMBOLS.iter().position(|symbol| symbol.get() == key) {
        Some(at) => found.note(at, value),
        None if found.by_text && value != NIL => return found.note_by_text(key, value),
        None => {}
    }
    ST_CONTINUE
}

fn find_by_text(key: Value) -> Option<usize> {
    let text = to_s(key);
    // SAFETY: no Ruby code runs while the names are compared.
    let bytes = unsafe { layout::bytes(text) };
    PROPERTIES.iter().position(|(name, _)| name.as_bytes() == bytes)
}

#[inline(always)]
fn put_property(out: &mut Out, wire: Wire, value: Value) -> Result<()> {
    match wire {
        Wire::ShortStr => put_short(out, value)?,
        Wire::Table => put_table(out, value)?,
        Wire::Octet => out.put(&[low_64_bits(value) as u8]),
        Wire::Timestamp => out.put_u64(low_64_bits(value)),
    }
    Ok(())
}

/// Bytes of a content header before its properties.
const HEAD_LEN: usize = 14;

/// Writes the payload of a content header.
fn put_header(out: &mut Out, body_size: u64, found: &Found) -> Result<()> {
    // The class, no weight, the length of the body, the flags.
    let mut head = [0; HEAD_LEN];
    head[..2].copy_from_slice(&BASIC.to_be_bytes());
    head[4..12].copy_from_slice(&body_size.to_be_bytes());
    head[12..].copy_from_slice(&found.flags.to_be_bytes());
    out.put(&head);
    let mut rest = found.flags;
    while let Some(at) = first(rest) {
        put_property(out, PROPERTIES[at].1, found.values[at])?;
        rest &= !flag(at);
    }
    Ok(())
}

/// The first property of those in the flags.
#[inline(always)]
fn first(flags: u16) -> Option<usize> {
    let at = flags.leading_zeros() as usize;
    (at < COUNT).then_some(at)
}

/// Writes the payload of the content header of a publish: of `user_headers` what is a property.
pub(crate) fn put_publish_header(out: &mut Out, body_size: u64, user_headers: Value) -> Result<()> {
    let mut found = Found::new(false);
    found.look_into(user_headers)?;
    if found.count == 0 {
        return Err(Raise::runtime("Properties can not be empty!"));
    }
    put_header(out, body_size, &found)
}

/// Calls the method `encode_KEY`, which is not there: Ruby raises what it raises then.
#[cold]
fn call_missing(class: Value, key: Value) -> Value {
    let key = to_s(key);
    // SAFETY: the key is copied before Ruby code can run, and the copies are gone before anything is raised.
    let name = text(&format!("encode_{}", String::from_utf8_lossy(unsafe { layout::bytes(key) })));
    call(class, "__send__", &[name, NIL])
}

ruby_method! {
    fn encode_properties(arguments: 2..=2, class) {
        let body_size = low_64_bits(arguments[0]);
        let mut found = Found::new(true);
        found.look_into(arguments[1])?;
        if found.unknown != UNDEF {
            return Ok(call_missing(class, found.unknown));
        }
        let mut out = Out::new();
        put_header(&mut out, body_size, &found)?;
        Ok(out.finish())
    }
}

/// Encodes one property as `[index, flag, bytes]`.
fn encode_one(at: usize, value: Value) -> Result<Value> {
    let mut out = Out::new();
    put_property(&mut out, PROPERTIES[at].1, value)?;
    let values = [small(at as i64), small(flag(at).into()), out.finish()];
    // SAFETY: there are three.
    Ok(unsafe { api::rb_ary_new_from_values(3, values.as_ptr()) })
}

/// Properties as a Hash by name.
pub(crate) fn to_hash(properties: RawProperties<'_>, source: Source) -> Result<Value> {
    // SAFETY: makes a Hash.
    let hash = unsafe { api::rb_hash_new() };
    if properties.is_empty() {
        // Nothing may follow then.
        properties.decode()?;
        return Ok(hash);
    }
    let Properties {
        content_type,
        content_encoding,
        headers,
        delivery_mode,
        priority,
        correlation_id,
        reply_to,
        expiration,
        message_id,
        timestamp,
        kind,
        user_id,
        app_id,
        cluster_id,
    } = properties.decode()?;
    let mut pairs = [NIL; 2 * COUNT];
    let mut len = 0;
    let mut put = |at: usize, value: Value| {
        pairs[len] = SYMBOLS[at].get();
        pairs[len + 1] = value;
        len += 2;
    };
    let text = |text: ShortStr<'_>| string(text.as_bytes(), source.encoding);
    for (at, value) in [(0, content_type), (1, content_encoding)] {
        if let Some(value) = value {
            put(at, text(value));
        }
    }
    if let Some(table) = headers {
        put(2, decode::table(table, source)?);
    }
    for (at, byte) in [(3, delivery_mode), (4, priority)] {
        if let Some(byte) = byte {
            put(at, small(byte.into()));
        }
    }
    for (at, value) in [(5, correlation_id), (6, reply_to), (7, expiration), (8, message_id)] {
        if let Some(value) = value {
            put(at, text(value));
        }
    }
    if let Some(seconds) = timestamp {
        put(9, decode::time(seconds));
    }
    for (at, value) in [(10, kind), (11, user_id), (12, app_id), (13, cluster_id)] {
        if let Some(value) = value {
            put(at, text(value));
        }
    }
    // SAFETY: so many values were written.
    unsafe { api::rb_hash_bulk_insert(len as _, pairs.as_ptr(), hash) };
    Ok(hash)
}

ruby_method! {
    fn decode_properties(arguments: 1..=1, _class) {
        let data = expect_string(arguments[0]);
        // SAFETY: the string is kept below, and locked where Ruby code runs.
        let (bytes, source) = unsafe { source(data) };
        let hash = to_hash(RawProperties::from_encoded(bytes)?, source)?;
        keep(data);
        Ok(hash)
    }
}

macro_rules! encoders {
    ($($name:literal $function:ident: $at:literal),*) => {
        $(ruby_method! {
            fn $function(arguments: 1..=1, _class) { encode_one($at, arguments[0]) }
        })*

        ruby_method! {
            /// `Native.define_properties(Basic)`
            pub(crate) fn define_properties(arguments: 1..=1, _native) {
                let class = arguments[0];
                for ((name, _), slot) in PROPERTIES.iter().zip(&SYMBOLS) {
                    slot.set(symbol(name));
                }
                $(define_singleton_method(class, $name, $function);)*
                define_singleton_method(class, c"encode_properties", encode_properties);
                define_singleton_method(class, c"decode_properties", decode_properties);
                Ok(class)
            }
        }
    };
}

encoders! {
    c"encode_content_type" content_type: 0, c"encode_content_encoding" content_encoding: 1, c"encode_headers" headers: 2,
    c"encode_delivery_mode" delivery_mode: 3, c"encode_priority" priority: 4,
    c"encode_correlation_id" correlation_id: 5, c"encode_reply_to" reply_to: 6, c"encode_expiration" expiration: 7,
    c"encode_message_id" message_id: 8, c"encode_timestamp" timestamp: 9, c"encode_type" kind: 10,
    c"encode_user_id" user_id: 11, c"encode_app_id" app_id: 12, c"encode_cluster_id" cluster_id: 13
}
