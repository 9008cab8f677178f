//! Publishing as fast as messages are taken, or at a rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use courser_client::batch::{Confirmed, Envelope, PublishBatch};
use courser_client::{Channel, Connection, Error, OwnedProperties, ShortString};
use courser_perftest::clock::now_ns;
use courser_perftest::pace::Pacer;
use courser_perftest::stamp::{STAMP_LEN, Stamp};
use courser_perftest::window::Window;

use crate::Answer;
use crate::command::{Publish, Target, table};

/// Bytes and messages that are handed over at once.
const BATCH_BYTES: usize = 64 * 1024;
const BATCH_MAX: u64 = 256;
/// Bytes of a message on the wire besides its body, roughly.
const OVERHEAD_BYTES: usize = 64;

struct Publisher {
    command: Publish,
    channel: Channel,
    envelopes: Vec<Envelope>,
    batch: PublishBatch,
    body: Vec<u8>,
    window: Option<Arc<Window>>,
    begun_ns: u64,
}

/// Publishes everything. Ends when all is confirmed, or when the server has answered a request behind the last message.
pub async fn publish(uri: &str, command: Publish) -> Result<Answer, Error> {
    let connection = Connection::open(uri).await?;
    let channel = connection.open_channel().await?;
    let window = (command.confirm > 0).then(|| Arc::new(Window::new(command.confirm)));
    if let Some(window) = window.clone() {
        let close = move |Confirmed { first, last, .. }| window.close(first, last, |_| ());
        channel.confirm_batches(close).await?;
    }
    let envelopes = command
        .targets
        .iter()
        .map(|target| envelope(&command, target, None))
        .collect::<Result<_, _>>()?;
    let count = command.count;
    let publisher = Publisher {
        batch: PublishBatch::new(&channel),
        body: vec![0; command.size_bytes.max(STAMP_LEN)],
        begun_ns: now_ns(),
        channel: channel.clone(),
        envelopes,
        window,
        command,
    };
    let begun = Instant::now();
    publisher.run().await?;
    let seconds = begun.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(Answer { count, seconds, ..Default::default() })
}

impl Publisher {
    async fn run(mut self) -> Result<(), Error> {
        let whole = (BATCH_BYTES / (self.body.len() + OVERHEAD_BYTES)).clamp(1, BATCH_MAX as usize);
        let mut pacer = Pacer::new(self.begun_ns, self.command.rate);
        let mut sent = 0;
        while sent < self.command.count {
            let now_ns = now_ns();
            let mut count = (whole as u64).min(self.command.count - sent).min(pacer.due(now_ns));
            if count == 0 {
                let wait_ns = pacer.wake_at_ns(now_ns).saturating_sub(now_ns);
                tokio::time::sleep(Duration::from_nanos(wait_ns)).await;
                continue;
            }
            if let Some(window) = &self.window {
                count = count.min(window.room(sent + 1));
                if count == 0 {
                    window.freed().await;
                    continue;
                }
            }
            self.fill(sent, count, &mut pacer, now_ns)?;
            self.channel.send(&mut self.batch).await?;
            sent += count;
        }
        match &self.window {
            Some(window) => {
                while window.outstanding() > 0 {
                    window.freed().await;
                }
                Ok(())
            }
            None => self.channel.qos(0).await,
        }
    }

    fn fill(
        &mut self,
        first: u64,
        count: u64,
        pacer: &mut Pacer,
        now_ns: u64,
    ) -> Result<(), Error> {
        let expiring = self.expiring(now_ns)?;
        for number in first..first + count {
            let turn = (number % self.envelopes.len() as u64) as usize;
            let time_ns =
                pacer.next_stamp_ns(now_ns) + self.command.targets[turn].due_ms * 1_000_000;
            let stamp = Stamp { time_ns, run: 0, producer: 0, number };
            self.body[..STAMP_LEN].copy_from_slice(&stamp.to_bytes());
            if let Some(window) = &self.window {
                window.open(number + 1, time_ns);
            }
            self.batch.push(expiring.as_ref().unwrap_or(&self.envelopes[turn]), &self.body)?;
        }
        Ok(())
    }

    /// What all messages of a batch look like that expire at the same moment as those before.
    fn expiring(&self, now_ns: u64) -> Result<Option<Envelope>, Error> {
        if self.command.expire_in_ms == 0 {
            return Ok(None);
        }
        let passed_ms = (now_ns - self.begun_ns) / 1_000_000;
        let left_ms = self.command.expire_in_ms.saturating_sub(passed_ms);
        envelope(&self.command, &self.command.targets[0], Some(left_ms)).map(Some)
    }
}

fn envelope(command: &Publish, target: &Target, left_ms: Option<u64>) -> Result<Envelope, Error> {
    let expiration = left_ms.map(|left_ms| left_ms.to_string()).or(target.expiration.clone());
    let expiration = expiration.map(|text| {
        let len = text.len();
        ShortString::try_from(&*text).map_err(|_| Error::TooLong { what: "an expiration", len })
    });
    let properties = OwnedProperties {
        delivery_mode: command.persistent.then_some(2),
        priority: target.priority,
        expiration: expiration.transpose()?,
        headers: if target.headers.is_empty() { None } else { Some(table(&target.headers)?) },
        ..Default::default()
    };
    Ok(Envelope::new(&command.exchange, &target.key)?.with_properties(&properties))
}
