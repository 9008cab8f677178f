//! Where encoded bytes go.
//!
//! An encoder knows its exact length before it writes. It asks the sink for a [`Window`] of that
//! length, once, and fills it: one growth of the buffer for a whole frame, and plain copies into
//! it.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

use crate::ShortStr;

/// [`Sink::put_with`] without a closure: a closure that is too large to go in line would pass the
/// window by memory.
macro_rules! put_filled {
    ($sink:expr, $len:expr, |$window:ident| $fill:expr) => {{
        let len = $len;
        let mut filled = $sink.window(len);
        let start = filled.start;
        let $window = &mut filled;
        $fill;
        filled.assert_full(start, len);
        // SAFETY: this window of `len` bytes is the last one, and it is full.
        unsafe { $sink.advance(len) };
    }};
}
pub(crate) use put_filled;

/// Takes bytes and puts them one behind the other.
pub trait Sink {
    /// Room for `len` more bytes, which count when [`Sink::advance`] says so.
    fn window(&mut self, len: usize) -> Window<'_>;

    /// Counts the bytes in.
    ///
    /// # Safety
    /// The window that was asked for last was one of `len` bytes, and all of it is written.
    unsafe fn advance(&mut self, len: usize);

    /// Appends what `fill` writes into a window of `len` bytes.
    ///
    /// # Panics
    /// When `fill` writes more than `len` bytes, or less.
    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>))
    where
        Self: Sized,
    {
        put_filled!(self, len, |window| fill(window));
    }

    /// Appends these bytes.
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        put_filled!(self, bytes.len(), |window| window.put(bytes));
    }

    /// Appends a short string with its byte of length.
    #[inline]
    fn put_short_str(&mut self, text: ShortStr<'_>) {
        put_filled!(self, text.encoded_len(), |window| window.put_short_str(text));
    }

    /// Appends one byte.
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends two bytes, the high one first.
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    /// Appends four bytes, the highest first.
    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Appends eight bytes, the highest first.
    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn window(&mut self, len: usize) -> Window<'_> {
        self.reserve(len);
        Window::new(&mut self.spare_capacity_mut()[..len])
    }

    #[inline]
    unsafe fn advance(&mut self, len: usize) {
        // SAFETY: the window lay directly behind the old length, and the caller has filled it.
        unsafe { self.set_len(self.len() + len) };
    }
}

#[cfg(feature = "bytes")]
impl Sink for bytes::BytesMut {
    #[inline]
    fn window(&mut self, len: usize) -> Window<'_> {
        self.reserve(len);
        Window::new(&mut self.spare_capacity_mut()[..len])
    }

    #[inline]
    unsafe fn advance(&mut self, len: usize) {
        // SAFETY: the window lay directly behind the old length, and the caller has filled it.
        unsafe { self.set_len(self.len() + len) };
    }
}

/// A piece of memory that an encoder fills from the front, a sink itself.
///
/// What does not fit is a bug of the encoder and panics: the window is as long as the encoder said.
pub struct Window<'w> {
    /// What is still to be written: all behind what is.
    room: &'w mut [MaybeUninit<u8>],
    /// Address of the first byte, by which a window is known from any other.
    pub(crate) start: usize,
}

impl<'w> Window<'w> {
    /// A window over memory that need not have been written yet.
    #[inline]
    #[must_use]
    pub fn new(room: &'w mut [MaybeUninit<u8>]) -> Self {
        let start = room.as_ptr().addr();
        Self { room, start }
    }

    /// A window over memory that has been written.
    #[inline]
    #[must_use]
    pub fn over(room: &'w mut [u8]) -> Self {
        // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and a window never writes uninitialised
        // bytes.
        Self::new(unsafe { &mut *(core::ptr::from_mut(room) as *mut [MaybeUninit<u8>]) })
    }

    /// Takes `len` bytes off the front of the room.
    #[inline]
    fn take(&mut self, len: usize) -> &mut [MaybeUninit<u8>] {
        let room = core::mem::take(&mut self.room);
        let Some((head, rest)) = room.split_at_mut_checked(len) else { overflow() };
        self.room = rest;
        head
    }

