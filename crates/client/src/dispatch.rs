//! From the machine's events to those who wait for them.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use courser_codec::reply_code::{COMMAND_INVALID, REPLY_SUCCESS};
use courser_codec::{Method, ShortStr, basic};
use courser_connection::client::{AssembledDelivery, Delivery as Incoming, DeliveryMethod, Event};

use crate::batch::{ConfirmSink, Confirmed, DeliverySink, RUN_MAX};
use crate::confirm::Confirmation;
use crate::error::Error;
use crate::message::{DeliveryId, Kept, keep_assembled, keep_incoming};
use crate::route::{ChannelState, Purpose, Receiver, Reply, Route};
use crate::shared::{Core, Shared};

/// What is gathered under the lock and done after it.
#[derive(Default)]
struct Turn<'a> {
    /// Deliveries one behind the other for the same handler.
    run: Vec<Incoming<'a>>,
    sink: Option<Arc<DeliverySink>>,
    /// A delivery for `sink` that was put together from frames; then `run` is empty.
    large: Option<Box<AssembledDelivery>>,
    confirmed: Vec<(Arc<ConfirmSink>, Confirmed)>,
    wakers: Vec<Waker>,
    /// Channels that are closed, and consumers that have ended. What belongs to them, also handlers of the user's, is
    /// dropped without the lock.
    closed: Vec<(Box<Route>, Error)>,
    cancelled: Vec<(Receiver, Option<Error>)>,
    /// Publishers may go on.
    has_room: bool,
    ended: Option<Error>,
}

/// Takes all events off the front of `input` and acts on them.
pub(crate) fn dispatch(shared: &Shared, input: &mut &[u8], now: Instant) {
    let mut carried = None;
    loop {
        let mut turn = Turn::default();
        shared.inspect(|core| {
            while let Some(event) = carried.take().or_else(|| core.machine.next(input, now)) {
                if let Err(event) = turn.take(core, event, shared) {
                    carried = Some(event);
                    break;
                }
            }
        });
        turn.act(shared);
        if carried.is_none() {
            break;
        }
    }
}

