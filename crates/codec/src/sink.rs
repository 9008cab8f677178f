//! Where encoded octets go.
//!
//! An encoder knows its exact length before it writes. [`Sink::put_with`] hands that length over once and gives a
//! [`Window`] of so much room back: one growth of the buffer for a whole frame, and plain copies into it.

use alloc::vec::Vec;
use core::mem::MaybeUninit;

/// Takes octets and puts them one behind the other.
pub trait Sink {
    /// Appends these octets.
    fn put(&mut self, octets: &[u8]);

    /// Appends what `fill` writes into a window of `len` octets.
    ///
    /// # Panics
    /// When `fill` writes more than `len` octets, or less.
    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>))
    where
        Self: Sized,
    {
        let mut octets = Vec::with_capacity(len);
        octets.put_with(len, fill);
        self.put(&octets);
    }

    /// Appends one octet.
    #[inline]
    fn put_u8(&mut self, value: u8) {
        self.put(&[value]);
    }

    /// Appends two octets, the high one first.
    #[inline]
    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    /// Appends four octets, the highest first.
    #[inline]
    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    /// Appends eight octets, the highest first.
    #[inline]
    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>)) {
        self.reserve(len);
        let before = self.len();
        let mut window = Window::new(&mut self.spare_capacity_mut()[..len]);
        fill(&mut window);
        window.assert_full();
        // SAFETY: the window lies directly behind the old length, and it is full, so `len` more octets are written.
        unsafe { self.set_len(before + len) };
    }
}

#[cfg(feature = "bytes")]
impl Sink for bytes::BytesMut {
    #[inline]
    fn put(&mut self, octets: &[u8]) {
        self.extend_from_slice(octets);
    }

    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>)) {
        self.reserve(len);
        let before = self.len();
        let mut window = Window::new(&mut self.spare_capacity_mut()[..len]);
        fill(&mut window);
        window.assert_full();
        // SAFETY: the window lies directly behind the old length, and it is full, so `len` more octets are written.
        unsafe { self.set_len(before + len) };
    }
}

/// A piece of memory that an encoder fills from the front.
///
/// What does not fit is a bug of the encoder and panics: the window is as long as the encoder said.
pub struct Window<'w> {
    room: &'w mut [MaybeUninit<u8>],
}

impl<'w> Window<'w> {
    #[inline]
    fn new(room: &'w mut [MaybeUninit<u8>]) -> Self {
        Self { room }
    }

    /// Takes `len` octets off the front of the room.
    #[inline]
    fn advance(&mut self, len: usize) -> &mut [MaybeUninit<u8>] {
        let room = core::mem::take(&mut self.room);
        let Some((head, rest)) = room.split_at_mut_checked(len) else { overflow() };
        self.room = rest;
        head
    }

    #[inline]
    fn assert_full(&self) {
        if !self.room.is_empty() {
            underflow();
        }
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
    #[inline]
    fn put(&mut self, octets: &[u8]) {
        self.advance(octets.len()).write_copy_of_slice(octets);
    }

    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>)) {
        let mut window = Window::new(self.advance(len));
        fill(&mut window);
        window.assert_full();
    }
}

/// A sink over a buffer of fixed size.
///
/// Octets beyond its end are dropped and remembered, so that a caller checks once, at the end, with [`SliceSink::finish`].
pub struct SliceSink<'b> {
    buffer: &'b mut [u8],
    len: usize,
    overflowed: bool,
}

impl<'b> SliceSink<'b> {
    /// A sink that fills `buffer` from the front.
    #[must_use]
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0, overflowed: false }
    }

    /// What was written, or `None` if it did not fit.
    #[must_use]
    pub fn finish(self) -> Option<&'b [u8]> {
        if self.overflowed { None } else { self.buffer.get(..self.len) }
    }

    /// Room for `len` octets, or `None` from the first time on that there is not enough.
    fn advance(&mut self, len: usize) -> Option<&mut [u8]> {
        let end =
            self.len.checked_add(len).filter(|&end| !self.overflowed && end <= self.buffer.len());
        let Some(end) = end else {
            self.overflowed = true;
            return None;
        };
        let start = core::mem::replace(&mut self.len, end);
        Some(&mut self.buffer[start..end])
    }
}

impl Sink for SliceSink<'_> {
    #[inline]
    fn put(&mut self, octets: &[u8]) {
        if let Some(room) = self.advance(octets.len()) {
            room.copy_from_slice(octets);
        }
    }

    #[inline]
    fn put_with(&mut self, len: usize, fill: impl FnOnce(&mut Window<'_>)) {
        if let Some(room) = self.advance(len) {
            // SAFETY: `MaybeUninit<u8>` has the layout of `u8`, and a window never writes uninitialised octets.
            let room = unsafe { &mut *(core::ptr::from_mut(room) as *mut [MaybeUninit<u8>]) };
            let mut window = Window::new(room);
            fill(&mut window);
            window.assert_full();
        }
    }
}
