//! Frames: `AMQ::Protocol::Frame` and the classes below it.

use std::ffi::c_void;

use courser_codec::{FrameKind, RawProperties, constants};

use crate::classes::{self, Slot};
use crate::decode::Source;
use crate::generated::METHODS;
use crate::method::{self, tell_collector};
use crate::properties;
use crate::ruby::api::{self, DataType, FREE_BY_RUBY, FREE_IMMEDIATELY, Value, WRITE_BARRIERS};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, Kind, NIL, TRUE};
use crate::ruby::value::{
    binary, binary_room, boolean, call, define_method, define_singleton_method, expect_string,
    intern, small, small_number, to_s, unsigned,
};
use crate::table::keep;

/// Octets of a frame before its payload, and with the end marker.
const HEADER_LEN: usize = 7;
const OVERHEAD: usize = 8;

/// What a frame object holds.
#[repr(C)]
struct Frame {
    payload: Value,
    channel: Value,
    /// The decoded properties of a header frame, or UNDEF.
    decoded: Value,
}

static FRAME: DataType = DataType {
    name: c"AMQ::Protocol::Frame".as_ptr(),
    mark: Some(mark),
    free: FREE_BY_RUBY,
    size: Some(size),
    compact: None,
    reserved: [std::ptr::null_mut()],
    parent: std::ptr::null(),
    data: std::ptr::null_mut(),
    flags: FREE_IMMEDIATELY | WRITE_BARRIERS,
};

static METHOD_FRAME: Slot = Slot::empty();
static HEADER_FRAME: Slot = Slot::empty();
static BODY_FRAME: Slot = Slot::empty();
static HEARTBEAT_FRAME: Slot = Slot::empty();
static TYPES_OPTIONS: Slot = Slot::empty();

unsafe extern "C-unwind" fn mark(frame: *mut c_void) {
    // SAFETY: Ruby passes what a frame object holds; each word is a value or UNDEF.
    unsafe {
        let Frame { payload, channel, decoded } = *frame.cast::<Frame>();
        api::rb_gc_mark(payload);
        api::rb_gc_mark(channel);
        if decoded != layout::UNDEF {
            api::rb_gc_mark(decoded);
        }
    }
}

unsafe extern "C-unwind" fn size(_: *const c_void) -> usize {
    size_of::<Frame>()
}

/// A frame object of a class.
#[inline]
fn new_frame(class: Value, payload: Value, channel: Value) -> Value {
    // SAFETY: the memory is filled before Ruby gets it; a new object needs no write barrier.
    unsafe {
        let frame = api::ruby_xmalloc(size_of::<Frame>()).cast::<Frame>();
        frame.write(Frame { payload, channel, decoded: layout::UNDEF });
        let object = api::rb_data_typed_object_wrap(class, frame.cast(), &FRAME);
        keep(payload);
        object
    }
}

pub(crate) fn method_frame(payload: Value, channel: Value) -> Value {
    new_frame(METHOD_FRAME.get(), payload, channel)
}

pub(crate) fn header_frame(payload: Value, channel: Value) -> Value {
    new_frame(HEADER_FRAME.get(), payload, channel)
}

pub(crate) fn body_frame(payload: Value, channel: Value) -> Value {
    new_frame(BODY_FRAME.get(), payload, channel)
}

/// What a frame object holds; raises a TypeError for anything else.
#[inline(always)]
fn frame_of(object: Value) -> *mut Frame {
    // SAFETY: any object may be asked.
    unsafe { api::rb_check_typeddata(object, &FRAME).cast() }
}

/// The payload of a frame object as a string.
#[inline(always)]
fn payload_of(object: Value) -> Value {
    // SAFETY: the frame lives as long as its object.
    expect_string(unsafe { (*frame_of(object)).payload })
}

// ---------------------------------------------------------------------------------------------------------- encoding

