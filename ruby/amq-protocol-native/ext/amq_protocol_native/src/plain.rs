//! What most tables and methods consist of: short strings and small values. They are written without a call, and nothing
//! here panics or runs Ruby code; what it leaves is for [`encode`](crate::encode).
//!
//! A string that lies within its object is copied with all that may follow it there: always as many bytes, so without a
//! choice by its length. What follows it is overwritten by what is written next, or never counted.

use courser_codec::constants::field_type;

use crate::out::Out;
use crate::ruby::api::Value;
use crate::ruby::layout::{self, FALSE, NIL, TRUE, WITHIN};
use crate::ruby::value::small_number;

/// Bytes of a key that lies within its object, by the five bits in which its length stands.
const KEY_MAX: usize = 31;
/// Room for a key and a value: the longest is a text, with its tag and its length.
const ROOM: usize = 1 + KEY_MAX + 5 + WITHIN;

/// What was written of an entry.
pub(crate) enum Written {
    All,
    Key,
    Nothing,
}

/// Writes an entry, if its key is a short String, or at least the key.
#[inline(always)]
pub(crate) fn put_entry(out: &mut Out, key: Value, value: Value) -> Written {
    let Some(key) = layout::short_string(key) else { return Written::Nothing };
    if !out.has_room(ROOM) {
        return Written::Nothing;
    }
    // SAFETY: there is room for all that is written, and nothing runs meanwhile that could change a string.
    unsafe {
        let at = out.end();
        at.write(key.len as u8);
        key.copy_to(at.add(1));
        let len = 1 + key.len;
        match write_value(at.add(len), value) {
            Some(value_len) => {
                out.count(len + value_len);
                Written::All
            }
            None => {
                out.count(len);
                Written::Key
            }
        }
    }
}

/// Writes a value with its tag, if it is a short String, a small Integer, true, false or nil.
#[inline(always)]
pub(crate) fn put_value(out: &mut Out, value: Value) -> bool {
    if !out.has_room(ROOM) {
        return false;
    }
    // SAFETY: there is room, and nothing runs meanwhile that could change a string.
    unsafe {
        let Some(len) = write_value(out.end(), value) else { return false };
        out.count(len);
    }
    true
}

/// Writes a String as a short string, if it is a short one.
#[inline(always)]
pub(crate) fn put_short(out: &mut Out, value: Value) -> bool {
    let Some(text) = layout::short_string(value) else { return false };
    if !out.has_room(ROOM) {
        return false;
    }
    // SAFETY: there is room, and nothing runs meanwhile that could change the string.
    unsafe {
        let at = out.end();
        at.write(text.len as u8);
        text.copy_to(at.add(1));
        out.count(1 + text.len);
    }
    true
}

/// Writes a value with its tag, and gives how many bytes that takes, if it is one of those that [`put_value`] names.
///
/// # Safety
/// There is room for the tag, a length and a short String.
#[inline(always)]
unsafe fn write_value(at: *mut u8, value: Value) -> Option<usize> {
    // SAFETY: as the caller says.
    unsafe {
        if let Some(text) = layout::short_string(value) {
            at.write(field_type::LONG_STR);
            at.add(1).cast::<[u8; 4]>().write((text.len as u32).to_be_bytes());
            text.copy_to(at.add(5));
            return Some(5 + text.len);
        }
        if value & 1 == 1 {
            at.write(field_type::I64);
            at.add(1).cast::<[u8; 8]>().write(small_number(value).to_be_bytes());
            return Some(9);
        }
        match value {
            TRUE | FALSE => {
                at.cast::<[u8; 2]>().write([field_type::BOOL, u8::from(value == TRUE)]);
                Some(2)
            }
            NIL => {
                at.write(field_type::VOID);
                Some(1)
            }
            _ => None,
        }
    }
}