    /// Checks that this is the window that began at `start`, and that all of its `len` bytes are
    /// written. A closure that is lent a window can put another in its place: two of the same bytes
    /// cannot be there at once, so begin and end tell.
    #[inline]
    pub(crate) fn assert_full(&self, start: usize, len: usize) {
        let is_this = self.start == start && self.room.as_ptr().addr() == start + len;
        if !is_this || !self.room.is_empty() {
            underflow();
        }
    }
}

/// Copies all of `bytes` to `room`, which is as long.
///
/// Names and keys of a few bytes are most of what is written. Up to 32 bytes go by two moves that
/// overlap in the middle, without a call.
#[inline(always)]
fn copy(bytes: &[u8], room: &mut [MaybeUninit<u8>]) {
    let len = bytes.len();
    if len > 32 {
        room.write_copy_of_slice(bytes);
    } else if len >= 16 {
        copy_ends::<16>(bytes, room);
    } else if len >= 8 {
        copy_ends::<8>(bytes, room);
    } else if len >= 4 {
        copy_ends::<4>(bytes, room);
    } else if len >= 2 {
        copy_ends::<2>(bytes, room);
    } else if len == 1 {
        room[0].write(bytes[0]);
    }
}

/// Copies the first and the last `N` bytes, which is all when there are at most twice as many.
#[inline(always)]
fn copy_ends<const N: usize>(bytes: &[u8], room: &mut [MaybeUninit<u8>]) {
    if let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) {
        let end = bytes.len();
        room[..N].write_copy_of_slice(first);
        room[end - N..end].write_copy_of_slice(last);
    }
}

#[cold]
#[inline(never)]
fn overflow() -> ! {
    panic!("an encoder wrote more than it had announced");
}

#[cold]
#[inline(never)]
fn underflow() -> ! {
    panic!("an encoder wrote less than it had announced");
}

impl Sink for Window<'_> {
    /// The front of the window. It is taken off by `advance` only, when it is known to be filled.
    #[inline]
    fn window(&mut self, len: usize) -> Window<'_> {
        let Some(front) = self.room.get_mut(..len) else { overflow() };
        Window::new(front)
    }

    #[inline]
    unsafe fn advance(&mut self, len: usize) {
        self.take(len);
    }

    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        copy(bytes, self.take(bytes.len()));
    }

    #[inline]
    fn put_short_str(&mut self, text: ShortStr<'_>) {
        let [len, room @ ..] = self.take(text.encoded_len()) else { overflow() };
        len.write(text.wire_len());
        copy(text.as_bytes(), room);
    }
}

/// A sink over a buffer of fixed size.
///
/// Bytes beyond its end are dropped and remembered, so that a caller checks once, at the end, with
/// [`SliceSink::finish`].
pub struct SliceSink<'b> {
    buffer: &'b mut [u8],
    len: usize,
    /// Takes what does not fit; empty as long as everything did.
    dropped: Vec<u8>,
}

impl<'b> SliceSink<'b> {
    /// A sink that fills `buffer` from the front.
    #[must_use]
    pub const fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0, dropped: Vec::new() }
    }

    /// What was written, or `None` if it did not fit.
    #[must_use]
    pub fn finish(self) -> Option<&'b [u8]> {
        if self.dropped.is_empty() { self.buffer.get(..self.len) } else { None }
    }
}

impl Sink for SliceSink<'_> {
    #[inline]
    fn window(&mut self, len: usize) -> Window<'_> {
        match self.buffer.get_mut(self.len..) {
            Some(rest) if len <= rest.len() && self.dropped.is_empty() => {
                Window::over(&mut rest[..len])
            }
            _ => {
                self.dropped.resize(self.dropped.len().max(len), 0);
                Window::over(&mut self.dropped[..len])
            }
        }
    }

    #[inline]
    unsafe fn advance(&mut self, len: usize) {
        if self.dropped.is_empty() {
            self.len += len;
        }
    }
}
