//! `AMQ::Protocol::Parser`: bytes in, whole frames or whole commands out.
//!
//! What was fed lies in memory of the parser's own until it is taken. Contents of several channels can come interleaved:
//! the one that goes on is kept at hand, the others in a Hash by channel.

use std::ffi::{c_long, c_void};
use std::slice;

use courser_codec::{Frame, FrameError, FrameKind, RawProperties};

use crate::decode::Source;
use crate::frame::{self, unknown_type};
use crate::generated::METHODS;
use crate::method;
use crate::properties;
use crate::ruby::api::{self, DataType, FREE_IMMEDIATELY, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, NIL};
use crate::ruby::value::{
    BINARY, UTF8, binary, define_method, expect_string, keep, low_64_bits, small, string, unsigned,
};

/// Room that the first bytes get.
const FIRST_ROOM: usize = 16 * 1024;
/// Room for a body that comes in several frames is made in advance up to this size: the size that a header announces is
/// only a promise.
const ADVANCE_MAX: usize = 1 << 20;

unsafe extern "C-unwind" {
    fn rb_hash_delete(hash: Value, key: Value) -> Value;
    fn rb_str_buf_new(room: c_long) -> Value;
    fn rb_str_cat(string: Value, bytes: *const std::ffi::c_char, len: c_long) -> Value;
    fn ruby_xfree(memory: *mut c_void);
    fn ruby_xrealloc(memory: *mut c_void, size: usize) -> *mut c_void;
}

/// A content of which not all has come yet.
#[derive(Clone, Copy)]
struct Content {
    channel: u16,
    /// The method, or nil when there is no content.
    method: Value,
    /// The properties, or nil before the header has come.
    properties: Value,
    /// What has come of the body, or nil.
    body: Value,
    size: u64,
}

const NO_CONTENT: Content =
    Content { channel: 0, method: NIL, properties: NIL, body: NIL, size: 0 };

struct Parser {
    bytes: *mut u8,
    room: usize,
    len: usize,
    /// Bytes that were taken already.
    start: usize,
    frame_max: u32,
    body_max: u64,
    content: Content,
    /// Contents of other channels: `[method, properties, body, size]` by channel, or nil when there never were any.
    others: Value,
}

static PARSER: DataType = DataType {
    name: c"AMQ::Protocol::Parser".as_ptr(),
    mark: Some(mark),
    free: free as *const c_void,
    size: Some(size),
    compact: None,
    reserved: [std::ptr::null_mut()],
    parent: std::ptr::null(),
    data: std::ptr::null_mut(),
    // Without write barriers: every collection looks at the few parsers that there are.
    flags: FREE_IMMEDIATELY,
};

unsafe extern "C-unwind" fn mark(parser: *mut c_void) {
    // SAFETY: Ruby passes a parser.
    unsafe {
        let Parser { content: Content { method, properties, body, .. }, others, .. } =
            *parser.cast::<Parser>();
        [method, properties, body, others].into_iter().for_each(|value| api::rb_gc_mark(value));
    }
}

unsafe extern "C-unwind" fn free(parser: *mut c_void) {
    // SAFETY: Ruby passes a parser that is not used any more; both pieces of memory came from Ruby.
    unsafe {
        ruby_xfree((*parser.cast::<Parser>()).bytes.cast());
        ruby_xfree(parser);
    }
}

unsafe extern "C-unwind" fn size(parser: *const c_void) -> usize {
    // SAFETY: Ruby passes a parser.
    size_of::<Parser>() + unsafe { (*parser.cast::<Parser>()).room }
}

unsafe extern "C-unwind" fn allocate(class: Value) -> Value {
    // SAFETY: the memory is filled before Ruby gets it.
    unsafe {
        let parser = api::ruby_xmalloc(size_of::<Parser>()).cast::<Parser>();
        parser.write(Parser {
            bytes: std::ptr::null_mut(),
            room: 0,
            len: 0,
            start: 0,
            frame_max: 0,
            body_max: 0,
            content: NO_CONTENT,
            others: NIL,
        });
        api::rb_data_typed_object_wrap(class, parser.cast(), &PARSER)
    }
}

/// The parser of an object; raises a TypeError for anything else.
///
/// # Safety
/// The reference is not used across a call that could get another one.
unsafe fn parser_of<'a>(object: Value) -> &'a mut Parser {
    // SAFETY: any object may be asked; the caller answers for the rest.
    unsafe { &mut *api::rb_check_typeddata(object, &PARSER).cast::<Parser>() }
}

