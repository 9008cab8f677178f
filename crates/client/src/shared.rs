//! What the task that drives a connection shares with everybody who uses the connection.
//!
//! One lock holds the machine, what is to be sent, and who waits for what. A task that publishes or asks writes frames
//! into the output under the lock and wakes the driver, which takes all that has gathered and writes it at once.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use courser_codec::reply_code::REPLY_SUCCESS;
use courser_codec::{Method, basic};
use courser_connection::client;
use courser_connection::{CloseReason, ClosedBy};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use crate::error::Error;
use crate::mailbox::Stall;
use crate::message::DeliveryId;
use crate::route::{ChannelState, Purpose, Reply, Route, Waiting};

/// Publishers wait while more than this is to be sent, in bytes. So at most this, one batch or message of each
/// publisher, and what is being written are held.
pub(crate) const OUTPUT_SOFT_MAX: usize = 128 * 1024;
/// The connection is not read while more than this is to be sent, in bytes: a server that takes nothing does not get
/// ever more acknowledgements piled up for it.
pub(crate) const OUTPUT_HARD_MAX: usize = 16 * 1024 * 1024;

/// A connection's state.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Woken when there is room in the output again, or the connection has ended.
    pub room: Notify,
    pub stall: Arc<Stall>,
    /// Whether the connection is not read, as more waits for the program than it allows.
    pub stalled: watch::Sender<bool>,
    /// Why the server does not take publishes, while it does not.
    pub blocked: watch::Sender<Option<Arc<str>>>,
    /// Why the connection has ended, once it has.
    pub ended: watch::Sender<Option<Error>>,
    /// Whether the driver has done with the stream.
    pub finished: watch::Sender<bool>,
    pub close_timeout: std::time::Duration,
}

/// What is behind the lock.
pub(crate) struct Core {
    pub machine: client::Connection,
    /// Publishes, in order with what the machine wanted sent before them.
    out: Vec<u8>,
    /// Whether the driver has taken something that is not written yet.
    is_writing: bool,
    /// The driver, when it sleeps.
    driver: Option<Waker>,
    /// Who waits for the connection to be open.
    pub opening: Option<oneshot::Sender<()>>,
    /// By channel number, from 1.
    routes: Vec<Option<Box<Route>>>,
    /// Who waits for `connection.update-secret-ok`.
    pub secret: Vec<oneshot::Sender<Reply>>,
    pub ended: Option<Error>,
}

impl Shared {
    pub fn new(config: client::Config, opening: oneshot::Sender<()>) -> Self {
        let close_timeout = config.close_timeout;
        let core = Core {
            machine: client::Connection::new(Arc::new(config), Instant::now()),
            out: Vec::new(),
            is_writing: false,
            driver: None,
            opening: Some(opening),
            routes: Vec::new(),
            secret: Vec::new(),
            ended: None,
        };
        Self {
            core: Mutex::new(core),
            room: Notify::new(),
            stall: Arc::default(),
            stalled: watch::Sender::new(false),
            blocked: watch::Sender::new(None),
            ended: watch::Sender::new(None),
            finished: watch::Sender::new(false),
            close_timeout,
        }
    }

    /// Looks at the state, without anything to send.
    pub fn inspect<R>(&self, look: impl FnOnce(&mut Core) -> R) -> R {
        look(&mut self.core.lock())
    }

