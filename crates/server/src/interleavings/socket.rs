//! Sockets of a simulated network, with what TCP shows of itself to a program: windows, delays, parts of what was wanted,
//! ends, resets, and a machine that vanishes.
//!
//! A socket wakes its task when the network has done something, and not otherwise.

use super::chance::Chance;
use crate::driver::ClientStream;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, sleep_until};

/// When the system gives up a machine that answers nothing.
const KEEPALIVE: Duration = Duration::from_secs(90);

/// Bytes that go together where the network is slow.
const PACKET_BYTES: usize = 1400;

/// How the network is.
#[derive(Clone)]
pub(super) struct Network {
    pub chance: Chance,
    pub latency_ms: RangeInclusive<u64>,
    /// Bytes on their way in one direction, at most.
    pub window: usize,
    /// Bytes that are read at once, at most.
    pub segment: usize,
    /// A socket takes nothing once in so many writes, though there is room.
    pub blocks_one_in: u64,
}

/// One direction.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    /// How many of these have arrived.
    arrived: usize,
    /// Bytes of the window that are in use, as far as the writer knows.
    in_use: usize,
    is_blocked: bool,
    is_end_sent: bool,
    has_end_arrived: bool,
    is_reader_gone: bool,
    /// Why no more comes.
    failed: Option<io::ErrorKind>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// What happens next does not happen before this.
    next_at: Option<Instant>,
    /// Nothing gets through.
    is_cut: bool,
    /// Bytes that get through in a second; any number if it is 0.
    rate: usize,
}

impl Pipe {
    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    fn fail(&mut self, why: io::ErrorKind) {
        self.bytes.truncate(self.arrived);
        self.failed.get_or_insert(why);
        self.wake_reader();
        self.wake_writer();
    }

    fn has_hung_up(&self) -> bool {
        self.has_end_arrived || self.failed.is_some()
    }

    /// So many bytes take their time to get through.
    fn pass(&mut self, bytes: usize) {
        if let Some(ms) = (bytes * 1000).checked_div(self.rate) {
            let from = self.next_at.map_or_else(Instant::now, |next| next.max(Instant::now()));
            self.next_at = Some(from + Duration::from_millis(ms as u64));
        }
    }

    fn is_at_end(&self) -> bool {
        self.has_end_arrived && self.bytes.is_empty()
    }
}

/// One end of a connection.
pub(super) struct Socket {
    network: Network,
    receiving: Arc<Mutex<Pipe>>,
    sending: Arc<Mutex<Pipe>>,
    throws_away: Mutex<bool>,
}

/// What cuts a connection off.
#[derive(Clone)]
pub(super) struct Cut([Arc<Mutex<Pipe>>; 2]);

impl Network {
    /// The two ends of a new connection.
    pub fn connect(&self) -> (Socket, Socket) {
        let there = Arc::<Mutex<Pipe>>::default();
        let back = Arc::<Mutex<Pipe>>::default();
        let end = |receiving: &Arc<_>, sending: &Arc<_>| Socket {
            network: self.clone(),
            receiving: Arc::clone(receiving),
            sending: Arc::clone(sending),
            throws_away: Mutex::new(false),
        };
        (end(&back, &there), end(&there, &back))
    }

    /// Has something happen to a direction when it has got there, in order.
    fn later(&self, pipe: &Arc<Mutex<Pipe>>, happens: impl FnOnce(&mut Pipe) + Send + 'static) {
        let now = Instant::now();
        let at = {
            let mut pipe = pipe.lock();
            let at = now + self.chance.ms(self.latency_ms.clone());
            let at = pipe.next_at.map_or(at, |next| next.max(at));
            *pipe.next_at.insert(at)
        };
        if at <= now {
            return happen(pipe, happens);
        }
        let pipe = Arc::clone(pipe);
        tokio::spawn(async move {
            sleep_until(at).await;
            happen(&pipe, happens);
        });
    }
}

fn happen(pipe: &Mutex<Pipe>, happens: impl FnOnce(&mut Pipe)) {
    let mut pipe = pipe.lock();
    if !pipe.is_cut {
        happens(&mut pipe);
    }
}

impl Cut {
    /// Whether the end has come to the socket that this is of.
    pub fn is_over(&self) -> bool {
        self.0[0].lock().has_hung_up()
    }

    /// Whether the socket is there no more.
    pub fn is_let_go(&self) -> bool {
        self.0[0].lock().is_reader_gone
    }

    /// So many bytes get through to the socket in a second from now on.
    pub fn slow_down(&self, rate: usize) {
        self.0[0].lock().rate = rate;
    }