/// The number of a frame type that is named by a symbol or is a number.
fn find_kind(value: Value) -> Result<FrameKind> {
    let found = match layout::kind(value) {
        Kind::SmallInteger => {
            u8::try_from(small_number(value)).ok().and_then(FrameKind::from_octet)
        }
        Kind::Symbol if value == classes::SYMBOL_METHOD.get() => Some(FrameKind::Method),
        Kind::Symbol if value == classes::SYMBOL_HEADERS.get() => Some(FrameKind::Header),
        Kind::Symbol if value == classes::SYMBOL_BODY.get() => Some(FrameKind::Body),
        Kind::Symbol if value == classes::SYMBOL_HEARTBEAT.get() => Some(FrameKind::Heartbeat),
        _ => None,
    };
    found.ok_or_else(unknown_type)
}

#[cold]
pub(crate) fn unknown_type() -> Raise {
    Raise::with(call(classes::FRAME_TYPE.get(), "new", &[TYPES_OPTIONS.get()]))
}

/// A channel number as it goes on the wire.
#[inline(always)]
pub(crate) fn channel_number(value: Value) -> Result<u16> {
    let number = (value & 1 == 1).then(|| u16::try_from(small_number(value)).ok()).flatten();
    number.ok_or_else(|| bad_channel(value))
}

#[cold]
fn bad_channel(value: Value) -> Raise {
    let inspected = to_s(call(value, "inspect", &[]));
    // SAFETY: the text is copied before Ruby code can run.
    let inspected = String::from_utf8_lossy(unsafe { layout::octets(inspected) });
    Raise::runtime(&format!(
        "Channel has to be 0 or an integer in range 1..65535 but was {inspected}"
    ))
}

#[inline(always)]
pub(crate) fn frame_header(kind: FrameKind, channel: u16, len: usize) -> Result<[u8; HEADER_LEN]> {
    let Ok(len) = u32::try_from(len) else {
        return Err(Raise::range("more than 4 GiB in a frame"));
    };
    let word = ((kind as u64) << 56 | u64::from(channel) << 40 | u64::from(len) << 8).to_be_bytes();
    let mut header = [0; HEADER_LEN];
    header.copy_from_slice(&word[..HEADER_LEN]);
    Ok(header)
}

/// A whole frame as a string.
#[inline(always)]
fn encode_frame(kind: FrameKind, payload: Value, channel: Value) -> Result<Value> {
    let channel = channel_number(channel)?;
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::octets(payload) }.len();
    let header = frame_header(kind, channel, len)?;
    let encoded = binary_room(OVERHEAD + len);
    // SAFETY: the string was just made and has room for all; nothing runs between taking the payload and copying it.
    unsafe {
        let room = layout::room(encoded);
        let octets = layout::octets(payload);
        room.copy_from_nonoverlapping(header.as_ptr(), HEADER_LEN);
        room.add(HEADER_LEN).copy_from_nonoverlapping(octets.as_ptr(), len);
        room.add(HEADER_LEN + len).write(constants::FRAME_END);
    }
    Ok(encoded)
}

/// Header, payload and end marker of a frame, each as a string.
fn encode_parts(kind: FrameKind, payload: Value, channel: Value) -> Result<Value> {
    let channel = channel_number(channel)?;
    // SAFETY: the length is taken at once.
    let header = frame_header(kind, channel, unsafe { layout::octets(payload) }.len())?;
    let parts = [binary(&header), binary_payload(payload), binary(&[constants::FRAME_END])];
    // SAFETY: there are three.
    Ok(unsafe { api::rb_ary_new_from_values(3, parts.as_ptr()) })
}

/// The payload labelled as binary: itself if it is, else a copy.
fn binary_payload(payload: Value) -> Value {
    if layout::encoding(payload) == 0 {
        return payload;
    }
    // SAFETY: the octets are copied before anything can change them.
    binary(unsafe { layout::octets(payload) })
}

/// The payload argument of `Frame.encode`.
fn checked_payload(payload: Value) -> Result<Value> {
    if payload == NIL {
        return Err(Raise::runtime("Payload can't be nil"));
    }
    Ok(expect_string(payload))
}

ruby_method! {
    fn encode(arguments: 3..=3, _class) {
        channel_number(arguments[2])?;
        let payload = checked_payload(arguments[1])?;
        encode_frame(find_kind(arguments[0])?, payload, arguments[2])
    }
}

