//! Frames as bytes.

use courser_codec::{FrameKind, constants};

use super::{
    BODY_FRAME, HEADER_FRAME, HEADER_LEN, HEARTBEAT_FRAME, METHOD_FRAME, OVERHEAD, TYPES_OPTIONS,
    new_frame,
};
use crate::classes;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, Kind, NIL};
use crate::ruby::value::{
    binary, binary_room, call, expect_string, small, small_number, to_s, unsigned,
};

/// The number of a frame type that is named by a symbol or is a number.
fn find_kind(value: Value) -> Result<FrameKind> {
    let found = match layout::kind(value) {
        Kind::SmallInteger => u8::try_from(small_number(value)).ok().and_then(FrameKind::from_byte),
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
    let inspected = String::from_utf8_lossy(unsafe { layout::bytes(inspected) });
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
pub(super) fn encode_frame(kind: FrameKind, payload: Value, channel: Value) -> Result<Value> {
    let channel = channel_number(channel)?;
    // SAFETY: the length is taken at once.
    let len = unsafe { layout::bytes(payload) }.len();
    let header = frame_header(kind, channel, len)?;
    let encoded = binary_room(OVERHEAD + len);
    // SAFETY: the string was just made and has room for all; nothing runs between taking the payload and copying it.
    unsafe {
        let room = layout::room(encoded);
        let bytes = layout::bytes(payload);
        room.copy_from_nonoverlapping(header.as_ptr(), HEADER_LEN);
        room.add(HEADER_LEN).copy_from_nonoverlapping(bytes.as_ptr(), len);
        room.add(HEADER_LEN + len).write(constants::FRAME_END);
    }
    Ok(encoded)
}

/// Header, payload and end marker of a frame, each as a string.
pub(super) fn encode_parts(kind: FrameKind, payload: Value, channel: Value) -> Result<Value> {
    let channel = channel_number(channel)?;
    // SAFETY: the length is taken at once.
    let header = frame_header(kind, channel, unsafe { layout::bytes(payload) }.len())?;
    let parts = [binary(&header), binary_payload(payload), binary(&[constants::FRAME_END])];
    // SAFETY: there are three.
    Ok(unsafe { api::rb_ary_new_from_values(3, parts.as_ptr()) })
}

/// The payload labelled as binary: itself if it is, else a copy.
fn binary_payload(payload: Value) -> Value {
    if layout::encoding(payload) == 0 {
        return payload;
    }
    // SAFETY: the bytes are copied before anything can change them.
    binary(unsafe { layout::bytes(payload) })
}

/// The payload argument of `Frame.encode`.
pub(super) fn checked_payload(payload: Value) -> Result<Value> {
    if payload == NIL {
        return Err(Raise::runtime("Payload can't be nil"));
    }
    Ok(expect_string(payload))
}

ruby_method! {
    pub(super) fn encode(arguments: 3..=3, _class) {
        channel_number(arguments[2])?;
        let payload = checked_payload(arguments[1])?;
        encode_frame(find_kind(arguments[0])?, payload, arguments[2])
    }
}

ruby_method! {
    pub(super) fn encode_to_array(arguments: 3..=3, _class) {
        channel_number(arguments[2])?;
        let payload = checked_payload(arguments[1])?;
        encode_parts(find_kind(arguments[0])?, payload, arguments[2])
    }
}

ruby_method! {
    pub(super) fn encoded_payload(arguments: 1..=1, _class) {
        if !layout::is_string(arguments[0]) {
            return Ok(arguments[0]);
        }
        Ok(binary_payload(arguments[0]))
    }
}

ruby_method! {
    pub(super) fn find_type(arguments: 1..=1, _class) {
        find_kind(arguments[0]).map(|kind| small(kind as i64))
    }
}

ruby_method! {
    /// A frame of the class that the type names.
    pub(super) fn new(arguments: 1..=3, _class) {
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

ruby_method! {
    /// The seven bytes before a payload: type, channel, size.
    pub(super) fn decode_header(arguments: 1..=1, _class) {
        if arguments[0] == NIL {
            return Err(empty_response());
        }
        let header = expect_string(arguments[0]);
        // SAFETY: no Ruby code runs while the header is read.
        let bytes = unsafe { layout::bytes(header) };
        let Some(&first) = bytes.first() else { return Err(empty_response()) };
        let Some(kind) = FrameKind::from_byte(first) else { return Err(unknown_type()) };
        let Some(&[_, channel_high, channel_low, ref len @ ..]) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(Raise::malformed("a frame's header has seven bytes"));
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
