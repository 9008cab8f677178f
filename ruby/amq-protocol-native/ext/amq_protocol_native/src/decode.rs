//! Field tables to Ruby values.

use std::ffi::{c_int, c_long};
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use courser_codec::{Array, Decimal, MAX_NESTING, Table, Value as Wire};

use crate::decimal;
use crate::keys;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result};
use crate::ruby::layout::{FALSE, NIL, TRUE, is_truthy};
use crate::ruby::value::{integer, small, string, unsigned};

/// Values that are handed to Ruby at once: 64 entries of a table.
const BATCH: usize = 128;

/// What the bytes that are read lie in.
#[derive(Clone, Copy)]
pub(crate) struct Source {
    /// The encoding that strings get: that of the bytes.
    pub encoding: c_int,
    /// The string that holds the bytes, if Ruby code could change it.
    pub string: Value,
}

/// A table as a Hash.
pub(crate) fn table(table: Table<'_>, source: Source) -> Result<Value> {
    table_at(table, source, 0)
}

fn table_at(table: Table<'_>, source: Source, depth: usize) -> Result<Value> {
    check_depth(depth)?;
    // SAFETY: makes a Hash.
    let hash = unsafe { api::rb_hash_new() };
    let mut batch = Batch::new();
    for entry in table.iter() {
        let (name, value) = entry?;
        if batch.is_full() {
            batch.insert_into(hash);
        }
        // The key first, and both in the batch: whatever is made next must not be the end of them.
        let key = keys::key(name.as_bytes(), source.encoding);
        batch.push(key);
        batch.push(value_at(value, source, depth + 1)?);
    }
    batch.insert_into(hash);
    Ok(hash)
}

/// Values on the stack, where the collector sees them, on their way into a Hash or an Array.
struct Batch {
    values: [MaybeUninit<Value>; BATCH],
    len: usize,
}

impl Batch {
    #[inline(always)]
    fn new() -> Self {
        Self { values: [MaybeUninit::uninit(); BATCH], len: 0 }
    }

    #[inline(always)]
    fn is_full(&self) -> bool {
        self.len == BATCH
    }

    #[inline(always)]
    fn push(&mut self, value: Value) {
        self.values[self.len].write(value);
        self.len += 1;
    }

    /// Moves keys and values into a Hash; a key that comes again replaces.
    #[inline(always)]
    fn insert_into(&mut self, hash: Value) {
        if self.len != 0 {
            // SAFETY: so many values were written.
            unsafe {
                api::rb_hash_bulk_insert(self.len as c_long, self.values.as_ptr().cast(), hash)
            };
            self.len = 0;
        }
    }

    /// Moves the values behind those of an Array, or into a new one of the right size where there is none yet.
    #[inline(always)]
    fn append_to(&mut self, array: Option<Value>) -> Value {
        let (len, values) = (self.len as c_long, self.values.as_ptr().cast());
        self.len = 0;
        // SAFETY: so many values were written.
        unsafe {
            match array {
                Some(array) => api::rb_ary_cat(array, values, len),
                None => api::rb_ary_new_from_values(len, values),
            }
        }
    }
}

/// An array as an Array.
pub(crate) fn array_at(array: Array<'_>, source: Source, depth: usize) -> Result<Value> {
    check_depth(depth)?;
    let mut ruby = None;
    let mut batch = Batch::new();
    for element in array.iter() {
        let element = element?;
        if batch.is_full() {
            ruby = Some(batch.append_to(ruby));
        }
        batch.push(value_at(element, source, depth + 1)?);
    }
    Ok(batch.append_to(ruby))
}

fn check_depth(depth: usize) -> Result<()> {
    if depth < MAX_NESTING {
        return Ok(());
    }
    Err(Raise::malformed(&format!("tables and arrays are nested deeper than {MAX_NESTING}")))
}

