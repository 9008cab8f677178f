//! AMQP 0-9-1 on the wire: frames, methods, content headers, properties and field tables.
//!
//! Everything that is read is a borrowed view of the input: no copy, no allocation, and for tables
//! and properties no work before the caller asks. Owned forms ([`ShortString`], [`FieldTable`],
//! [`OwnedProperties`]) are there for what has to stay. Everything that is written goes into a
//! [`Sink`], and `encoded_len` is exact.
//!
//! ```
//! use courser_codec::{Frame, Method, basic};
//!
//! let mut out = Vec::new(); let publish = basic::Publish { routing_key:
//! "orders".try_into().unwrap(), ..Default::default() }; publish.write_frame(1, &mut out);
//!
//! let (frame, used) = Frame::parse(&out, 131_072).unwrap().expect("a whole frame");
//! assert_eq!((frame.channel, used), (1, out.len()));
//! assert_eq!(Method::decode(frame.payload), Ok(Method::BasicPublish(publish)));
//! ```
//!
//! Any input gives a value or an error that says offset and cause. Nothing here does I/O, reads a
//! clock or trusts a length that the input does not hold; tables nest at most [`MAX_NESTING`] deep.
#![no_std]

extern crate alloc;

mod content;
mod error;
mod field;
mod field_encode;
mod frame;
mod generated;
mod properties;
mod reader;
mod short_str;
mod short_string;
mod sink;
mod table;
mod table_writer;
mod value;

pub use content::{CONTENT_HEADER_FIXED_LEN, ContentHeader, write_content_header_frame};
pub use error::{DecodeError, DecodeErrorKind, FrameError};
pub use field::{FieldTable, FieldValue};
pub use frame::{
    Frame, FrameKind, FrameMark, HEARTBEAT_FRAME, begin_frame, end_frame, write_body_frame,
    write_frame, write_frame_header,
};
pub use generated::constants::{self, *};
pub use generated::method::Method;
pub use generated::properties::{OwnedProperties, Properties};
pub use generated::{basic, channel, confirm, connection, exchange, queue, tx};
pub use properties::RawProperties;
pub use reader::Reader;
pub use short_str::{ShortStr, TooLong};
pub use short_string::ShortString;
pub use sink::{Sink, SliceSink, Window};
pub use table::{Array, ArrayIter, Table, TableIter};
pub use table_writer::TableWriter;
pub use value::{Decimal, MAX_NESTING, Value};
