//! Places of requests that are answered from all groups.
//!
//! Those of users whom another program knows have few, as each group asks that program: where it hangs, others get on. No
//! user has all of them.

use super::{Groups, Settled};
use crate::asking::ASKING_MAX;
use crate::call::Call;
use crate::caller::NO_ANSWER;
use crate::http::answer::look_again;
use crate::refusal::Refusal;
use crate::routes::Needs;
use crate::shares::{Share, Shares};

/// What a request has until it is answered.
pub(super) struct Place {
    _place: Share,
    _of_askers: Option<Share>,
}

/// Waits for a place.
///
/// # Errors
/// When the user is one whom another program knows, and those take too long.
pub(super) async fn place(call: &Call) -> Result<Place, Refusal> {
    let (api, user) = (&call.api, call.user());
    let is_asker = call.caller.as_ref().is_some_and(|caller| caller.is_known_elsewhere());
    let _of_askers = match is_asker {
        true => {
            let waiting =
                tokio::time::timeout(ASKING_MAX, acquired(&api.asking_gathers, user)).await;
            Some(waiting.unwrap_or_else(|_| Err(Refusal::unavailable(NO_ANSWER)))?)
        }
        false => None,
    };
    Ok(Place { _place: acquired(&api.gathers, user).await?, _of_askers })
}

/// Waits for a place, and while a vhost changes its group: not the other way round, as there is no limit for the place. Looks
/// again then whether the sender may still ask.
///
/// # Errors
/// As [`place`], and when the sender may not any more.
pub(super) async fn begin(
    call: &mut Call,
    needs: Needs,
    groups: &dyn Groups,
) -> Result<(Place, Settled), Refusal> {
    let place = place(call).await?;
    let settled = groups.settled().await;
    look_again(call, needs)?;
    Ok((place, settled))
}

async fn acquired(places: &Shares, user: &str) -> Result<Share, Refusal> {
    places.take(user, 1).await.ok_or_else(|| Refusal::internal("the API ends"))
}
