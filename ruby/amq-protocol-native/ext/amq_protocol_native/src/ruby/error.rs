//! Failures: Rust's results become Ruby's exceptions where Ruby called, and panics do, too.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use courser_codec::{DecodeError, DecodeErrorKind};

use super::api::{self, Value};
use super::value::{class_named, text};
use crate::classes;

/// An exception that is to be raised when all Rust frames are left.
#[derive(Clone, Copy)]
pub(crate) struct Raise(Value);

/// What a fallible step gives.
pub(crate) type Result<T> = std::result::Result<T, Raise>;

impl Raise {
    /// An exception of a class, with a message.
    #[cold]
    pub(crate) fn new(class: Value, message: &str) -> Self {
        // SAFETY: makes an exception; the message is a string.
        Self(unsafe { api::rb_exc_new_str(class, text(message)) })
    }

    /// An exception object that is there already.
    pub(crate) fn with(exception: Value) -> Self {
        Self(exception)
    }

    #[cold]
    pub(crate) fn argument(message: &str) -> Self {
        Self::new(class_named(c"ArgumentError"), message)
    }

    #[cold]
    pub(crate) fn range(message: &str) -> Self {
        Self::new(class_named(c"RangeError"), message)
    }

    #[cold]
    pub(crate) fn type_error(message: &str) -> Self {
        Self::new(class_named(c"TypeError"), message)
    }

    #[cold]
    pub(crate) fn runtime(message: &str) -> Self {
        Self::new(class_named(c"RuntimeError"), message)
    }

    /// For bytes from the wire that cannot be read.
    #[cold]
    pub(crate) fn malformed(message: &str) -> Self {
        Self::new(classes::MALFORMED.get(), message)
    }
}

impl From<DecodeError> for Raise {
    #[cold]
    fn from(error: DecodeError) -> Self {
        // The message is dropped before anything is raised.
        let message = error.to_string();
        match error.kind {
            DecodeErrorKind::UnknownFieldType(_) => Self::argument(&message),
            _ => Self::malformed(&message),
        }
    }
}

/// Runs the body of a method that Ruby called: an `Err` and a panic are raised.
#[inline(always)]
pub(crate) fn enter(body: impl FnOnce() -> Result<Value>) -> Value {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        // SAFETY: nothing is left on this frame that would have to be dropped.
        Ok(Err(Raise(exception))) => unsafe { api::rb_exc_raise(exception) },
        Err(panic) => {
            let Raise(exception) = panicked(panic);
            // SAFETY: as above; the panic's payload is gone.
            unsafe { api::rb_exc_raise(exception) }
        }
    }
}

/// The exception for a panic.
#[cold]
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Raise {
    let reason = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(reason), _) => text(reason),
        (_, Some(reason)) => text(reason),
        _ => text("no reason given"),
    };
    drop(panic);
    // SAFETY: makes an exception; the reason is a string.
    Raise(unsafe { api::rb_exc_new_str(classes::PANIC.get(), reason) })
}

/// Defines a method for Ruby: `fn name(arguments: MIN..=MAX, receiver) { body }`, where the body gives a [`Result`].
macro_rules! ruby_method {
    ($(#[$meta:meta])* $vis:vis fn $name:ident($arguments:ident: $min:literal..=$max:literal, $receiver:ident) $body:block) => {
        $(#[$meta])*
        $vis unsafe extern "C-unwind" fn $name(
            argc: std::ffi::c_int,
            argv: *const $crate::ruby::api::Value,
            $receiver: $crate::ruby::api::Value,
        ) -> $crate::ruby::api::Value {
            // SAFETY: Ruby passes as many values as it says.
            let $arguments = unsafe { $crate::ruby::value::arguments(argc, argv, $min, $max) };
            $crate::ruby::error::enter(|| $body)
        }
    };
}
pub(crate) use ruby_method;
