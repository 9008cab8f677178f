//! An answer that comes by and by, as server-sent events.

use super::{connect, content_type, good, lost, read as read_whole, request};
use crate::failure::{Failure, TEMPORARY};
use crate::target::Target;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Response};
use serde_json::Value;
use std::time::Duration;

/// How long nothing may come: a broker sends something every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bytes of one line.
const LINE_BYTES_MAX: usize = 16 << 20;

/// An answer of which there is more to come, and what keeps its connection.
pub(super) struct Begun {
    answer: Response<Incoming>,
    _sender: SendRequest<Full<Bytes>>,
}

/// Asks for what is at a path, over a connection of its own.
pub(super) async fn begin(target: &Target, path: &str) -> Result<Begun, Failure> {
    let mut sender = connect(target).await?;
    let asked = request(target, &Method::GET, path, &Bytes::new(), &[])?;
    let answer = sender.send_request(asked).await.map_err(|error| lost(target, &error))?;
    if answer.status().is_success() && content_type(&answer).starts_with("text/event-stream") {
        return Ok(Begun { answer, _sender: sender });
    }
    let refused = good(read_whole(target, answer).await?);
    Err(refused.err().unwrap_or_else(|| Failure::answer("it is no stream of events")))
}

/// Hands on the data of each event, as long as `take` says so.
pub(super) async fn read(
    target: &Target,
    begun: Begun,
    mut take: impl FnMut(&Value) -> bool,
) -> Result<(), Failure> {
    let mut body = begun.answer.into_body();
    let mut lines = Lines::default();
    loop {
        let frame = tokio::time::timeout(SILENCE_MAX, body.frame()).await.map_err(|_| {
            let silence_s = SILENCE_MAX.as_secs();
            let text = format!("Error: nothing came from {target} for {silence_s} seconds");
            Failure::new(TEMPORARY, text)
        })?;
        let Some(frame) = frame else { return Ok(()) };
        let frame = frame.map_err(|error| lost(target, &error))?;
        for data in lines.add(frame.data_ref().map_or(&[][..], |data| data))? {
            if !take(&data) {
                return Ok(());
            }
        }
    }
}

/// Lines that come in pieces.
#[derive(Default)]
struct Lines(Vec<u8>);

impl Lines {
    /// The data of the events that are whole with this piece.
    fn add(&mut self, piece: &[u8]) -> Result<Vec<Value>, Failure> {
        self.0.extend_from_slice(piece);
        let mut events = Vec::new();
        let mut from = 0;
        while let Some(length) = self.0[from..].iter().position(|byte| *byte == b'\n') {
            if let Some(data) = self.0[from..from + length].strip_prefix(b"data:") {
                events.push(serde_json::from_slice(data).map_err(Failure::answer)?);
            }
            from += length + 1;
        }
        self.0.drain(..from);
        match self.0.len() > LINE_BYTES_MAX {
            true => Err(Failure::answer("a line without an end")),
            false => Ok(events),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn events_are_whole_however_they_are_cut() {
        let text = b": hello\n\nevent: a\ndata: {\"n\":1}\n\ndata: {\"n\":2}\n\n";
        for cut in 0..text.len() {
            let mut lines = Lines::default();
            let mut all = lines.add(&text[..cut]).expect("events");
            all.extend(lines.add(&text[cut..]).expect("events"));
            assert_eq!(all, [json!({ "n": 1 }), json!({ "n": 2 })], "{cut}");
        }
        Lines::default().add(b"data: no\n").expect_err("no JSON");
    }
}
