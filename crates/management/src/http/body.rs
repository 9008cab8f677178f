//! Bodies: those of requests, read whole within bounds, and those of answers, whole or in pieces.

use super::places::Kept;
use crate::refusal::Refusal;
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes of a request's body.
const BODY_BYTES_MAX: usize = 10_000_000;
const TOO_LONG: &str = "Exceeded HTTP request body size limit";
/// Bytes that are read of a body before there is room for it. As many connections as there may be
/// hold less of it than the room for all.
const SMALL_BYTES_MAX: usize = 16 * 1024;
/// How long a body may take to come, not counting the wait for room.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads the body of a request. What is longer than a little waits for room among all others, and
/// has it as long as the permit lives: a client that sends slowly, or nothing of what it has
/// announced, takes no room from others.
pub(super) async fn read(
    body: Incoming,
    rooms: &Arc<Semaphore>,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Refusal> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), None));
    }
    let announced = body.size_hint().upper();
    if announced.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
        return Err(Refusal::bad_request(TOO_LONG));
    }
    let mut body = Limited::new(body, BODY_BYTES_MAX);
    let mut bytes = Vec::new();
    if take(&mut body, &mut bytes, SMALL_BYTES_MAX).await? {
        return Ok((bytes.into(), None));
    }
    // There is room for several of the largest.
    let wanted = announced.unwrap_or(BODY_BYTES_MAX as u64) as u32;
    let room = Arc::clone(rooms).acquire_many_owned(wanted).await.ok();
    take(&mut body, &mut bytes, BODY_BYTES_MAX).await?;
    Ok((bytes.into(), room))
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
    /// In pieces, as they are made; an error ends the connection, so that nobody takes what there is
    /// for all.
    Pieces(mpsc::Receiver<io::Result<Bytes>>),
    /// As it comes from somebody else.
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

    pub fn relayed(body: Incoming) -> Self {
        Outgoing { content: Content::Relayed(body), kept: None }
    }

    /// Has the connection keep its place.
    pub fn keeps(&mut self, kept: Option<Kept>) {
        self.kept = kept;
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
            Content::Relayed(body) => {
                let frame = Pin::new(body).poll_frame(cx);
                frame.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Whole(bytes) => bytes.is_none(),
            Content::Pieces(_) => false,
            Content::Relayed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces(_) => SizeHint::default(),
            Content::Relayed(body) => body.size_hint(),
        }
    }
}
