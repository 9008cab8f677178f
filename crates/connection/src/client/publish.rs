//! Messages to the server.

use courser_codec::{Frame, RawProperties, basic, write_body_frame, write_content_header_frame};

use super::Connection;

/// Why a message cannot be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishError {
    /// The channel is not open, or not any more.
    #[error("channel {channel} is not open")]
    NotOpen {
        /// Its number.
        channel: u16,
    },
    /// The properties do not fit into a frame, and a content header has only one.
    #[error("properties of {size_bytes} bytes do not fit into a frame of {frame_max}")]
    PropertiesTooLarge {
        /// Bytes of the encoded properties.
        size_bytes: usize,
        /// Largest frame of the connection, in bytes.
        frame_max: u32,
    },
}

impl Connection {
    /// Writes a message into `out`, its body in frames as large as the connection has them. Gives its number in confirm
    /// mode, from 1, or 0 when the channel is not in confirm mode.
    ///
    /// What is in [`Connection::output`] has to be sent before it.
    ///
    /// # Errors
    /// When the channel is not open, or the properties are too large. Nothing is written then.
    pub fn publish(
        &mut self,
        channel: u16,
        publish: &basic::Publish<'_>,
        properties: RawProperties<'_>,
        body: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u64, PublishError> {
        let seq = self.publish_head(channel, publish, properties, body.len() as u64, out)?;
        write_body(channel, body, self.frame_max, out);
        Ok(seq)
    }

    /// Writes what stands before a message's body: method and content header. Body frames of `body_size` bytes in all
    /// have to follow on this channel, before anything else on it; [`write_body`] cuts them.
    ///
    /// # Errors
    /// As [`Connection::publish`].
    pub fn publish_head(
        &mut self,
        channel: u16,
        publish: &basic::Publish<'_>,
        properties: RawProperties<'_>,
        body_size: u64,
        out: &mut Vec<u8>,
    ) -> Result<u64, PublishError> {
        let is_open = self.slots.is_open(channel);
        let Some(slot) = self.slots.get_mut(channel).filter(|_| is_open) else {
            return Err(PublishError::NotOpen { channel });
        };
        let size_bytes = properties.as_bytes().len();
        let frame_max = self.frame_max;
        if size_bytes + courser_codec::CONTENT_HEADER_FIXED_LEN + Frame::OVERHEAD
            > frame_max as usize
        {
            return Err(PublishError::PropertiesTooLarge { size_bytes, frame_max });
        }
        publish.write_frame(channel, out);
        write_content_header_frame(channel, basic::CLASS_ID, body_size, properties, out);
        Ok(slot.data.confirms.as_mut().map_or(0, |confirms| confirms.publish()))
    }

    /// Counts `count` publishes whose frames the driver has written itself. Gives the number of the first one in confirm
    /// mode, or 0 when the channel is not in confirm mode.
    ///
    /// The driver sends the frames behind what is in [`Connection::output`].
    ///
    /// # Errors
    /// When the channel is not open. Nothing is counted then.
    pub fn count_publishes(&mut self, channel: u16, count: u64) -> Result<u64, PublishError> {
        let is_open = self.slots.is_open(channel);
        let Some(slot) = self.slots.get_mut(channel).filter(|_| is_open) else {
            return Err(PublishError::NotOpen { channel });
        };
        Ok(slot.data.confirms.as_mut().map_or(0, |confirms| confirms.publish_many(count)))
    }

    /// Number of publishes of a channel that the server has neither confirmed nor refused; 0 without confirm mode.
    #[must_use]
    pub fn unconfirmed(&self, channel: u16) -> u64 {
        let confirms = self.slots.get(channel).and_then(|slot| slot.data.confirms.as_ref());
        confirms.map_or(0, |confirms| confirms.open_count())
    }
}

/// Writes a body in frames of at most `frame_max` bytes, header and end marker included. An empty body has none.
pub fn write_body(channel: u16, body: &[u8], frame_max: u32, out: &mut Vec<u8>) {
    let piece_max = (frame_max as usize).saturating_sub(Frame::OVERHEAD).max(1);
    for piece in body.chunks(piece_max) {
        write_body_frame(channel, piece, out);
    }
}
