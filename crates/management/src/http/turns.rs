//! What a request has to have before it is answered: for a change room in the log, one of its user's places, and for a change of
//! policies its turn.
//!
//! Changes of the policies of one vhost come one after the other, and each may take long. What waits for the one in front has
//! neither a place nor a thread meanwhile. None waits there that may not make its change, and one of each user at a time: the
//! others of that user wait behind it, and not in front of other users. The one whose turn it is does not wait for a place.

use super::answer::{has_given_up, look_again, room_in_log};
use crate::api::turn;
use crate::asking::{Budget, GiveUp};
use crate::call::Call;
use crate::caller::{Caller, NO_ANSWER};
use crate::refusal::Refusal;
use crate::routes::{Changes, Needs, Route, check_vhost};
use crate::shares::Share;
use std::sync::Arc;

/// The turn of a change of policies: the vhost's, and the one of its user there.
pub(crate) type Turn = Option<(Share, Share)>;

/// A request that can be answered.
pub(super) struct Ready {
    pub call: Call,
    /// Dropped when all is asked, or when the client has gone.
    pub asking: Option<GiveUp>,
    pub place: Share,
    pub turn: Turn,
}

/// Of the places for requests, one of all, and where another program knows the user, one of those who ask.
struct Places(Share, Option<Budget>);

impl Ready {
    /// Waits until a request can be answered.
    ///
    /// # Errors
    /// When its sender may not change the policies that it is to change, or has to ask another program and can't, or when the
    /// disk is too slow.
    pub async fn wait(route: &Route, call: Call) -> Result<Ready, Refusal> {
        if route.changes == Changes::Log && !call.is_set("dry_run") {
            room_in_log(&call).await?;
        }
        let Some(vhost) = turn(route, &call) else {
            return Ok(Places::take(&call).await?.given(call, None));
        };
        let api = Arc::clone(&call.api);
        let of_user = format!("{}\0{vhost}", call.user());
        let own = api.own_turns.take(&of_user, 1).await.ok_or_else(at_its_end)?;
        let call = let_in(call, route.needs).await?;
        loop {
            let turn = api.turns.take(&vhost, 1).await.ok_or_else(at_its_end)?;
            if let Some(places) = Places::try_take(&call) {
                return Ok(places.given(call, Some((turn, own))));
            }
            drop(turn);
            // Nor is a place kept from others while it waits for its turn again.
            let places = Places::take(&call).await?;
            if let Some(turn) = api.turns.try_take(&vhost, 1) {
                return Ok(places.given(call, Some((turn, own))));
            }
        }
    }
}

impl Places {
    async fn take(call: &Call) -> Result<Self, Refusal> {
        let (api, user) = (&call.api, call.user());
        let budget = match asks(call) {
            true => Some(budget(call).await?),
            false => None,
        };
        let place = api.answers.take(user, 1).await.ok_or_else(at_its_end)?;
        Ok(Places(place, budget))
    }

    /// These, if they are there now.
    fn try_take(call: &Call) -> Option<Self> {
        let (api, user) = (&call.api, call.user());
        let budget = match asks(call) {
            true => Some(Budget::try_begin(&api.askers, user)?),
            false => None,
        };
        Some(Places(api.answers.try_take(user, 1)?, budget))
    }

    fn given(self, mut call: Call, turn: Turn) -> Ready {
        let Places(place, budget) = self;
        let caller = call.caller.as_mut();
        let asking = caller.zip(budget).map(|(caller, budget)| caller.limit(budget));
        Ready { call, asking, place, turn }
    }
}

/// Looks whether the sender may change policies in the vhost, before its request waits for others' there. That is
/// asked again when it is its turn.
async fn let_in(mut call: Call, needs: Needs) -> Result<Call, Refusal> {
    if !asks(&call) {
        look_again(&mut call, needs)?;
        check_vhost(&call, needs)?;
        return Ok(call);
    }
    // It may take long: not on a thread that serves connections.
    let budget = budget(&call).await?;
    let _asking = call.caller.as_mut().map(|caller| caller.limit(budget));
    let looking = tokio::task::spawn_blocking(move || match check_vhost(&call, needs) {
        Err(_) if has_given_up(&call) => Err(Refusal::unavailable(NO_ANSWER)),
        checked => checked.map(|()| call.unlimited()),
    });
    looking.await.unwrap_or_else(|_| Err(at_its_end()))
}

/// Whether another program says what the sender may.
fn asks(call: &Call) -> bool {
    call.caller.as_ref().is_some_and(Caller::is_known_elsewhere)
}

async fn budget(call: &Call) -> Result<Budget, Refusal> {
    let budget = Budget::begin(&call.api.askers, call.user()).await;
    budget.ok_or_else(|| Refusal::unavailable(NO_ANSWER))
}

pub(super) fn at_its_end() -> Refusal {
    Refusal::internal("the request could not be finished")
}
