//! Lists that may be too long for memory: made piece by piece, as their client takes them.
//!
//! Who makes a piece has one of the places for answers, and a thread. While a piece waits for its
//! client neither is held: clients that don't read hold up nobody.

use super::body::Outgoing;
use crate::reply::Rows;
use crate::shares::Shares;
use bytes::Bytes;
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

/// A list that is being made.
pub(crate) struct Long {
    rows: Box<dyn Rows>,
    encoder: Option<GzEncoder<Vec<u8>>>,
    /// What has been made and has not been sent.
    made: Vec<u8>,
}

impl Long {
    pub fn new(rows: Box<dyn Rows>, is_gzip: bool) -> Self {
        let encoder = is_gzip.then(gzip_encoder);
        Long { rows, encoder, made: Vec::new() }
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

    /// What has been made.
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.made).into()
    }

    /// Has what is made, and what comes behind it, sent piece by piece. Each is made in one of
    /// `user`'s `places`, and may wait so long for its client.
    pub fn send(mut self, places: Arc<Shares>, user: String, patience: Duration) -> Outgoing {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut piece = Ok(self.take());
            loop {
                let is_last = piece.is_err();
                // An error ends the connection, so that nobody takes what there is for all.
                if sender.send_timeout(piece, patience).await.is_err() || is_last {
                    return;
                }
                let Some(place) = places.take(&user, 1).await else { return };
                let making = tokio::task::spawn_blocking(move || {
                    let made = self.make(PIECE_BYTES);
                    drop(place);
                    (self, made)
                });
                let Ok((long, made)) = making.await else { return };
                self = long;
                piece = match made {
                    Ok(true) => Ok(self.take()),
                    Ok(false) => {
                        let rest = self.take();
                        if !rest.is_empty() {
                            drop(sender.send_timeout(Ok(rest), patience).await);
                        }
                        return;
                    }
                    Err(error) => Err(error),
                };
            }
        });
        Outgoing::pieces(receiver)
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Rows without an end, which counts how often it is asked for some.
    struct Endless(&'static [u8], Arc<AtomicUsize>);

    impl Rows for Endless {
        fn write_some(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
            out.extend_from_slice(self.0);
            Ok(self.1.fetch_add(1, Ordering::Relaxed) < 100_000)
        }
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
