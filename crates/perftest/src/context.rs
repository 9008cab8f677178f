//! What all producers and consumers of a run share.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use crate::counters::Counters;
use crate::declare::Declared;
use crate::endpoints::Endpoints;
use crate::ledger::Ledger;
use crate::links::Links;
use crate::options::Options;
use crate::prometheus::Latencies;
use crate::recovery::Recovery;
use crate::run::RunError;
use crate::stamp::{RUNS, Stamp};
use crate::topology::Topology;

/// A run.
pub struct Context {
    /// What was asked for.
    pub options: Options,
    /// Where the brokers are.
    pub endpoints: Endpoints,
    /// Who publishes where, who consumes what.
    pub topology: Topology,
    /// Which messages have arrived.
    pub ledger: Ledger,
    /// Running totals.
    pub counters: Counters,
    /// The run's number in stamps.
    pub run: u16,
    /// When the run began, in monotonic nanoseconds. Older stamps are of other runs.
    pub start_ns: u64,
    /// Messages that may still be published, when there is a limit.
    quota: AtomicU64,
    /// Connections of producers.
    pub(crate) producer_links: Links,
    /// Connections of consumers.
    pub(crate) consumer_links: Links,
    /// Which connections have failed, with `--reconnect`.
    pub(crate) recovery: Recovery,
    /// What the run has made on the broker.
    pub(crate) declared: Mutex<Declared>,
    /// Latencies of consumers and of confirms, as of the last second.
    pub(crate) latencies: Mutex<(Latencies, Latencies)>,
    /// When the time to drain is over, once producers should stop.
    drained_at: watch::Sender<Option<Instant>>,
}

impl Context {
    /// A run that begins at `start_ns`.
    ///
    /// # Errors
    /// When one of the options' URIs is none, or what they say of TLS can't be done.
    pub fn new(options: Options, start_ns: u64) -> Result<Self, RunError> {
        let endpoints = Endpoints::new(&options.broker)?;
        let topology = Topology::new(&options);
        Ok(Self {
            ledger: Ledger::new(topology.clone()),
            topology,
            endpoints,
            counters: Counters::default(),
            // Any number that two runs one after the other, or side by side, do not share by habit.
            run: (((start_ns / 1000) ^ u64::from(std::process::id())) % u64::from(RUNS)) as u16,
            start_ns,
            quota: AtomicU64::new(if options.messages == 0 { u64::MAX } else { options.messages }),
            producer_links: Links::new("producer", options.producers, options.channels),
            consumer_links: Links::new("consumer", options.consumers, options.channels),
            recovery: Recovery::default(),
            declared: Mutex::default(),
            latencies: Mutex::default(),
            drained_at: watch::Sender::default(),
            options,
        })
    }

    /// Whether a message with this stamp can be of this run.
    #[must_use]
    pub fn is_of_run(&self, stamp: Stamp) -> bool {
        stamp.run == self.run && stamp.time_ns >= self.start_ns
    }

    /// Takes up to `wanted` messages off the limit.
    #[must_use]
    pub fn take_quota(&self, wanted: u64) -> u64 {
        if self.options.messages == 0 {
            return wanted;
        }
        let mut taken = 0;
        // The closure always gives a value, so there is no error.
        let _ = self.quota.fetch_update(Relaxed, Relaxed, |left| {
            taken = wanted.min(left);
            Some(left - taken)
        });
        taken
    }

    /// Gives messages back to the limit that were not published.
    pub fn return_quota(&self, count: u64) {
        if self.options.messages != 0 {
            self.quota.fetch_add(count, Relaxed);
        }
    }

    /// Tells producers to stop; from now on `--drain-timeout` counts.
    pub fn stop(&self) {
        self.drained_at.send_replace(Some(Instant::now() + self.options.drain_timeout));
    }

    /// Ends the time to drain, when the user does not want to wait.
    pub fn stop_draining(&self) {
        self.drained_at.send_replace(Some(Instant::now()));
    }

    /// Whether producers should stop.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.drained_at.borrow().is_some()
    }

    /// Waits until producers should stop.
    pub async fn stopped(&self) {
        // The sender is here, so there is no error.
        let _ = self.drained_at.subscribe().wait_for(Option::is_some).await;
    }

    /// Waits until the time to drain is over.
    pub async fn draining_over(&self) {
        let mut drained_at = self.drained_at.subscribe();
        loop {
            let deadline = *drained_at.borrow_and_update();
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                _ = drained_at.changed() => {}
            }
        }
    }
}