impl<'a> Turn<'a> {
    /// Acts on an event, or gives it back when the handler's run has to be dealt with first.
    fn take(
        &mut self,
        core: &mut Core,
        event: Event<'a>,
        shared: &Shared,
    ) -> Result<(), Event<'a>> {
        match event {
            Event::Delivery(incoming) => return self.delivery(core, incoming),
            Event::Confirm { channel, first, last, is_ack } => {
                self.confirm(core, channel, Confirmed { first, last, is_ack });
                return Ok(());
            }
            // The machine may give its number to another channel, which is opened while the handler runs.
            Event::ChannelClosed { channel, reason } => {
                if let Some(route) = core.take_route(channel) {
                    let error = Error::ChannelClosed { channel, reason: Arc::new(*reason) };
                    route.state.set_closed(&error);
                    self.closed.push((route, error));
                }
                self.has_room = true;
            }
            event if self.sink.is_some() => return Err(event),
            Event::LargeDelivery(assembled) => self.large_delivery(core, assembled),
            Event::Reply { channel, method } => self.reply(core, channel, &method),
            Event::Opened => {
                if let Some(opening) = core.opening.take() {
                    let _ = opening.send(());
                }
            }
            Event::ChannelOpened { channel } => {
                let opening = core.route(channel).and_then(|route| route.opening.take());
                if opening.is_none_or(|opening| opening.send(()).is_err()) {
                    // Who wanted it has given up waiting.
                    core.machine.close_channel(channel, REPLY_SUCCESS, "not needed any more");
                }
            }
            Event::Flow { channel, is_active } => {
                if let Some(route) = core.route(channel) {
                    route.is_flowing = is_active;
                }
                self.has_room |= is_active;
            }
            Event::Blocked { reason } => {
                shared.blocked.send_replace(Some(reason.to_string().into()));
            }
            Event::Unblocked => {
                shared.blocked.send_replace(None);
            }
            Event::Closed(reason) => {
                self.ended = Some(Error::ConnectionClosed(Arc::new(*reason)));
            }
        }
        Ok(())
    }

    fn delivery(&mut self, core: &mut Core, incoming: Incoming<'a>) -> Result<(), Event<'a>> {
        let DeliveryMethod::Deliver(deliver) = incoming.method else {
            if self.sink.is_some() {
                return Err(Event::Delivery(incoming));
            }
            let kept = keep_incoming(&incoming, core.recovers(incoming.channel));
            self.keep(core, incoming.channel, ShortStr::EMPTY, kept);
            return Ok(());
        };
        if self.sink.is_some() {
            let same = self
                .run
                .first()
                .is_some_and(|first| is_same_consumer(first, incoming.channel, deliver));
            if !same || self.run.len() == RUN_MAX {
                return Err(Event::Delivery(incoming));
            }
            self.run.push(incoming);
            return Ok(());
        }
        let recovers = core.recovers(incoming.channel);
        let route = core.route(incoming.channel);
        match route.and_then(|route| route.receiver(deliver.consumer_tag)) {
            Some(Receiver::Batches(sink)) => {
                self.sink = Some(sink.clone());
                self.run.reserve(RUN_MAX);
                self.run.push(incoming);
            }
            Some(Receiver::Stream { .. }) => {
                let kept = keep_incoming(&incoming, recovers);
                self.keep(core, incoming.channel, deliver.consumer_tag, kept);
            }
            Some(Receiver::Gone { left: Some(left) }) => {
                left.push(DeliveryId { tag: deliver.delivery_tag, recovers });
            }
            Some(Receiver::Gone { left: None }) | None => {}
        }
        Ok(())
    }

    fn large_delivery(&mut self, core: &mut Core, assembled: Box<AssembledDelivery>) {
        let recovers = core.recovers(assembled.channel);
        let DeliveryMethod::Deliver(deliver) = assembled.method() else {
            let kept = keep_assembled(&assembled, recovers);
            self.keep(core, assembled.channel, ShortStr::EMPTY, kept);
            return;
        };
        let route = core.route(assembled.channel);
        match route.and_then(|route| route.receiver(deliver.consumer_tag)) {
            Some(Receiver::Batches(sink)) => {
                self.sink = Some(sink.clone());
                self.large = Some(assembled);
            }
            _ => {
                let kept = keep_assembled(&assembled, recovers);
                self.keep(core, assembled.channel, deliver.consumer_tag, kept);
            }
        }
    }

    /// Gives a message to whom it is for.
    fn keep(&mut self, core: &mut Core, channel: u16, tag: ShortStr<'_>, kept: Kept) {
        let Some(route) = core.route(channel) else { return };
        match kept {
            Kept::Delivery(received) => match route.receiver(tag) {
                Some(Receiver::Stream { mailbox, .. }) => {
                    let size_bytes = received.message.size_bytes();
                    // One that takes nothing more has ended with its channel, and the message is back in its queue.
                    if let Ok(waker) = mailbox.push(received, size_bytes) {
                        self.wakers.extend(waker);
                    }
                }
                Some(Receiver::Gone { left: Some(left) }) => left.push(received.id),
                _ => {}
            },
            Kept::Got(received, left) => {
                let reply = Reply::Message(Some(Box::new((received, left))));
                let expects = (basic::CLASS_ID, basic::GetOk::METHOD_ID);
                self.answer(core, channel, expects, reply);
            }
            Kept::Returned(returned) => {
                if let Some(returns) = &route.returns {
                    let size_bytes = returned.message.size_bytes();
                    // It fails if the listener is gone; then returns are thrown away, as they are without a listener.
                    if let Ok(waker) = returns.push(returned, size_bytes) {
                        self.wakers.extend(waker);
                    }
                }
            }
        }
    }

    fn confirm(&mut self, core: &mut Core, channel: u16, confirmed: Confirmed) {
        let is_settled = core.machine.unconfirmed(channel) == 0;
        let Some(route) = core.route(channel) else { return };
        let Confirmed { first, last, is_ack } = confirmed;
        let confirmation = if is_ack { Confirmation::Ack } else { Confirmation::Nack };
        route.confirms.resolve(first, last, confirmation);
        if let Some(sink) = &route.confirms.sink {
            self.confirmed.push((sink.clone(), confirmed));
        }
        if is_settled {
            route.state.settled.notify_waiters();
        }
        // Publishers may have waited for fewer outstanding confirms.
        self.has_room = true;
    }

    fn reply(&mut self, core: &mut Core, channel: u16, method: &Method<'_>) {
        if let Method::ConnectionUpdateSecretOk(_) = method {
            if !core.secret.is_empty() {
                let _ = core.secret.remove(0).send(Reply::Done);
            }
            return;
        }
        if let Method::BasicCancel(cancel) = method {
            self.cancelled_by_server(core, channel, cancel);
            return;
        }
        let ids = match method {
            Method::BasicGetEmpty(_) => (basic::CLASS_ID, basic::GetOk::METHOD_ID),
            _ => (method.class_id(), method.method_id()),
        };
        if !self.answer(core, channel, ids, Reply::from_method(method)) {
            let text = format!("COMMAND_INVALID - unexpected {}", method.name());
            core.machine.close(COMMAND_INVALID, &text, Instant::now());
            self.ended = Some(core.connection_error());
        }
    }

    fn cancelled_by_server(&mut self, core: &mut Core, channel: u16, cancel: &basic::Cancel<'_>) {
        if let Some(route) = core.route(channel)
            && let Some(consuming) = route.consumers.remove(cancel.consumer_tag.as_bytes())
        {
            let state = route.state.clone();
            let consumer_tag = cancel.consumer_tag.to_string();
            let error = Error::ConsumerCancelled { consumer_tag };
            // The server may have taken it back, or left it here. It counts for the channel's prefetch until it is settled.
            if let Receiver::Stream { mailbox, auto_ack: false } = &consuming.receiver {
                let left: Vec<_> = mailbox.take_all().map(|left| left.id).collect();
                core.give_back(&state, &left);
            }
            self.consumer_ended(core, &state, consuming.receiver, Some(error));
        }
        if !cancel.nowait {
            let ok = basic::CancelOk { consumer_tag: cancel.consumer_tag };
            ok.write_frame(channel, core.machine.output());
        }
    }

    /// Answers the oldest request of the channel. False if it waits for something else, or there is none.
    fn answer(&mut self, core: &mut Core, channel: u16, ids: (u16, u16), reply: Reply) -> bool {
        let Some(route) = core.route(channel) else { return true };
        let Some(waiting) = route.waiting.pop_front() else { return false };
        if waiting.expects != ids {
            return false;
        }
        let state = route.state.clone();
        match &waiting.purpose {
            Purpose::Cancel(key) => {
                if let Some(receiver) = route.remove_consumer(key) {
                    self.consumer_ended(core, &state, receiver, None);
                }
            }
            Purpose::Recover => state.recovers.answer(),
            Purpose::Get { .. } | Purpose::Other => {}
        }
        // A program that has given up waiting needs no answer, but a message shall not be lost with it.
        if let Err(Reply::Message(Some(got))) = waiting.answer.send(reply)
            && let Purpose::Get { gives_back: true } = waiting.purpose
        {
            core.give_back(&state, &[got.0.id]);
        }
        true
    }

    /// The server sends nothing more to a consumer.
    fn consumer_ended(
        &mut self,
        core: &mut Core,
        state: &ChannelState,
        receiver: Receiver,
        error: Option<Error>,
    ) {
        if let Receiver::Gone { left: Some(left) } = &receiver {
            core.give_back(state, left);
        }
        self.cancelled.push((receiver, error));
    }

    /// Does what must not be done under the lock: calls handlers and wakes tasks.
    fn act(mut self, shared: &Shared) {
        if let Some(sink) = self.sink.take() {
            match self.large.take() {
                Some(large) => sink.call(&[large.as_delivery()], shared),
                None => sink.call(&self.run, shared),
            }
        }
        for (sink, confirmed) in self.confirmed {
            sink.call(confirmed);
        }
        self.wakers.into_iter().for_each(Waker::wake);
        self.cancelled.into_iter().for_each(|(receiver, error)| receiver.end(error));
        self.closed.into_iter().for_each(|(route, error)| route.close(&error));
        if self.has_room {
            shared.room.notify_waiters();
        }
        if let Some(error) = self.ended {
            shared.end(error);
        }
    }
}

fn is_same_consumer(first: &Incoming<'_>, channel: u16, deliver: basic::Deliver<'_>) -> bool {
    first.channel == channel
        && matches!(first.method, DeliveryMethod::Deliver(before) if before.consumer_tag == deliver.consumer_tag)
}
