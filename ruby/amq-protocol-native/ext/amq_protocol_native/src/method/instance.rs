//! Instances of methods, and when their attributes are read.
//!
//! One that came off the wire keeps a copy of its bytes in a block of memory and reads an attribute
//! when it is asked for it, once. One that was made with `new` has its attributes from the
//! beginning.
//!
//! ```text
//! block: | Head | one word for each attribute, UNDEF as long as it was not read | bytes |
//! ```

use std::ffi::{c_int, c_void};
use std::slice;

use courser_codec::{DecodeError, Reader};

use super::{CLASSES, Field, Spec, Wire};
use crate::decode::{self, Source};
use crate::generated::METHODS;
use crate::ruby::api::{self, DataType, FREE_BY_RUBY, FREE_IMMEDIATELY, Value, WRITE_BARRIERS};
use crate::ruby::error::{Raise, Result, enter, ruby_method};
use crate::ruby::layout::{self, NIL, UNDEF, is_truthy};
use crate::ruby::value::{
    self, boolean, expect_string, intern, keep, small, string, tell_collector, unsigned,
};

/// What a block begins with.
#[repr(C)]
struct Head {
    /// Place in [`METHODS`].
    at: u16,
    attributes: u16,
    /// The encoding of the bytes.
    encoding: c_int,
    octets: usize,
}

static INSTANCE: DataType = DataType {
    name: c"AMQ::Protocol::Method".as_ptr(),
    mark: Some(mark),
    free: FREE_BY_RUBY,
    size: Some(size),
    compact: None,
    reserved: [std::ptr::null_mut()],
    parent: std::ptr::null(),
    data: std::ptr::null_mut(),
    flags: FREE_IMMEDIATELY | WRITE_BARRIERS,
};

impl Head {
    /// The attributes behind the head of a block.
    ///
    /// # Safety
    /// `head` is that of a whole block, which nobody else writes meanwhile.
    #[inline(always)]
    unsafe fn attributes<'a>(head: *mut Self) -> &'a mut [Value] {
        // SAFETY: this is how a block is laid out.
        unsafe { slice::from_raw_parts_mut(head.add(1).cast(), usize::from((*head).attributes)) }
    }

    /// The bytes behind the attributes.
    ///
    /// # Safety
    /// As for [`Head::attributes`].
    #[inline(always)]
    unsafe fn octets<'a>(head: *const Self) -> &'a [u8] {
        // SAFETY: this is how a block is laid out.
        unsafe {
            let words = head.add(1).cast::<Value>();
            slice::from_raw_parts(words.add(usize::from((*head).attributes)).cast(), (*head).octets)
        }
    }
}

unsafe extern "C-unwind" fn mark(block: *mut c_void) {
    // SAFETY: Ruby passes the block of an instance.
    for attribute in unsafe { Head::attributes(block.cast()) } {
        if *attribute != UNDEF {
            // SAFETY: every other word is a value.
            unsafe { api::rb_gc_mark(*attribute) };
        }
    }
}

unsafe extern "C-unwind" fn size(block: *const c_void) -> usize {
    // SAFETY: Ruby passes the block of an instance.
    let head = unsafe { &*block.cast::<Head>() };
    size_of::<Head>() + usize::from(head.attributes) * size_of::<Value>() + head.octets
}

/// An instance with a copy of these bytes, its attributes not read yet.
#[inline]
fn instance(class: Value, at: usize, octets: &[u8], encoding: c_int) -> Value {
    let attributes = METHODS[at].attributes().count();
    let len = size_of::<Head>() + attributes * size_of::<Value>() + octets.len();
    // SAFETY: the block has room for the head, the attributes and the bytes, which are all written before Ruby gets it.
    unsafe {
        let block = api::ruby_xmalloc(len);
        let head = block.cast::<Head>();
        head.write(Head {
            at: at as u16,
            attributes: attributes as u16,
            encoding,
            octets: octets.len(),
        });
        let words = head.add(1).cast::<Value>();
        for attribute in 0..attributes {
            words.add(attribute).write(UNDEF);
        }
        words.add(attributes).cast::<u8>().copy_from_nonoverlapping(octets.as_ptr(), octets.len());
        api::rb_data_typed_object_wrap(class, block, &INSTANCE)
    }
}

