//! Who asks, and what that user may see and do.

use crate::oauth::renewal::Renewal;
use crate::refusal::Refusal;
use courser_auth::{
    Access, Accounts, Directory, Grant, Login, Origin, PasswordHash, Resource, Right, Tag, Tags,
    User,
};
use std::sync::Arc;

/// The texts of refusals, as clients know them.
const NOT_MANAGEMENT: &str = "Not management user";
const NOT_MONITOR: &str = "Not monitor user";
const NOT_ADMINISTRATOR: &str = "Not administrator user";
const NOT_PERMITTED: &str = "User not authorised to access object";

/// The name that the operator of this machine goes by. Nobody logs in with it: it is no user.
const OPERATOR: &str = "(operator)";

/// A user who has logged in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub user: Arc<User>,
    accounts: Arc<Accounts>,
    directory: Arc<Directory>,
    /// What it may do, if it is somebody else than the directory who says it.
    pub grant: Option<Arc<Grant>>,
    /// What renews that, for one who has just logged in at whoever issues tokens.
    pub renewal: Option<Arc<Renewal>>,
    /// Permissions of users do not count.
    is_operator: bool,
}

impl Caller {
    pub fn new(user: Arc<User>, accounts: &Arc<Accounts>) -> Self {
        let directory = accounts.directory();
        let accounts = Arc::clone(accounts);
        Caller { user, accounts, directory, grant: None, renewal: None, is_operator: false }
    }

    /// Whoever has logged in.
    pub fn of_login(login: Login, accounts: &Arc<Accounts>) -> Self {
        Caller { grant: login.grant, ..Caller::new(login.user, accounts) }
    }

    /// Whoever the broker itself belongs to.
    pub fn operator(accounts: &Arc<Accounts>) -> Self {
        let mut user = User::new(OPERATOR, PasswordHash::none());
        // It is in no list of users, and has no permissions that could be kept.
        user.origin = Origin::ConfigurationFile;
        // One tag that is known is never too many, nor too long.
        user.tags = Tags::new([Tag::Administrator.name()]).unwrap_or_default();
        Caller { is_operator: true, ..Caller::new(Arc::new(user), accounts) }
    }

    /// Whether it is whoever the broker itself belongs to.
    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    pub fn name(&self) -> &str {
        &self.user.name
    }

    pub fn is_administrator(&self) -> bool {
        self.user.tags.has(Tag::Administrator)
    }

    /// Whether it sees everybody's connections.
    pub fn is_monitor(&self) -> bool {
        self.is_administrator() || self.user.tags.has(Tag::Monitoring)
    }

    fn may_log_in(&self) -> bool {
        self.is_monitor()
            || self.user.tags.has(Tag::Management)
            || self.user.tags.has(Tag::Policymaker)
    }

    /// Whether it may see what is in a vhost.
    pub fn may_enter(&self, vhost: &str) -> bool {
        self.is_administrator()
            || match &self.grant {
                Some(grant) => grant.authority().permits_vhost(vhost),
                None => self.directory.permission(self.name(), vhost).is_some(),
            }
    }

    fn access(&self, vhost: &str) -> Access {
        match &self.grant {
            Some(grant) => Access::granted(grant, vhost),
            None => self.accounts.access(self.name(), vhost),
        }
    }

    /// Whether it is who it was when it asked: neither deleted, nor with another password or other tags; nor is what it
    /// has logged in with at its end.
    pub fn is_still_there(&self, now_ms: u64) -> bool {
        if let Some(grant) = &self.grant {
            return grant.expires_ms().is_none_or(|until| now_ms < until);
        }
        let unchanged = |user: &User| {
            user.password == self.user.password && user.tags.iter().eq(self.user.tags.iter())
        };
        self.is_operator
            || self.accounts.directory().user(self.name()).is_some_and(|user| unchanged(user))
    }

    /// As [`Caller::may_enter`], by what holds now.
    pub fn may_still_enter(&self, vhost: &str) -> bool {
        let of_directory = || self.accounts.directory().permission(self.name(), vhost).is_some();
        self.is_administrator()
            || match &self.grant {
                Some(grant) => grant.authority().permits_vhost(vhost),
                None => of_directory(),
            }
    }

    pub fn need_login(&self) -> Result<(), Refusal> {
        need(self.may_log_in(), NOT_MANAGEMENT)
    }

    pub fn need_monitor(&self) -> Result<(), Refusal> {
        need(self.is_monitor(), NOT_MONITOR)
    }

    pub fn need_administrator(&self) -> Result<(), Refusal> {
        need(self.is_administrator(), NOT_ADMINISTRATOR)
    }

    /// For policies and parameters of a vhost, or for global ones.
    pub fn need_policymaker(&self, vhost: Option<&str>) -> Result<(), Refusal> {
        let enters = vhost.is_none_or(|vhost| self.may_enter(vhost));
        let is_permitted =
            self.is_administrator() || self.user.tags.has(Tag::Policymaker) && enters;
        need(is_permitted, NOT_PERMITTED)
    }

    /// For what belongs to a user: everybody who sees it all may look, an administrator may change.
    pub fn need_ownership(&self, owner: &str, to_change: bool) -> Result<(), Refusal> {
        let others = if to_change { self.is_administrator() } else { self.is_monitor() };
        need(others || self.name() == owner, NOT_PERMITTED)
    }

    /// Whether its permissions in a vhost let it do this; they count for administrators too.
    ///
    /// # Errors
    /// The text that a client hears over AMQP.
    pub fn check(&self, vhost: &str, right: Right, what: Resource<'_>) -> Result<(), String> {
        if self.is_operator {
            return Ok(());
        }
        let mut access = self.access(vhost);
        access
            .enter()
            .and_then(|()| access.check(right, what))
            .map_err(|refusal| refusal.to_string())
    }

    /// As [`Caller::check`], for the routing keys of a topic exchange.
    pub fn check_topic(
        &self,
        vhost: &str,
        right: Right,
        exchange: &[u8],
        key: &[u8],
    ) -> Result<(), String> {
        if self.is_operator {
            return Ok(());
        }
        let mut access = self.access(vhost);
        access.check_topic(right, exchange, key).map_err(|refusal| refusal.to_string())
    }
}

fn need(is_permitted: bool, reason: &str) -> Result<(), Refusal> {
    if is_permitted { Ok(()) } else { Err(Refusal::not_authorised(reason)) }
}
