//! Bodies: those of requests, read whole within bounds, and those of answers, whole or in pieces.

use super::places::{CONNECTIONS_MAX, Kept};
use crate::BODIES_BYTES_MAX;
use crate::fetches::Fetch;
use crate::refusal::Refusal;
use crate::shares::{Share, Shares};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes of a request's body, and of one whose sender is not known before it is read.
pub(super) const BODY_BYTES_MAX: usize = 10_000_000;
pub(super) const LOGIN_BODY_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a change of policies, which may wait long for its turn: many more than what is taken of a pattern and a definition.
/// As many connections as there may be leave room to others.
pub(super) const POLICY_BODY_BYTES_MAX: usize = 64 * 1024;
const _: () = assert!(CONNECTIONS_MAX * POLICY_BODY_BYTES_MAX <= BODIES_BYTES_MAX / 2);
const TOO_LONG: &str = "Exceeded HTTP request body size limit";
/// Bytes that are read of a body before there is room for it. As many connections as there may be
/// hold less of it than the room for all.
const SMALL_BYTES_MAX: usize = 16 * 1024;
/// Bytes that are read of a body that is refused, and how long that may take.
const DRAINED_BYTES_MAX: usize = 4 * BODY_BYTES_MAX;
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a body waits for room.
const ROOM_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a body may take to come, not counting the wait for room.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the body of a request. What is longer than a little waits for room among all others, and
/// has it as long as its share lives. A user whose clients send slowly keeps no room from other users, and a client that
/// sends a little of what it has announced takes none. It has `most` bytes at most.
pub(super) async fn read(
    body: Incoming,
    most: usize,
    rooms: &Shares,
    user: &str,
) -> Result<(Bytes, Option<Share>), Refusal> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes > most as u64) {
        drain(body);
        return Err(Refusal::bad_request(TOO_LONG));
    }
    let mut body = Limited::new(body, most);
    let mut bytes = Vec::new();
    if take(&mut body, &mut bytes, SMALL_BYTES_MAX).await? {
        return Ok((bytes.into(), None));
    }
    // It is `most` at most.
    let room = room(rooms, user, announced.unwrap_or(most as u64) as usize).await?;
    take(&mut body, &mut bytes, most).await?;
    Ok((bytes.into(), Some(room)))
}

/// Waits for room. There is some for several of the largest bodies of a user.
async fn room(rooms: &Shares, user: &str, bytes: usize) -> Result<Share, Refusal> {
    match tokio::time::timeout(ROOM_TIMEOUT, rooms.take(user, bytes)).await {
        Ok(Some(room)) => Ok(room),
        Ok(None) => Err(Refusal::internal("the broker ends")),
        Err(_) => Err(Refusal::unavailable(
            "The bodies of requests fill the room that there is for them; try again later",
        )),
    }
}

/// Reads a body that is refused, within bounds, while the answer goes out: a client that sends all of it before
/// it reads would otherwise find the connection reset, and no answer.
fn drain(mut body: Incoming) {
    let reading = async move {
        let mut bytes = 0;
        while let Some(Ok(frame)) = body.frame().await {
            bytes += frame.data_ref().map_or(0, Bytes::len);
            if bytes > DRAINED_BYTES_MAX {
                return;
            }
        }
    };
    tokio::spawn(tokio::time::timeout(DRAIN_TIMEOUT, reading));
}

/// Adds what comes of a body until there are more bytes than `most`. Returns whether it has ended.
async fn take(
    body: &mut Limited<Incoming>,
    bytes: &mut Vec<u8>,
    most: usize,
) -> Result<bool, Refusal> {
    let taking = async {
        while bytes.len() <= most {
            match body.frame().await {
                None => return Ok(true),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        bytes.extend_from_slice(&data);
                    }
                }
            }
        }
        Ok::<_, Box<dyn Error + Send + Sync>>(false)
    };
    match tokio::time::timeout(BODY_TIMEOUT, taking).await {
        Ok(Ok(is_whole)) => Ok(is_whole),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::bad_request(TOO_LONG)),
        Ok(Err(_)) => Err(Refusal::bad_request("The request body ended too early")),
        Err(_) => Err(Refusal::bad_request("The request body came too slowly")),
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct Outgoing {
    content: Content,
    /// The connection keeps its place until this is sent.
    kept: Option<Kept>,
}

#[derive(Debug)]
enum Content {
    Whole(Option<Bytes>),
    /// In pieces, as they are made, for as long as there are some.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
    /// In pieces up to an empty one. An error, or none any more before that, ends the connection, so that what there is
    /// is not taken for all.
    List(mpsc::Receiver<io::Result<Bytes>>),
    /// As it comes over another connection.
    Relayed(Incoming),
}

impl Outgoing {
    pub fn empty() -> Self {
        Outgoing { content: Content::Whole(None), kept: None }
    }

    pub fn whole(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Outgoing { content: Content::Whole(bytes), kept: None }
    }

    pub fn pieces(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Outgoing { content: Content::Pieces(pieces), kept: None }
    }

    /// In pieces up to an empty one.
    pub fn list(pieces: mpsc::Receiver<io::Result<Bytes>>) -> Self {
        Outgoing { content: Content::List(pieces), kept: None }
    }

    pub fn relayed(body: Incoming) -> Self {
        Outgoing { content: Content::Relayed(body), kept: None }
    }

    /// Has a whole body keep its part of the memory for large ones until it is sent.
    pub fn hold(&mut self, fetch: Fetch) {
        if let Content::Whole(bytes) = &mut self.content {
            *bytes = bytes.take().map(|bytes| fetch.hold(bytes));
        }
    }

    /// Takes a whole body out.
    pub fn take_whole(&mut self) -> Bytes {
        match &mut self.content {
            Content::Whole(bytes) => bytes.take().unwrap_or_default(),
            _ => Bytes::new(),
        }
    }

    /// Has the connection keep its place.
    pub fn keeps(&mut self, kept: Option<Kept>) {
        self.kept = kept;
    }

    /// The user whom the connection keeps its place for.
    pub fn kept_for(&self) -> Option<&str> {
        self.kept.as_ref().map(Kept::user)
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Pieces(pieces) => {
                pieces.poll_recv(cx).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
            Content::List(pieces) => pieces.poll_recv(cx).map(|piece| match piece {
                Some(Ok(bytes)) if bytes.is_empty() => None,
                Some(piece) => Some(piece.map(Frame::data)),
                None => Some(Err(io::Error::other("the list was not sent to its end"))),
            }),
            Content::Relayed(body) => {
                let frame = Pin::new(body).poll_frame(cx);
                frame.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Pieces(_) | Content::List(_) => false,
            Content::Relayed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces(_) | Content::List(_) => SizeHint::default(),
            Content::Relayed(body) => body.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_for_room_no_longer_than_it_may() {
        let rooms = Shares::new(100, 50);
        let slow = room(&rooms, "slow", 40).await.expect("there is room");
        let refused = room(&rooms, "slow", 40).await.expect_err("its user has no more");
        assert_eq!(refused.status, hyper::StatusCode::SERVICE_UNAVAILABLE);
        let other = room(&rooms, "other", 50).await;
        assert!(other.is_ok(), "another user's room is another's");
        drop(slow);
        assert!(room(&rooms, "slow", 40).await.is_ok());
    }
}
