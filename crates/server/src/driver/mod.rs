//! Drives one connection: between a socket, the sans-I/O machine and the broker's session.
//!
//! One task a connection. It owns next to nothing while it is idle: reads go into a buffer that the
//! thread lends, and only what is left of an incomplete frame is kept. The driver is behind a lock that
//! is nearly always free: besides its task, only the log thread takes it, to send a confirm.

mod deferred;
mod events;
mod inline_confirm;
mod newcomer;
mod paced;
mod read;
mod stream;
#[cfg(test)]
mod tests;
mod token;
mod turns;
mod verdict;
mod write;

use crate::clock::{self, Clock};
use crate::login::{Logins, Pending, Renewal};
use crate::negotiated;
use crate::peer::Peer;
use crate::places::{Place, Places};
use crate::service::stopped;
use crate::suspension::Suspension;
use crate::throttle::{Allowance, Throttles};
use courser_auth::{Grant, Login};
use courser_broker::admin::{ConnectionDetails, ConnectionState, Held, TlsSession};
use courser_broker::wire::{Cursor, WireBuffer};
use courser_broker::{Broker, Budget, Session};
use courser_connection::server::{Config as ConnectionConfig, Connection};
use newcomer::Newcomer;
use paced::Paced;
use parking_lot::Mutex;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
pub(crate) use stream::{ClientStream, OfHttp};
use tokio::sync::watch;
use tokio::time::Sleep;

/// What a client is told when the broker stops.
pub(crate) const SHUTDOWN: &str = "broker forced connection closure with reason 'shutdown'";
/// How long a connection keeps its buffers after it has fallen silent.
pub(crate) const BUFFERS_KEPT: Duration = Duration::from_secs(2);
/// How long the end of a stream may take to be sent.
const FAREWELL: Duration = Duration::from_secs(1);
/// How long a client may take to answer when the broker stops: what it is to have before that included.
const GOODBYE: Duration = Duration::from_secs(4);
/// How often the driver checks whether a client that is held back is still there.
const HANG_UP_INTERVAL: Duration = Duration::from_secs(2);
/// Reads, and what follows from them, before other tasks get their turn.
const ROUNDS_MAX: usize = 2;

/// What all connections of a broker share.
pub(crate) struct Shared {
    pub broker: Arc<Broker>,
    pub clock: Clock,
    pub logins: Logins,
    pub connection: Arc<ConnectionConfig>,
    /// What is negotiated with clients that come with TLS.
    pub tls_connection: Arc<ConnectionConfig>,
    /// How long a client's socket may take nothing; for ever if there is none.
    pub send_timeout: Option<Duration>,
    pub places: Arc<Places>,
    pub throttles: Arc<Throttles>,
    pub suspension: Suspension,
    /// Connections that are not read for a while because they publish too fast.
    pub paced: AtomicUsize,
    /// What clients are told when the broker ends: [`SHUTDOWN`] where nothing else is said.
    pub farewell: OnceLock<&'static str>,
}

