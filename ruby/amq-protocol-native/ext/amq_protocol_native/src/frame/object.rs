//! What frame objects do.

use courser_codec::{FrameKind, RawProperties, Sink, Window, constants};

use super::wire::{channel_number, checked_payload, encode_frame, encode_parts, frame_header};
use super::{
    BODY_FRAME, Frame, HEADER_FRAME, HEARTBEAT_FRAME, METHOD_FRAME, OVERHEAD, frame_of, new_frame,
    payload_of,
};
use crate::decode::Source;
use crate::generated::METHODS;
use crate::method;
use crate::properties;
use crate::ruby::api::{self, Value};
use crate::ruby::error::{Raise, Result, ruby_method};
use crate::ruby::layout::{self, Kind, NIL, TRUE};
use crate::ruby::value::{
    binary, binary_room, boolean, is_a, keep, small, tell_collector, unsigned,
};

pub(super) unsafe extern "C-unwind" fn allocate(class: Value) -> Value {
    new_frame(class, NIL, NIL)
}

ruby_method! {
    pub(super) fn initialize(arguments: 2..=2, object) {
        set(object, arguments[0], arguments[1]);
        Ok(NIL)
    }
}

fn set(object: Value, payload: Value, channel: Value) {
    // SAFETY: a frozen object raises; the frame lives as long as its object, and the collector is told of both values.
    unsafe {
        api::rb_check_frozen(object);
        let frame = frame_of(object);
        frame.write(Frame { payload, channel, decoded: layout::UNDEF });
        tell_collector(object, payload);
        tell_collector(object, channel);
    }
}

ruby_method! {
    pub(super) fn copy(arguments: 1..=1, object) {
        // SAFETY: the other frame lives as long as its object, an argument.
        let (payload, channel) = unsafe { ((*frame_of(arguments[0])).payload, (*frame_of(arguments[0])).channel) };
        set(object, payload, channel);
        Ok(object)
    }
}

ruby_method! {
    pub(super) fn payload(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        Ok(unsafe { (*frame_of(object)).payload })
    }
}

ruby_method! {
    pub(super) fn channel(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        Ok(unsafe { (*frame_of(object)).channel })
    }
}

ruby_method! {
    pub(super) fn set_channel(arguments: 1..=1, object) {
        // SAFETY: a frozen object raises; the frame lives as long as its object, and the collector is told of the value.
        unsafe {
            api::rb_check_frozen(object);
            (*frame_of(object)).channel = arguments[0];
            tell_collector(object, arguments[0]);
        }
        Ok(arguments[0])
    }
}

ruby_method! {
    pub(super) fn payload_size(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: the length is taken at once.
        Ok(unsigned(unsafe { layout::bytes(payload) }.len() as u64))
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
        if is_a(object, slot.get()) {
            return kind;
        }
    }
    FrameKind::Method
}

ruby_method! {
    pub(super) fn encode_instance(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        let channel = unsafe { (*frame_of(object)).channel };
        encode_frame(kind_of(object), payload_of(object), channel)
    }
}

ruby_method! {
    pub(super) fn encode_instance_to_array(_arguments: 0..=0, object) {
        // SAFETY: the frame lives as long as its object.
        let channel = unsafe { (*frame_of(object)).channel };
        encode_parts(kind_of(object), payload_of(object), channel)
    }
}

macro_rules! encoders_of_classes {
    ($($name:ident: $kind:ident),*) => {
        $(ruby_method! {
            pub(super) fn $name(arguments: 2..=2, _class) {
                channel_number(arguments[1])?;
                encode_frame(FrameKind::$kind, checked_payload(arguments[0])?, arguments[1])
            }
        })*
    };
}

encoders_of_classes! { encode_method: Method, encode_header: Header, encode_body: Body }

ruby_method! {
    pub(super) fn encode_heartbeat(_arguments: 0..=0, _class) {
        Ok(binary(&courser_codec::HEARTBEAT_FRAME))
    }
}

