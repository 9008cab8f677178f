//! How nodes become a cluster.
//!
//! A node draws its number and a seed once, and keeps them in its data folder before it tells any other node ([`Folder`]).
//! A new node asks all addresses that it was given who is there. When all answer and none belongs to a cluster, they are
//! one: its members are all of them, and its identity follows from its name, their numbers and the seed of the first, so
//! that each comes to it by itself. A node that meets a cluster is part of it if it is one of its founders, which has told
//! its number and has kept nothing yet; any other has to be added by an operator. Where one of the nodes has the data of a
//! broker by itself, it begins the cluster alone, and the others are added. So a node whose folder was lost never comes
//! back as the one that it was, which would forget what that has promised. Nodes that have the same number, as a folder was
//! copied, are told apart by the numbers of their processes.

mod folder;
mod kept;
mod survivor;
mod verdict;

pub use folder::{Folder, FolderError};
pub use survivor::{GroupCopy, RecoverError, Survivor};
pub use verdict::{Seen, Verdict, judge};

use crate::transport::{About, Endpoint, Formation, Purpose};
use std::time::Duration;

/// How often the others are asked.
const INTERVAL: Duration = Duration::from_millis(300);

/// Asks the nodes at `addresses` until they and this one are a cluster, or until this one was added to one, or has to begin
/// one with the data that it has: then there is no formation yet. `tell` hears why it waits, whenever that changes.
pub async fn form(
    endpoint: &Endpoint,
    addresses: &[String],
    mut tell: impl FnMut(&Verdict),
) -> Option<Formation> {
    let mut told = None;
    loop {
        let seen = look_around(endpoint, addresses).await;
        let own = endpoint.about();
        // An operator may have added it meanwhile.
        if own.formation.is_some() {
            return own.formation;
        }
        match judge(&own, &seen) {
            Verdict::Formed(formation) => return Some(formation),
            Verdict::Begins => return None,
            waits => {
                if told.as_ref() != Some(&waits) {
                    tell(&waits);
                    told = Some(waits);
                }
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

/// Asks who is at these addresses, all at once. Where this node itself answers, others reach it.
pub async fn look_around(endpoint: &Endpoint, addresses: &[String]) -> Vec<Seen> {
    let own = endpoint.about();
    let mut asking = Vec::new();
    for address in addresses {
        asking.push(async move {
            let met = endpoint.dial(address, Purpose::Meet, "").await;
            let met = met.map(|dialled| dialled.about).map_err(|error| error.to_string());
            Seen { address: address.clone(), met }
        });
    }
    let mut seen = Vec::new();
    // One after the other would wait for each that is away.
    for one in all(asking).await {
        let is_own = |about: &About| about.node == own.node && own.clash_with(about).is_none();
        if one.met.as_ref().is_ok_and(is_own) {
            endpoint.change(|about| about.address.clone_from(&one.address));
        }
        seen.push(one);
    }
    seen
}

/// Runs all futures at once, and gives what they come to in their order.
async fn all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    std::future::poll_fn(move |cx| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(output) = future.as_mut().poll(cx)
            {
                *slot = Some(output);
            }
        }
        match done.iter().all(Option::is_some) {
            true => std::task::Poll::Ready(done.drain(..).flatten().collect()),
            false => std::task::Poll::Pending,
        }
    })
    .await
}