/// One connection.
struct Driver<S> {
    /// Itself, for who confirms in the place of its task.
    myself: Weak<Mutex<Driver<S>>>,
    stream: S,
    peer: Peer,
    place: Place,
    shared: Arc<Shared>,
    machine: Connection,
    session: Option<Session>,
    /// A session that has ended, with much left to be removed.
    ending: Option<Session>,
    /// Nothing is left to be done but to end it.
    is_over: bool,
    /// What it may do before others get their turn.
    budget: Budget,
    /// In this turn, what had stopped has gone on.
    has_resumed: bool,
    /// The user who has logged in, until its session begins.
    logged_in: Option<Box<Login>>,
    /// What the user may do, if the accounts are not what says it.
    grant: Option<Arc<Grant>>,
    /// A login whose password is being checked; nothing is read until then.
    login: Option<Box<Pending>>,
    /// What it is told of its login when that is certainly current.
    untold: Option<Box<verdict::Untold>>,
    /// A token that is being looked at, in the place of the one that the user has logged in with.
    renewal: Option<Box<Renewal>>,
    /// When to look whether what the user has logged in with has expired.
    expires_at: Option<Instant>,
    /// How much of what is refused to it the log is still told.
    refusals: Allowance,
    /// What is known of it, until its session knows.
    newcomer: Option<Box<Newcomer>>,
    /// The beginning of a frame, whose end has yet to come.
    carry: Vec<u8>,
    /// What is there has been left unread, from a whole frame on.
    is_deferred: bool,
    sending: WireBuffer,
    sent: Cursor,
    /// What the connection says before its session has begun and after it has ended.
    tail: WireBuffer,
    /// What the stream keeps of what it has taken.
    kept_below: Held,
    timer: Pin<Box<Sleep>>,
    timer_at: Option<Instant>,
    paced: Option<Paced>,
    held_back: bool,
    /// When to look next whether a client that is held back is still there.
    hang_up_at: Option<Instant>,
    /// Its consumers get only a few messages before they have acknowledged them.
    takes_few_at_once: bool,
    /// It is not read because of answers that are not sent yet.
    full_of_answers: bool,
    release_at: Option<Instant>,
    /// Since when the socket has taken nothing of what is there to be sent, what the stream had passed on by then, and how long
    /// that may last.
    stalled_at: Option<Instant>,
    passed_on: u64,
    send_timeout: Option<Duration>,
    /// The client has been told by the end of the stream that nothing more is said.
    output_shut: bool,
    /// A confirm on the log thread has panicked half way.
    is_broken: bool,
}

/// Serves a connection until its end, and returns its place. `name` is what the operator sees it by.
pub(crate) async fn serve<S: ClientStream>(
    stream: S,
    peer: Peer,
    place: Place,
    name: String,
    shared: Arc<Shared>,
    mut stopping: watch::Receiver<bool>,
) -> Place {
    let now = clock::now();
    let config = match (peer.is_operator, &peer.tls) {
        (true, _) => Arc::new(negotiated::for_operator(&shared.connection)),
        (_, Some(_)) => Arc::clone(&shared.tls_connection),
        _ => Arc::clone(&shared.connection),
    };
    let machine = Connection::new(config, now);
    // A pipe within the process is not read while its other end waits for something else.
    let send_timeout = shared.send_timeout.filter(|_| !place.is_own());
    let tls = peer.tls.as_ref().map(|tls| {
        let (session, certificate) = (tls.session.clone(), tls.certificate.clone());
        Arc::new(TlsSession { session, certificate })
    });
    let details = ConnectionDetails { name, tls, ..ConnectionDetails::default() };
    let newcomer = Newcomer::new(&shared.broker, details);
    let kept_below = shared.broker.admin().hold_unsent();
    let driver = Arc::new_cyclic(|myself| {
        Mutex::new(Driver {
            myself: Weak::clone(myself),
            stream,
            peer,
            place,
            shared,
            machine,
            session: None,
            ending: None,
            is_over: false,
            budget: Budget::begin(),
            has_resumed: false,
            logged_in: None,
            grant: None,
            login: None,
            untold: None,
            renewal: None,
            expires_at: None,
            refusals: Allowance::default(),
            newcomer: Some(Box::new(newcomer)),
            carry: Vec::new(),
            is_deferred: false,
            sending: WireBuffer::default(),
            sent: Cursor::default(),
            tail: WireBuffer::default(),
            kept_below,
            timer: Box::pin(tokio::time::sleep_until(now.into())),
            timer_at: None,
            paced: None,
            held_back: false,
            hang_up_at: None,
            takes_few_at_once: false,
            full_of_answers: false,
            release_at: None,
            stalled_at: None,
            passed_on: 0,
            send_timeout,
            output_shut: false,
            is_broken: false,
        })
    });
    let task = Task(driver);
    tokio::select! {
        biased;
        () = task.run() => {}
        () = stopped(&mut stopping) => {
            task.shut_down();
            // One that does not answer keeps no broker that is let go of.
            let _ = tokio::time::timeout(GOODBYE, task.run()).await;
        }
    }
    task.end_stream().await;
    let mut driver = task.0.lock();
    if driver.stalled_at.is_some() {
        driver.stream.throw_away_unsent();
    }
    if let Some(reason) = driver.machine.close_reason() {
        tracing::debug!(peer = %driver.peer, %reason, "connection closed");
    }
    driver.place.take_over()
}

