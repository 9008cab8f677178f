//! From `connection.start` to `connection.open-ok`.

use courser_codec::reply_code::{CHANNEL_ERROR, NOT_IMPLEMENTED, SYNTAX_ERROR};
use courser_codec::{
    FRAME_MIN_SIZE, Frame, FrameKind, Method, PROTOCOL_HEADER, ShortStr, Table, VERSION_MAJOR,
    VERSION_MINOR, connection,
};

use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::binary::ErlangBinary;
use crate::capabilities::Capabilities;
use crate::close::{CloseReason, Failure};
use crate::framer::{Piece, decode_failure, malformed_frame, unexpected_body, unexpected_frame};
use crate::sasl::Mechanisms;
use crate::whole::Limits;

impl Connection {
    /// Takes a frame before the connection is open.
    pub(super) fn handshake_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        if self.phase == Phase::Starting && input.first() == PROTOCOL_HEADER.first() {
            return self.other_protocol(input);
        }
        let frame = match self.framer.next(input) {
            Piece::Frame(frame) => frame,
            Piece::Body(body) => return self.fail(unexpected_body(&body)),
            Piece::More => return Step::More,
            Piece::Broken(failure) => return self.fail_for_good(failure),
        };
        match frame.kind {
            _ if frame.channel != 0 => self.fail(unexpected_frame(frame)),
            FrameKind::Method => self.handshake_method(frame),
            FrameKind::Heartbeat if frame.payload.is_empty() => Step::Again,
            FrameKind::Heartbeat => self.fail(malformed_frame(frame)),
            FrameKind::Header | FrameKind::Body => self.fail(unexpected_frame(frame)),
        }
    }

    /// A server that does not speak this protocol answers with the header of one that it speaks.
    fn other_protocol<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let Some(header) = input.first_chunk::<8>() else { return Step::More };
        *input = &[];
        self.give_up(format!(
            "the server does not speak AMQP 0-9-1; it offers {}",
            ErlangBinary(header)
        ))
    }

    /// Ends the connection without a word to the server, which would not understand it.
    fn give_up<'a>(&mut self, text: String) -> Step<'a> {
        self.end(Some(CloseReason::silent(text)));
        self.closed_event()
    }

    fn handshake_method<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => return self.fail(decode_failure(error, frame.payload)),
        };
        match (self.phase, method) {
            (Phase::Starting, Method::ConnectionStart(start)) => self.start(start),
            (Phase::Tuning, Method::ConnectionTune(tune)) => self.tune(tune),
            (Phase::Tuning, Method::ConnectionSecure(_)) => {
                let explanation = "no mechanism with a challenge is known";
                self.fail(Failure::of(
                    NOT_IMPLEMENTED,
                    explanation,
                    (method.class_id(), method.method_id()),
                ))
            }
            (Phase::Opening, Method::ConnectionOpenOk(_)) => {
                self.phase = Phase::Running;
                self.timers.opened();
                Step::Event(Event::Opened)
            }
            (_, Method::ConnectionClose(close)) => self.closed_by_server(close),
            (_, method) => self.fail(self.unexpected_method(&method)),
        }
    }

    /// The error for a method on channel 0 that does not belong there, or not now.
    pub(super) fn unexpected_method(&self, method: &Method<'_>) -> Failure {
        let explanation = format!("unexpected method in connection state {}", self.phase.name());
        Failure::of(CHANNEL_ERROR, explanation, (method.class_id(), method.method_id()))
    }

    fn start<'a>(&mut self, start: connection::Start<'a>) -> Step<'a> {
        let version = (start.version_major, start.version_minor);
        if version != (VERSION_MAJOR, VERSION_MINOR) {
            return self
                .give_up(format!("the server speaks AMQP {}-{}, not 0-9-1", version.0, version.1));
        }
        let mechanism = self.config.credentials.mechanism();
        if !Mechanisms::from_names(start.mechanisms).contains(mechanism) {
            let offered = String::from_utf8_lossy(start.mechanisms);
            return self.give_up(format!(
                "the server offers no mechanism {}, only {offered}",
                mechanism.name()
            ));
        }
        self.server_properties = match start.server_properties.to_owned() {
            Ok(properties) => properties,
            Err(error) => {
                let ids = (connection::Start::CLASS_ID, connection::Start::METHOD_ID);
                return self.fail(Failure::of(SYNTAX_ERROR, error.to_string(), ids));
            }
        };
        self.capabilities = Capabilities::from_properties(start.server_properties);
        let mut properties = Vec::with_capacity(self.config.client_properties.encoded_len());
        self.config.client_properties.encode(&mut properties);
        let start_ok = connection::StartOk {
            client_properties: Table::from_entries(&properties[4..]),
            mechanism: ShortStr::cut(mechanism.name()),
            response: &self.config.credentials.response(),
            locale: ShortStr::from_static("en_US"),
        };
        start_ok.write_frame(0, &mut self.output);
        self.phase = Phase::Tuning;
        Step::Again
    }

    /// Settles on the smaller one of each limit, where 0 is no limit, and asks for the virtual host at once.
    fn tune<'a>(&mut self, tune: connection::Tune) -> Step<'a> {
        self.channel_max =
            match lower_limit(self.config.channel_max.into(), tune.channel_max.into()) {
                // Channel numbers have 16 bits, and both limits had them.
                0 => u16::MAX,
                limit => limit as u16,
            };
        // A server without a limit gets one, as buffers have to end somewhere.
        self.frame_max = match lower_limit(self.config.frame_max, tune.frame_max) {
            0 => 131_072,
            limit => limit.max(FRAME_MIN_SIZE),
        };
        let heartbeat_s = match (self.config.heartbeat_s, tune.heartbeat) {
            (0, _) => 0,
            (wanted, 0) => wanted,
            (wanted, proposed) => wanted.min(proposed),
        };
        self.framer.set_frame_max(self.frame_max);
        self.limits = Limits::new(&self.framer, self.config.max_message_bytes);
        self.timers.start_heartbeats(heartbeat_s);
        let tune_ok = connection::TuneOk {
            channel_max: self.channel_max,
            frame_max: self.frame_max,
            heartbeat: heartbeat_s,
        };
        tune_ok.write_frame(0, &mut self.output);
        let open = connection::Open { virtual_host: self.config.virtual_host.as_short_str() };
        open.write_frame(0, &mut self.output);
        self.phase = Phase::Opening;
        Step::Again
    }
}

/// The lower one of two limits, of which 0 is none.
fn lower_limit(own: u32, proposed: u32) -> u32 {
    if own == 0 || proposed == 0 { own.max(proposed) } else { own.min(proposed) }
}
