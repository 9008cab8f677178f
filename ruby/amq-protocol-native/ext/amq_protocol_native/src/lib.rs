//! The codec of AMQP 0-9-1 as a Ruby extension: what the gem `amq-protocol-native` does on its hot path.
//!
//! Ruby files define the classes and their documentation and call `AMQ::Protocol::Native` to have the work done here.
//!
//! - [`ruby`] is Ruby's C interface; its rules hold for everything else.
//! - [`encode`] writes Ruby values into an [`out::Out`], [`decode`] makes them out of what the codec reads.
//! - [`table`], [`properties`], [`method`], [`frame`], [`publish`] and [`parser`] are what Ruby calls.

mod classes;
mod decimal;
mod decode;
mod encode;
mod frame;
mod generated;
mod keys;
mod method;
mod out;
mod parser;
mod plain;
mod pool;
mod properties;
mod publish;
mod ruby;
mod table;

use ruby::api;
use ruby::error::{Raise, enter};
use ruby::value::{class_named, define_singleton_method};

/// Called by Ruby when it loads the extension.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn Init_amq_protocol_native() {
    enter(|| {
        ruby::layout::check().map_err(|reason| Raise::new(class_named(c"LoadError"), reason))?;
        // SAFETY: what the extension shares between Ractors is set here, or one word that is read as a whole.
        unsafe { api::rb_ext_ractor_safe(true) };
        classes::load();
        keys::load();
        let native = class_named(c"AMQ::Protocol::Native");
        define_singleton_method(native, c"define_table", table::define_table);
        define_singleton_method(native, c"define_value_encoder", table::define_value_encoder);
        define_singleton_method(native, c"define_value_decoder", table::define_value_decoder);
        define_singleton_method(native, c"define_frames", frame::define_frames);
        define_singleton_method(native, c"define_method", publish::define_method);
        define_singleton_method(native, c"define_method_class", method::define_method_class);
        define_singleton_method(native, c"define_properties", properties::define_properties);
        define_singleton_method(native, c"define_parser", parser::define_parser);
        Ok(native)
    });
}
