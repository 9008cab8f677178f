//! Places of requests that are answered from all groups.
//!
//! Those of users whom another program knows have few, as each group asks that program: where it hangs, others get on.

use crate::asking::ASKING_MAX;
use crate::call::Call;
use crate::caller::NO_ANSWER;
use crate::refusal::Refusal;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What a request has until it is answered.
pub(super) struct Place {
    _place: OwnedSemaphorePermit,
    _of_askers: Option<OwnedSemaphorePermit>,
}

/// Waits for a place.
///
/// # Errors
/// When the user is one whom another program knows, and those take too long.
pub(super) async fn place(call: &Call) -> Result<Place, Refusal> {
    let api = &call.api;
    let is_asker = call.caller.as_ref().is_some_and(|caller| caller.is_known_elsewhere());
    let _of_askers = match is_asker {
        true => {
            let waiting = tokio::time::timeout(ASKING_MAX, acquired(&api.asking_gathers)).await;
            Some(waiting.unwrap_or_else(|_| Err(Refusal::unavailable(NO_ANSWER)))?)
        }
        false => None,
    };
    Ok(Place { _place: acquired(&api.gathers).await?, _of_askers })
}

async fn acquired(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Refusal> {
    let place = Arc::clone(places).acquire_owned().await;
    place.map_err(|_| Refusal::internal("the API ends"))
}
