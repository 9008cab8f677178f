//! Who is sent something bit by bit: whether it still may hear it is asked again before each of these.

use crate::call::Call;
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::routes::{Needs, check_tags};
use std::sync::Arc;

/// Who listens. Only home can ask the user's authority again.
pub(crate) struct Listener {
    caller: Caller,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    may: Box<dyn Fn(&Caller) -> bool + Send>,
}

impl Listener {
    pub fn of(
        call: &Call,
        may: impl Fn(&Caller) -> bool + Send + 'static,
    ) -> Result<Self, Refusal> {
        let (caller, now_ms) = (call.caller()?.unlimited(), Arc::clone(&call.api.settings.now_ms));
        Ok(Listener { caller, now_ms, may: Box::new(may) })
    }

    /// Who asks for a list, unless no user does, or home asks where it passes something on.
    pub fn of_list(call: &Call, needs: Needs) -> Option<Self> {
        let before = call.caller.as_ref().filter(|_| call.inside.is_none())?.unlimited();
        let admin = call.admin().clone();
        // Where it may enter all, it may enter that of the list.
        let vhost = call.vhost().ok().flatten().filter(|_| before.grant.is_some());
        let vhost = vhost.map(str::to_owned);
        let may = move |caller: &Caller| {
            check_tags(caller, needs).is_ok()
                && caller.still_sees_all(&before, &admin)
                && vhost.as_ref().is_none_or(|vhost| caller.may_enter(vhost))
        };
        Listener::of(call, may).ok()
    }

    /// Whether its user still may.
    pub async fn may_listen(&mut self) -> bool {
        let Ok(caller) = self.caller.asked_again((self.now_ms)()).await else { return false };
        self.caller = caller;
        (self.may)(&self.caller)
    }
}
