//! The memory behind an instance: its attributes, and the bytes that they are read from.
//!
//! ```text
//! | Block | one word for each attribute, UNDEF as long as it was not read | where each begins | bytes |
//! ```

use std::ffi::{c_int, c_void};
use std::slice;

use super::shape::{SHAPES, Starts};
use crate::pool::{self, Pool};
use crate::ruby::api::{self, Value};
use crate::ruby::layout::UNDEF;

/// What the memory begins with.
#[repr(C)]
pub(super) struct Block {
    /// Place in [`crate::generated::METHODS`].
    pub at: u16,
    attributes: u16,
    /// The encoding of the bytes.
    pub encoding: c_int,
    bytes: usize,
}

/// Up to this length, memory comes from a pool.
const SMALL: usize = 160;

thread_local! {
    static POOL: Pool<SMALL> = const { Pool::new() };
}

#[inline(always)]
fn room(len: usize) -> *mut u8 {
    if len <= SMALL {
        return pool::piece(&POOL);
    }
    // SAFETY: gives room, or raises.
    unsafe { api::ruby_xmalloc(len) }.cast()
}

impl Block {
    /// A block for an instance of a method, with a copy of its bytes and no attribute read yet.
    #[inline(always)]
    pub(super) fn new(at: usize, bytes: &[u8], starts: &Starts, encoding: c_int) -> *mut Self {
        let count = SHAPES[at].attributes().len();
        let len = Self::len(count, bytes.len());
        // SAFETY: there is room for all that is written.
        unsafe {
            let block = room(len).cast::<Self>();
            block.write(Self {
                at: at as u16,
                attributes: count as u16,
                encoding,
                bytes: bytes.len(),
            });
            let words = block.add(1).cast::<Value>();
            for number in 0..count {
                words.add(number).write(UNDEF);
            }
            let places = words.add(count).cast::<u32>();
            places.copy_from_nonoverlapping(starts.as_ptr(), count);
            places.add(count).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            block
        }
    }

    #[inline(always)]
    const fn len(attributes: usize, bytes: usize) -> usize {
        size_of::<Self>() + attributes * (size_of::<Value>() + size_of::<u32>()) + bytes
    }

    /// The bytes that the block takes.
    pub(super) const fn whole_len(&self) -> usize {
        Self::len(self.attributes as usize, self.bytes)
    }

    /// The attributes.
    ///
    /// # Safety
    /// `block` is a whole block, which no other code writes meanwhile.
    #[inline(always)]
    pub(super) unsafe fn attributes<'a>(block: *mut Self) -> &'a mut [Value] {
        // SAFETY: this is how a block is laid out.
        unsafe { slice::from_raw_parts_mut(block.add(1).cast(), usize::from((*block).attributes)) }
    }

    /// The bytes, and where in them an attribute begins.
    ///
    /// # Safety
    /// As for [`Block::attributes`]; there is an attribute of this number.
    #[inline(always)]
    pub(super) unsafe fn bytes<'a>(block: *const Self, number: usize) -> (&'a [u8], usize) {
        // SAFETY: this is how a block is laid out.
        unsafe {
            let count = usize::from((*block).attributes);
            let places = block.add(1).cast::<Value>().add(count).cast::<u32>();
            let bytes = slice::from_raw_parts(places.add(count).cast(), (*block).bytes);
            (bytes, *places.add(number) as usize)
        }
    }
}

/// Takes a block back whose instance is gone.
///
/// # Safety
/// It came from [`Block::new`].
pub(super) unsafe extern "C-unwind" fn free(block: *mut c_void) {
    // SAFETY: as the caller says.
    unsafe {
        if (*block.cast::<Block>()).whole_len() <= SMALL {
            pool::put_back(&POOL, block.cast());
        } else {
            api::ruby_xfree(block);
        }
    }
}
