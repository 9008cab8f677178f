//! Where encoded bytes go before they become a Ruby string.
//!
//! What is small, nearly everything, is put together on the stack and copied into one string of the right size. What is
//! larger moves to a Ruby string that grows and becomes the result itself. Either way nothing has to be freed when an
//! exception jumps over it.

use std::ffi::c_long;
use std::mem::MaybeUninit;
use std::{ptr, slice};

use courser_codec::{Sink, Window};

use crate::classes;
use crate::ruby::api::Value;
use crate::ruby::error::{Raise, Result};
use crate::ruby::layout::{self, NIL};
use crate::ruby::value::{binary, keep};

/// Bytes on the stack.
const LOCAL: usize = 2048;

unsafe extern "C-unwind" {
    fn rb_obj_reveal(object: Value, class: Value) -> Value;
    fn rb_str_resize(string: Value, len: c_long) -> Value;
    fn rb_str_tmp_new(len: c_long) -> Value;
}

/// A sink that gives a Ruby string.
pub(crate) struct Out {
    len: usize,
    room: usize,
    /// The string that took over from `local`, or nil. Hidden from Ruby code until it is the result.
    string: Value,
    /// Where its bytes are, or null. They lie outside the object, so they stay there until it is resized.
    outside: *mut u8,
    local: [MaybeUninit<u8>; LOCAL],
}

impl Out {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self {
            len: 0,
            room: LOCAL,
            string: NIL,
            outside: ptr::null_mut(),
            local: [MaybeUninit::uninit(); LOCAL],
        }
    }

    /// Bytes that were written.
    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn start(&mut self) -> *mut u8 {
        if self.outside.is_null() { self.local.as_mut_ptr().cast() } else { self.outside }
    }

    /// Whether `len` more bytes fit as it is.
    #[inline(always)]
    pub(crate) fn has_room(&self, len: usize) -> bool {
        len <= self.room - self.len
    }

    /// Where the next byte goes.
    #[inline(always)]
    pub(crate) fn end(&mut self) -> *mut u8 {
        // SAFETY: so many bytes were written.
        unsafe { self.start().add(self.len) }
    }

    /// Counts bytes in that were written at the end.
    ///
    /// # Safety
    /// There was room for them, and they have a value.
    #[inline(always)]
    pub(crate) unsafe fn count(&mut self, len: usize) {
        self.len += len;
    }

    /// Makes sure that `len` more bytes fit: until they are written, no Ruby object is made.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, len: usize) {
        if !self.has_room(len) {
            self.grow(len);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        let room = (self.len + len).max(2 * self.room);
        // SAFETY: a hidden string is made or resized, which only this sink knows; what was written is kept.
        unsafe {
            if self.string == NIL {
                let string = rb_str_tmp_new(room as c_long);
                layout::room(string).copy_from_nonoverlapping(self.local.as_ptr().cast(), self.len);
                self.string = string;
            } else {
                rb_str_resize(self.string, room as c_long);
            }
            self.outside = layout::room(self.string);
        }
        self.room = room;
    }

    /// Everything that was written. It is there until [`Out::keep`].
    #[inline(always)]
    pub(crate) fn bytes(&mut self) -> &[u8] {
        // SAFETY: so many bytes were written.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }

    /// Keeps what was written up to here, where the collector sees it.
    #[inline(always)]
    pub(crate) fn keep(&self) {
        keep(self.string);
    }

    /// Leaves room for a length in four bytes, which [`Out::end_length`] fills in.
    #[inline(always)]
    pub(crate) fn begin_length(&mut self) -> usize {
        self.put_u32(0);
        self.len
    }

    /// Writes the number of bytes since [`Out::begin_length`] in front of them.
    #[inline(always)]
    pub(crate) fn end_length(&mut self, start: usize) -> Result<()> {
        let Ok(len) = u32::try_from(self.len - start) else {
            return Err(Raise::argument("more than 4 GiB cannot be encoded"));
        };
        self.patch(start - 4, &len.to_be_bytes());
        Ok(())
    }

    /// Replaces bytes that were written before.
    pub(crate) fn patch(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "a patch lies within what was written");
        // SAFETY: that was just checked.
        unsafe { self.start().add(at).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The bytes as a new binary string. Nothing may be written afterwards.
    #[inline(always)]
    pub(crate) fn finish(&mut self) -> Value {
        if self.string == NIL {
            return binary(self.bytes());
        }
        // SAFETY: the string is ours; from here on it is an ordinary one.
        unsafe {
            rb_str_resize(self.string, self.len as c_long);
            rb_obj_reveal(self.string, classes::STRING.get())
        }
    }
}

impl Sink for Out {
    #[inline(always)]
    fn window(&mut self, len: usize) -> Window<'_> {
        self.reserve(len);
        // SAFETY: `reserve` made room for `len` bytes behind those that were written.
        Window::new(unsafe { slice::from_raw_parts_mut(self.end().cast(), len) })
    }

    #[inline(always)]
    unsafe fn advance(&mut self, len: usize) {
        self.len += len;
    }

    /// As without this, but what is written in a few moves needs no window.
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: `reserve` made room for them.
        unsafe { self.end().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.len += bytes.len();
    }
}
