//! A producer: a connection that publishes as fast as it may.

use std::io;
use std::sync::Arc;

use courser_client::Error;
use courser_client::batch::Envelope;

use crate::alarm::Alarm;
use crate::clock::now_ns;
use crate::context::Context;
use crate::declare::declare;
use crate::latency::Recorder;
use crate::options::steps::value_at;
use crate::pace::Pacer;
use crate::recovery::Attempts;
use crate::session::{Session, envelopes, open};
use crate::stamp::{STAMP_LEN, Stamp};
use crate::transaction::Transaction;

/// A batch is handed over when it has this many bytes.
const BATCH_BYTES: usize = 64 * 1024;
/// Bytes of a message on the wire besides its body, roughly; to know how many make a batch.
const OVERHEAD_BYTES: usize = 64;

/// One producer, connected and ready to start.
pub struct Producer {
    context: Arc<Context>,
    index: usize,
    confirm_latency: Arc<Recorder>,
    session: Session,
    /// By the message's number modulo their number.
    envelopes: Vec<Envelope>,
    body: Vec<u8>,
    /// Messages handed over so far; also the number of the next one.
    sent: u64,
}

/// What is left of a producer that has stopped.
pub struct Stopped {
    /// Why it has stopped before it should.
    pub error: Option<Error>,
    producer: Producer,
}

