//! What a client and the node that leads say to each other, in both directions.
//!
//! Only this node sees the client's socket: one that takes nothing is given up here, as it is where clients are served, and so is
//! one that has gone while the node that leads reads nothing of it; of a WebSocket, that is noticed only when it is read again.
//! And here it is seen when the node that leads has let the client in, which keeps its place from then on.

use super::drain::FAREWELL;
use super::opening::Opening;
use crate::driver::{BUFFERS_KEPT, ClientStream};
use crate::places::Place;
use courser_store::critical::{self, Work};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Bytes that are on their way, each direction.
const BYTES: usize = 64 << 10;
/// How often to look whether the node is done with a client that takes nothing, and whether a client has gone of which the
/// node takes nothing.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Both have said everything.
    Said,
    /// The node is done with the client, which may never end by itself.
    Left,
    /// The client takes nothing of what it is sent.
    Stalled,
    /// The client has gone, and the node takes nothing of what it has said.
    Gone,
    /// Another client has got its place before it has logged in.
    NoPlace,
}

/// Carries what they say until one of them ends. The client keeps its place once the node has let it in, which `opening`
/// tells. A client that takes nothing may do so for `send_timeout`; for ever, if
/// there is none.
pub(super) async fn pass<S, T>(
    client: &mut S,
    node: &mut T,
    place: &mut Place,
    opening: Opening,
    send_timeout: Option<Duration>,
) -> io::Result<End>
where
    S: ClientStream,
    T: ClientStream,
{
    let (mut up, mut down) = (Direction::new(), Direction::new());
    let mut opening = Some(opening);
    let mut bounds = Bounds::new(send_timeout);
    let mut quiet = Quiet::default();
    poll_fn(|cx| {
        let said_up = up.poll(cx, client, node, |_| {})?;
        let mut is_opened = false;
        let said_down = down.poll(cx, node, client, |said| {
            if opening.as_mut().is_some_and(|opening| opening.is_in(said)) {
                (opening, is_opened) = (None, true);
            }
        })?;
        if is_opened && !place.keep() {
            return Poll::Ready(Ok(End::NoPlace));
        }
        if said_up.is_ready() && said_down.is_ready() {
            return Poll::Ready(Ok(End::Said));
        }
        up.note_passed_on(node);
        down.note_passed_on(client);
        quiet.poll(cx, up.taken + down.taken, client, node);
        bounds.note(&up, &down);
        bounds.poll(cx, client, node).map(Ok)
    })
    .await
}

/// What one says to the other.
struct Direction {
    bytes: Box<[u8]>,
    /// Which of the bytes are on their way.
    from: usize,
    to: usize,
    /// The one has said everything.
    has_ended: bool,
    /// The other one knows.
    is_shut: bool,
    /// The other one's stream may hold some of it.
    is_unflushed: bool,
    /// The other one takes nothing now.
    waits: bool,
    /// How often it has taken something.
    taken: u64,
    /// Bytes that its stream has passed on.
    passed_on: u64,
}

impl Direction {
    fn new() -> Self {
        Direction {
            bytes: vec![0; BYTES].into(),
            from: 0,
            to: 0,
            has_ended: false,
            is_shut: false,
            is_unflushed: false,
            waits: false,
            taken: 0,
            passed_on: 0,
        }
    }

    /// Takes note of it if the other one takes some of what its stream keeps.
    fn note_passed_on(&mut self, writer: &impl ClientStream) {
        let passed_on = writer.passed_on();
        self.taken += u64::from(passed_on != self.passed_on);
        self.passed_on = passed_on;
    }