impl Parser {
    /// What was not taken yet.
    fn rest(&self) -> &'static [u8] {
        if self.bytes.is_null() {
            return &[];
        }
        // SAFETY: so many bytes were written. They stay where they are until something is fed, which no caller does
        // while it holds the slice: what it calls meanwhile runs no Ruby code.
        unsafe { slice::from_raw_parts(self.bytes.add(self.start), self.len - self.start) }
    }

    fn append(&mut self, bytes: &[u8]) {
        let rest = self.len - self.start;
        if self.start > 0 && self.room - self.len < bytes.len() {
            // SAFETY: the rest lies within the memory, to whose front it is moved.
            unsafe { self.bytes.copy_from(self.bytes.add(self.start), rest) };
            (self.start, self.len) = (0, rest);
        }
        if self.room - self.len < bytes.len() {
            let room = (self.len + bytes.len()).max(2 * self.room).max(FIRST_ROOM);
            // SAFETY: the memory came from Ruby, or there is none yet.
            self.bytes = unsafe { ruby_xrealloc(self.bytes.cast(), room) }.cast();
            self.room = room;
        }
        // SAFETY: there is room for the bytes now.
        unsafe { self.bytes.add(self.len).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        self.len += bytes.len();
    }

    /// Takes the next whole frame, if it is there.
    fn take_frame(&mut self) -> Result<Option<Frame<'static>>> {
        match Frame::parse(self.rest(), self.frame_max) {
            Ok(Some((frame, used))) => {
                self.start += used;
                if self.start == self.len {
                    (self.start, self.len) = (0, 0);
                }
                Ok(Some(frame))
            }
            Ok(None) => Ok(None),
            Err(FrameError::UnknownType(_)) => Err(unknown_type()),
            Err(error) => Err(Raise::malformed(&error.to_string())),
        }
    }

    /// Makes the content of a channel the one at hand.
    fn turn_to(&mut self, channel: u16) {
        if self.content.channel == channel || (self.content.method == NIL && self.others == NIL) {
            self.content.channel = channel;
            return;
        }
        // SAFETY: an Array and a Hash of ours, with what was put into them.
        unsafe {
            if self.others == NIL {
                self.others = api::rb_hash_new();
            }
            let Content { channel: old, method, properties, body, size } = self.content;
            if method != NIL {
                let values = [method, properties, body, unsigned(size)];
                let kept = api::rb_ary_new_from_values(4, values.as_ptr());
                api::rb_hash_aset(self.others, small(old.into()), kept);
            }
            self.content = Content { channel, ..NO_CONTENT };
            let kept = rb_hash_delete(self.others, small(channel.into()));
            if kept != NIL {
                let value = |at| api::rb_ary_entry(kept, at);
                let size = low_64_bits(value(3));
                self.content = Content {
                    channel,
                    method: value(0),
                    properties: value(1),
                    body: value(2),
                    size,
                };
            }
        }
    }

    /// What a method frame completes: a command without content.
    fn method_frame(&mut self, payload: &[u8]) -> Result<Option<Value>> {
        if self.content.method != NIL {
            return Err(Raise::malformed("a method came where a content was due"));
        }
        if method::of_payload(payload).is_some_and(|(_, at)| !METHODS[at].decodes) {
            return Err(Raise::malformed("a method came that only clients send"));
        }
        let method = method::decode_payload(payload, BINARY)?;
        if method::of_payload(payload).is_some_and(|(_, at)| METHODS[at].content) {
            self.content = Content { channel: self.content.channel, method, ..NO_CONTENT };
            return Ok(None);
        }
        Ok(Some(command(self.content.channel, [method, NIL, NIL])))
    }

    fn header_frame(&mut self, payload: &[u8]) -> Result<Option<Value>> {
        if self.content.method == NIL || self.content.properties != NIL {
            return Err(Raise::malformed("a content header came where none was due"));
        }
        let header = courser_codec::ContentHeader::parse(payload)?;
        if header.body_size > self.body_max {
            return Err(Raise::malformed(&format!(
                "a body of {} bytes is larger than body_max {}",
                header.body_size, self.body_max
            )));
        }
        // A copy: reading a decimal runs Ruby code, which could feed the parser.
        let encoded = binary(header.properties.as_bytes());
        // SAFETY: the string is ours alone and is kept.
        let properties = properties::to_hash(
            RawProperties::from_encoded(unsafe { layout::bytes(encoded) })?,
            Source { encoding: BINARY, string: encoded },
        )?;
        keep(encoded);
        self.content.properties = properties;
        self.content.size = header.body_size;
        Ok((header.body_size == 0).then(|| self.finish(string(&[], UTF8))))
    }

    fn body_frame(&mut self, payload: &[u8]) -> Result<Option<Value>> {
        if self.content.properties == NIL {
            return Err(Raise::malformed("a body came where none was due"));
        }
        let before = if self.content.body == NIL {
            0
        } else {
            // SAFETY: the length is taken at once.
            unsafe { layout::bytes(self.content.body) }.len() as u64
        };
        let after = before + payload.len() as u64;
        if after > self.content.size {
            return Err(Raise::malformed("a body is longer than its header says"));
        }
        if before == 0 && after == self.content.size {
            let encoding = if payload.is_ascii() { UTF8 } else { BINARY };
            return Ok(Some(self.finish(string(payload, encoding))));
        }
        // SAFETY: the body is a String of ours, and the payload is not Ruby's.
        unsafe {
            if self.content.body == NIL {
                self.content.body =
                    rb_str_buf_new(self.content.size.min(ADVANCE_MAX as u64) as c_long);
            }
            rb_str_cat(self.content.body, payload.as_ptr().cast(), payload.len() as c_long);
            if after < self.content.size {
                return Ok(None);
            }
            let body = self.content.body;
            if layout::bytes(body).is_ascii() {
                api::rb_enc_associate_index(body, UTF8);
            }
            Ok(Some(self.finish(body)))
        }
    }

    /// A command whose content is complete.
    fn finish(&mut self, body: Value) -> Value {
        let Content { channel, method, properties, .. } = self.content;
        self.content = Content { channel, ..NO_CONTENT };
        command(channel, [method, properties, body])
    }
}

