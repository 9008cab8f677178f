//! Instances of methods, and when their attributes are read.
//!
//! One that came off the wire keeps a copy of its bytes in a block of memory and reads an attribute
//! when it is asked for it, once. One that was made with `new` has its attributes from the
//! beginning.

use std::ffi::{c_int, c_void};

use courser_codec::Reader;

use super::block::{self, Block};
use super::shape::{self, ATTRIBUTES_MAX, SHAPES, Starts};
use super::{CLASSES, Wire};
use crate::decode::{self, Source};
use crate::generated::METHODS;
use crate::ruby::api::{self, DataType, FREE_IMMEDIATELY, Value, WRITE_BARRIERS};
use crate::ruby::error::{Raise, Result, enter, ruby_method};
use crate::ruby::layout::{self, NIL, UNDEF, is_truthy};
use crate::ruby::value::{
    self, boolean, expect_string, intern, keep, small, string, tell_collector, unsigned,
};

static INSTANCE: DataType = DataType {
    name: c"AMQ::Protocol::Method".as_ptr(),
    mark: Some(mark),
    free: block::free as *const c_void,
    size: Some(size),
    compact: None,
    reserved: [std::ptr::null_mut()],
    parent: std::ptr::null(),
    data: std::ptr::null_mut(),
    flags: FREE_IMMEDIATELY | WRITE_BARRIERS,
};

unsafe extern "C-unwind" fn mark(block: *mut c_void) {
    // SAFETY: Ruby passes the block of an instance.
    for attribute in unsafe { Block::attributes(block.cast()) } {
        if *attribute != UNDEF {
            // SAFETY: every other word is a value.
            unsafe { api::rb_gc_mark(*attribute) };
        }
    }
}

unsafe extern "C-unwind" fn size(block: *const c_void) -> usize {
    // SAFETY: Ruby passes the block of an instance.
    unsafe { (*block.cast::<Block>()).whole_len() }
}

/// An instance with a copy of these bytes, its attributes not read yet.
#[inline]
fn instance(class: Value, at: usize, bytes: &[u8], starts: &Starts, encoding: c_int) -> Value {
    let block = Block::new(at, bytes, starts, encoding);
    // SAFETY: the block is whole, and only this instance has it.
    unsafe { api::rb_data_typed_object_wrap(class, block.cast(), &INSTANCE) }
}

/// An instance of what the bytes say; they follow the numbers of class and method.
#[inline]
pub(super) fn decode_bytes(
    class: Value,
    at: usize,
    bytes: &[u8],
    encoding: c_int,
) -> Result<Value> {
    let starts = shape::check(at, bytes)?;
    if class == CLASSES[at].get() {
        return Ok(instance(class, at, bytes, &starts, encoding));
    }
    let whole = instance(CLASSES[at].get(), at, bytes, &starts, encoding);
    of_subclass(class, whole, at)
}

/// A subclass may have an `initialize` of its own: it gets the attributes.
#[inline(never)]
fn of_subclass(class: Value, whole: Value, at: usize) -> Result<Value> {
    let mut values = [NIL; ATTRIBUTES_MAX];
    let mut count = 0;
    while count < SHAPES[at].attributes().len() {
        values[count] = attribute(whole, count)?;
        count += 1;
    }
    // SAFETY: so many values are there.
    Ok(unsafe { api::rb_class_new_instance(count as c_int, values.as_ptr(), class) })
}

pub(super) unsafe extern "C-unwind" fn decode<const AT: usize>(
    argc: c_int,
    argv: *const Value,
    class: Value,
) -> Value {
    // SAFETY: Ruby passes as many values as it says.
    let arguments = unsafe { value::arguments(argc, argv, 1, 1) };
    enter(|| {
        let data = expect_string(arguments[0]);
        // SAFETY: the bytes are checked and copied before Ruby code can run.
        let decoded =
            decode_bytes(class, AT, unsafe { layout::bytes(data) }, layout::encoding(data));
        keep(data);
        decoded
    })
}

/// The block of an instance; raises a TypeError for anything else.
#[inline(always)]
fn block_of(object: Value) -> *mut Block {
    value::memory_of(object, &INSTANCE).cast()
}

/// An attribute of an instance by its number; read if it was not yet.
#[inline(always)]
fn attribute(object: Value, number: usize) -> Result<Value> {
    let block = block_of(object);
    if layout::may_have_variables(object) {
        let found = variable(object, block, number);
        if found != UNDEF {
            return Ok(found);
        }
    }
    // SAFETY: the block lives as long as the object, which is kept below.
    let known = unsafe { Block::attributes(block) }.get(number).copied().unwrap_or(NIL);
    if known != UNDEF {
        return Ok(known);
    }
    let read = read_attribute(block, number)?;
    // SAFETY: the attribute is there, and the collector is told of what it refers to.
    unsafe {
        Block::attributes(block)[number] = read;
        tell_collector(object, read);
    }
    keep(object);
    Ok(read)
}