/// A value; `depth` tables and arrays are around it.
#[inline]
pub(crate) fn value_at(value: Wire<'_>, source: Source, depth: usize) -> Result<Value> {
    Ok(match value {
        Wire::LongStr(bytes) | Wire::Bytes(bytes) => string(bytes, source.encoding),
        Wire::I64(number) => integer(number),
        Wire::I32(number) => integer(number.into()),
        Wire::U32(number) => integer(number.into()),
        Wire::I16(number) => small(number.into()),
        Wire::U16(number) => small(number.into()),
        Wire::I8(number) => small(number.into()),
        Wire::U8(number) => small(number.into()),
        Wire::Bool(true) => TRUE,
        Wire::Bool(false) => FALSE,
        Wire::Void => NIL,
        // SAFETY: makes a Float.
        Wire::F64(number) => unsafe { api::rb_float_new(number) },
        // SAFETY: makes a Float.
        Wire::F32(number) => unsafe { api::rb_float_new(number.into()) },
        Wire::Timestamp(seconds) => time(seconds),
        Wire::Decimal(number) => decimal_from(number, source),
        Wire::Table(table) => table_at(table, source, depth)?,
        Wire::Array(array) => array_at(array, source, depth)?,
    })
}

/// Seconds since 1970 as a Time.
pub(crate) fn time(seconds: u64) -> Value {
    // SAFETY: both make a Time.
    unsafe {
        match i64::try_from(seconds) {
            Ok(seconds) => api::rb_time_new(seconds, 0),
            Err(_) => api::rb_time_num_new(unsigned(seconds), NIL),
        }
    }
}

unsafe extern "C-unwind" {
    fn rb_ensure(
        body: unsafe extern "C-unwind" fn(Value) -> Value,
        argument: Value,
        finally: unsafe extern "C-unwind" fn(Value) -> Value,
        finally_argument: Value,
    ) -> Value;
    fn rb_obj_frozen_p(object: Value) -> Value;
    fn rb_str_locktmp(string: Value) -> Value;
    fn rb_str_unlocktmp(string: Value) -> Value;
}

/// Strings that are locked, and for how many threads that read them: Ruby's own lock can be had once only.
static LOCKED: Mutex<Vec<(Value, usize)>> = Mutex::new(Vec::new());

fn locked() -> MutexGuard<'static, Vec<(Value, usize)>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A BigDecimal. Making one is the one step that calls Ruby's methods, and so the one during which another thread could
/// change the string that is being read: it is locked meanwhile, unless it is frozen.
#[inline(never)]
fn decimal_from(number: Decimal, source: Source) -> Value {
    // SAFETY: any object may be asked.
    if source.string == NIL || is_truthy(unsafe { rb_obj_frozen_p(source.string) }) {
        return decimal::from_wire(number);
    }
    let mut number = number;
    lock(source.string);
    // SAFETY: `number` outlives the call, and the string is unlocked whatever happens.
    unsafe { rb_ensure(locked_decimal, (&raw mut number) as Value, unlock, source.string) }
}

unsafe extern "C-unwind" fn locked_decimal(number: Value) -> Value {
    // SAFETY: `decimal_from` passes a pointer to one.
    decimal::from_wire(unsafe { *(number as *const Decimal) })
}

/// Locks a string, or counts one more that reads it. Only one Ractor has a string that is not frozen, and no other
/// thread of it runs in here: the guard is gone before anything is raised.
fn lock(string: Value) {
    if let Some((_, readers)) = locked().iter_mut().find(|(one, _)| *one == string) {
        *readers += 1;
        return;
    }
    // SAFETY: raises when other code has locked the string.
    unsafe { rb_str_locktmp(string) };
    locked().push((string, 1));
}

unsafe extern "C-unwind" fn unlock(string: Value) -> Value {
    let mut locked = locked();
    if let Some(at) = locked.iter().position(|(one, _)| *one == string) {
        locked[at].1 -= 1;
        if locked[at].1 == 0 {
            locked.swap_remove(at);
            drop(locked);
            // SAFETY: `lock` has locked it.
            unsafe { rb_str_unlocktmp(string) };
        }
    }
    NIL
}