impl Producer {
    /// Connects. Confirm latencies go to `confirm_latency`.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn connect(
        context: Arc<Context>,
        index: usize,
        confirm_latency: Arc<Recorder>,
    ) -> Result<Self, Error> {
        Ok(Self {
            session: open(&context, index, 0, &confirm_latency).await?,
            envelopes: envelopes(&context, index)?,
            body: vec![0; context.options.largest_size()],
            sent: 0,
            context,
            index,
            confirm_latency,
        })
    }

    /// Publishes until it is told to stop, the limit of messages is reached, or the connection fails; with
    /// `--reconnect`, it connects again then, unless the broker has refused what it publishes.
    pub async fn run(mut self) -> Stopped {
        let started_ns = now_ns();
        let mut pacer = self.pacer(started_ns);
        let context = self.context.clone();
        let mut attempts = context.recovery.attempts(format!("producer {}", self.index + 1));
        let goes_on = |error: &&Error| context.options.reconnect && !is_refusal(error);
        loop {
            let error = self.publish_all(&mut pacer, started_ns).await.err();
            let Some(broken) = error.as_ref().filter(goes_on) else {
                return Stopped { error, producer: self };
            };
            self.lose_unanswered();
            let session = tokio::select! {
                session = self.reopen(&mut attempts, broken) => session,
                () = context.stopped() => {
                    attempts.given_up();
                    return Stopped { error: None, producer: self };
                }
            };
            attempts.succeeded();
            self.session = session;
        }
    }

    /// Tries until it works.
    async fn reopen(&self, attempts: &mut Attempts<'_>, broken: &Error) -> Session {
        attempts.broken(broken).await;
        loop {
            match self.try_to_reopen().await {
                Ok(session) => return session,
                Err(error) => attempts.failed(&error).await,
            }
        }
    }

    async fn try_to_reopen(&self) -> Result<Session, Error> {
        let context = &self.context;
        let connection = context.producer_links.connection(&context.endpoints, self.index).await?;
        declare(context, &connection).await?;
        open(context, self.index, self.sent, &self.confirm_latency).await
    }

    /// The connection is gone; whether what the broker has not answered got there is not known.
    fn lose_unanswered(&mut self) {
        let count = self.excuse_unanswered();
        self.context.counters.uncertain.add(count, now_ns());
        self.session.window = None;
        self.session.transaction = None;
    }

    /// What is unanswered is not expected to arrive; gives its number.
    fn excuse_unanswered(&self) -> u64 {
        let Session { window, transaction, .. } = &self.session;
        let ledger = &self.context.ledger;
        let open = transaction.as_ref().map_or(0, Transaction::len);
        if open > 0 {
            ledger.excuse(self.index, self.sent - open..=self.sent - 1);
        }
        let Some(window) = window else { return open };
        let unanswered = window.unanswered(self.sent + 1);
        for seq in &unanswered {
            ledger.excuse(self.index, seq - 1..=seq - 1);
        }
        open + unanswered.len() as u64
    }

    async fn publish_all(&mut self, pacer: &mut Pacer, started_ns: u64) -> Result<(), Error> {
        let context = self.context.clone();
        let mut alarm = Alarm::new().map_err(lost)?;
        while !context.is_stopping() {
            let now_ns = now_ns();
            self.resize(now_ns - started_ns);
            let batch_len = (BATCH_BYTES / (self.body.len() + OVERHEAD_BYTES)).max(1) as u64;
            let due = pacer.due(now_ns).min(batch_len);
            if due == 0 {
                tokio::select! {
                    woken = alarm.wait_until(pacer.wake_at_ns(now_ns)) => woken.map_err(lost)?,
                    () = context.stopped() => break,
                    error = self.session.connection.closed() => return Err(error),
                }
                continue;
            }
            let room = self.session.room(self.sent).min(due);
            if room == 0 {
                let Some(window) = &self.session.window else { continue };
                tokio::select! {
                    () = window.freed() => {}
                    () = context.stopped() => break,
                    // A channel that is closed, with its connection or alone, has no more confirms.
                    settled = self.session.channel.wait_for_confirms() => drop(settled?),
                }
                continue;
            }
            let count = context.take_quota(room);
            if count == 0 {
                break;
            }
            self.fill(count, pacer, now_ns)?;
            let sent = tokio::select! {
                biased;
                sent = self.session.channel.send(&mut self.session.batch) => sent.map(drop),
                () = context.stopped() => {
                    self.withdraw(count);
                    break;
                }
            };
            if let Err(error) = sent {
                self.withdraw(count);
                return Err(error);
            }
            self.sent += count;
            context.counters.published.add(count, now_ns);
            if !self.commit(1).await? {
                return Ok(());
            }
        }
        self.commit(0).await.map(drop)
    }

    /// Commits the open transaction, if it has messages and room for fewer than so many more. False if the broker has
    /// not answered when the time to drain was over.
    async fn commit(&mut self, room: u64) -> Result<bool, Error> {
        let Session { channel, transaction, .. } = &mut self.session;
        match transaction {
            Some(open) if open.len() > 0 && (room == 0 || open.room() < room) => {
                open.commit(channel, &self.context, &self.confirm_latency).await
            }
            _ => Ok(true),
        }
    }

    /// Producers start evenly spread over the time between two messages.
    fn pacer(&self, now_ns: u64) -> Pacer {
        let options = &self.context.options;
        let interval_ns = 1_000_000_000_u64.checked_div(options.rate).unwrap_or(0);
        let offset_ns = interval_ns * self.index as u64 / u64::from(options.producers);
        match &options.variable_rate[..] {
            [] => Pacer::new(now_ns + offset_ns, options.rate),
            steps => Pacer::in_steps(now_ns, steps),
        }
    }

    /// Makes bodies as large as they are at this time.
    fn resize(&mut self, elapsed_ns: u64) {
        if let Some(size) = value_at(&self.context.options.variable_size, elapsed_ns) {
            self.body.resize(size as usize, 0);
        }
    }

    /// Encodes messages into the batch and enters them in the books.
    fn fill(&mut self, count: u64, pacer: &mut Pacer, now_ns: u64) -> Result<(), Error> {
        let Context { run, ledger, .. } = &*self.context;
        ledger.publishing(self.index, count);
        for number in self.sent..self.sent + count {
            let time_ns = pacer.next_stamp_ns(now_ns);
            if let Some(room) = self.body.first_chunk_mut::<STAMP_LEN>() {
                *room =
                    Stamp { time_ns, run: *run, producer: self.index as u16, number }.to_bytes();
            }
            let Session { batch, window, transaction, .. } = &mut self.session;
            if let Some(window) = window {
                window.open(number + 1, time_ns);
            }
            if let Some(transaction) = transaction {
                transaction.add(time_ns);
            }
            let turn = (number % self.envelopes.len() as u64) as usize;
            batch.push(&self.envelopes[turn], &self.body)?;
        }
        Ok(())
    }

    /// The batch was not sent.
    fn withdraw(&mut self, count: u64) {
        let Session { batch, window, transaction, .. } = &mut self.session;
        batch.clear();
        self.context.ledger.not_published(self.index, count);
        self.context.return_quota(count);
        if let Some(window) = window {
            window.withdraw(self.sent + 1, count);
        }
        if let Some(transaction) = transaction {
            transaction.withdraw(count);
        }
    }
}

impl Stopped {
    /// Publishes that the broker has not answered yet.
    #[must_use]
    pub fn outstanding(&self) -> u64 {
        let Session { window, transaction, .. } = &self.producer.session;
        let open = transaction.as_ref().map_or(0, Transaction::len);
        open + window.as_ref().map_or(0, |window| window.outstanding().into())
    }

    /// What is unconfirmed by now is not expected to arrive; gives its number.
    #[must_use]
    pub fn give_up_waiting(&self) -> u64 {
        self.producer.excuse_unanswered()
    }

    /// Closes the channel.
    pub async fn close(self) {
        if self.outstanding() == 0 {
            // What has failed was told before.
            let _ = self.producer.session.channel.close().await;
        }
    }

    /// Waits until all that was published is with the operating system.
    ///
    /// # Errors
    /// When the connection has failed.
    pub async fn flush(&self) -> Result<(), Error> {
        self.producer.session.channel.flush().await
    }
}

/// Whether the broker has refused what was published for its content or the user's rights, as it would again.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::ChannelClosed { .. }) && matches!(error.reply_code(), Some(403 | 406))
}

fn lost(error: io::Error) -> Error {
    Error::Lost(Arc::new(error))
}
