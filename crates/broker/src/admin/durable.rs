//! Waiting for what an operator has changed to be durable.

use super::Admin;
use crate::fault::{Fault, store_fault};
use courser_store::{Lsn, Store, StoreError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Resolves when everything that was changed before it was made survives a crash. It blocks no thread,
/// and can be dropped at any time.
#[must_use = "it has to be awaited"]
pub struct Durable {
    /// How far each log has to be.
    awaited: Vec<(Arc<dyn Store>, Lsn)>,
    /// Who is woken when one of them is.
    told: Option<Waker>,
}

impl Admin {
    /// Waits for what has been changed so far. A change takes effect at once; after a crash it is
    /// certainly there only if this has resolved.
    pub fn durable(&self) -> Durable {
        let stores = self.broker.stores();
        let awaited = stores.into_iter().map(|store| {
            let end = store.end();
            (store, end)
        });
        Durable { awaited: awaited.collect(), told: None }
    }
}

impl Future for Durable {
    type Output = Result<(), Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.awaited.retain(|(store, lsn)| store.durable() < *lsn);
        let mut failed =
            this.awaited.iter().filter_map(|(store, _)| Some((store, store.failure()?)));
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
            for (store, lsn) in &this.awaited {
                store.when_durable(*lsn, cx.waker().clone().into());
            }
        }
        Poll::Pending
    }
}

impl fmt::Debug for Durable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Durable").field("logs", &self.awaited.len()).finish_non_exhaustive()
    }
}
