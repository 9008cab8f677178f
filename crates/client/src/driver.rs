//! The task behind a connection: reads, lets the machine take events off, writes what has gathered, keeps time.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::dispatch::dispatch;
use crate::error::Error;
use crate::shared::{OUTPUT_HARD_MAX, Shared};

/// Size of the read buffer at first, in bytes.
const READ_MIN: usize = 8 * 1024;
/// Size that it grows to while reads fill it, in bytes. Larger frames than this make it grow further.
const READ_MAX: usize = 128 * 1024;
/// Time for the last bytes to be written once the connection is closed, and then for the stream to end.
const LINGER: Duration = Duration::from_secs(1);
/// A write buffer that has grown beyond this is not kept, in bytes.
const WRITE_KEEP_MAX: usize = 1024 * 1024;

/// Drives a connection to its end.
pub(crate) async fn drive<S: AsyncRead + AsyncWrite + Unpin>(stream: S, shared: Arc<Shared>) {
    let mut driver = Driver {
        stream,
        input: Input { bytes: vec![0; READ_MIN], filled: 0 },
        writing: Vec::new(),
        written: 0,
        needs_flush: false,
        is_reading: true,
        timer: Box::pin(tokio::time::sleep_until(tokio::time::Instant::now())),
        armed: None,
        give_up_at: None,
        _end: EndGuard(shared.clone()),
        shared,
    };
    let result = poll_fn(|cx| driver.poll(cx)).await;
    let error = match result {
        Ok(()) => driver.shared.inspect(|core| core.connection_error()),
        Err(error) => driver.shared.inspect(|core| lost(core, error, driver.is_reading)),
    };
    driver.shared.end(error);
    // The peer may be gone already, or take nothing: a stream of TLS has records to write before it can end.
    let shutdown = poll_fn(|cx| Pin::new(&mut driver.stream).poll_shutdown(cx));
    let _ = tokio::time::timeout(LINGER, shutdown).await;
}

/// A stream that broke: the reason that was given before counts, if there is one.
fn lost(core: &crate::shared::Core, error: io::Error, was_reading: bool) -> Error {
    if core.ended.is_some() || core.machine.close_reason().is_some() {
        return core.connection_error();
    }
    if error.kind() == io::ErrorKind::UnexpectedEof && core.machine.is_logging_in() {
        let hint = "the server has closed the stream during login; most likely it refuses user or password";
        return Error::lost(io::Error::new(io::ErrorKind::UnexpectedEof, hint));
    }
    if !was_reading {
        let hint = "more waited for the program than buffer_bytes allows, so the connection was not read, \
                    and a server ends such a connection";
        return Error::lost(io::Error::new(error.kind(), format!("{error} ({hint})")));
    }
    Error::lost(error)
}

/// Ends the connection for everybody, should the task be dropped or a handler panic.
struct EndGuard(Arc<Shared>);

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.end(Error::lost(io::Error::other("the connection's task has ended")));
        self.0.finished.send_replace(true);
    }
}

/// What was read and not yet taken.
struct Input {
    bytes: Vec<u8>,
    filled: usize,
}

struct Driver<S> {
    stream: S,
    shared: Arc<Shared>,
    input: Input,
    writing: Vec<u8>,
    written: usize,
    needs_flush: bool,
    is_reading: bool,
    timer: Pin<Box<Sleep>>,
    /// What the timer is set to; it may be set too early, which is found out when it fires.
    armed: Option<Instant>,
    /// When to stop writing to a peer that takes nothing; set once the connection is closed.
    give_up_at: Option<Instant>,
    _end: EndGuard,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Driver<S> {
    /// Goes on until nothing can be done without waiting. Ready when the connection is over and all is sent.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let is_all_written = self.poll_write(cx)?.is_ready();
            if self.shared.inspect(|core| core.machine.is_closed()) {
                let now = Instant::now();
                let give_up_at = *self.give_up_at.get_or_insert(now + LINGER);
                if is_all_written || now >= give_up_at {
                    return Poll::Ready(Ok(()));
                }
            }
            let has_read = self.poll_read(cx)?.is_ready();
            let has_expired = self.poll_timer(cx).is_ready();
            if has_read || has_expired {
                continue;
            }
            if self.shared.inspect(|core| core.sleep(cx.waker())) {
                return Poll::Pending;
            }
        }
    }

    /// Writes until nothing is left. Pending when the stream takes no more.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.written == self.writing.len() {
                self.take_output();
                if self.writing.is_empty() {
                    break;
                }
            }
            let bytes = &self.writing[self.written..];
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += count;
            self.needs_flush = true;
        }
        if self.needs_flush {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.needs_flush = false;
        }
        Poll::Ready(Ok(()))
    }

    fn take_output(&mut self) {
        if self.writing.capacity() > WRITE_KEEP_MAX {
            self.writing = Vec::new();
        }
        self.writing.clear();
        self.written = 0;
        let writing = &mut self.writing;
        let has_changed = self.shared.inspect(|core| {
            let has_changed = core.take_output(writing);
            if !writing.is_empty() {
                core.machine.bytes_sent(Instant::now());
            }
            has_changed
        });
        if has_changed {
            self.shared.room.notify_waiters();
        }
    }

    /// Reads once and acts on it. Pending when there is nothing, or reading has to wait.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let may_read = self.shared.stall.poll_may_read(cx)
            && self.shared.inspect(|core| core.output_len()) < OUTPUT_HARD_MAX;
        if may_read != self.is_reading {
            self.is_reading = may_read;
            self.shared.inspect(|core| core.machine.set_reading(may_read, Instant::now()));
            self.shared.stalled.send_replace(!may_read);
        }
        if !may_read {
            return Poll::Pending;
        }
        let mut buffer = ReadBuf::new(&mut self.input.bytes[self.input.filled..]);
        ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer))?;
        let count = buffer.filled().len();
        if count == 0 {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server has closed the stream",
            )));
        }
        self.input.filled += count;
        let left = {
            let mut rest = &self.input.bytes[..self.input.filled];
            dispatch(&self.shared, &mut rest, Instant::now());
            rest.len()
        };
        self.input.keep(left);
        Poll::Ready(Ok(()))
    }

    /// Ready when a timeout was due and was dealt with.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.shared.inspect(|core| core.machine.poll_timeout());
        let Some(deadline) = self.give_up_at.or(deadline) else { return Poll::Pending };
        // A deadline that moves on with every byte is not worth setting the timer each time.
        if self.armed.is_none_or(|armed| deadline < armed) {
            self.arm(deadline);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            if now >= deadline {
                break;
            }
            self.arm(deadline);
        }
        self.armed = None;
        self.shared.inspect(|core| core.machine.handle_timeout(Instant::now()));
        Poll::Ready(())
    }

    fn arm(&mut self, deadline: Instant) {
        self.timer.as_mut().reset(deadline.into());
        self.armed = Some(deadline);
    }
}

impl Input {
    /// Keeps the last `left` bytes of what is there, and makes room behind them.
    fn keep(&mut self, left: usize) {
        let was_full = self.filled == self.bytes.len();
        self.bytes.copy_within(self.filled - left..self.filled, 0);
        self.filled = left;
        let is_stuck = left == self.bytes.len();
        if is_stuck || (was_full && self.bytes.len() < READ_MAX) {
            self.bytes.resize(self.bytes.len() * 2, 0);
        }
    }
}
