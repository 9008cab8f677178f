//! Waiting for what an operator has changed to be durable, and for what one has read to be current.

use super::Admin;
use crate::broker::Broker;
use crate::fault::{Fault, store_fault};
use crate::outbox::{Next, Until};
use crate::removals::Removals;
use crate::shard::Shard;
use courser_store::{Store, StoreError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Resolves when everything that was changed before it was made survives a crash, and what was read is current. It blocks no
/// thread, and can be dropped at any time.
#[must_use = "it has to be awaited"]
pub struct Durable {
    awaited: Vec<Awaited>,
    /// Who is woken when one of them is.
    told: Option<Waker>,
}

/// What is waited for of a shard.
struct Awaited {
    store: Arc<dyn Store>,
    removals: Arc<Removals>,
    until: Until,
}

impl Awaited {
    fn of(shard: &Shard, until: Until) -> Self {
        let (store, removals) = (Arc::clone(&shard.store), Arc::clone(&shard.removals));
        Awaited { store, removals, until }
    }

    fn is_pending(&self) -> bool {
        self.until.waits_for(&*self.store)
    }

    /// Has `waker` woken when there is something to wait for no more.
    fn wake(&self, waker: &Waker) {
        let mut next = Next::default();
        next.await_until(self.until, Until::default());
        if let Some(lsn) = next.durable {
            self.store.when_durable(lsn, waker.clone().into());
        }
        if let Some(proof) = next.lead {
            self.store.when_proven(proof, waker.clone().into());
        }
        if let Some(removal) = next.removal {
            self.removals.when_over(removal, waker.clone().into());
        }
    }
}

impl Admin {
    /// Waits for what has been changed so far. A change takes effect at once; after a crash it is
    /// certainly there only if this has resolved.
    pub fn durable(&self) -> Durable {
        let mut awaited = Vec::new();
        self.broker.for_each_shard(&mut |shard| {
            let until = Until::told(&*shard.store, shard.store.end());
            awaited.push(Awaited::of(shard, until));
        });
        Durable { awaited, told: None }
    }

    /// Whether the next change may have to wait for room in a log, as its disk is behind.
    pub fn log_may_block(&self) -> bool {
        let mut may_block = false;
        self.broker.for_each_shard(&mut |shard| may_block |= shard.store.may_block());
        may_block
    }

    /// Waits until what was read before this call is certainly current. `None` if it is.
    pub fn current(&self) -> Option<Durable> {
        self.broker.current()
    }
}

impl Broker {
    /// Waits until what was read of definitions before this call is certainly current: in a cluster, another machine may lead
    /// by now, and a change that is not committed may be lost. `None` if it is.
    pub fn current(&self) -> Option<Durable> {
        let mut awaited = Vec::new();
        self.for_each_shard(&mut |shard| {
            let until = Until::read(&*shard.store, &shard.removals, || shard.defined.lsn());
            if until.waits_for(&*shard.store) {
                awaited.push(Awaited::of(shard, until));
            }
        });
        (!awaited.is_empty()).then_some(Durable { awaited, told: None })
    }
}

impl Future for Durable {
    type Output = Result<(), Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        for Awaited { store, removals, until } in &mut this.awaited {
            if until.let_removals_end(Until::reached_by(&**store, removals)) {
                // For what was told of them, it is not woken yet.
                this.told = None;
            }
        }
        this.awaited.retain(Awaited::is_pending);
        let stores = this.awaited.iter().map(|awaited| &awaited.store);
        let mut failed = stores.filter_map(|store| Some((store, store.failure()?)));
        if let Some((store, why)) = failed.next() {
            let is_deposed = store.is_deposed();
            let error = if is_deposed { StoreError::Deposed } else { StoreError::Failed(why) };
            return Poll::Ready(Err(store_fault(error)));
        }
        if this.awaited.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if !this.told.as_ref().is_some_and(|told| told.will_wake(cx.waker())) {
            this.told = Some(cx.waker().clone());
            this.awaited.iter().for_each(|awaited| awaited.wake(cx.waker()));
        }
        Poll::Pending
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").field("logs", &self.awaited.len()).finish_non_exhaustive()
    }
}
