//! Memory behind objects that come and go with every message.
//!
//! Most are freed soon, and another one of the same kind comes. So each thread keeps some pieces of memory for the next
//! objects, which costs less than having each made and counted by Ruby.

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::cell::Cell;
use std::ptr;
use std::thread::LocalKey;

/// Pieces that a thread keeps.
const KEPT_MAX: usize = 512;

/// Pieces of `SIZE` bytes that wait for an object; each begins with the address of the next.
pub(crate) struct Pool<const SIZE: usize> {
    first: Cell<*mut u8>,
    count: Cell<usize>,
}

impl<const SIZE: usize> Pool<SIZE> {
    const LAYOUT: Layout = {
        assert!(SIZE >= size_of::<*mut u8>(), "a piece has room for an address");
        match Layout::from_size_align(SIZE, align_of::<usize>()) {
            Ok(layout) => layout,
            Err(_) => panic!("no memory is that large"),
        }
    };

    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(ptr::null_mut()), count: Cell::new(0) }
    }

    #[inline(always)]
    fn take(&self) -> Option<*mut u8> {
        let first = self.first.get();
        if first.is_null() {
            return None;
        }
        // SAFETY: a piece that is kept begins with an address, and only the pool has it.
        self.first.set(unsafe { *first.cast::<*mut u8>() });
        self.count.set(self.count.get() - 1);
        Some(first)
    }

    #[inline(always)]
    fn put(&self, piece: *mut u8) -> bool {
        if self.count.get() == KEPT_MAX {
            return false;
        }
        // SAFETY: the piece is not used any more, and has room for an address.
        unsafe { *piece.cast::<*mut u8>() = self.first.get() };
        self.first.set(piece);
        self.count.set(self.count.get() + 1);
        true
    }
}

impl<const SIZE: usize> Drop for Pool<SIZE> {
    fn drop(&mut self) {
        while let Some(piece) = self.take() {
            // SAFETY: it was allocated so.
            unsafe { dealloc(piece, Self::LAYOUT) };
        }
    }
}

/// A piece of memory, aligned for words.
#[inline(always)]
pub(crate) fn piece<const SIZE: usize>(pool: &'static LocalKey<Pool<SIZE>>) -> *mut u8 {
    // A thread that ends keeps nothing any more.
    pool.try_with(Pool::take).ok().flatten().unwrap_or_else(|| {
        // SAFETY: the size is not 0.
        let piece = unsafe { alloc(Pool::<SIZE>::LAYOUT) };
        if piece.is_null() {
            handle_alloc_error(Pool::<SIZE>::LAYOUT);
        }
        piece
    })
}

/// Takes a piece back.
///
/// # Safety
/// It came from [`piece`], from a pool of the same size in any thread, and nothing refers to it any more.
#[inline(always)]
pub(crate) unsafe fn put_back<const SIZE: usize>(
    pool: &'static LocalKey<Pool<SIZE>>,
    piece: *mut u8,
) {
    if !pool.try_with(|pool| pool.put(piece)).unwrap_or(false) {
        // SAFETY: as the caller says.
        unsafe { dealloc(piece, Pool::<SIZE>::LAYOUT) };
    }
}
