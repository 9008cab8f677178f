//! basic.publish: a method, a content header and a body in as many frames as it takes.

use std::ffi::c_long;

use courser_codec::{FrameKind, Sink, constants};

use crate::encode::put_short;
use crate::frame::{body_frame, channel_number, frame_header, header_frame, method_frame};
use crate::out::Out;
use crate::properties::put_publish_header;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, is_truthy};
use crate::ruby::value::{
    BINARY, binary_room, define_singleton_method, expect_string, low_64_bits,
};

pub(crate) const CLASS_ID: u16 = 60;
pub(crate) const METHOD_ID: u16 = 40;

/// Bytes of a frame besides its payload.
const OVERHEAD: usize = 8;
/// Bytes of a frame before its payload.
const HEADER_LEN: usize = 7;

/// Bytes of a body that fit into a frame.
fn piece_len(frame_size: Value) -> Result<usize> {
    let frame_size = low_64_bits(frame_size) as i64;
    match usize::try_from(frame_size - OVERHEAD as i64) {
        Ok(len) if len > 0 => Ok(len),
        _ => Err(Raise::argument(
            "a frame has eight bytes besides its payload: the frame size has to be larger",
        )),
    }
}

/// Appends the frames of a body to an array. A body that fits into one frame is not copied.
fn push_body(frames: Value, body: Value, channel: Value, piece_len: usize) {
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::bytes(body) }.len();
    if len == 0 {
        return;
    }
    if len <= piece_len {
        // SAFETY: `frames` is an Array.
        unsafe { api::rb_ary_push(frames, body_frame(body, channel)) };
        return;
    }
    let mut start = 0;
    while start < len {
        let piece = piece_len.min(len - start);
        // SAFETY: the piece lies within the string, with which it shares its bytes; the label is the piece's own.
        unsafe {
            let piece = api::rb_str_subseq(body, start as c_long, piece as c_long);
            api::rb_enc_associate_index(piece, BINARY);
            api::rb_ary_push(frames, body_frame(piece, channel));
        }
        start += piece;
    }
}

ruby_method! {
    /// `Method.encode_body(body, channel, frame_size)`
    fn encode_body(arguments: 3..=3, _class) {
        let body = expect_string(arguments[0]);
        // SAFETY: makes an Array.
        let frames = unsafe { api::rb_ary_new_capa(1) };
        // SAFETY: the length is taken at once.
        if !unsafe { layout::bytes(body) }.is_empty() {
            push_body(frames, body, arguments[1], piece_len(arguments[2])?);
        }
        Ok(frames)
    }
}

/// The arguments of a publish.
struct Publish {
    channel: Value,
    body: Value,
    user_headers: Value,
    /// Exchange, routing key, mandatory, immediate.
    method: [Value; 4],
    frame_size: Value,
}

impl Publish {
    fn from(arguments: &[Value]) -> Result<Self> {
        let &[channel, body, user_headers, exchange, routing_key, mandatory, immediate, frame_size] =
            arguments
        else {
            return Err(Raise::argument("a publish has eight arguments"));
        };
        let method = [exchange, routing_key, mandatory, immediate];
        Ok(Self { channel, body: expect_string(body), user_headers, method, frame_size })
    }

    fn body_len(&self) -> usize {
        // SAFETY: the length is taken at once.
        unsafe { layout::bytes(self.body) }.len()
    }
}

/// Writes basic.publish. Walking over the description of its fields, as for other methods, takes twice as long.
#[inline(always)]
fn put_publish(out: &mut Out, arguments: &[Value; 4]) -> Result<()> {
    let [exchange, routing_key, mandatory, immediate] = *arguments;
    let [class_high, class_low] = CLASS_ID.to_be_bytes();
    let [method_high, method_low] = METHOD_ID.to_be_bytes();
    // The two bytes behind are reserved.
    out.put(&[class_high, class_low, method_high, method_low, 0, 0]);
    put_short(out, exchange)?;
    put_short(out, routing_key)?;
    out.put(&[u8::from(is_truthy(mandatory)) | u8::from(is_truthy(immediate)) << 1]);
    Ok(())
}

