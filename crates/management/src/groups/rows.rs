//! Lists of all groups, merged row by row.
//!
//! Each group sends its rows in order, with what they are sorted by. Of each, one piece is in memory; what is in front of the page
//! that is asked for is read and thrown away, so that no page takes more memory than another.

use super::Groups;
use super::answer::ask_all;
use super::gather::begin;
use super::link::{Question, lost};
use crate::call::Call;
use crate::http::answer::{Answer, refusal, set_content_type};
use crate::http::body::Outgoing;
use crate::http::long::{Pieces, gzip_encoder, sent_in_pieces};
use crate::list::{Frame, Head, Order, Page, Row};
use crate::listener::Listener;
use crate::refusal::Refusal;
use bytes::{Buf, Bytes, BytesMut};
use flate2::write::GzEncoder;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, HeaderValue};
use hyper::{Response, StatusCode};
use std::cmp::Ordering;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a row.
const ROW_BYTES_MAX: usize = 16 << 20;
/// Bytes up to which a list goes out whole.
const WHOLE_BYTES_MAX: usize = 128 << 10;
/// Bytes from which on a piece of it goes out.
const PIECE_BYTES: usize = 64 << 10;
/// How long a piece may wait for its client.
const PIECE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a group may take for the next rows.
const ROWS_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers with a list of all groups.
pub(super) async fn answered(
    mut call: Call,
    answer: Answer,
    groups: &dyn Groups,
) -> Response<Outgoing> {
    let _begun = match begin(&mut call, answer.route.needs, groups).await {
        Ok(begun) => begun,
        Err(refused) => return refusal(&refused),
    };
    match merged(&Arc::new(call), &answer).await {
        Ok(answered) => answered,
        Err(refused) => refused.unwrap_or_else(|refused| refusal(&refused)),
    }
}

/// What is answered instead: what a group says, or a refusal of this process.
type Instead = Result<Response<Outgoing>, Refusal>;

async fn merged(call: &Arc<Call>, answer: &Answer) -> Result<Response<Outgoing>, Instead> {
    let question = Question { rows: true, ..Question::of_part(call) };
    let mut lists = Vec::new();
    for (group, answered) in ask_all(call, question).await {
        let answered = answered.map_err(Err)?;
        if answered.status() != StatusCode::OK {
            return Err(Ok(super::answer::relayed(answered)));
        }
        lists.push(Lines { group, body: answered.into_body(), read: BytesMut::new(), at: 0 });
    }
    let is_reversed = Order::asked(call).is_some_and(|order| order.is_reversed);
    let (head, mut rows) = Merge::begin(lists, is_reversed).await.map_err(Err)?;
    let frame = match head.is_page {
        false => Frame::of_list(),
        true => page(call, head, &mut rows).await.map_err(Err)?,
    };
    let listener = Listener::of_list(call, answer.route.needs);
    sent(rows, frame, listener, answer.is_gzip_wanted).await.map_err(Err)
}

/// Goes to the page that is asked for: what stands around it.
async fn page(call: &Call, head: Head, rows: &mut Merge) -> Result<Frame, Refusal> {
    let Some(page) = Page::asked(call)? else {
        return Err(Refusal::internal("the request asks for no page"));
    };
    page.check_range(head.filtered)?;
    for _ in 0..page.first() {
        rows.next().await?;
    }
    rows.left = page.size.min(head.filtered.saturating_sub(page.first()));
    Ok(Frame::of_page(&page, rows.left, head.filtered, head.total))
}

