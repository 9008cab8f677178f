//! From the protocol header to `connection.open-ok`.

use std::time::Instant;

use courser_codec::reply_code::{
    ACCESS_REFUSED, CHANNEL_ERROR, COMMAND_INVALID, NOT_ALLOWED, SYNTAX_ERROR,
};
use courser_codec::{
    FRAME_MIN_SIZE, Frame, FrameKind, Method, PROTOCOL_HEADER, Table, VERSION_MAJOR, VERSION_MINOR,
    connection,
};

use super::phase::Phase;
use super::{Connection, Event, Step};
use crate::binary::ErlangBinary;
use crate::capabilities::Capabilities;
use crate::close::{CloseReason, Failure};
use crate::framer::{Piece, decode_failure, malformed_frame, unexpected_body, unexpected_frame};
use crate::sasl::{Credentials, Mechanism};
use crate::whole::Limits;

/// AMQP 0-9 announces itself like this; to this side it is no different from 0-9-1.
const PROTOCOL_HEADER_0_9: [u8; 8] = *b"AMQP\x01\x01\x00\x09";

impl Connection {
    /// Lets a client in after [`Event::Login`], and proposes limits to it.
    pub fn login_accepted(&mut self, now: Instant) {
        if self.phase != Phase::LoginPending {
            return;
        }
        self.timers.set_now(now);
        let tune = connection::Tune {
            channel_max: self.config.channel_max,
            frame_max: self.own_frame_max(),
            heartbeat: self.config.heartbeat_s,
        };
        tune.write_frame(0, &mut self.output);
        self.phase = Phase::Tuning;
    }

    /// Refuses a client after [`Event::Login`]. One that announced `authentication_failure_close` gets a
    /// `connection.close` with code 403, any other just sees the socket close.
    ///
    /// [`login_refusal`](crate::login_refusal) has the explanation that clients know.
    pub fn login_refused(&mut self, explanation: &str, now: Instant) {
        if self.phase != Phase::LoginPending {
            return;
        }
        self.timers.set_now(now);
        let failure = Failure::new(ACCESS_REFUSED, explanation);
        if self.capabilities.authentication_failure_close() {
            self.close_for(failure);
        } else {
            self.end(Some(failure.into_reason()));
        }
    }

    /// Lets a client into the virtual host that it asked for with [`Event::Open`].
    pub fn open_accepted(&mut self, now: Instant) {
        if self.phase != Phase::OpenPending {
            return;
        }
        self.timers.set_now(now);
        connection::OpenOk {}.write_frame(0, &mut self.output);
        self.timers.opened();
        self.phase = Phase::Running;
    }

    /// Does not let a client into a virtual host: closes the connection, usually with code 530.
    pub fn open_refused(&mut self, code: u16, explanation: &str, now: Instant) {
        if self.phase != Phase::OpenPending {
            return;
        }
        self.timers.set_now(now);
        let open = (connection::Open::CLASS_ID, connection::Open::METHOD_ID);
        self.close_for(Failure::of(code, explanation, open));
    }

    /// The limit that this side proposes.
    fn own_frame_max(&self) -> u32 {
        self.config.frame_max.max(FRAME_MIN_SIZE)
    }

