//! The classes of methods: what `encode` writes, what `decode` gives, and when the attributes are read.
//!
//! Each class is a Ruby class; [`define_method_class`] gives it what does the work. An instance that came off the wire
//! keeps a copy of its octets in a block of memory and reads an attribute when it is asked for it, once. One that was
//! made with `new` has its attributes from the beginning.
//!
//! ```text
//! block: | Head | one word for each attribute, UNDEF as long as it was not read | octets |
//! ```

use std::ffi::{CStr, c_int, c_void};
use std::slice;

use courser_codec::{DecodeError, Reader, Sink};

use crate::classes::Slot;
use crate::decode::{self, Source};
use crate::encode::{put_long, put_short, put_table};
use crate::frame;
use crate::generated::{COUNT, METHODS, place};
use crate::out::Out;
use crate::publish;
use crate::ruby::api::{self, DataType, FREE_BY_RUBY, FREE_IMMEDIATELY, Value, WRITE_BARRIERS};
use crate::ruby::error::{Raise, Result, enter, ruby_method};
use crate::ruby::layout::{self, NIL, UNDEF, is_truthy};
use crate::ruby::value::{
    self, boolean, call, define_method, define_singleton_method, expect_string, intern,
    low_64_bits, small, string, unsigned,
};
use crate::table::keep;

/// How a field lies on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Bit,
    Octet,
    Short,
    Long,
    LongLong,
    ShortStr,
    LongStr,
    Table,
}

/// A field of a method.
pub(crate) struct Field {
    wire: Wire,
    /// What Ruby programs call it; without a name it is zero when written and skipped when read.
    name: Option<&'static CStr>,
}

impl Field {
    pub(crate) const fn named(wire: Wire, name: &'static CStr) -> Self {
        Self { wire, name: Some(name) }
    }

    pub(crate) const fn reserved(wire: Wire) -> Self {
        Self { wire, name: None }
    }
}

/// A method.
pub(crate) struct Spec {
    pub class_id: u16,
    pub method_id: u16,
    /// Whether its class has `encode`.
    pub encodes: bool,
    /// Whether its class has `decode`.
    pub decodes: bool,
    /// Whether a content follows it.
    pub content: bool,
    /// Whether `encode` takes a channel; else it is channel 0.
    pub takes_channel: bool,
    pub fields: &'static [Field],
}

impl Spec {
    /// The fields that Ruby programs see.
    fn attributes(&self) -> impl Iterator<Item = &'static Field> {
        self.fields.iter().filter(|field| field.name.is_some())
    }
}

/// The Ruby classes, in the order of [`METHODS`].
static CLASSES: [Slot; COUNT] = [const { Slot::empty() }; COUNT];

/// The method class that a payload names, and its description.
#[inline]
pub(crate) fn of_payload(payload: &[u8]) -> Option<(Value, usize)> {
    let &[class_high, class_low, method_high, method_low, ..] = payload else { return None };
    let at = place(
        u16::from_be_bytes([class_high, class_low]),
        u16::from_be_bytes([method_high, method_low]),
    )?;
    let class = CLASSES[at].get();
    (class != 0).then_some((class, at))
}

// ------------------------------------------------------------------------------------------------------------ writing

/// Writes the numbers of class and method, and the fields.
#[inline(always)]
fn put_method(out: &mut Out, spec: &Spec, arguments: &[Value]) -> Result<()> {
    out.put_u32(u32::from(spec.class_id) << 16 | u32::from(spec.method_id));
    let mut arguments = arguments.iter().copied();
    // Consecutive bits share an octet, the first is the lowest.
    let (mut bits, mut bit_count) = (0_u8, 0_u32);
    for field in spec.fields {
        let argument = if field.name.is_some() { arguments.next() } else { None };
        if field.wire == Wire::Bit {
            bits |= u8::from(argument.is_some_and(is_truthy)) << bit_count;
            bit_count += 1;
            continue;
        }
        if bit_count > 0 {
            out.put_u8(bits);
            (bits, bit_count) = (0, 0);
        }
        match argument {
            Some(argument) => put_field(out, field.wire, argument)?,
            None => put_zero(out, field.wire),
        }
    }
    if bit_count > 0 {
        out.put_u8(bits);
    }
    Ok(())
}

