//! Lists that may be too long for memory: made piece by piece, as their client takes them.
//!
//! A piece is made in one of the places for answers, and on a thread. While it waits for its client neither is held:
//! clients that don't read hold up no others. What a list has in memory meanwhile counts as what large answers have.

use super::body::Outgoing;
use super::current::current;
use crate::fetches::Fetch;
use crate::listener::Listener;
use crate::reply::Rows;
use crate::shares::Shares;
use bytes::Bytes;
use courser_broker::admin::Admin;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes from which on a piece goes out.
const PIECE_BYTES: usize = 64 * 1024;
/// How often rows are asked for more before a piece goes out all the same: rows may be short, and pack well.
const TURNS_MAX: usize = 256;
/// How long a piece may wait for its client.
pub(crate) const PIECE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long all of a list may take: until then, what it lists is in memory, even if it has been deleted.
const WHOLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// Bytes that a list takes besides what it lists: a piece on its way and the one that is made, and the encoder's.
const PIECES_BYTES: usize = 4 * PIECE_BYTES;
const ENCODER_BYTES: usize = 384 * 1024;

/// What is made already. It goes out as a list does, and within the same time, so that a client that takes little at a time
/// does not keep it for as long as it likes.
struct Ready(Bytes);

impl Rows for Ready {
    fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        // A copy: what is on its way keeps no more than itself.
        out.extend_from_slice(&self.0.split_to(self.0.len().min(PIECE_BYTES)));
        Ok(!self.0.is_empty())
    }
}

/// A list that is being made.
pub(crate) struct Long {
    rows: Box<dyn Rows>,
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// What has been made and has not been sent.
    made: Vec<u8>,
    largest_piece_bytes: usize,
    /// The memory that it has.
    fetch: Option<Fetch>,
}

impl Long {
    pub fn new(rows: Box<dyn Rows>, is_gzip: bool) -> Self {
        let encoder = is_gzip.then(gzip_encoder);
        Long { rows, encoder, made: Vec::new(), largest_piece_bytes: 0, fetch: None }
    }

    /// What is made already, in pieces.
    pub fn ready(bytes: Bytes) -> Self {
        Long::new(Box::new(Ready(bytes)), false)
    }

    /// Bytes of memory that it has until all of it is sent.
    pub fn bytes(&self) -> usize {
        let encoder = self.encoder.as_ref().map_or(0, |_| ENCODER_BYTES);
        self.rows.bytes() + PIECES_BYTES + encoder
    }

    /// Bytes that are made and not sent.
    pub fn made_bytes(&self) -> usize {
        self.made.len()
    }

    /// The share of memory that its rows were made with.
    pub fn take_room(&mut self) -> Option<Fetch> {
        self.rows.take_room()
    }

    /// Has its memory count until then.
    pub fn hold(&mut self, fetch: Fetch) {
        self.fetch = Some(fetch);
    }

