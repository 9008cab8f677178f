//! Ruby classes and symbols that the extension refers to, looked up once.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::ruby::api::{self, Value};
use crate::ruby::value::{class_named, symbol};

/// A Ruby object that is set while the extension loads and stays for good.
pub(crate) struct Slot(AtomicUsize);

impl Slot {
    pub(crate) const fn empty() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The object, 0 before it is set.
    #[inline(always)]
    pub(crate) fn get(&self) -> Value {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets the object, and keeps it alive and in its place.
    pub(crate) fn set(&self, object: Value) {
        // SAFETY: any object may be kept.
        unsafe { api::rb_gc_register_mark_object(object) };
        self.0.store(object, Ordering::Relaxed);
    }
}

/// `AMQ::Protocol::MalformedInputError`
pub(crate) static MALFORMED: Slot = Slot::empty();
/// `AMQ::Protocol::PanicError`
pub(crate) static PANIC: Slot = Slot::empty();
/// `AMQ::Protocol::EmptyResponseError`
pub(crate) static EMPTY_RESPONSE: Slot = Slot::empty();
/// `AMQ::Protocol::FrameTypeError`
pub(crate) static FRAME_TYPE: Slot = Slot::empty();
/// `AMQ::Protocol::Float32Bit`
pub(crate) static FLOAT_32_BIT: Slot = Slot::empty();
/// `Time`
pub(crate) static TIME: Slot = Slot::empty();
/// `String`
pub(crate) static STRING: Slot = Slot::empty();

pub(crate) static SYMBOL_METHOD: Slot = Slot::empty();
pub(crate) static SYMBOL_HEADERS: Slot = Slot::empty();
pub(crate) static SYMBOL_BODY: Slot = Slot::empty();
pub(crate) static SYMBOL_HEARTBEAT: Slot = Slot::empty();

/// Looks everything up.
pub(crate) fn load() {
    MALFORMED.set(class_named(c"AMQ::Protocol::MalformedInputError"));
    PANIC.set(class_named(c"AMQ::Protocol::PanicError"));
    EMPTY_RESPONSE.set(class_named(c"AMQ::Protocol::EmptyResponseError"));
    FRAME_TYPE.set(class_named(c"AMQ::Protocol::FrameTypeError"));
    FLOAT_32_BIT.set(class_named(c"AMQ::Protocol::Float32Bit"));
    TIME.set(class_named(c"Time"));
    STRING.set(class_named(c"String"));
    SYMBOL_METHOD.set(symbol("method"));
    SYMBOL_HEADERS.set(symbol("headers"));
    SYMBOL_BODY.set(symbol("body"));
    SYMBOL_HEARTBEAT.set(symbol("heartbeat"));
}