    /// Nothing gets through any more, in either direction. The system notices after a while.
    pub fn cut(&self) {
        self.0.iter().for_each(|pipe| pipe.lock().is_cut = true);
        let pipes = self.0.clone();
        tokio::spawn(async move {
            tokio::time::sleep(KEEPALIVE).await;
            pipes.iter().for_each(|pipe| pipe.lock().fail(io::ErrorKind::TimedOut));
        });
    }
}

impl Socket {
    pub fn cutter(&self) -> Cut {
        Cut([Arc::clone(&self.receiving), Arc::clone(&self.sending)])
    }

    /// Has the other end find that the connection is gone.
    fn reset(&self) {
        for pipe in [&self.sending, &self.receiving] {
            self.network.later(pipe, |pipe| pipe.fail(io::ErrorKind::ConnectionReset));
        }
    }

    fn take(&self, slices: &[IoSlice<'_>], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let wanted: usize = slices.iter().map(|slice| slice.len()).sum();
        let Network { chance, window, blocks_one_in, .. } = &self.network;
        let blocks = chance.one_in(*blocks_one_in);
        let (count, is_reader_gone) = {
            let mut pipe = self.sending.lock();
            if pipe.failed.is_some() || pipe.is_end_sent {
                return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
            }
            let room = window.saturating_sub(pipe.in_use);
            pipe.is_blocked |= blocks;
            if pipe.is_blocked || room == 0 {
                pipe.writer = Some(cx.waker().clone());
            }
            if pipe.is_blocked {
                (0, false)
            } else if room == 0 {
                return Poll::Pending;
            } else {
                let room = if pipe.rate == 0 { room } else { room.min(PACKET_BYTES) };
                let count = if wanted == 0 { 0 } else { chance.some_of(wanted.min(room)) };
                pipe.pass(count);
                let mut left = count;
                for slice in slices {
                    let taken = slice.len().min(left);
                    pipe.bytes.extend(&slice[..taken]);
                    left -= taken;
                }
                pipe.in_use += count;
                (count, pipe.is_reader_gone)
            }
        };
        if blocks {
            self.network.later(&self.sending, |pipe| {
                pipe.is_blocked = false;
                pipe.wake_writer();
            });
        }
        if count == 0 {
            return if wanted == 0 { Poll::Ready(Ok(0)) } else { Poll::Pending };
        }
        if is_reader_gone {
            self.reset();
        } else {
            self.network.later(&self.sending, move |pipe| {
                pipe.arrived = (pipe.arrived + count).min(pipe.bytes.len());
                pipe.wake_reader();
            });
        }
        Poll::Ready(Ok(count))
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let count = {
            let mut pipe = self.receiving.lock();
            if pipe.arrived == 0 {
                if let Some(why) = pipe.failed {
                    return Poll::Ready(Err(why.into()));
                }
                if pipe.is_at_end() {
                    return Poll::Ready(Ok(()));
                }
                pipe.reader = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let most = pipe.arrived.min(buf.remaining()).min(self.network.segment);
            let count = self.network.chance.some_of(most);
            let (front, back) = pipe.bytes.as_slices();
            let of_front = count.min(front.len());
            buf.put_slice(&front[..of_front]);
            buf.put_slice(&back[..count - of_front]);
            pipe.bytes.drain(..count);
            pipe.arrived -= count;
            count
        };
        self.network.later(&self.receiving, move |pipe| {
            pipe.in_use -= count;
            pipe.wake_writer();
        });
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.take(&[IoSlice::new(buf)], cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.take(bufs, cx)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !std::mem::replace(&mut self.sending.lock().is_end_sent, true) {
            self.network.later(&self.sending, |pipe| {
                pipe.has_end_arrived = true;
                pipe.wake_reader();
            });
        }
        Poll::Ready(Ok(()))
    }
}

impl ClientStream for Socket {
    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn has_hung_up(&self) -> bool {
        self.receiving.lock().has_hung_up()
    }

    fn throw_away_unsent(&self) {
        *self.throws_away.lock() = true;
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_unread = {
            let mut pipe = self.receiving.lock();
            pipe.is_reader_gone = true;
            !pipe.bytes.is_empty()
        };
        // As a system does: what is not read when a socket is closed takes with it what the other end has not read.
        if is_unread || *self.throws_away.lock() {
            return self.reset();
        }
        let _ = Pin::new(self).poll_shutdown(&mut Context::from_waker(Waker::noop()));
    }
}
