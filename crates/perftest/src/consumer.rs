//! A consumer: takes messages from a channel of its own.

use std::io;
use std::sync::Arc;

use courser_client::batch::{BatchConsumer, Deliveries};
use courser_client::{Channel, ConsumeOptions, Delivery, Error, FieldTable};
use parking_lot::Mutex;

use crate::alarm::Alarm;
use crate::arguments;
use crate::clock::now_ns;
use crate::context::Context;
use crate::declare::declare;
use crate::intake::{Answer, Intake};
use crate::latency::Recorder;

/// One consumer at work.
pub struct Consumer {
    context: Arc<Context>,
    index: usize,
    intake: Arc<Mutex<Intake>>,
    session: tokio::sync::Mutex<Session>,
}

/// A channel, until it or its connection ends.
struct Session {
    channel: Channel,
    source: Source,
}

/// How messages come.
enum Source {
    /// As they lie in the reads of the connection.
    Batches(BatchConsumer),
    /// One by one, when there is time for each.
    Stream(courser_client::Consumer),
    /// When they are asked for.
    Polling,
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
        let intake = Arc::new(Mutex::new(Intake::new(context.clone(), index, latency)));
        let arguments = arguments::of_consumers(&context.options);
        let session = open(&context, index, &intake, arguments).await?.into();
        Ok(Self { context, index, intake, session })
    }

    /// Takes messages until it fails, which it should not; tells why. With `--reconnect` it connects again instead.
    pub async fn work(&self) -> Error {
        let mut session = self.session.lock().await;
        let context = &*self.context;
        let mut attempts = context.recovery.attempts(format!("consumer {}", self.index + 1));
        loop {
            let error = match session.take(self).await {
                Err(error) => error,
                // This side has ended it.
                Ok(()) => return std::future::pending().await,
            };
            if !context.options.reconnect {
                return error;
            }
            attempts.broken(&error).await;
            *session = loop {
                match self.reopen().await {
                    Ok(session) => break session,
                    Err(error) => attempts.failed(&error).await,
                }
            };
            attempts.succeeded();
        }
    }

    async fn reopen(&self) -> Result<Session, Error> {
        let context = &*self.context;
        let connection = context.consumer_links.connection(&context.endpoints, self.index).await?;
        declare(context, &connection).await?;
        let arguments = {
            let mut intake = self.intake.lock();
            intake.forget_unacknowledged();
            arguments::of_consumers_again(&context.options, intake.last_offset())
        };
        open(context, self.index, &self.intake, arguments).await
    }

    /// Enters everything that has arrived so far in the ledger.
    pub fn enter(&self) {
        self.intake.lock().enter();
    }

    /// Stops consuming, acknowledges the rest and closes the channel.
    pub async fn close(self) {
        let Session { channel, source } = self.session.into_inner();
        // What has failed was told before.
        match source {
            Source::Batches(consumer) => drop(consumer.cancel().await),
            Source::Stream(consumer) => drop(consumer.cancel().await),
            Source::Polling => {}
        }
        self.intake.lock().enter();
        let rest = self.intake.lock().unacknowledged();
        if let Some(tag) = rest {
            let _ = channel.ack(tag, true);
        }
        if self.context.options.consuming.consumer_tx > 0 {
            let _ = channel.tx_commit().await;
        }
        let _ = channel.close().await;
    }

    /// Works on a message, and answers it; says whether it did, or another answer will be for this one too.
    async fn handle(
        &self,
        delivery: &Delivery,
        channel: &Channel,
        alarm: &mut Alarm,
    ) -> Result<bool, Error> {
        let options = &self.context.options;
        let (is_refused, tally) = {
            let mut intake = self.intake.lock();
            intake.note_offset(delivery.raw_properties());
            intake.take_one(delivery.body(), delivery.redelivered())
        };
        let latency_ns = options.consuming.consumer_latency.as_nanos() as u64;
        if latency_ns > 0 {
            alarm.wait_until(now_ns() + latency_ns).await.map_err(lost)?;
        }
        let mut answered = Ok(false);
        let mut intake = self.intake.lock();
        if !options.flags.auto_ack {
            intake.settle(delivery.delivery_tag(), is_refused, |answer| {
                let sent = match answer {
                    Answer::Ack { tag, multiple } => channel.ack(tag, multiple),
                    Answer::Nack { tag, requeue } => channel.nack(tag, false, requeue),
                };
                answered = std::mem::replace(&mut answered, Ok(true)).and(sent.map(|()| true));
            });
        }
        intake.count(tally, now_ns());
        answered
    }
}

impl Session {
    /// Takes messages until this side or the broker ends it.
    async fn take(&mut self, of: &Consumer) -> Result<(), Error> {
        let queue = &of.context.topology.queues[of.context.topology.consumed[of.index]];
        let consuming = &of.context.options.consuming;
        let mut alarm = Alarm::new().map_err(lost)?;
        let interval_ns = 1_000_000_000_u64.checked_div(consuming.consumer_rate).unwrap_or(0);
        let mut next_ns = 0;
        // Messages since the last answer, and those that are answered and not committed.
        let (mut handled, mut answered) = (0_u32, 0_u32);
        loop {
            if next_ns > now_ns() {
                alarm.wait_until(next_ns).await.map_err(lost)?;
            }
            let delivery = match &mut self.source {
                Source::Batches(consumer) => return consumer.ended().await,
                Source::Stream(consumer) => match consumer.next().await? {
                    Some(delivery) => delivery,
                    None => return Ok(()),
                },
                Source::Polling => {
                    match self.channel.get(queue, of.context.options.flags.auto_ack).await? {
                        Some(delivery) => delivery,
                        None => {
                            tokio::time::sleep(consuming.polling_interval).await;
                            continue;
                        }
                    }
                }
            };
            next_ns = now_ns() + interval_ns;
            handled += 1;
            if of.handle(&delivery, &self.channel, &mut alarm).await? {
                answered += std::mem::take(&mut handled);
            }
            if consuming.consumer_tx > 0 && answered >= u32::from(consuming.consumer_tx) {
                self.channel.tx_commit().await?;
                answered = 0;
            }
        }
    }
}

/// Opens a channel and starts to consume on it, with these arguments.
async fn open(
    context: &Context,
    index: usize,
    intake: &Arc<Mutex<Intake>>,
    arguments: FieldTable,
) -> Result<Session, Error> {
    let connection = context.consumer_links.connection(&context.endpoints, index).await?;
    let channel = connection.open_channel().await?;
    let options = &context.options;
    let auto_ack = options.flags.auto_ack;
    if options.consuming.consumer_tx > 0 {
        channel.tx_select().await?;
    }
    if options.consuming.polling {
        return Ok(Session { channel, source: Source::Polling });
    }
    if !auto_ack {
        channel.qos(options.prefetch).await?;
    }
    let consume = ConsumeOptions { auto_ack, arguments, ..ConsumeOptions::default() };
    let queue = &context.topology.queues[context.topology.consumed[index]];
    let source = if options.consuming.is_single() {
        Source::Stream(channel.consume(queue, consume).await?)
    } else {
        let intake = intake.clone();
        let handler = move |deliveries: &mut Deliveries<'_>| intake.lock().take(deliveries);
        Source::Batches(channel.consume_batches(queue, consume, handler).await?)
    };
    Ok(Session { channel, source })
}

fn lost(error: io::Error) -> Error {
    Error::Lost(Arc::new(error))
}
