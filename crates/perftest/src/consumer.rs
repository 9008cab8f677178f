//! A consumer: a connection that takes messages and looks at their stamps.

use std::sync::Arc;

use courser_client::batch::{BatchConsumer, Deliveries};
use courser_client::{Channel, Connection, ConsumeOptions, Error};
use parking_lot::Mutex;

use crate::arguments;
use crate::clock::now_ns;
use crate::context::Context;
use crate::latency::Recorder;
use crate::ledger::Arrivals;
use crate::stamp::Stamp;

/// One consumer at work.
pub struct Consumer {
    context: Arc<Context>,
    connection: Connection,
    channel: Channel,
    consumer: BatchConsumer,
    intake: Arc<Mutex<Intake>>,
}

/// What the handler keeps.
struct Intake {
    context: Arc<Context>,
    latency: Arc<Recorder>,
    arrivals: Arrivals,
    /// Messages without an acknowledgement since the last one.
    unacknowledged: u16,
    last_tag: u64,
}

impl Consumer {
    /// Connects and starts. Latencies go to `latency`.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn start(
        context: Arc<Context>,
        index: usize,
        latency: Arc<Recorder>,
    ) -> Result<Self, Error> {
        let connection =
            context.endpoints.connect(index, &format!("consumer {}", index + 1)).await?;
        let channel = connection.open_channel().await?;
        let auto_ack = context.options.flags.auto_ack;
        if !auto_ack {
            channel.qos(context.options.prefetch).await?;
        }
        let queue = context.topology.consumed[index];
        let intake = Arc::new(Mutex::new(Intake {
            arrivals: Arrivals::new(&context.ledger, context.topology.place_of_consumer(index)),
            context: context.clone(),
            latency,
            unacknowledged: 0,
            last_tag: 0,
        }));
        let handler = {
            let intake = intake.clone();
            move |deliveries: &mut Deliveries<'_>| intake.lock().take(deliveries)
        };
        let arguments = arguments::of_consumers(&context.options);
        let options = ConsumeOptions { auto_ack, arguments, ..ConsumeOptions::default() };
        let name = &context.topology.queues[queue];
        let consumer = channel.consume_batches(name, options, handler).await?;
        Ok(Self { context, connection, channel, consumer, intake })
    }

    /// Waits until the consumer ends by itself, which it should not; tells why.
    pub async fn failed(&self) -> Error {
        match self.consumer.ended().await {
            Err(error) => error,
            Ok(()) => std::future::pending().await,
        }
    }

    /// Enters everything that has arrived so far in the ledger.
    pub fn enter(&self) {
        self.intake.lock().arrivals.flush(&self.context.ledger);
    }

    /// Stops consuming, acknowledges the rest and closes the connection.
    pub async fn close(self) {
        // What has failed was told before.
        let _ = self.consumer.cancel().await;
        self.enter();
        let rest = {
            let intake = self.intake.lock();
            (intake.unacknowledged > 0).then_some(intake.last_tag)
        };
        if let Some(tag) = rest {
            let _ = self.channel.ack(tag, true);
        }
        let _ = self.channel.close().await;
        let _ = self.connection.close().await;
    }
}

impl Intake {
    fn take(&mut self, deliveries: &mut Deliveries<'_>) {
        let now_ns = now_ns();
        let context = &*self.context;
        let measured_from_ns = context.counters.measuring_from_ns();
        let mut recording = self.latency.lock();
        let (mut foreign, mut from_warmup) = (0, 0);
        for delivery in deliveries.iter() {
            let Some(stamp) = Stamp::read(delivery.body()) else { continue };
            if !is_own(context, &mut self.arrivals, stamp) {
                foreign += 1;
            } else if stamp.time_ns >= measured_from_ns {
                recording.add(now_ns.saturating_sub(stamp.time_ns));
            } else {
                from_warmup += 1;
            }
        }
        drop(recording);
        let own = deliveries.len() as u64 - foreign;
        context.counters.consumed.add(own, now_ns);
        // During the warm-up everything is of the warm-up; a run without producers has none.
        if from_warmup > 0 && measured_from_ns != u64::MAX && context.options.producers > 0 {
            context.counters.from_warmup.add(from_warmup, now_ns);
        }
        if foreign > 0 {
            context.counters.foreign.add(foreign, now_ns);
        }
        if !context.options.flags.auto_ack {
            self.acknowledge(deliveries);
        }
    }

    fn acknowledge(&mut self, deliveries: &mut Deliveries<'_>) {
        let multi_ack = self.context.options.multi_ack;
        for delivery in deliveries.iter() {
            self.unacknowledged += 1;
            self.last_tag = delivery.delivery_tag();
            if self.unacknowledged >= multi_ack {
                self.unacknowledged = 0;
                deliveries.ack(self.last_tag, multi_ack > 1);
            }
        }
    }
}

/// Whether a message belongs to this run; if so, it is marked as arrived. A run without producers takes all messages for
/// its own.
fn is_own(context: &Context, arrivals: &mut Arrivals, stamp: Stamp) -> bool {
    if context.options.producers == 0 {
        return true;
    }
    stamp.run == context.run
        && stamp.time_ns >= context.start_ns
        && arrivals.mark(&context.ledger, stamp.producer.into(), stamp.number)
}
