//! Drives one connection: between a socket, the sans-I/O machine and the broker's session.
//!
//! One task a connection. It owns next to nothing while it is idle: reads go into a buffer that the
//! thread lends, and only what is left of an incomplete frame is kept. The driver is behind a lock that
//! is nearly always free: besides its task, only the log thread takes it, to send a confirm.

mod at_once;
mod events;
mod read;
mod write;

use crate::config::Auth;
use courser_broker::wire::{Cursor, WireBuffer};
use courser_broker::{Broker, Pace, Session};
use courser_connection::server::{Config as ConnectionConfig, Connection};
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::watch;
use tokio::time::Sleep;

/// How often a publisher that is ahead of its consumers looks whether it may go on.
const PACE_INTERVAL: Duration = Duration::from_millis(1);
/// How long a connection keeps its buffers after it has fallen silent.
const BUFFERS_KEPT: Duration = Duration::from_secs(2);
/// Reads, and what follows from them, before other tasks get their turn.
const ROUNDS_MAX: usize = 2;

/// What all connections of a broker share.
pub(crate) struct Shared {
    pub broker: Arc<Broker>,
    pub auth: Auth,
    pub connection: Arc<ConnectionConfig>,
    pub connections: AtomicUsize,
}

/// One connection.
struct Driver<S> {
    /// Itself, for who confirms in the place of its task.
    myself: Weak<Mutex<Driver<S>>>,
    stream: S,
    peer: SocketAddr,
    shared: Arc<Shared>,
    machine: Connection,
    session: Option<Session>,
    user: Option<courser_codec::ShortString>,
    /// The beginning of a frame, whose end has yet to come.
    carry: Vec<u8>,
    sending: WireBuffer,
    sent: Cursor,
    /// What the connection says before its session has begun and after it has ended.
    tail: Vec<u8>,
    timer: Pin<Box<Sleep>>,
    timer_at: Option<Instant>,
    pace: Option<(Pace, Pin<Box<Sleep>>)>,
    held_back: bool,
    release_at: Option<Instant>,
}

/// Does some work; if it takes long, another thread looks after this one's connections meanwhile,
/// and after the sockets of all, which an idle thread does not wake up for.
fn aside<T>(takes_long: bool, work: impl FnOnce() -> T) -> T {
    let several = || Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
    if takes_long && several() { tokio::task::block_in_place(work) } else { work() }
}

/// Serves a connection until its end.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    peer: SocketAddr,
    counted: Counted,
    mut stopping: watch::Receiver<bool>,
) {
    let shared = Arc::clone(&counted.0);
    let now = Instant::now();
    let machine = Connection::new(Arc::clone(&shared.connection), now);
    let driver = Arc::new_cyclic(|myself| {
        Mutex::new(Driver {
            myself: Weak::clone(myself),
            stream,
            peer,
            shared,
            machine,
            session: None,
            user: None,
            carry: Vec::new(),
            sending: WireBuffer::default(),
            sent: Cursor::default(),
            tail: Vec::new(),
            timer: Box::pin(tokio::time::sleep_until(now.into())),
            timer_at: None,
            pace: None,
            held_back: false,
            release_at: None,
        })
    });
    let task = Task(driver);
    tokio::select! {
        () = task.run() => {}
        _ = stopping.changed() => {
            task.shut_down();
            task.run().await;
        }
    }
    if let Some(reason) = task.0.lock().machine.close_reason() {
        tracing::debug!(%peer, %reason, "connection closed");
    }
    drop(task);
    drop(counted);
}

/// The connection as its task has it: all but confirms is done here.
struct Task<S>(Arc<Mutex<Driver<S>>>);

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Task<S> {
    async fn run(&self) {
        poll_fn(|cx| self.0.lock().poll(cx)).await;
    }

    fn shut_down(&self) {
        let driver = &mut *self.0.lock();
        let text = "broker forced connection closure with reason 'shutdown'";
        driver.machine.shutdown(text, Instant::now());
        driver.end_session();
        driver.collect_output();
    }
}