ruby_method! {
    fn encode_to_array(arguments: 3..=3, _class) {
        channel_number(arguments[2])?;
        let payload = checked_payload(arguments[1])?;
        encode_parts(find_kind(arguments[0])?, payload, arguments[2])
    }
}

ruby_method! {
    fn encoded_payload(arguments: 1..=1, _class) {
        if !layout::is_string(arguments[0]) {
            return Ok(arguments[0]);
        }
        Ok(binary_payload(arguments[0]))
    }
}

ruby_method! {
    fn find_type(arguments: 1..=1, _class) {
        find_kind(arguments[0]).map(|kind| small(kind as i64))
    }
}

ruby_method! {
    /// A frame of the class that the type names.
    fn new(arguments: 1..=3, _class) {
        let class = class_of(find_kind(arguments[0])?);
        let &[_, payload, channel] = arguments else {
            // SAFETY: raises; nothing on this frame has to be dropped.
            unsafe { api::rb_error_arity(arguments.len() as _, 3, 3) };
        };
        Ok(new_frame(class, payload, channel))
    }
}

fn class_of(kind: FrameKind) -> Value {
    match kind {
        FrameKind::Method => METHOD_FRAME.get(),
        FrameKind::Header => HEADER_FRAME.get(),
        FrameKind::Body => BODY_FRAME.get(),
        FrameKind::Heartbeat => HEARTBEAT_FRAME.get(),
    }
}

/// A frame object for a frame that was read.
pub(crate) fn from_wire(kind: FrameKind, payload: Value, channel: u16) -> Value {
    new_frame(class_of(kind), payload, small(channel.into()))
}

// ---------------------------------------------------------------------------------------------------------- decoding

ruby_method! {
    /// The seven octets before a payload: type, channel, size.
    fn decode_header(arguments: 1..=1, _class) {
        if arguments[0] == NIL {
            return Err(empty_response());
        }
        let header = expect_string(arguments[0]);
        // SAFETY: no Ruby code runs while the header is read.
        let octets = unsafe { layout::octets(header) };
        let Some(&first) = octets.first() else { return Err(empty_response()) };
        let Some(kind) = FrameKind::from_octet(first) else { return Err(unknown_type()) };
        let Some(&[_, channel_high, channel_low, ref len @ ..]) = octets.first_chunk::<HEADER_LEN>() else {
            return Err(Raise::malformed("a frame's header has seven octets"));
        };
        let symbol = match kind {
            FrameKind::Method => &classes::SYMBOL_METHOD,
            FrameKind::Header => &classes::SYMBOL_HEADERS,
            FrameKind::Body => &classes::SYMBOL_BODY,
            FrameKind::Heartbeat => &classes::SYMBOL_HEARTBEAT,
        };
        let channel = u16::from_be_bytes([channel_high, channel_low]);
        let values = [symbol.get(), small(channel.into()), unsigned(u32::from_be_bytes(*len).into())];
        // SAFETY: there are three.
        Ok(unsafe { api::rb_ary_new_from_values(3, values.as_ptr()) })
    }
}

#[cold]
fn empty_response() -> Raise {
    Raise::with(call(classes::EMPTY_RESPONSE.get(), "new", &[]))
}

// ---------------------------------------------------------------------------------------------------------- instances

unsafe extern "C-unwind" fn allocate(class: Value) -> Value {
    new_frame(class, NIL, NIL)
}

ruby_method! {
    fn initialize(arguments: 2..=2, object) {
        set(object, arguments[0], arguments[1]);
        Ok(NIL)
    }
}

fn set(object: Value, payload: Value, channel: Value) {
    // SAFETY: the frame lives as long as its object, and the collector is told of both values.
    unsafe {
        let frame = frame_of(object);
        frame.write(Frame { payload, channel, decoded: layout::UNDEF });
        tell_collector(object, payload);
        tell_collector(object, channel);
    }
}

ruby_method! {
    fn copy(arguments: 1..=1, object) {
        // SAFETY: the other frame lives as long as its object, an argument.
        let (payload, channel) = unsafe { ((*frame_of(arguments[0])).payload, (*frame_of(arguments[0])).channel) };
        set(object, payload, channel);
        Ok(object)
    }
}