    /// Changes the state, and wakes the driver if there is something to send afterwards.
    pub fn change<R>(&self, change: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.core.lock();
        let result = change(&mut core);
        // While it writes it takes nothing: the end of the write wakes it.
        let takes_output = !core.is_writing && core.output_len() > 0;
        let driver = if takes_output { core.driver.take() } else { None };
        drop(core);
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    /// Wakes the driver to look at the state again.
    pub fn wake(&self) {
        let driver = self.core.lock().driver.take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// The connection is over. Everybody who waits for anything gets `error`.
    pub fn end(&self, error: Error) {
        let mut core = self.core.lock();
        let error = core.ended.get_or_insert(error).clone();
        let routes = std::mem::take(&mut core.routes);
        core.opening = None;
        core.secret.clear();
        drop(core);
        routes.into_iter().flatten().for_each(|route| route.close(&error));
        self.ended.send_if_modified(|ended| {
            let is_first = ended.is_none();
            ended.get_or_insert(error);
            is_first
        });
        self.room.notify_waiters();
    }
}

/// What is said of a close on purpose, to the server too.
pub(crate) const CLOSED_BY_OWNER: &str = "closed by its owner";

/// The reason of a close on purpose.
pub(crate) fn closed_by_owner() -> CloseReason {
    CloseReason {
        by: ClosedBy::Local,
        code: REPLY_SUCCESS,
        text: CLOSED_BY_OWNER.to_owned(),
        class_id: 0,
        method_id: 0,
    }
}

impl Core {
    /// Bytes that are to be sent.
    pub fn output_len(&mut self) -> usize {
        self.out.len() + self.machine.output().len()
    }

    /// Gives the machine and the buffer that publishes go to; what the machine had to say before is in it.
    pub fn for_publishing(&mut self) -> (&mut client::Connection, &mut Vec<u8>) {
        let said = self.machine.output();
        if !said.is_empty() {
            if self.out.is_empty() {
                std::mem::swap(&mut self.out, said);
            } else {
                self.out.append(said);
            }
        }
        (&mut self.machine, &mut self.out)
    }

    /// All that was taken before is written. Takes all that is to be sent now; `buffer` is an empty one to go on with.
    /// True if a task may wait for this.
    pub fn take_output(&mut self, buffer: &mut Vec<u8>) -> bool {
        debug_assert!(buffer.is_empty());
        self.for_publishing();
        std::mem::swap(&mut self.out, buffer);
        let was_writing = std::mem::replace(&mut self.is_writing, !buffer.is_empty());
        was_writing || self.is_writing
    }

    /// Whether nothing is to be sent or being written.
    pub fn is_written(&mut self) -> bool {
        !self.is_writing && self.output_len() == 0
    }

    /// A channel with outstanding confirms.
    pub fn unsettled_channel(&mut self) -> Option<Arc<ChannelState>> {
        let machine = &self.machine;
        let open = self.routes.iter().flatten();
        let mut unsettled = open.filter(|route| machine.unconfirmed(route.state.number) > 0);
        unsettled.next().map(|route| route.state.clone())
    }

    /// The driver goes to sleep, unless there is something that it can take to send. False if there is.
    pub fn sleep(&mut self, waker: &Waker) -> bool {
        if !self.is_writing && self.output_len() > 0 {
            return false;
        }
        match &mut self.driver {
            Some(driver) => driver.clone_from(waker),
            None => self.driver = Some(waker.clone()),
        }
        true
    }

    pub fn route(&mut self, channel: u16) -> Option<&mut Route> {
        self.routes.get_mut(usize::from(channel).checked_sub(1)?)?.as_deref_mut()
    }

    /// How many recovers of the channel the server has answered.
    pub fn recovers(&mut self, channel: u16) -> u64 {
        self.route(channel).map_or(0, |route| route.state.recovers.answered())
    }

    pub fn take_route(&mut self, channel: u16) -> Option<Box<Route>> {
        self.routes.get_mut(usize::from(channel).checked_sub(1)?)?.take()
    }

    /// Asks for a channel.
    pub fn open_channel(
        &mut self,
        opening: oneshot::Sender<()>,
    ) -> Result<Arc<ChannelState>, Error> {
        // The machine does not know of a stream that broke.
        if let Some(error) = &self.ended {
            return Err(error.clone());
        }
        let number = self
            .machine
            .open_channel()
            .map_err(|error| Error::from_open(error, self.connection_error()))?;
        let state = Arc::new(ChannelState::new(number));
        let at = usize::from(number) - 1;
        if self.routes.len() <= at {
            self.routes.resize_with(at + 1, || None);
        }
        debug_assert!(self.routes[at].is_none(), "channel {number} has not been told its end");
        self.routes[at] = Some(Box::new(Route::new(state.clone(), opening)));
        Ok(state)
    }

    /// Sends a method on an open channel.
    pub fn send(&mut self, state: &ChannelState, method: &Method<'_>) -> Result<(), Error> {
        state.check_open()?;
        let sent = self.machine.request(state.number, method);
        sent.map_err(|error| Error::from_request(&error, self.channel_error(state)))
    }

    /// Sends a request and returns the receiver of its answer.
    pub fn ask(
        &mut self,
        state: &ChannelState,
        method: &Method<'_>,
        expects: (u16, u16),
    ) -> Result<oneshot::Receiver<Reply>, Error> {
        self.ask_for(state, method, expects, Purpose::Other)
    }

    /// The same for an answer that means something to the channel itself.
    pub fn ask_for(
        &mut self,
        state: &ChannelState,
        method: &Method<'_>,
        expects: (u16, u16),
        purpose: Purpose,
    ) -> Result<oneshot::Receiver<Reply>, Error> {
        self.send(state, method)?;
        let (answer, reply) = oneshot::channel();
        if let Some(route) = self.route(state.number) {
            route.waiting.push_back(Waiting { expects, answer, purpose });
        }
        Ok(reply)
    }

    /// Why nothing can be done on the channel.
    pub fn channel_error(&self, state: &ChannelState) -> Error {
        if let Err(error) = state.check_open() {
            return error;
        }
        if self.ended.is_none() && self.machine.is_open() {
            // This side has begun to close it, and the server has not answered yet.
            let reason = Arc::new(closed_by_owner());
            return Error::ChannelClosed { channel: state.number, reason };
        }
        self.connection_error()
    }

    /// Gives messages back to their queues.
    pub fn give_back(&mut self, state: &ChannelState, ids: &[DeliveryId]) {
        for id in ids {
            let nack = basic::Nack { delivery_tag: id.tag, multiple: false, requeue: true };
            // If the channel is closed by now, the message is back in its queue anyway.
            let _ = self.settle(state, *id, &Method::BasicNack(nack));
        }
    }

    /// Acknowledges or refuses a message, unless it is back in its queue: the server would close the channel for its tag.
    pub fn settle(
        &mut self,
        state: &ChannelState,
        id: DeliveryId,
        method: &Method<'_>,
    ) -> Result<(), Error> {
        if state.recovers.has_taken_back(id) {
            state.check_open()
        } else {
            self.send(state, method)
        }
    }

    /// How many publishes the server has not answered, on all channels.
    pub fn unconfirmed(&self) -> u64 {
        let open = self.routes.iter().flatten();
        open.map(|route| self.machine.unconfirmed(route.state.number)).sum()
    }

    /// Why nothing can be done on the connection.
    pub fn connection_error(&self) -> Error {
        if let Some(error) = &self.ended {
            return error.clone();
        }
        let reason = self.machine.close_reason().cloned().unwrap_or_else(|| CloseReason {
            by: ClosedBy::Local,
            code: 0,
            text: "the connection is not open".to_owned(),
            class_id: 0,
            method_id: 0,
        });
        Error::ConnectionClosed(Arc::new(reason))
    }
}