/// `[channel, method, properties, body]`
fn command(channel: u16, [method, properties, body]: [Value; 3]) -> Value {
    let values = [small(channel.into()), method, properties, body];
    // SAFETY: there are four.
    unsafe { api::rb_ary_new_from_values(4, values.as_ptr()) }
}

ruby_method! {
    /// `configure(frame_max, body_max)`, called by `initialize`.
    fn configure(arguments: 2..=2, object) {
        let limits = (low_64_bits(arguments[0]), low_64_bits(arguments[1]));
        let Ok(frame_max) = u32::try_from(limits.0) else {
            return Err(Raise::argument("frame_max has to fit into 32 bits"));
        };
        // SAFETY: nothing else happens while the reference is there.
        let parser = unsafe { parser_of(object) };
        (parser.frame_max, parser.body_max) = (frame_max, limits.1);
        Ok(object)
    }
}

ruby_method! {
    fn feed(arguments: 1..=1, object) {
        let data = expect_string(arguments[0]);
        // SAFETY: no Ruby code runs until the bytes are copied.
        unsafe { parser_of(object).append(layout::bytes(data)) };
        keep(data);
        Ok(object)
    }
}

ruby_method! {
    fn next_frame(_arguments: 0..=0, object) {
        // SAFETY: making a string and a frame runs no Ruby code.
        let frame = unsafe { parser_of(object) }.take_frame()?;
        let frame = frame.map(|Frame { kind, channel, payload }| frame::from_wire(kind, binary(payload), channel));
        keep(object);
        Ok(frame.unwrap_or(NIL))
    }
}

ruby_method! {
    fn next_command(_arguments: 0..=0, object) {
        loop {
            // SAFETY: what runs Ruby code (a decimal among the properties) does so after the frame was taken and copied.
            let parser = unsafe { parser_of(object) };
            let Some(Frame { kind, channel, payload }) = parser.take_frame()? else { return Ok(NIL) };
            if kind == FrameKind::Heartbeat {
                continue;
            }
            parser.turn_to(channel);
            let complete = match kind {
                FrameKind::Method => parser.method_frame(payload)?,
                FrameKind::Header => parser.header_frame(payload)?,
                FrameKind::Body => parser.body_frame(payload)?,
                FrameKind::Heartbeat => None,
            };
            keep(object);
            if let Some(command) = complete {
                return Ok(command);
            }
        }
    }
}

ruby_method! {
    /// Bytes that were fed and not taken.
    fn pending_size(_arguments: 0..=0, object) {
        // SAFETY: nothing else happens while the reference is there.
        let parser = unsafe { parser_of(object) };
        Ok(unsigned((parser.len - parser.start) as u64))
    }
}

ruby_method! {
    /// `Native.define_parser(Parser)`
    pub(crate) fn define_parser(arguments: 1..=1, _native) {
        let class = arguments[0];
        // SAFETY: `class` is a Class; the allocator makes instances of it.
        unsafe { api::rb_define_alloc_func(class, allocate) };
        define_method(class, c"configure", configure);
        define_method(class, c"feed", feed);
        define_method(class, c"next_frame", next_frame);
        define_method(class, c"next_command", next_command);
        define_method(class, c"pending_size", pending_size);
        Ok(class)
    }
}