ruby_method! {
    fn payload(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        Ok(unsafe { (*frame_of(object)).payload })
    }
}

ruby_method! {
    fn channel(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        Ok(unsafe { (*frame_of(object)).channel })
    }
}

ruby_method! {
    fn set_channel(arguments: 1..=1, object) {
        // SAFETY: the frame lives as long as its object, and the collector is told of the value.
        unsafe {
            (*frame_of(object)).channel = arguments[0];
            tell_collector(object, arguments[0]);
        }
        Ok(arguments[0])
    }
}

ruby_method! {
    fn payload_size(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: the length is taken at once.
        Ok(unsigned(unsafe { layout::octets(payload) }.len() as u64))
    }
}

/// The kind of frame that an object is, by its class.
fn kind_of(object: Value) -> FrameKind {
    let class = layout::class_pointer(object);
    for (slot, kind) in [
        (&METHOD_FRAME, FrameKind::Method),
        (&HEADER_FRAME, FrameKind::Header),
        (&BODY_FRAME, FrameKind::Body),
        (&HEARTBEAT_FRAME, FrameKind::Heartbeat),
    ] {
        if class == slot.get() {
            return kind;
        }
    }
    kind_of_subclass(object)
}

#[cold]
fn kind_of_subclass(object: Value) -> FrameKind {
    for (slot, kind) in [
        (&HEADER_FRAME, FrameKind::Header),
        (&BODY_FRAME, FrameKind::Body),
        (&HEARTBEAT_FRAME, FrameKind::Heartbeat),
    ] {
        if crate::ruby::value::is_a(object, slot.get()) {
            return kind;
        }
    }
    FrameKind::Method
}

ruby_method! {
    fn encode_instance(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        let channel = unsafe { (*frame_of(object)).channel };
        encode_frame(kind_of(object), payload_of(object), channel)
    }
}

ruby_method! {
    fn encode_instance_to_array(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        let channel = unsafe { (*frame_of(object)).channel };
        encode_parts(kind_of(object), payload_of(object), channel)
    }
}

macro_rules! encoders_of_classes {
    ($($name:ident: $kind:ident),*) => {
        $(ruby_method! {
            fn $name(arguments: 2..=2, _class) {
                channel_number(arguments[1])?;
                encode_frame(FrameKind::$kind, checked_payload(arguments[0])?, arguments[1])
            }
        })*
    };
}

encoders_of_classes! { encode_method: Method, encode_header: Header, encode_body: Body }

ruby_method! {
    fn encode_heartbeat(_arguments: 0..=0, _class) {
        Ok(binary(&courser_codec::HEARTBEAT_FRAME))
    }
}

// ------------------------------------------------------------------------------------------------------- method frames

ruby_method! {
    fn method_class(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: no Ruby code runs while the numbers are read.
        Ok(method::of_payload(unsafe { layout::octets(payload) }).map_or(NIL, |(class, _)| class))
    }
}

ruby_method! {
    fn method_is_final(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: no Ruby code runs while the numbers are read.
        match method::of_payload(unsafe { layout::octets(payload) }) {
            Some((_, at)) => Ok(boolean(!METHODS[at].content)),
            None => Err(Raise::malformed("the payload names no method that is known")),
        }
    }
}

ruby_method! {
    fn decode_method_payload(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: the octets are copied before Ruby code can run.
        let decoded = method::decode_payload(unsafe { layout::octets(payload) }, layout::encoding(payload));
        keep(payload);
        decoded
    }
}

// ------------------------------------------------------------------------------------------------------- header frames

/// Class, weight and body size, and the properties behind them.
///
/// # Safety
/// The slice ends before Ruby code runs that could change the payload.
unsafe fn header_fields<'a>(payload: Value) -> Result<(u16, u16, u64, &'a [u8])> {
    // SAFETY: passed on.
    let octets = unsafe { layout::octets(payload) };
    let Some((&[class0, class1, weight0, weight1, ref body_size @ ..], properties)) =
        octets.split_first_chunk::<12>()
    else {
        return Err(Raise::malformed("a content header has at least twelve octets"));
    };
    let class_id = u16::from_be_bytes([class0, class1]);
    Ok((
        class_id,
        u16::from_be_bytes([weight0, weight1]),
        u64::from_be_bytes(*body_size),
        properties,
    ))
}