#[inline(always)]
fn put_field(out: &mut Out, wire: Wire, argument: Value) -> Result<()> {
    match wire {
        Wire::Bit => {}
        Wire::Octet => out.put_u8(low_64_bits(argument) as u8),
        Wire::Short => out.put_u16(low_64_bits(argument) as u16),
        Wire::Long => out.put_u32(low_64_bits(argument) as u32),
        Wire::LongLong => out.put_u64(low_64_bits(argument)),
        Wire::ShortStr => put_short(out, argument)?,
        Wire::LongStr => put_long(out, argument)?,
        Wire::Table => put_table(out, argument)?,
    }
    Ok(())
}

fn put_zero(out: &mut Out, wire: Wire) {
    match wire {
        Wire::Bit => {}
        Wire::Octet | Wire::ShortStr => out.put_u8(0),
        Wire::Short => out.put_u16(0),
        Wire::Long | Wire::LongStr | Wire::Table => out.put_u32(0),
        Wire::LongLong => out.put_u64(0),
    }
}

/// Writes basic.publish with these arguments, which is what is left of its `encode` without the content.
pub(crate) fn put_publish(out: &mut Out, arguments: &[Value; 4]) -> Result<()> {
    match place(publish::CLASS_ID, publish::METHOD_ID) {
        Some(at) => put_method(out, &METHODS[at], arguments),
        None => Err(Raise::runtime("basic.publish is not among the methods")),
    }
}

unsafe extern "C-unwind" fn encode<const AT: usize>(
    argc: c_int,
    argv: *const Value,
    _class: Value,
) -> Value {
    let spec = &METHODS[AT];
    let count = spec.attributes().count() as c_int + c_int::from(spec.takes_channel);
    // SAFETY: Ruby passes as many values as it says.
    let arguments = unsafe { value::arguments(argc, argv, count, count) };
    enter(|| {
        let (channel, fields) = match arguments.split_first() {
            Some((channel, fields)) if spec.takes_channel => (*channel, fields),
            _ => (small(0), arguments),
        };
        let mut out = Out::new();
        put_method(&mut out, spec, fields)?;
        Ok(frame::method_frame(out.finish(), channel))
    })
}

// ------------------------------------------------------------------------------------------------------------ reading

/// What a block begins with.
#[repr(C)]
struct Head {
    /// Place in [`METHODS`].
    at: u16,
    attributes: u16,
    /// The encoding of the octets.
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

