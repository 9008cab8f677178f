//! Frames: `AMQ::Protocol::Frame` and the classes below it.
//!
//! [`wire`] is what `Frame` itself does, encoding and decoding; [`object`] what frame objects do.

mod object;
mod wire;

pub(crate) use wire::{channel_number, frame_header, from_wire, unknown_type};

use std::ffi::c_void;

use crate::classes::Slot;
use crate::pool::{self, Pool};
use crate::ruby::api::{self, DataType, FREE_IMMEDIATELY, Value, WRITE_BARRIERS};
use crate::ruby::error::ruby_method;
use crate::ruby::layout::{self, NIL};
use crate::ruby::value::{
    self, define_method, define_singleton_method, expect_string, intern, keep,
};

/// Bytes of a frame before its payload, and with the end marker.
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

thread_local! {
    static POOL: Pool<{ size_of::<Frame>() }> = const { Pool::new() };
}

static FRAME: DataType = DataType {
    name: c"AMQ::Protocol::Frame".as_ptr(),
    mark: Some(mark),
    free: free as *const c_void,
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

unsafe extern "C-unwind" fn free(frame: *mut c_void) {
    // SAFETY: Ruby passes what a frame object held, which `new_frame` has made.
    unsafe { pool::put_back(&POOL, frame.cast()) };
}

unsafe extern "C-unwind" fn size(_: *const c_void) -> usize {
    size_of::<Frame>()
}

/// A frame object of a class.
#[inline]
fn new_frame(class: Value, payload: Value, channel: Value) -> Value {
    // SAFETY: the memory is filled before Ruby gets it; a new object needs no write barrier.
    unsafe {
        let frame = pool::piece(&POOL).cast::<Frame>();
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
    value::memory_of(object, &FRAME).cast()
}

/// The payload of a frame object as a string.
#[inline(always)]
fn payload_of(object: Value) -> Value {
    // SAFETY: the frame lives as long as its object.
    expect_string(unsafe { (*frame_of(object)).payload })
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
            unsafe { api::rb_define_alloc_func(*class, object::allocate) };
        }
        define_frame(frame);
        define_subclass(subclass);
        define_singleton_method(method, c"encode", object::encode_method);
        define_method(method, c"method_class", object::method_class);
        define_method(method, c"final?", object::method_is_final);
        define_method(method, c"decode_payload", object::decode_method_payload);
        define_singleton_method(header, c"encode", object::encode_header);
        define_method(header, c"final?", object::is_not_final);
        define_method(header, c"body_size", object::body_size);
        define_method(header, c"weight", object::weight);
        define_method(header, c"klass_id", object::klass_id);
        define_method(header, c"properties", object::decoded_properties);
        define_method(header, c"decode_payload", object::decoded_properties);
        define_singleton_method(body, c"encode", object::encode_body);
        define_method(body, c"final?", object::is_not_final);
        define_method(body, c"decode_payload", object::payload);
        define_singleton_method(heartbeat, c"encode", object::encode_heartbeat);
        Ok(frame)
    }
}

fn define_frame(class: Value) {
    define_singleton_method(class, c"encode", wire::encode);
    define_singleton_method(class, c"encode_to_array", wire::encode_to_array);
    define_singleton_method(class, c"encoded_payload", wire::encoded_payload);
    define_singleton_method(class, c"find_type", wire::find_type);
    define_singleton_method(class, c"decode_header", wire::decode_header);
    define_singleton_method(class, c"new", wire::new);
    define_singleton_method(class, c"encode_all", object::encode_all);
    define_method(class, c"final?", object::is_final);
}

fn define_subclass(class: Value) {
    define_method(class, c"initialize", object::initialize);
    define_method(class, c"initialize_copy", object::copy);
    define_method(class, c"payload", object::payload);
    define_method(class, c"channel", object::channel);
    define_method(class, c"channel=", object::set_channel);
    define_method(class, c"size", object::payload_size);
    define_method(class, c"encode", object::encode_instance);
    define_method(class, c"encode_to_array", object::encode_instance_to_array);
}