/// The rows that are left; if they are many, the rest of them goes out as it comes.
async fn sent(
    mut rows: Merge,
    frame: Frame,
    listener: Option<Listener>,
    is_gzip: bool,
) -> Result<Response<Outgoing>, Refusal> {
    let mut text = Text::new(frame, is_gzip)?;
    let mut answer = Response::new(Outgoing::empty());
    set_content_type(&mut answer, "application/json");
    if is_gzip {
        answer.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let has_more = text.fill(&mut rows, WHOLE_BYTES_MAX).await?;
    *answer.body_mut() = match has_more {
        false => Outgoing::whole(text.take()),
        true => sent_in_pieces(PIECE_TIMEOUT, |pieces| send(rows, text, listener, pieces)),
    };
    Ok(answer)
}

async fn send(
    mut rows: Merge,
    mut text: Text,
    mut listener: Option<Listener>,
    pieces: Pieces,
) -> Option<()> {
    let mut has_more = true;
    loop {
        pieces.send(text.take()).await?;
        if !has_more {
            return pieces.end().await;
        }
        if let Some(listener) = &mut listener
            && !listener.may_listen().await
        {
            return pieces.fail(io::ErrorKind::PermissionDenied.into()).await;
        }
        let filled = tokio::select! {
            filled = text.fill(&mut rows, PIECE_BYTES) => filled,
            () = pieces.closed() => return None,
        };
        has_more = match filled {
            Ok(has_more) => has_more,
            Err(refused) => {
                let why = refused.body.map_or_else(String::new, |(_, reason)| reason.to_string());
                tracing::debug!(why, "a list of all groups was cut off");
                return pieces.fail(io::Error::other(why)).await;
            }
        };
    }
}

/// The text of a list, as far as it is made and not sent.
struct Text {
    made: Vec<u8>,
    encoder: Option<GzEncoder<Vec<u8>>>,
    is_begun: bool,
    behind: Vec<u8>,
}

impl Text {
    fn new(frame: Frame, is_gzip: bool) -> Result<Self, Refusal> {
        let Frame { before, behind } = frame;
        let (encoder, is_begun) = (is_gzip.then(gzip_encoder), false);
        let mut text = Text { made: Vec::new(), encoder, is_begun, behind };
        text.add(&[&before]).map_err(Refusal::internal)?;
        Ok(text)
    }

    /// Adds rows until there is enough. Returns whether there are more.
    async fn fill(&mut self, rows: &mut Merge, enough: usize) -> Result<bool, Refusal> {
        while self.made.len() < enough {
            let row = rows.next().await?;
            match &row {
                Some(row) => {
                    let before: &[u8] = if self.is_begun { b"," } else { b"" };
                    self.is_begun = true;
                    self.add(&[before, row.object.as_bytes()]).map_err(Refusal::internal)?;
                }
                None => {
                    let behind = std::mem::take(&mut self.behind);
                    self.add(&[&behind]).map_err(Refusal::internal)?;
                    if let Some(mut encoder) = self.encoder.take() {
                        encoder.try_finish().map_err(Refusal::internal)?;
                        self.made.append(encoder.get_mut());
                    }
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn add(&mut self, texts: &[&[u8]]) -> io::Result<()> {
        for text in texts {
            match &mut self.encoder {
                None => self.made.extend_from_slice(text),
                Some(encoder) => {
                    encoder.write_all(text)?;
                    self.made.append(encoder.get_mut());
                }
            }
        }
        Ok(())
    }

    fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.made).into()
    }
}

/// The lists of all groups as one.
struct Merge {
    lists: Vec<(Option<Row>, Lines)>,
    is_reversed: bool,
    /// How many more are wanted.
    left: usize,
}

impl Merge {
    /// Reads the first lines of all lists.
    async fn begin(lists: Vec<Lines>, is_reversed: bool) -> Result<(Head, Self), Refusal> {
        let mut all = Head::default();
        let mut begun = Vec::new();
        for mut lines in lists {
            let head = lines.head().await?;
            all.is_page |= head.is_page;
            all.total += head.total;
            all.filtered += head.filtered;
            begun.push((lines.next().await?, lines));
        }
        Ok((all, Merge { lists: begun, is_reversed, left: usize::MAX }))
    }

    /// The next row. Of those that are equal, that of the first group: it has all that are at the same place.
    async fn next(&mut self) -> Result<Option<Row>, Refusal> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let is_reversed = self.is_reversed;
        let order = |one: &Row, other: &Row| {
            let order = (&one.key, &one.place).cmp(&(&other.key, &other.place));
            if is_reversed { order.reverse() } else { order }
        };
        let mut first: Option<(usize, &Row)> = None;
        for (nth, (row, _)) in self.lists.iter().enumerate() {
            let Some(row) = row else { continue };
            if first.is_none_or(|(_, before)| order(row, before) == Ordering::Less) {
                first = Some((nth, row));
            }
        }
        let Some((nth, _)) = first else { return Ok(None) };
        let (row, lines) = &mut self.lists[nth];
        let next = lines.next().await?;
        Ok(std::mem::replace(row, next))
    }
}

/// The lines of a group's answer.
struct Lines {
    group: u16,
    body: Incoming,
    /// What has come, of which `at` bytes have no line break.
    read: BytesMut,
    at: usize,
}

impl Lines {
    async fn head(&mut self) -> Result<Head, Refusal> {
        let line = self.line().await?;
        let head = line.as_deref().and_then(|line| serde_json::from_str(line).ok());
        head.ok_or_else(|| lost(self.group, &"its list has no beginning"))
    }

    async fn next(&mut self) -> Result<Option<Row>, Refusal> {
        match self.line().await? {
            None => Ok(None),
            Some(line) => match Row::read(&line) {
                Some(row) => Ok(Some(row)),
                None => Err(lost(self.group, &"a row of its list can't be read")),
            },
        }
    }

    /// The next line; none at the end.
    async fn line(&mut self) -> Result<Option<String>, Refusal> {
        loop {
            if let Some(at) = self.read[self.at..].iter().position(|byte| *byte == b'\n') {
                let line = self.read.split_to(self.at + at);
                self.read.advance(1);
                self.at = 0;
                let line = String::from_utf8(line.to_vec());
                return line.map(Some).map_err(|error| lost(self.group, &error));
            }
            self.at = self.read.len();
            if self.at > ROW_BYTES_MAX {
                return Err(lost(self.group, &"a row of its list is too long"));
            }
            let coming = tokio::time::timeout(ROWS_TIMEOUT, self.body.frame()).await;
            match coming.map_err(|_| lost(self.group, &"it sends nothing more"))? {
                None if self.read.is_empty() => return Ok(None),
                None => return Err(lost(self.group, &"its list was cut off")),
                Some(Err(error)) => return Err(lost(self.group, &error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.read.extend_from_slice(&data);
                    }
                }
            }
        }
    }
}