ruby_method! {
    pub(super) fn method_class(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: no Ruby code runs while the numbers are read.
        Ok(method::of_payload(unsafe { layout::bytes(payload) }).map_or(NIL, |(class, _)| class))
    }
}

ruby_method! {
    pub(super) fn method_is_final(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: no Ruby code runs while the numbers are read.
        match method::of_payload(unsafe { layout::bytes(payload) }) {
            Some((_, at)) => Ok(boolean(!METHODS[at].content)),
            None => Err(Raise::malformed("the payload names no method that is known")),
        }
    }
}

ruby_method! {
    pub(super) fn decode_method_payload(_arguments: 0..=0, object) {
        let payload = payload_of(object);
        // SAFETY: the bytes are copied before Ruby code can run.
        let decoded = method::decode_payload(unsafe { layout::bytes(payload) }, layout::encoding(payload));
        keep(payload);
        decoded
    }
}

/// Class, weight and body size, and the properties behind them.
///
/// # Safety
/// The slice ends before Ruby code runs that could change the payload.
unsafe fn header_fields<'a>(payload: Value) -> Result<(u16, u16, u64, &'a [u8])> {
    // SAFETY: passed on.
    let bytes = unsafe { layout::bytes(payload) };
    let Some((&[class0, class1, weight0, weight1, ref body_size @ ..], properties)) =
        bytes.split_first_chunk::<12>()
    else {
        return Err(Raise::malformed("a content header has at least twelve bytes"));
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
    pub(super) fn body_size(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(_, _, body_size, _)| unsigned(body_size))
    }
}

ruby_method! {
    pub(super) fn weight(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(_, weight, ..)| small(weight.into()))
    }
}

ruby_method! {
    pub(super) fn klass_id(_arguments: 0..=0, object) {
        // SAFETY: no Ruby code runs while the number is read.
        unsafe { header_fields(payload_of(object)) }.map(|(class_id, ..)| small(class_id.into()))
    }
}

ruby_method! {
    pub(super) fn decoded_properties(_arguments: 0..=0, object) {
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

ruby_method! {
    pub(super) fn is_final(_arguments: 0..=0, _object) { Ok(TRUE) }
}

ruby_method! {
    pub(super) fn is_not_final(_arguments: 0..=0, _object) { Ok(layout::FALSE) }
}

ruby_method! {
    /// `Frame.encode_all(frames)`: the frames of an array one behind the other.
    pub(super) fn encode_all(arguments: 1..=1, _class) {
        let frames = arguments[0];
        if layout::kind(frames) != Kind::Array {
            return Err(Raise::argument("encode_all wants an Array of frames"));
        }
        let mut len = 0;
        for index in 0..layout::array_len(frames) {
            // SAFETY: `frames` is an Array, whose frames keep their payloads.
            let payload = unsafe { (*frame_of(api::rb_ary_entry(frames, index as _))).payload };
            if !layout::is_string(payload) {
                return Err(Raise::argument("the payload of a frame has to be a String"));
            }
            // SAFETY: the length is taken at once.
            len += OVERHEAD + unsafe { layout::bytes(payload) }.len();
        }
        let encoded = binary_room(len);
        let mut room = Window::over(
            // SAFETY: the string was just made, and no other code has it.
            unsafe { std::slice::from_raw_parts_mut(layout::room(encoded), len) },
        );
        for index in 0..layout::array_len(frames) {
            // SAFETY: `frames` is an Array, whose frames keep their payloads; no Ruby code runs until they are copied.
            unsafe {
                let object = api::rb_ary_entry(frames, index as _);
                let Frame { payload, channel, .. } = *frame_of(object);
                let payload = layout::bytes(payload);
                room.put(&frame_header(kind_of(object), channel_number(channel)?, payload.len())?);
                room.put(payload);
                room.put_u8(constants::FRAME_END);
            }
        }
        Ok(encoded)
    }
}