    /// Makes more, until there are `enough` bytes or it has taken long. Returns whether there is still more to be made.
    pub fn make(&mut self, enough: usize) -> io::Result<bool> {
        let mut text = Vec::new();
        for _ in 0..TURNS_MAX {
            if self.made.len() >= enough {
                break;
            }
            text.clear();
            let has_more = self.rows.write_some(&mut text)?;
            match &mut self.encoder {
                None => self.made.append(&mut text),
                Some(encoder) => {
                    encoder.write_all(&text)?;
                    if !has_more {
                        encoder.try_finish()?;
                    }
                    self.made.append(encoder.get_mut());
                }
            }
            if !has_more {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What has been made, without the room that it would have for more.
    pub fn take(&mut self) -> Bytes {
        self.largest_piece_bytes = self.largest_piece_bytes.max(self.made.len());
        std::mem::take(&mut self.made).into_boxed_slice().into()
    }

    /// Bytes of memory that it has while pieces wait for its client: one of them and the next may be larger than others, as rows
    /// that are made at once may be.
    pub fn waiting_bytes(&self) -> usize {
        let largest = self.largest_piece_bytes.max(self.made.len());
        self.bytes() + 2 * largest.saturating_sub(PIECE_BYTES)
    }

    /// Has what is made, and what comes behind it, sent piece by piece. Each is made in one of
    /// `user`'s `places`, and may wait so long for its client. It ends with the right of who listens, if that is known, and
    /// when all of it is certainly current, if there is an `admin` who knows.
    pub fn send(
        self,
        places: Arc<Shares>,
        user: String,
        listener: Option<Listener>,
        admin: Option<Admin>,
        patience: Duration,
    ) -> Outgoing {
        sent_in_pieces(patience, |pieces| self.send_to(pieces, places, user, listener, admin))
    }

    /// Returns early when the client has gone, may not hear more or takes nothing, when there is no memory for what comes, or
    /// when the broker ends.
    async fn send_to(
        mut self,
        pieces: Pieces,
        places: Arc<Shares>,
        user: String,
        mut listener: Option<Listener>,
        admin: Option<Admin>,
    ) -> Option<()> {
        let mut has_more = true;
        loop {
            let piece = self.take();
            let bytes = self.waiting_bytes();
            if let Some(fetch) = &mut self.fetch
                && !fetch.count(bytes)
            {
                drop(piece);
                return pieces.fail(io::ErrorKind::OutOfMemory.into()).await;
            }
            pieces.send(piece).await?;
            if !has_more {
                // A list without an end is none: another node may lead by now.
                return match &admin {
                    Some(admin) if current(admin).await.is_err() => {
                        pieces.fail(io::ErrorKind::Interrupted.into()).await
                    }
                    _ => pieces.end().await,
                };
            }
            // What comes is as it is now, not as it was when the list was asked for. Another program may be asked, which takes
            // its time: that holds no place.
            if let Some(listener) = &mut listener
                && !listener.may_listen().await
            {
                return pieces.fail(io::ErrorKind::PermissionDenied.into()).await;
            }
            let place = places.take(&user, 1).await?;
            let making = tokio::task::spawn_blocking(move || {
                let made = self.make(PIECE_BYTES);
                drop(place);
                (self, made)
            });
            let made;
            (self, made) = making.await.ok()?;
            match made {
                Ok(more) => has_more = more,
                Err(error) => return pieces.fail(error).await,
            }
        }
    }
}

/// The pieces of a list on their way to its client. Without an end the connection ends, so that a part is not taken for all.
pub(crate) struct Pieces {
    sender: mpsc::Sender<io::Result<Bytes>>,
    patience: Duration,
}

/// The body that `sending` sends piece by piece, each of which may wait so long for its client.
pub(crate) fn sent_in_pieces<F>(patience: Duration, sending: impl FnOnce(Pieces) -> F) -> Outgoing
where
    F: Future<Output = Option<()>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(1);
    let sending = sending(Pieces { sender, patience });
    tokio::spawn(tokio::time::timeout(WHOLE_TIMEOUT, sending));
    Outgoing::list(receiver)
}

impl Pieces {
    /// Sends a piece, if there is anything in it. `None` when the client has gone, or takes nothing.
    pub async fn send(&self, piece: Bytes) -> Option<()> {
        match piece.is_empty() {
            true => Some(()),
            false => self.sender.send_timeout(Ok(piece), self.patience).await.ok(),
        }
    }

    /// Waits until the client has gone: what is made for it keeps nothing any more then.
    pub async fn closed(&self) {
        self.sender.closed().await;
    }

    /// Says that this was all.
    pub async fn end(self) -> Option<()> {
        self.sender.send_timeout(Ok(Bytes::new()), self.patience).await.ok()
    }

    /// Says that there is no more, though this was not all.
    pub async fn fail(self, error: io::Error) -> Option<()> {
        self.sender.send_timeout(Err(error), self.patience).await.ok()
    }
}

/// Compresses what goes out.
pub(crate) fn gzip_encoder() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::fast())
}

/// Bytes compressed, if that can be done.
pub(crate) fn gzip(bytes: &[u8]) -> Option<Bytes> {
    let mut encoder = gzip_encoder();
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok().map(Bytes::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rows without an end, which counts how often it is asked for some.
    struct Endless(&'static [u8], Arc<AtomicUsize>);

    impl Rows for Endless {
        fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
            out.extend_from_slice(self.0);
            Ok(self.1.fetch_add(1, Ordering::Relaxed) < 100_000)
        }
    }

    /// What comes of a list of so many rows that is sent with so many of them left out at the end.
    async fn sent(rows: usize, patience: Duration, reads: usize) -> (usize, Option<io::Error>) {
        let mut left = rows;
        let rows = Few(move || {
            left -= 1;
            left > 0
        });
        let places = Arc::new(Shares::new(1, 1));
        let mut body =
            Long::new(Box::new(rows), false).send(places, "user".into(), None, None, patience);
        let mut bytes = 0;
        for nth in 0.. {
            if nth == reads {
                tokio::time::sleep(WHOLE_TIMEOUT).await;
            }
            match body.frame().await {
                None => return (bytes, None),
                Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, Bytes::len),
                Some(Err(error)) => return (bytes, Some(error)),
            }
        }
        unreachable!("it ends")
    }

    /// Rows of 4 KiB, as long as there are more.
    struct Few<F>(F);

    impl<F: FnMut() -> bool + Send> Rows for Few<F> {
        fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
            out.extend_from_slice(&[b' '; 4096]);
            Ok((self.0)())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_not_sent_to_its_end_is_an_error() {
        let (bytes, error) = sent(100, PIECE_TIMEOUT, usize::MAX).await;
        assert!(bytes == 100 * 4096 && error.is_none(), "{bytes} {error:?}");
        let (bytes, error) = sent(100, PIECE_TIMEOUT, 2).await;
        assert!(
            bytes < 100 * 4096 && error.is_some(),
            "its client took nothing: {bytes} {error:?}"
        );
        let (bytes, error) = sent(100, 2 * WHOLE_TIMEOUT, 2).await;
        assert!(bytes < 100 * 4096 && error.is_some(), "it took too long: {bytes} {error:?}");
    }

    #[test]
    fn rows_that_make_few_bytes_leave_their_place_to_others_from_time_to_time() {
        for (row, is_gzip) in [(&b"[],"[..], false), (&[b' '; 4096], true)] {
            let turns = Arc::new(AtomicUsize::new(0));
            let mut long = Long::new(Box::new(Endless(row, Arc::clone(&turns))), is_gzip);
            let has_more = long.make(PIECE_BYTES).expect("they can be written");
            assert!(has_more, "it goes on later");
            assert_eq!(turns.load(Ordering::Relaxed), TURNS_MAX);
        }
    }
}
