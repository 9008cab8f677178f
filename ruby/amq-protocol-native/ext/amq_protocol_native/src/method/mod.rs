//! The classes of methods: what `encode` writes, and what makes a Ruby class that of a method.
//!
//! Each class is a Ruby class; [`define_method_class`] gives it what does the work. What `decode`
//! gives is in [`instance`].

mod block;
mod instance;
mod shape;

use std::ffi::{CStr, c_int};

use courser_codec::Sink;

use crate::classes::Slot;
use crate::encode::{put_long, put_short, put_table};
use crate::frame;
use crate::generated::{COUNT, METHODS, place};
use crate::out::Out;
use crate::publish;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result, enter, ruby_method};
use crate::ruby::layout::{NIL, is_truthy};
use crate::ruby::value::{
    self, call, define_method, define_reader, define_singleton_method, low_64_bits, small,
};

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

/// Writes the numbers of class and method, and the fields.
#[inline(always)]
fn put_method(out: &mut Out, spec: &Spec, arguments: &[Value]) -> Result<()> {
    out.put_u32(u32::from(spec.class_id) << 16 | u32::from(spec.method_id));
    let mut arguments = arguments.iter().copied();
    // Consecutive bits share a byte, the first is the lowest.
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
        decode: instance::decode::<AT>,
        initialize: instance::initialize::<AT>,
        allocate: instance::allocate::<AT>,
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
        define_method(class, c"initialize_copy", instance::copy);
        define_method(class, c"to_h", instance::to_h);
        if spec.decodes {
            define_singleton_method(class, c"decode", functions.decode);
            define_method(class, c"initialize", functions.initialize);
            for (field, reader) in spec.attributes().zip(instance::READERS) {
                if let Some(name) = field.name {
                    define_reader(class, name, reader);
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
    instance::decode_bytes(class, at, &payload[4..], encoding)
}
