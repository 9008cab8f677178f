//! A turn of a client's task: what it writes and reads, and what it hears by that.

use super::{Client, Gone, Lives, NUMBER_BYTES, Unacknowledged};
use crate::clock;
use courser_codec::Method;
use courser_connection::client::{DeliveryMethod, Event};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;

impl Client {
    /// Does what can be done. Ready when something was read or written (false), or it is time (true).
    pub(super) fn poll(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<Lives<bool>> {
        if !self.is_silent {
            let out = std::mem::take(self.machine.output());
            self.output.extend(out);
        }
        let gone = |error: std::io::Error| Gone(error.to_string());
        let before = self.output.len();
        while !self.output.is_empty() {
            let (front, _) = self.output.as_slices();
            match Pin::new(&mut self.wire).poll_write(cx, front) {
                Poll::Ready(Ok(count)) => drop(self.output.drain(..count)),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(gone(error))),
                Poll::Pending => break,
            }
            self.machine.bytes_sent(clock::now());
            (self.wrote_at, self.unsent_since) = (Instant::now(), None);
        }
        self.unsent_since = match self.output.is_empty() {
            true => None,
            false => Some(self.unsent_since.unwrap_or_else(Instant::now)),
        };
        if let Poll::Ready(Err(error)) = Pin::new(&mut self.wire).poll_flush(cx) {
            return Poll::Ready(Err(gone(error)));
        }
        if self.machine.is_closed() && self.output.is_empty() {
            let why = self.machine.close_reason().map_or_else(String::new, ToString::to_string);
            return Poll::Ready(Err(Gone(why)));
        }
        if self.is_reading && self.to_read > 0 {
            let mut bytes = vec![0; self.to_read.min(READ_BYTES)];
            let mut read = ReadBuf::new(&mut bytes);
            match Pin::new(&mut self.wire).poll_read(cx, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => {
                    return Poll::Ready(Err(Gone("end of the stream".into())));
                }
                Poll::Ready(Ok(())) => {
                    self.read_at = Instant::now();
                    self.input.extend_from_slice(read.filled());
                    self.to_read -= read.filled().len();
                    self.hear();
                    return Poll::Ready(Ok(false));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(gone(error))),
                Poll::Pending => {}
            }
        }
        if self.output.len() < before {
            return Poll::Ready(Ok(false));
        }
        self.poll_time(cx, until)
    }

    fn poll_time(&mut self, cx: &mut Context<'_>, until: Instant) -> Poll<Lives<bool>> {
        loop {
            let now = clock::now();
            if now >= until.into_std() {
                return Poll::Ready(Ok(true));
            }
            let due = self.machine.poll_timeout().filter(|_| !self.is_silent);
            if due.is_some_and(|due| now >= due) {
                self.machine.handle_timeout(now);
                if let Some(why) = self.machine.close_reason() {
                    return Poll::Ready(Err(Gone(why.to_string())));
                }
                // What it has to say is said in another turn.
                return Poll::Ready(Ok(false));
            }
            let next = due.map_or(until, |due| until.min(due.into()));
            self.sleep.as_mut().reset(next);
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    fn hear(&mut self) {
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some(event) = self.machine.next(&mut rest, clock::now()) {
            match event {
                Event::Opened => self.let_in_at = Some(Instant::now()),
                Event::ChannelOpened { channel } => self.channels = channel,
                Event::Reply { method, .. } => {
                    if matches!(method, Method::QueueDeclareOk(_)) {
                        let let_in_at = self.let_in_at.unwrap_or(self.asked_at);
                        self.world.answered(let_in_at, self.asked_at);
                    }
                    self.requests = self.requests.saturating_sub(1);
                    self.answered_at = Instant::now();
                }
                Event::Confirm { first, last, is_ack, .. } => {
                    assert!(is_ack, "{}: a message is refused", self.name);
                    for seq in first..=last {
                        let message = self.unconfirmed.remove(&seq).expect("it was published").0;
                        self.world.confirmed(message);
                    }
                }
                Event::Delivery(delivery) => {
                    self.delivered(delivery.method, delivery.body);
                }
                Event::LargeDelivery(delivery) => {
                    self.delivered(delivery.method(), &delivery.body);
                }
                Event::ChannelClosed { reason, .. } => {
                    panic!("{}: channel closed: {reason}", self.name)
                }
                Event::Blocked { .. } => self.is_blocked = true,
                Event::Unblocked => self.unblocked(),
                Event::Flow { .. } => {}
                Event::Closed(_) => {}
            }
        }
        self.input = rest.to_vec();
    }

    fn delivered(&mut self, method: DeliveryMethod<'_>, body: &[u8]) {
        let number: [u8; NUMBER_BYTES] = body[..NUMBER_BYTES].try_into().expect("a number");
        let message = u64::from_be_bytes(number);
        self.received += 1;
        self.world.delivered(message);
        let tag = match method {
            DeliveryMethod::Deliver(deliver) => deliver.delivery_tag,
            DeliveryMethod::GetOk(got) => {
                self.requests = self.requests.saturating_sub(1);
                self.answered_at = Instant::now();
                got.delivery_tag
            }
            DeliveryMethod::Return(_) => panic!("{}: nothing was mandatory", self.name),
        };
        if self.acknowledges {
            self.unacknowledged.push_back(Unacknowledged { tag, message });
        } else {
            self.world.settled(message);
        }
    }
}