    /// Carries what there is, of which `heard` is told. Ready when everything has been said.
    fn poll<R, W>(
        &mut self,
        cx: &mut Context<'_>,
        reader: &mut R,
        writer: &mut W,
        mut heard: impl FnMut(&[u8]),
    ) -> Poll<io::Result<()>>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        critical::check(Work::Socket);
        loop {
            self.waits = true;
            while self.from < self.to {
                let rest = &self.bytes[self.from..self.to];
                let count = ready!(Pin::new(&mut *writer).poll_write(cx, rest))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.from += count;
                self.taken += 1;
                self.is_unflushed = true;
            }
            if self.has_ended {
                if !self.is_shut {
                    ready!(Pin::new(&mut *writer).poll_shutdown(cx))?;
                }
                (self.is_shut, self.waits) = (true, false);
                return Poll::Ready(Ok(()));
            }
            let mut read = ReadBuf::new(&mut self.bytes);
            if Pin::new(&mut *reader).poll_read(cx, &mut read)?.is_pending() {
                if self.is_unflushed {
                    ready!(Pin::new(&mut *writer).poll_flush(cx))?;
                }
                (self.is_unflushed, self.waits) = (false, false);
                return Poll::Pending;
            }
            heard(read.filled());
            (self.from, self.to) = (0, read.filled().len());
            self.has_ended = self.to == 0;
        }
    }
}

/// How long it goes on with a client that does not do its part.
struct Bounds {
    send_timeout: Option<Duration>,
    /// Since when the client takes nothing, and how often it had taken something by then.
    stalled: Option<(Instant, u64)>,
    /// The same of the node.
    held_back: Option<(Instant, u64)>,
    /// Since when it is known that the node has nothing more to say.
    ended_at: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Bounds {
    fn new(send_timeout: Option<Duration>) -> Self {
        Bounds { send_timeout, stalled: None, held_back: None, ended_at: None, timer: None }
    }

    fn note(&mut self, up: &Direction, down: &Direction) {
        if down.has_ended {
            self.ended_at.get_or_insert_with(Instant::now);
        }
        for (since, way) in [(&mut self.stalled, down), (&mut self.held_back, up)] {
            *since = match *since {
                _ if !way.waits => None,
                Some((at, taken)) if taken == way.taken => Some((at, taken)),
                _ => Some((Instant::now(), way.taken)),
            };
        }
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &impl ClientStream,
        node: &impl ClientStream,
    ) -> Poll<End> {
        loop {
            let now = Instant::now();
            let left_at = self.ended_at.map(|at| at + FAREWELL);
            // What the node has said last is behind what the client does not take: its end can't be read.
            let is_over = self.stalled.is_some() && node.has_hung_up();
            let most = match is_over {
                true => Some(self.send_timeout.unwrap_or(FAREWELL).min(FAREWELL)),
                false => self.send_timeout,
            };
            let stalled_at = self.stalled.zip(most).map(|((at, _), most)| at + most);
            if left_at.is_some_and(|at| now >= at) {
                return Poll::Ready(End::Left);
            }
            if stalled_at.is_some_and(|at| now >= at) {
                return Poll::Ready(if is_over { End::Left } else { End::Stalled });
            }
            let is_held_back = self.held_back.is_some_and(|(at, _)| now >= at + LOOK_INTERVAL);
            if is_held_back && client.has_hung_up() {
                // The end would come behind what the node does not take.
                node.throw_away_unsent();
                return Poll::Ready(End::Gone);
            }
            let look_at = self.stalled.or(self.held_back).map(|_| now + LOOK_INTERVAL);
            let Some(next) = [left_at, stalled_at, look_at].into_iter().flatten().min() else {
                return Poll::Pending;
            };
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(LOOK_INTERVAL)));
            timer.as_mut().reset(next);
            ready!(timer.as_mut().poll(cx));
        }
    }
}

/// Has the streams give back their memory when nothing is passed on any more.
#[derive(Default)]
struct Quiet {
    /// How often something had been taken when this was looked at last.
    taken: u64,
    /// The streams have memory since then.
    is_waiting: bool,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Quiet {
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        taken: u64,
        client: &mut impl ClientStream,
        node: &mut impl ClientStream,
    ) {
        loop {
            if taken != self.taken && !self.is_waiting {
                self.wait(taken);
            }
            let Some(timer) = self.timer.as_mut().filter(|_| self.is_waiting) else { return };
            if timer.as_mut().poll(cx).is_pending() {
                return;
            }
            self.is_waiting = false;
            if taken == self.taken {
                client.release_memory(cx);
                node.release_memory(cx);
            }
        }
    }

    fn wait(&mut self, taken: u64) {
        (self.taken, self.is_waiting) = (taken, true);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(BUFFERS_KEPT)));
        timer.as_mut().reset(Instant::now() + BUFFERS_KEPT);
    }
}

#[cfg(test)]
mod tests;