    /// The octets behind the attributes.
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

/// An instance with a copy of these octets, its attributes not read yet.
#[inline]
fn instance(class: Value, at: usize, octets: &[u8], encoding: c_int) -> Value {
    let attributes = METHODS[at].attributes().count();
    let len = size_of::<Head>() + attributes * size_of::<Value>() + octets.len();
    // SAFETY: the block has room for the head, the attributes and the octets, which are all written before Ruby gets it.
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

/// Walks over the fields up to an attribute (all, if there is none of that number), and gives how many bits of the octet
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

/// Checks that the octets are the fields of a method, and nothing else.
#[inline(always)]
fn validate(spec: &Spec, octets: &[u8]) -> Result<()> {
    let mut reader = Reader::new(octets);
    walk(&mut reader, spec, usize::MAX)?;
    reader.finish()?;
    Ok(())
}

/// An instance of what the octets say; they follow the numbers of class and method.
#[inline]
pub(crate) fn decode_octets(
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

unsafe extern "C-unwind" fn decode<const AT: usize>(
    argc: c_int,
    argv: *const Value,
    class: Value,
) -> Value {
    // SAFETY: Ruby passes as many values as it says.
    let arguments = unsafe { value::arguments(argc, argv, 1, 1) };
    enter(|| {
        let data = expect_string(arguments[0]);
        // SAFETY: the octets are checked and copied before Ruby code can run.
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

/// Tells the collector that an object refers to a value from now on.
///
/// # Safety
/// `object` is one with write barriers.
pub(crate) unsafe fn tell_collector(object: Value, value: Value) {
    if value & 7 == 0 && is_truthy(value) {
        // SAFETY: both are objects.
        unsafe { api::rb_gc_writebarrier(object, value) };
    }
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

/// Reads an attribute out of the octets. The object that owns the block has to be kept by the caller.
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
static READERS: [api::Method; 9] = [
    read::<0>, read::<1>, read::<2>, read::<3>, read::<4>, read::<5>, read::<6>, read::<7>,
    read::<8>,
];

// ------------------------------------------------------------------------------------------------------------- making

unsafe extern "C-unwind" fn allocate<const AT: usize>(class: Value) -> Value {
    instance(class, AT, &[], value::BINARY)
}

unsafe extern "C-unwind" fn initialize<const AT: usize>(
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
    // SAFETY: the block lives as long as the object, and the collector is told of each value.
    unsafe {
        for (attribute, value) in Head::attributes(head).iter_mut().zip(values) {
            *attribute = *value;
            tell_collector(object, *value);
        }
    }
}

ruby_method! {
    /// `initialize_copy`: the attributes of another instance.
    fn copy(arguments: 1..=1, object) {
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
    fn to_h(_arguments: 0..=0, object) {
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

// ---------------------------------------------------------------------------------------------------------- the classes

/// What is different for each method.
struct Functions {
    encode: api::Method,
    decode: api::Method,
    initialize: api::Method,
    allocate: unsafe extern "C-unwind" fn(Value) -> Value,
}

const fn functions<const AT: usize>() -> Functions {
    Functions {
        encode: encode::<AT>,
        decode: decode::<AT>,
        initialize: initialize::<AT>,
        allocate: allocate::<AT>,
    }
}

macro_rules! table_of_functions {
    ($($at:literal)*) => {
        static FUNCTIONS: [Functions; COUNT] = [$(functions::<$at>()),*];
    };
}

table_of_functions! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
}

ruby_method! {
    /// `Native.define_method_class(class, class_id, method_id)`: makes a class that of a method.
    pub(crate) fn define_method_class(arguments: 3..=3, _native) {
        let class = arguments[0];
        let ids = (low_64_bits(arguments[1]) as u16, low_64_bits(arguments[2]) as u16);
        let Some(at) = place(ids.0, ids.1) else {
            return Err(Raise::argument("no method has these numbers"));
        };
        let (spec, functions) = (&METHODS[at], &FUNCTIONS[at]);
        CLASSES[at].set(class);
        if ids == (publish::CLASS_ID, publish::METHOD_ID) {
            publish::define(class);
        } else if spec.encodes {
            define_singleton_method(class, c"encode", functions.encode);
        }
        // SAFETY: `class` is a Class; the allocator makes instances of it.
        unsafe { api::rb_define_alloc_func(class, functions.allocate) };
        define_method(class, c"initialize_copy", copy);
        define_method(class, c"to_h", to_h);
        if spec.decodes {
            define_singleton_method(class, c"decode", functions.decode);
            define_method(class, c"initialize", functions.initialize);
            for (field, reader) in spec.attributes().zip(READERS) {
                if let Some(name) = field.name {
                    define_method(class, name, reader);
                }
            }
        }
        Ok(class)
    }
}

/// Decodes the payload of a method frame.
pub(crate) fn decode_payload(payload: &[u8], encoding: c_int) -> Result<Value> {
    let Some((class, at)) = of_payload(payload) else {
        return Err(Raise::malformed("the payload names no method that is known"));
    };
    if !METHODS[at].decodes {
        // What Ruby says of a method that is not there.
        return Ok(call(class, "decode", &[NIL]));
    }
    decode_octets(class, at, &payload[4..], encoding)
}
