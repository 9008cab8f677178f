//! The hot path: a small message that lies in the input as a whole.

use courser_codec::{Frame, FrameKind, Method, basic};

use super::event::{Delivery, DeliveryMethod};
use crate::whole::{Limits, WholeContent, whole_content};

impl<'a> DeliveryMethod<'a> {
    /// The method, if it is one that a message comes with.
    pub(super) fn from_method(method: &Method<'a>) -> Option<Self> {
        match *method {
            Method::BasicDeliver(deliver) => Some(Self::Deliver(deliver)),
            Method::BasicGetOk(get_ok) => Some(Self::GetOk(get_ok)),
            Method::BasicReturn(returned) => Some(Self::Return(returned)),
            _ => None,
        }
    }

    /// Reads a method frame's payload.
    #[inline]
    fn decode(payload: &'a [u8]) -> Option<Self> {
        let (&[class0, class1, method0, method1], args) = payload.split_first_chunk()?;
        if u16::from_be_bytes([class0, class1]) != basic::CLASS_ID {
            return None;
        }
        match u16::from_be_bytes([method0, method1]) {
            basic::Deliver::METHOD_ID => basic::Deliver::decode(args).ok().map(Self::Deliver),
            basic::GetOk::METHOD_ID => basic::GetOk::decode(args).ok().map(Self::GetOk),
            basic::Return::METHOD_ID => basic::Return::decode(args).ok().map(Self::Return),
            _ => None,
        }
    }
}

/// Reads a message off the front of `input`: the message and what follows it. Its channel is not checked. What is not
/// plain is left to the general path.
#[inline]
pub(super) fn whole_delivery(input: &[u8], limits: Limits) -> Option<(Delivery<'_>, &[u8])> {
    let (frame, len) = Frame::parse(input, limits.frame_max()).ok()??;
    if frame.kind != FrameKind::Method {
        return None;
    }
    let method = DeliveryMethod::decode(frame.payload)?;
    let WholeContent { header, body, rest } =
        whole_content(&input[len..], frame.channel.to_be_bytes(), limits)?;
    Some((Delivery { channel: frame.channel, method, header, body }, rest))
}
