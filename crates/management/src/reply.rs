//! What is answered.

use crate::call::{Call, Outcome};
use crate::fetches::Fetch;
use crate::json::Fields;
use crate::refusal::Refusal;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use serde::Serialize;
use std::future::Future;
use std::io;
use std::pin::Pin;
use tokio::sync::mpsc;

/// Makes a body that may be too large for memory.
pub(crate) trait Rows: Send {
    /// Bytes of memory that it has for as long as it lives.
    fn bytes(&self) -> usize {
        0
    }

    /// The share of memory that it was made with, if it has one. It is to be kept until all of it is sent.
    fn take_room(&mut self) -> Option<Fetch> {
        None
    }

    /// Adds the next rows to `out`. Returns whether there are more.
    ///
    /// # Errors
    /// When a row can't be written.
    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool>;
}

/// What takes more time or memory than an answer has as a rule: it is done portion by portion, between
/// which others have their turn, and ends when its client has gone.
pub(crate) trait Work: Send {
    /// Bytes that its answer needs at most. They are there before it begins, and kept until it is sent. 0 where the answer
    /// needs no more than others do.
    fn room(&self) -> usize;

    /// Does a portion. Returns the answer at the end. Its sender may still enter the vhost; what else it needs may have been
    /// taken from it since the last one.
    ///
    /// # Errors
    /// When it can't be done, or not any more.
    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal>;

    /// Whether the portions so far have changed something.
    fn has_changed(&self) -> bool {
        false
    }
}

/// Work of one portion.
struct Once {
    room: usize,
    work: fn(&Call) -> Outcome,
}

impl Work for Once {
    fn room(&self) -> usize {
        self.room
    }

    fn go_on(&mut self, call: &Call) -> Result<Option<Reply>, Refusal> {
        (self.work)(call).map(Some)
    }
}

/// What comes of a change that others decide on, as the disk.
pub(crate) type Awaited = Pin<Box<dyn Future<Output = Outcome> + Send>>;

/// What the body of an answer is.
pub(crate) enum Body {
    Empty,
    Json(Bytes),
    /// JSON that goes out as it is made.
    Rows(Box<dyn Rows>),
    Text(Bytes, &'static str),
    /// What is still to be done for it.
    Work(Box<dyn Work>),
    /// What is still to be waited for. No thread does, and none of the places for requests is taken meanwhile.
    Awaited(Awaited),
    /// What a task sends, for as long as that goes on.
    Live(mpsc::Receiver<io::Result<Bytes>>, &'static str),
}

/// An answer.
pub(crate) struct Reply {
    pub status: StatusCode,
    pub body: Body,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// No cache may keep it, not even to ask whether it is still good.
    pub no_store: bool,
    /// What it tells of waits for no disk: nothing was changed, or it is known to be durable.
    pub is_settled: bool,
    /// It has messages that were taken: nothing else has them any more.
    pub has_taken: bool,
}

impl Reply {
    fn new(status: StatusCode, body: Body) -> Self {
        let headers = Vec::new();
        Reply { status, body, headers, no_store: false, is_settled: false, has_taken: false }
    }

    /// 200 with a value.
    pub fn json(value: &impl Serialize) -> Self {
        // Maps with texts as keys and numbers that are finite can always be written.
        let text = serde_json::to_vec(value).unwrap_or_default();
        Reply::new(StatusCode::OK, Body::Json(text.into()))
    }

    /// 200 with JSON that is written already.
    pub fn json_text(text: impl Into<Bytes>) -> Self {
        Reply::new(StatusCode::OK, Body::Json(text.into()))
    }

    /// 200 with an object, of which only some members may be wanted.
    pub fn object(fields: Fields) -> Self {
        Reply::json(&fields.finish())
    }

    /// 200 with a list that is made row by row.
    pub fn rows(rows: impl Rows + 'static) -> Self {
        Reply::new(StatusCode::OK, Body::Rows(Box::new(rows)))
    }

    /// What `work` comes to.
    pub fn work(work: impl Work + 'static) -> Self {
        Reply::new(StatusCode::OK, Body::Work(Box::new(work)))
    }

    /// What `work` comes to, which needs so many bytes at most.
    pub fn once(room: usize, work: fn(&Call) -> Outcome) -> Self {
        Reply::work(Once { room, work })
    }

    /// What `outcome` comes to. It ends when its client has gone. What it has changed counts as durable: it waits for that itself.
    pub fn awaited(outcome: impl Future<Output = Outcome> + Send + 'static) -> Self {
        Reply::new(StatusCode::OK, Body::Awaited(Box::pin(outcome)))
    }

    /// 200 with what `pieces` brings.
    pub fn live(pieces: mpsc::Receiver<io::Result<Bytes>>, content_type: &'static str) -> Self {
        Reply::new(StatusCode::OK, Body::Live(pieces, content_type))
    }

    /// 200 with a text.
    pub fn text(text: impl Into<Bytes>, content_type: &'static str) -> Self {
        Reply::new(StatusCode::OK, Body::Text(text.into(), content_type))
    }

    /// 204.
    pub fn done() -> Self {
        Reply::new(StatusCode::NO_CONTENT, Body::Empty)
    }

    /// 201 for what is new, 204 for what was there.
    pub fn put(is_new: bool) -> Self {
        let status = if is_new { StatusCode::CREATED } else { StatusCode::NO_CONTENT };
        Reply::new(status, Body::Empty)
    }

    /// Says that what it tells of waits for no disk.
    pub fn settled(mut self) -> Self {
        self.is_settled = true;
        self
    }

    /// Says that it has messages that were taken.
    pub fn taken(mut self) -> Self {
        self.has_taken = true;
        self
    }

    /// Another status.
    pub fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    /// One more header; one that can't be a header is left out.
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}