/// Takes a field off the reader; a bit is the one of `bits` that is meant.
#[inline(always)]
fn skip(reader: &mut Reader<'_>, wire: Wire) -> std::result::Result<(), DecodeError> {
    match wire {
        Wire::Bit | Wire::Octet => reader.u8().map(drop),
        Wire::Short => reader.u16().map(drop),
        Wire::Long => reader.u32().map(drop),
        Wire::LongLong => reader.u64().map(drop),
        Wire::ShortStr => reader.short_str().map(drop),
        Wire::LongStr | Wire::Table => reader.long_str().map(drop),
    }
}

/// Walks over the fields up to an attribute (all, if there is none of that number), and gives how many bits of the byte
/// that the reader stands at come before it.
#[inline(always)]
fn walk<'s>(
    reader: &mut Reader<'_>,
    spec: &'s Spec,
    attribute: usize,
) -> std::result::Result<Option<(&'s Field, u32)>, DecodeError> {
    let (mut named, mut bit) = (0, 0);
    for (index, field) in spec.fields.iter().enumerate() {
        if field.name.is_some() {
            if named == attribute {
                return Ok(Some((field, bit)));
            }
            named += 1;
        }
        let next_is_bit = spec.fields.get(index + 1).is_some_and(|next| next.wire == Wire::Bit);
        if field.wire == Wire::Bit && next_is_bit {
            bit += 1;
        } else {
            skip(reader, field.wire)?;
            bit = 0;
        }
    }
    Ok(None)
}

/// Checks that the bytes are the fields of a method, and nothing else.
#[inline(always)]
fn validate(spec: &Spec, octets: &[u8]) -> Result<()> {
    let mut reader = Reader::new(octets);
    walk(&mut reader, spec, usize::MAX)?;
    reader.finish()?;
    Ok(())
}

/// An instance of what the bytes say; they follow the numbers of class and method.
#[inline]
pub(super) fn decode_octets(
    class: Value,
    at: usize,
    octets: &[u8],
    encoding: c_int,
) -> Result<Value> {
    validate(&METHODS[at], octets)?;
    if class == CLASSES[at].get() {
        return Ok(instance(class, at, octets, encoding));
    }
    of_subclass(class, at, octets, encoding)
}

/// A subclass may have an `initialize` of its own: it gets the attributes.
#[inline(never)]
fn of_subclass(class: Value, at: usize, octets: &[u8], encoding: c_int) -> Result<Value> {
    let whole = instance(CLASSES[at].get(), at, octets, encoding);
    let mut values = [NIL; 16];
    let mut count = 0;
    while count < METHODS[at].attributes().count() {
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
            decode_octets(class, AT, unsafe { layout::octets(data) }, layout::encoding(data));
        keep(data);
        decoded
    })
}

/// The block of an instance; raises a TypeError for anything else.
#[inline(always)]
fn head_of(object: Value) -> *mut Head {
    // SAFETY: any object may be asked.
    unsafe { api::rb_check_typeddata(object, &INSTANCE).cast() }
}

/// An attribute of an instance by its number; read if it was not yet.
#[inline(always)]
fn attribute(object: Value, number: usize) -> Result<Value> {
    let head = head_of(object);
    if layout::may_have_variables(object) {
        let found = variable(object, head, number);
        if found != UNDEF {
            return Ok(found);
        }
    }
    // SAFETY: the block lives as long as the object, which is kept below.
    let known = unsafe { Head::attributes(head) }.get(number).copied().unwrap_or(NIL);
    if known != UNDEF {
        return Ok(known);
    }
    let read = read_attribute(head, number)?;
    // SAFETY: the attribute is there, and the collector is told of what it refers to.
    unsafe {
        Head::attributes(head)[number] = read;
        tell_collector(object, read);
    }
    keep(object);
    Ok(read)
}