impl<S> Drop for Task<S> {
    fn drop(&mut self) {
        // Whoever else has the driver now must not be the one to end its session.
        let session = self.0.lock().session.take();
        drop(session);
    }
}

/// Counts its connection as long as it lives, however the task ends.
pub(crate) struct Counted(Arc<Shared>);

impl Counted {
    /// Counts one more connection, unless there are `most` already.
    pub fn admit(shared: &Arc<Shared>, most: usize) -> Option<Self> {
        let one = Counted(Arc::clone(shared));
        let before = shared.connections.fetch_add(1, Ordering::Relaxed);
        (before < most).then_some(one)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Driver<S> {
    /// Does everything that can be done now. Ready when the connection is over.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_registered = self.session.is_some();
        if let Some(session) = &mut self.session {
            session.outbox().register(cx.waker());
            session.confirm_durable();
            let faults = session.outbox().take_faults();
            for (channel, fault) in faults {
                self.fail_channel(channel, &fault);
            }
        }
        for _ in 0..ROUNDS_MAX {
            let sent_all = match self.poll_send(cx) {
                Ok(sent_all) => sent_all,
                Err(error) => return self.lost(&error),
            };
            if self.machine.is_closed() && (sent_all || self.stream_is_stuck()) {
                self.end_session();
                return Poll::Ready(());
            }
            match self.poll_receive(cx) {
                Poll::Ready(Ok(0)) => {
                    self.end_session();
                    return Poll::Ready(());
                }
                Poll::Ready(Ok(_)) => continue,
                Poll::Ready(Err(error)) => return self.lost(&error),
                Poll::Pending => {}
            }
            if self.poll_timers(cx) {
                continue;
            }
            if is_registered || self.session.is_none() {
                return Poll::Pending;
            }
            // The session has just begun: the next poll has it wake this task.
            break;
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn lost(&mut self, error: &std::io::Error) -> Poll<()> {
        tracing::debug!(peer = %self.peer, %error, "connection lost");
        self.end_session();
        Poll::Ready(())
    }

    /// A closed machine waits for its last words to be sent, unless its time for that is up too.
    fn stream_is_stuck(&self) -> bool {
        self.machine.close_reason().is_none_or(|reason| reason.code == 0)
    }

    /// Looks at the clock where something is due. Returns whether there is something new to do.
    fn poll_timers(&mut self, cx: &mut Context<'_>) -> bool {
        if let Some((pace, sleep)) = &mut self.pace
            && sleep.as_mut().poll(cx).is_ready()
        {
            if pace.wait_on() {
                sleep.as_mut().reset((Instant::now() + PACE_INTERVAL).into());
                // A timer that was just set has to be polled once to wake this task.
                return true;
            }
            self.pace = None;
            self.machine.set_reading(true, Instant::now());
            return true;
        }
        let due = match (self.machine.poll_timeout(), self.release_at) {
            (Some(machine), Some(release)) => machine.min(release),
            (machine, release) => match machine.or(release) {
                Some(due) => due,
                None => return false,
            },
        };
        // A timer that fires early finds nothing due; resetting it on every read would cost more.
        if self.timer_at.is_none_or(|at| due < at) {
            self.timer.as_mut().reset(due.into());
            self.timer_at = Some(due);
        }
        if self.timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.timer_at = None;
        let now = Instant::now();
        if self.release_at.is_some_and(|at| now >= at) {
            self.release_buffers();
        }
        if self.machine.poll_timeout().is_some_and(|at| now >= at) {
            self.machine.handle_timeout(now);
            self.collect_output();
        }
        true
    }

    /// An idle connection gives its buffers back.
    fn release_buffers(&mut self) {
        self.release_at = None;
        if self.sending.is_empty() {
            self.sending.release();
        }
        if self.carry.is_empty() {
            self.carry = Vec::new();
        }
        if let Some(session) = &mut self.session {
            session.release_memory();
        }
    }
}