ruby_method! {
    fn body_size(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(_, _, body_size, _)| unsigned(body_size))
    }
}

ruby_method! {
    fn weight(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(_, weight, ..)| small(weight.into()))
    }
}

ruby_method! {
    fn klass_id(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(class_id, ..)| small(class_id.into()))
    }
}

ruby_method! {
    fn decoded_properties(_arguments: 0..=0, object) {
        let frame = frame_of(object);
        // SAFETY: the frame lives as long as its object; the payload is kept, and locked where Ruby code runs.
        unsafe {
            if (*frame).decoded != layout::UNDEF {
                return Ok((*frame).decoded);
            }
            let payload = payload_of(object);
            let (.., encoded) = header_fields(payload)?;
            let source = Source { encoding: layout::encoding(payload), string: payload };
            let decoded = properties::to_hash(RawProperties::from_encoded(encoded)?, source)?;
            (*frame).decoded = decoded;
            tell_collector(object, decoded);
            keep(payload);
            Ok(decoded)
        }
    }
}

// ---------------------------------------------------------------------------------------------------------- the classes

ruby_method! {
    fn is_final(_arguments: 0..=0, _object) { Ok(TRUE) }
}

ruby_method! {
    fn is_not_final(_arguments: 0..=0, _object) { Ok(layout::FALSE) }
}

ruby_method! {
    /// `Native.define_frames(Frame, FrameSubclass, MethodFrame, HeaderFrame, BodyFrame, HeartbeatFrame)`
    pub(crate) fn define_frames(arguments: 6..=6, _native) {
        let &[frame, subclass, method, header, body, heartbeat] = arguments else { return Ok(NIL) };
        METHOD_FRAME.set(method);
        HEADER_FRAME.set(header);
        BODY_FRAME.set(body);
        HEARTBEAT_FRAME.set(heartbeat);
        // SAFETY: a class is a module, and `frame.rb` has set the constant.
        TYPES_OPTIONS.set(unsafe { api::rb_const_get(frame, intern("TYPES_OPTIONS")) });
        // Each of them: a class takes its allocator over when it is made, and these are made already.
        for class in &arguments[1..] {
            // SAFETY: it is a Class; the allocator makes instances of it.
            unsafe { api::rb_define_alloc_func(*class, allocate) };
        }
        define_frame(frame);
        define_subclass(subclass);
        define_singleton_method(method, c"encode", encode_method);
        define_method(method, c"method_class", method_class);
        define_method(method, c"final?", method_is_final);
        define_method(method, c"decode_payload", decode_method_payload);
        define_singleton_method(header, c"encode", encode_header);
        define_method(header, c"final?", is_not_final);
        define_method(header, c"body_size", body_size);
        define_method(header, c"weight", weight);
        define_method(header, c"klass_id", klass_id);
        define_method(header, c"properties", decoded_properties);
        define_method(header, c"decode_payload", decoded_properties);
        define_singleton_method(body, c"encode", encode_body);
        define_method(body, c"final?", is_not_final);
        define_method(body, c"decode_payload", payload);
        define_singleton_method(heartbeat, c"encode", encode_heartbeat);
        Ok(frame)
    }
}

fn define_frame(class: Value) {
    define_singleton_method(class, c"encode", encode);
    define_singleton_method(class, c"encode_to_array", encode_to_array);
    define_singleton_method(class, c"encoded_payload", encoded_payload);
    define_singleton_method(class, c"find_type", find_type);
    define_singleton_method(class, c"decode_header", decode_header);
    define_singleton_method(class, c"new", new);
    define_method(class, c"final?", is_final);
}

fn define_subclass(class: Value) {
    define_method(class, c"initialize", initialize);
    define_method(class, c"initialize_copy", copy);
    define_method(class, c"payload", payload);
    define_method(class, c"channel", channel);
    define_method(class, c"channel=", set_channel);
    define_method(class, c"size", payload_size);
    define_method(class, c"encode", encode_instance);
    define_method(class, c"encode_to_array", encode_instance_to_array);
}