/// What somebody set by an `attr_writer` on a class that was reopened, or `UNDEF`.
#[inline(never)]
fn variable(object: Value, head: *const Head, number: usize) -> Value {
    // SAFETY: the block lives as long as the object.
    let at = usize::from(unsafe { (*head).at });
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
fn read_attribute(head: *const Head, number: usize) -> Result<Value> {
    // SAFETY: the block lives as long as the object.
    let (spec, encoding, octets) =
        unsafe { (&METHODS[usize::from((*head).at)], (*head).encoding, Head::octets(head)) };
    if octets.is_empty() {
        return Ok(NIL);
    }
    let mut reader = Reader::new(octets);
    let Some((field, bit)) = walk(&mut reader, spec, number)? else { return Ok(NIL) };
    Ok(match field.wire {
        Wire::Bit => boolean(reader.u8()? >> bit & 1 != 0),
        Wire::Octet => small(reader.u8()?.into()),
        Wire::Short => small(reader.u16()?.into()),
        Wire::Long => unsigned(reader.u32()?.into()),
        Wire::LongLong => unsigned(reader.u64()?),
        Wire::ShortStr => string(reader.short_str()?.as_bytes(), encoding),
        Wire::LongStr => string(reader.long_str()?, encoding),
        // The block is nobody else's: nothing can change it while the table is read.
        Wire::Table => decode::table(reader.table()?, Source { encoding, string: NIL })?,
    })
}

unsafe extern "C-unwind" fn read<const NUMBER: usize>(
    argc: c_int,
    argv: *const Value,
    object: Value,
) -> Value {
    // SAFETY: Ruby passes as many values as it says.
    let _ = unsafe { value::arguments(argc, argv, 0, 0) };
    enter(|| attribute(object, NUMBER))
}

/// Readers by the number of the attribute.
pub(super) static READERS: [api::Method; 9] = [
    read::<0>, read::<1>, read::<2>, read::<3>, read::<4>, read::<5>, read::<6>, read::<7>,
    read::<8>,
];

pub(super) unsafe extern "C-unwind" fn allocate<const AT: usize>(class: Value) -> Value {
    instance(class, AT, &[], value::BINARY)
}

pub(super) unsafe extern "C-unwind" fn initialize<const AT: usize>(
    argc: c_int,
    argv: *const Value,
    object: Value,
) -> Value {
    let count = METHODS[AT].attributes().count() as c_int;
    // SAFETY: Ruby passes as many values as it says.
    let arguments = unsafe { value::arguments(argc, argv, count, count) };
    enter(|| {
        set_attributes(object, arguments);
        Ok(value::NOTHING)
    })
}

fn set_attributes(object: Value, values: &[Value]) {
    let head = head_of(object);
    // SAFETY: a frozen object raises; the block lives as long as the object, and the collector is told of each value.
    unsafe {
        api::rb_check_frozen(object);
        for (attribute, value) in Head::attributes(head).iter_mut().zip(values) {
            *attribute = *value;
            tell_collector(object, *value);
        }
    }
}

ruby_method! {
    /// `initialize_copy`: the attributes of another instance.
    pub(super) fn copy(arguments: 1..=1, object) {
        let (other, own) = (head_of(arguments[0]), head_of(object));
        // SAFETY: both blocks live as long as their objects, which are arguments.
        unsafe {
            if (*other).at != (*own).at {
                return Err(Raise::argument("initialize_copy wants an instance of the same class"));
            }
            for number in 0..usize::from((*own).attributes) {
                let value = attribute(arguments[0], number)?;
                Head::attributes(own)[number] = value;
                tell_collector(object, value);
            }
        }
        Ok(object)
    }
}

ruby_method! {
    /// The attributes by name, for `inspect` and `Marshal`.
    pub(super) fn to_h(_arguments: 0..=0, object) {
        let head = head_of(object);
        // SAFETY: the block lives as long as the object; a Hash is made and filled.
        unsafe {
            let hash = api::rb_hash_new();
            for (number, field) in METHODS[usize::from((*head).at)].attributes().enumerate() {
                let name = field.name.and_then(|name| name.to_str().ok()).unwrap_or_default();
                api::rb_hash_aset(hash, value::symbol(name), attribute(object, number)?);
            }
            Ok(hash)
        }
    }
}
