//! `AMQ::Protocol::Parser`
use crate::ruby::error::ruby_method;
ruby_method! {
    pub(crate) fn define_parser(arguments: 1..=1, _native) { Ok(arguments[0]) }
}