/// The connection as its task has it: all but confirms is done here.
struct Task<S>(Arc<Mutex<Driver<S>>>);

impl<S: ClientStream> Task<S> {
    async fn run(&self) {
        poll_fn(|cx| self.0.lock().poll(cx)).await;
    }

    /// Says to the other end that no more comes, which TLS asks for; not for long.
    async fn end_stream(&self) {
        let end = poll_fn(|cx| Pin::new(&mut self.0.lock().stream).poll_shutdown(cx));
        // The other end may be gone already.
        let _ = tokio::time::timeout(FAREWELL, end).await;
    }

    fn shut_down(&self) {
        let driver = &mut *self.0.lock();
        driver.budget = Budget::begin();
        let text = driver.shared.farewell.get().unwrap_or(&SHUTDOWN);
        driver.untold = None;
        driver.machine.shutdown(text, clock::now());
        driver.end_session();
        driver.collect_output();
    }
}

impl<S: ClientStream> Driver<S> {
    /// Does what can be done now, as far as it is not the turn of others. Ready when the connection is over.
    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_broken {
            return self.lost(&std::io::Error::other("a fault of the broker, see its log"));
        }
        let is_registered = self.session.is_some();
        if let Some(session) = &mut self.session {
            session.outbox().register(cx.waker());
            session.confirm_durable();
            let faults = session.outbox().take_faults();
            for (channel, fault) in faults {
                match channel {
                    0 => self.connection_fault(&fault, (0, 0), clock::now()),
                    _ => self.fail_channel(channel, &fault),
                }
            }
        }
        for _ in 0..ROUNDS_MAX {
            if self.ending.is_some() {
                break;
            }
            let sent_all = match self.poll_send(cx) {
                Ok(sent_all) => sent_all,
                Err(error) => return self.lost(&error),
            };
            if self.is_stalled() {
                return self.lost_stalled();
            }
            if sent_all && !self.output_shut && self.machine.is_output_over() {
                // If it can't be shut, it is gone, and reading will tell.
                self.output_shut = Pin::new(&mut self.stream).poll_shutdown(cx).is_ready();
            }
            if self.machine.is_closed() && (sent_all || self.stream_is_stuck()) {
                self.end_session();
                return Poll::Ready(());
            }
            if self.poll_login(cx) || self.poll_verdict(cx) || self.poll_renewal(cx) {
                continue;
            }
            if self.note_alarm() {
                continue;
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
        // Where a client always has more to be read, nothing else looks at the clock.
        self.poll_timers(cx);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes note of what it is doing, for the operator.
    fn note_state(&self, state: ConnectionState) {
        if let Some(session) = &self.session {
            session.set_state(state);
        }
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
        if let Some(paced) = &mut self.paced
            && let Poll::Ready(waits_on) = paced.poll(cx)
        {
            if !waits_on {
                self.paced = None;
                // An alarm may have begun meanwhile, or not be over.
                self.note_state(match self.held_back {
                    true => ConnectionState::Blocked,
                    false => ConnectionState::Running,
                });
                self.note_reading(clock::now());
            }
            // A timer that was just set has to be polled once to wake this task.
            return true;
        }
        let due = [
            self.machine.poll_timeout(),
            self.release_at,
            self.stalled_until(),
            self.expires_at,
            self.hang_up_at,
        ];
        let Some(due) = due.into_iter().flatten().min() else { return false };
        // A timer that fires early finds nothing due; resetting it on every read would cost more.
        if self.timer_at.is_none_or(|at| due < at) {
            self.timer.as_mut().reset(due.into());
            self.timer_at = Some(due);
        }
        if self.timer.as_mut().poll(cx).is_pending() {
            return false;
        }
        self.timer_at = None;
        let now = clock::now();
        if self.release_at.is_some_and(|at| now >= at) {
            self.release_buffers(cx);
        }
        if self.hang_up_at.is_some_and(|at| now >= at) {
            self.hang_up_at = Some(now + HANG_UP_INTERVAL);
        }
        self.end_expired(now);
        if self.machine.poll_timeout().is_some_and(|at| now >= at) {
            self.machine.handle_timeout(now);
            self.collect_output();
        }
        true
    }
}