/// What was set by an `attr_writer` on a class that was reopened, or `UNDEF`.
#[inline(never)]
fn variable(object: Value, block: *const Block, number: usize) -> Value {
    // SAFETY: the block lives as long as the object.
    let at = usize::from(unsafe { (*block).at });
    let Some(name) = METHODS[at].attributes().nth(number).and_then(|field| field.name) else {
        return UNDEF;
    };
    let mut variable = [b'@'; 32];
    let name = name.to_bytes();
    variable[1..=name.len()].copy_from_slice(name);
    let name = std::str::from_utf8(&variable[..=name.len()]).unwrap_or_default();
    let id = intern(name);
    // SAFETY: any object may be asked.
    unsafe {
        if is_truthy(rb_ivar_defined(object, id)) { api::rb_attr_get(object, id) } else { UNDEF }
    }
}

unsafe extern "C-unwind" {
    fn rb_ivar_defined(object: Value, name: api::Id) -> Value;
}

/// Reads an attribute out of the bytes. The object that owns the block has to be kept by the caller.
#[inline(always)]
fn read_attribute(block: *const Block, number: usize) -> Result<Value> {
    // SAFETY: the block lives as long as the object.
    let (at, encoding) = unsafe { (usize::from((*block).at), (*block).encoding) };
    let Some(attribute) = SHAPES[at].attributes().get(number) else { return Ok(NIL) };
    // SAFETY: as above, and there is such an attribute.
    let (bytes, start) = unsafe { Block::bytes(block, number) };
    if bytes.is_empty() {
        return Ok(NIL);
    }
    let mut reader = Reader::new(bytes.get(start..).unwrap_or_default());
    Ok(match attribute.wire {
        Wire::Bit => boolean(reader.u8()? >> attribute.bit & 1 != 0),
        Wire::Octet => small(reader.u8()?.into()),
        Wire::Short => small(reader.u16()?.into()),
        Wire::Long => unsigned(reader.u32()?.into()),
        Wire::LongLong => unsigned(reader.u64()?),
        Wire::ShortStr => string(reader.short_str()?.as_bytes(), encoding),
        Wire::LongStr => string(reader.long_str()?, encoding),
        // Only this instance has the block: nothing can change it while the table is read.
        Wire::Table => decode::table(reader.table()?, Source { encoding, string: NIL })?,
    })
}

unsafe extern "C-unwind" fn read<const NUMBER: usize>(object: Value) -> Value {
    enter(|| attribute(object, NUMBER))
}

/// Readers by the number of the attribute.
pub(super) static READERS: [api::Reader; ATTRIBUTES_MAX] = [
    read::<0>, read::<1>, read::<2>, read::<3>, read::<4>, read::<5>, read::<6>, read::<7>,
    read::<8>,
];

pub(super) unsafe extern "C-unwind" fn allocate<const AT: usize>(class: Value) -> Value {
    instance(class, AT, &[], &[0; ATTRIBUTES_MAX], value::BINARY)
}

pub(super) unsafe extern "C-unwind" fn initialize<const AT: usize>(
    argc: c_int,
    argv: *const Value,
    object: Value,
) -> Value {
    let count = SHAPES[AT].attributes().len() as c_int;
    // SAFETY: Ruby passes as many values as it says.
    let arguments = unsafe { value::arguments(argc, argv, count, count) };
    enter(|| {
        set_attributes(object, arguments);
        Ok(value::NOTHING)
    })
}

fn set_attributes(object: Value, values: &[Value]) {
    let block = block_of(object);
    // SAFETY: a frozen object raises; the block lives as long as the object, and the collector is told of each value.
    unsafe {
        api::rb_check_frozen(object);
        for (attribute, value) in Block::attributes(block).iter_mut().zip(values) {
            *attribute = *value;
            tell_collector(object, *value);
        }
    }
}

ruby_method! {
    /// `initialize_copy`: the attributes of another instance.
    pub(super) fn copy(arguments: 1..=1, object) {
        let (other, own) = (block_of(arguments[0]), block_of(object));
        // SAFETY: both blocks live as long as their objects, which are arguments.
        unsafe {
            if (*other).at != (*own).at {
                return Err(Raise::argument("initialize_copy wants an instance of the same class"));
            }
            for number in 0..Block::attributes(own).len() {
                let value = attribute(arguments[0], number)?;
                Block::attributes(own)[number] = value;
                tell_collector(object, value);
            }
        }
        Ok(object)
    }
}

ruby_method! {
    /// The attributes by name, for `inspect` and `Marshal`.
    pub(super) fn to_h(_arguments: 0..=0, object) {
        let block = block_of(object);
        // SAFETY: the block lives as long as the object; a Hash is made and filled.
        unsafe {
            let hash = api::rb_hash_new();
            for (number, field) in METHODS[usize::from((*block).at)].attributes().enumerate() {
                let name = field.name.and_then(|name| name.to_str().ok()).unwrap_or_default();
                api::rb_hash_aset(hash, value::symbol(name), attribute(object, number)?);
            }
            Ok(hash)
        }
    }
}