    /// Takes the protocol header; a wrong byte in it is answered as soon as it is seen.
    pub(super) fn protocol_header_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let seen = &input[..input.len().min(PROTOCOL_HEADER.len())];
        let is_known =
            [PROTOCOL_HEADER, PROTOCOL_HEADER_0_9].iter().any(|header| header.starts_with(seen));
        if !is_known {
            self.output.extend_from_slice(&PROTOCOL_HEADER);
            let reason = CloseReason::silent(format!("bad protocol header {}", ErlangBinary(seen)));
            self.leave(Phase::Refused, self.config.linger_timeout);
            self.reason = Some(Box::new(reason.clone()));
            *input = &[];
            return Step::Event(Event::Closed(Box::new(reason)));
        }
        if seen.len() < PROTOCOL_HEADER.len() {
            return Step::More;
        }
        *input = &input[PROTOCOL_HEADER.len()..];
        self.write_start();
        self.phase = Phase::Starting;
        Step::Again
    }

    fn write_start(&mut self) {
        let mut properties = Vec::with_capacity(self.config.server_properties.encoded_len());
        self.config.server_properties.encode(&mut properties);
        let mechanisms = self.config.mechanisms.names();
        let start = connection::Start {
            version_major: VERSION_MAJOR,
            version_minor: VERSION_MINOR,
            server_properties: Table::from_entries(&properties[4..]),
            mechanisms: mechanisms.as_bytes(),
            locales: b"en_US",
        };
        start.write_frame(0, &mut self.output);
    }

    /// Takes a frame before the connection is open.
    pub(super) fn handshake_step<'a>(&mut self, input: &mut &'a [u8]) -> Step<'a> {
        let frame = match self.framer.next(input) {
            Piece::Frame(frame) => frame,
            Piece::Body(body) => return self.fail(unexpected_body(&body)),
            Piece::More => return Step::More,
            Piece::Broken(failure) => return self.fail_for_good(failure),
        };
        if frame.channel != 0 {
            return self.fail(unexpected_frame(frame));
        }
        match frame.kind {
            FrameKind::Method => self.handshake_method(frame),
            FrameKind::Heartbeat if frame.payload.is_empty() => Step::Again,
            FrameKind::Heartbeat => self.fail(malformed_frame(frame)),
            FrameKind::Header | FrameKind::Body => self.fail(unexpected_frame(frame)),
        }
    }

    fn handshake_method<'a>(&mut self, frame: Frame<'a>) -> Step<'a> {
        let method = match Method::decode(frame.payload) {
            Ok(method) => method,
            Err(error) => return self.fail(decode_failure(error, frame.payload)),
        };
        match (self.phase, method) {
            (Phase::Starting, Method::ConnectionStartOk(start_ok)) => self.start_ok(start_ok),
            (Phase::Tuning, Method::ConnectionTuneOk(tune_ok)) => self.tune_ok(tune_ok),
            (Phase::Opening, Method::ConnectionOpen(open)) => {
                self.phase = Phase::OpenPending;
                Step::Event(Event::Open { virtual_host: open.virtual_host })
            }
            (_, Method::ConnectionClose(close)) => self.closed_by_client(close),
            (_, method) => self.fail(self.unexpected_method(&method)),
        }
    }

    /// The error for a method on channel 0 that does not belong there, or not now.
    pub(super) fn unexpected_method(&self, method: &Method<'_>) -> Failure {
        let explanation = format!("unexpected method in connection state {}", self.phase.name());
        Failure::of(CHANNEL_ERROR, explanation, (method.class_id(), method.method_id()))
    }

    fn start_ok<'a>(&mut self, start_ok: connection::StartOk<'a>) -> Step<'a> {
        let ids = (connection::StartOk::CLASS_ID, connection::StartOk::METHOD_ID);
        // Not made an owned table, which is a lot larger: the client may be anyone.
        let client_properties = start_ok.client_properties;
        if let Err(error) = client_properties.validate() {
            return self.fail(Failure::of(SYNTAX_ERROR, error.to_string(), ids));
        }
        let mechanism = Mechanism::from_name(start_ok.mechanism.as_bytes())
            .filter(|&mechanism| self.config.mechanisms.contains(mechanism));
        let Some(mechanism) = mechanism else {
            let explanation = format!("mechanism '{}' is not offered", start_ok.mechanism);
            // As from RabbitMQ, the client gets no frame: it has ignored what it was told.
            return self.fail_in_silence(Failure::of(COMMAND_INVALID, explanation, ids));
        };
        let credentials = match Credentials::parse(mechanism, start_ok.response) {
            Ok(credentials) => credentials,
            Err(explanation) => return self.fail(Failure::of(SYNTAX_ERROR, explanation, ids)),
        };
        self.capabilities = Capabilities::from_properties(client_properties);
        self.phase = Phase::LoginPending;
        Step::Event(Event::Login { credentials, client_properties })
    }

    fn tune_ok<'a>(&mut self, tune_ok: connection::TuneOk) -> Step<'a> {
        if let Err(explanation) = self.check_limits(tune_ok) {
            let tune = (connection::Tune::CLASS_ID, connection::Tune::METHOD_ID);
            return self.fail(Failure::of(NOT_ALLOWED, explanation, tune));
        }
        self.frame_max = tune_ok.frame_max;
        self.channel_max = match tune_ok.channel_max {
            0 => u16::MAX,
            channel_max => channel_max,
        };
        self.framer.set_frame_max(self.frame_max);
        self.limits = Limits::new(&self.framer, self.config.max_message_bytes);
        self.timers.start_heartbeats(tune_ok.heartbeat);
        self.phase = Phase::Opening;
        Step::Again
    }

    /// A client may lower a limit that was proposed to it, but not raise it.
    fn check_limits(&self, tune_ok: connection::TuneOk) -> Result<(), String> {
        let frame_max = tune_ok.frame_max;
        if frame_max != 0 && frame_max < FRAME_MIN_SIZE {
            return Err(format!(
                "negotiated frame_max = {frame_max} is lower than the minimum allowed value ({FRAME_MIN_SIZE})"
            ));
        }
        let frame_max_allowed = self.own_frame_max();
        if frame_max == 0 || frame_max > frame_max_allowed {
            return Err(format!(
                "negotiated frame_max = {frame_max} is higher than the maximum allowed value ({frame_max_allowed})"
            ));
        }
        let (channel_max, channel_max_allowed) = (tune_ok.channel_max, self.config.channel_max);
        if channel_max_allowed != 0 && (channel_max == 0 || channel_max > channel_max_allowed) {
            let detail = if channel_max == 0 { " (no limit)" } else { "" };
            return Err(format!(
                "negotiated channel_max = {channel_max}{detail} is higher than the maximum allowed value \
                 ({channel_max_allowed})"
            ));
        }
        Ok(())
    }
}