ruby_method! {
    fn encode(arguments: 8..=8, _class) {
        let publish = Publish::from(arguments)?;
        let mut out = Out::new();
        put_publish(&mut out, &publish.method)?;
        let method = method_frame(out.finish(), publish.channel);
        let mut out = Out::new();
        put_publish_header(&mut out, publish.body_len() as u64, publish.user_headers)?;
        let header = header_frame(out.finish(), publish.channel);
        let first = [method, header];
        // SAFETY: an Array is made and filled with what is there.
        let frames = unsafe {
            let frames = api::rb_ary_new_capa(3);
            api::rb_ary_cat(frames, first.as_ptr(), 2)
        };
        if publish.body_len() > 0 {
            push_body(frames, publish.body, publish.channel, piece_len(publish.frame_size)?);
        }
        Ok(frames)
    }
}

ruby_method! {
    fn encode_to_string(arguments: 8..=8, _class) {
        let publish = Publish::from(arguments)?;
        let channel = channel_number(publish.channel)?;
        let mut out = Out::new();
        let payload = begin_frame(&mut out, FrameKind::Method, channel)?;
        put_publish(&mut out, &publish.method)?;
        end_frame(&mut out, payload)?;
        let payload = begin_frame(&mut out, FrameKind::Header, channel)?;
        put_publish_header(&mut out, publish.body_len() as u64, publish.user_headers)?;
        end_frame(&mut out, payload)?;
        if publish.body_len() == 0 {
            return Ok(out.finish());
        }
        with_body(&mut out, publish.body, channel, piece_len(publish.frame_size)?)
    }
}

/// What was written, and the frames of a body behind it, as one string.
fn with_body(out: &mut Out, body: Value, channel: u16, piece_len: usize) -> Result<Value> {
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::bytes(body) }.len();
    let header = frame_header(FrameKind::Body, channel, piece_len.min(len))?;
    let all = binary_room(out.len() + len + len.div_ceil(piece_len) * OVERHEAD);
    // SAFETY: the string was just made, with room for exactly this; no Ruby code runs until it is full.
    unsafe {
        let mut room = layout::room(all);
        let written = out.bytes();
        room.copy_from_nonoverlapping(written.as_ptr(), written.len());
        room = room.add(written.len());
        for piece in layout::bytes(body).chunks(piece_len) {
            room.copy_from_nonoverlapping(header.as_ptr(), HEADER_LEN);
            // The last piece may be shorter than what the header says.
            let len = (piece.len() as u32).to_be_bytes();
            room.add(3).copy_from_nonoverlapping(len.as_ptr(), len.len());
            room.add(HEADER_LEN).copy_from_nonoverlapping(piece.as_ptr(), piece.len());
            room.add(HEADER_LEN + piece.len()).write(constants::FRAME_END);
            room = room.add(OVERHEAD + piece.len());
        }
    }
    out.keep();
    Ok(all)
}

/// Writes a frame's header without its length; gives where the payload begins.
fn begin_frame(out: &mut Out, kind: FrameKind, channel: u16) -> Result<usize> {
    out.put(&frame_header(kind, channel, 0)?);
    Ok(out.len())
}

/// Fills in the length of a frame, and writes its end.
fn end_frame(out: &mut Out, payload: usize) -> Result<()> {
    out.end_length(payload)?;
    out.put(&[constants::FRAME_END]);
    Ok(())
}

/// Makes a class that of basic.publish.
pub(crate) fn define(class: Value) {
    define_singleton_method(class, c"encode", encode);
    define_singleton_method(class, c"encode_to_string", encode_to_string);
}

ruby_method! {
    /// `Native.define_method(Method)`
    pub(crate) fn define_method(arguments: 1..=1, _native) {
        define_singleton_method(arguments[0], c"encode_body", encode_body);
        Ok(arguments[0])
    }
}
