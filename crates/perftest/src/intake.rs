//! What a consumer makes of each message: whether it belongs to the run, how long it took, and what to answer.

use std::sync::Arc;

use courser_client::RawProperties;
use courser_client::batch::Deliveries;

use crate::arguments::STREAM_OFFSET;
use crate::clock::now_ns;
use crate::context::Context;
use crate::latency::{Recorder, Recording};
use crate::ledger::Arrivals;
use crate::stamp::Stamp;

/// What one consumer keeps.
pub struct Intake {
    context: Arc<Context>,
    latency: Arc<Recorder>,
    arrivals: Arrivals,
    /// Deliveries so far, to refuse some of them.
    delivered: u64,
    /// Messages without an acknowledgement since the last one.
    unacknowledged: u16,
    last_tag: u64,
    /// Offset of the last message, if it came from a stream.
    last_offset: Option<i64>,
}

/// What to tell the broker.
#[derive(Clone, Copy)]
pub enum Answer {
    /// Taken; with `multiple`, all before it too.
    Ack { tag: u64, multiple: bool },
    /// Refused.
    Nack { tag: u64, requeue: bool },
}

/// What has come, before it is counted.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    own: u64,
    foreign: u64,
    from_warmup: u64,
    refused: u64,
}

impl Intake {
    /// For the consumer with this index.
    pub fn new(context: Arc<Context>, index: usize, latency: Arc<Recorder>) -> Self {
        Self {
            arrivals: Arrivals::new(&context.ledger, context.topology.place_of_consumer(index)),
            context,
            latency,
            delivered: 0,
            unacknowledged: 0,
            last_tag: 0,
            last_offset: None,
        }
    }

    /// Takes the messages of a read.
    pub fn take(&mut self, deliveries: &mut Deliveries<'_>) {
        let now_ns = now_ns();
        let mut tally = Tally::default();
        let acks = !self.context.options.flags.auto_ack;
        let latency = self.latency.clone();
        let mut recording = latency.lock();
        for delivery in deliveries.iter() {
            let is_refused = self.refuses(delivery.redelivered());
            self.look(delivery.body(), is_refused, now_ns, &mut recording, &mut tally);
            if acks {
                self.settle(delivery.delivery_tag(), is_refused, |answer| match answer {
                    Answer::Ack { tag, multiple } => deliveries.ack(tag, multiple),
                    Answer::Nack { tag, requeue } => deliveries.nack(tag, false, requeue),
                });
            }
        }
        drop(recording);
        if let Some(last) = deliveries.iter().last() {
            self.note_offset(last.properties());
        }
        self.count(tally, now_ns);
    }

    /// Takes a single message; it is counted, and answered, when the work on it is done.
    pub fn take_one(&mut self, body: &[u8], redelivered: bool) -> (bool, Tally) {
        let mut tally = Tally::default();
        let is_refused = self.refuses(redelivered);
        let latency = self.latency.clone();
        self.look(body, is_refused, now_ns(), &mut latency.lock(), &mut tally);
        (is_refused, tally)
    }

    /// Notes how far a stream is read, to go on there over another connection.
    pub fn note_offset(&mut self, properties: RawProperties<'_>) {
        if !self.context.options.kind.stream {
            return;
        }
        let headers = properties.headers().ok().flatten();
        let offset = headers.and_then(|headers| headers.get(STREAM_OFFSET).ok().flatten());
        self.last_offset = offset.and_then(|offset| offset.as_integer()).or(self.last_offset);
    }

    /// The offset of the last message, if it came from a stream.
    #[must_use]
    pub fn last_offset(&self) -> Option<i64> {
        self.last_offset
    }

    /// Whether it is this one's turn to be refused. What was put back is taken when it comes again.
    fn refuses(&mut self, redelivered: bool) -> bool {
        let consuming = &self.context.options.consuming;
        if consuming.nack_every == 0 {
            return false;
        }
        self.delivered += 1;
        self.delivered.is_multiple_of(consuming.nack_every) && !(consuming.requeue && redelivered)
    }

    #[inline]
    fn look(
        &mut self,
        body: &[u8],
        is_refused: bool,
        now_ns: u64,
        recording: &mut Recording<'_>,
        tally: &mut Tally,
    ) {
        tally.refused += u64::from(is_refused);
        if is_refused && self.context.options.consuming.requeue {
            return;
        }
        let Some(stamp) = Stamp::read(body) else {
            // All of this run have a stamp, if the smallest has room for it.
            let options = &self.context.options;
            let is_own = options.producers == 0 || !options.has_stamps();
            *(if is_own { &mut tally.own } else { &mut tally.foreign }) += 1;
            return;
        };
        if !is_own(&self.context, &mut self.arrivals, stamp) {
            tally.foreign += 1;
            return;
        }
        tally.own += 1;
        if stamp.time_ns >= self.context.counters.measuring_from_ns() {
            recording.add(now_ns.saturating_sub(stamp.time_ns));
        } else {
            tally.from_warmup += 1;
        }
    }

    /// Adds to the counters of the run.
    pub fn count(&self, tally: Tally, now_ns: u64) {
        let Context { counters, options, .. } = &*self.context;
        counters.consumed.add(tally.own, now_ns);
        // During the warm-up everything is of the warm-up; a run without producers has none.
        let is_measuring = counters.measuring_from_ns() != u64::MAX && options.producers > 0;
        for (count, counter) in [
            (if is_measuring { tally.from_warmup } else { 0 }, &counters.from_warmup),
            (tally.foreign, &counters.foreign),
            (tally.refused, &counters.refused),
        ] {
            if count > 0 {
                counter.add(count, now_ns);
            }
        }
    }

    /// Says what to answer for the message with this tag, if it is time to.
    #[inline]
    pub fn settle(&mut self, tag: u64, is_refused: bool, mut answer: impl FnMut(Answer)) {
        let options = &self.context.options;
        if is_refused {
            // What came before it is taken, and must not be refused along with it.
            if let Some(tag) = self.unacknowledged() {
                answer(Answer::Ack { tag, multiple: true });
            }
            self.unacknowledged = 0;
            return answer(Answer::Nack { tag, requeue: options.consuming.requeue });
        }
        self.unacknowledged += 1;
        self.last_tag = tag;
        if self.unacknowledged >= options.multi_ack {
            self.unacknowledged = 0;
            answer(Answer::Ack { tag, multiple: options.multi_ack > 1 });
        }
    }

    /// The last message that waits for its acknowledgement, if one does.
    #[must_use]
    pub fn unacknowledged(&self) -> Option<u64> {
        (self.unacknowledged > 0).then_some(self.last_tag)
    }

    /// The channel is gone, and all that was to be acknowledged on it.
    pub fn forget_unacknowledged(&mut self) {
        self.unacknowledged = 0;
    }

    /// Enters everything that has arrived so far in the ledger.
    pub fn enter(&mut self) {
        self.arrivals.flush(&self.context.ledger);
    }
}

/// Whether a message belongs to this run; if so, it is marked as arrived. A run without producers takes all messages
/// for its own.
fn is_own(context: &Context, arrivals: &mut Arrivals, stamp: Stamp) -> bool {
    if context.options.producers == 0 {
        return true;
    }
    context.is_of_run(stamp) && arrivals.mark(&context.ledger, stamp.producer.into(), stamp.number)
}
