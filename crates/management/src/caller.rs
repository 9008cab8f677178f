//! Who asks, and what that user may see and do.

use crate::asking::{Budget, GiveUp};
use crate::oauth::renewal::Renewal;
use crate::refusal::Refusal;
use crate::sessions::Life;
use courser_auth::{
    Access, Accounts, Directory, Grant, Login, PasswordHash, Resource, Right, Tag, User,
};
use courser_broker::admin::Admin;
use std::sync::{Arc, Weak};

/// The texts of refusals, as clients know them.
const NOT_MANAGEMENT: &str = "Not management user";
const NOT_MONITOR: &str = "Not monitor user";
const NOT_ADMINISTRATOR: &str = "Not administrator user";
const NOT_PERMITTED: &str = "User not authorised to access object";
/// Said instead of a list that lacks what could not be asked for.
pub(crate) const NO_ANSWER: &str = "The program that knows what this user may do (auth_http) takes too long to answer; try again later";

/// What tells an account with its password from others, those that there will be included.
#[derive(Clone)]
pub(crate) struct Account {
    pub name: String,
    number: Option<u64>,
    /// What the password was checked against.
    password: PasswordHash,
}

impl Account {
    /// The user whose account it is, as it is now; none if that is gone or has another password.
    pub fn user_in(&self, directory: &Directory) -> Option<Arc<User>> {
        self.whatever_password(directory).filter(|user| user.password == self.password)
    }

    /// The same, if it is not gone.
    fn whatever_password(&self, directory: &Directory) -> Option<Arc<User>> {
        let is_same = directory.account_number(&self.name) == self.number;
        directory.user(&self.name).filter(|_| is_same).cloned()
    }
}

/// A user who has logged in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub user: Arc<User>,
    accounts: Arc<Accounts>,
    directory: Arc<Directory>,
    /// What it may do, if an authority other than the directory says it.
    pub grant: Option<Arc<Grant>>,
    /// What renews that, for a user who has just logged in at the provider of tokens.
    pub renewal: Option<Arc<Renewal>>,
    /// The session that it asks in, if any.
    session: Option<Weak<Life>>,
    /// Other groups of a cluster are told so.
    is_operator: bool,
    /// What may still be asked for this request, if another program is asked.
    budget: Option<Arc<Budget>>,
}

impl Caller {
    pub fn new(user: Arc<User>, accounts: &Arc<Accounts>) -> Self {
        let directory = accounts.directory();
        let accounts = Arc::clone(accounts);
        let (grant, renewal, session, is_operator, budget) = (None, None, None, false, None);
        Caller { user, accounts, directory, grant, renewal, session, is_operator, budget }
    }

    /// The user of a login.
    pub fn of_login(login: Login, accounts: &Arc<Accounts>) -> Self {
        Caller { grant: login.grant, ..Caller::new(login.user, accounts) }
    }

    /// The same in a session.
    pub fn within(self, session: &Arc<Life>) -> Self {
        Caller { session: Some(Arc::downgrade(session)), ..self }
    }

    /// The operator: the system's user whom the broker runs as, or root.
    pub fn operator(accounts: &Arc<Accounts>) -> Self {
        Caller { is_operator: true, ..Caller::of_login(Login::of_operator(), accounts) }
    }

    /// Whether it is the operator.
    pub fn is_operator(&self) -> bool {
        self.is_operator
    }

    /// Whether another program says what it may do.
    pub fn is_known_elsewhere(&self) -> bool {
        self.grant.as_ref().is_some_and(|grant| grant.authority().is_elsewhere())
    }

    /// The account that it has logged in to, if the directory knows it.
    pub fn account(&self) -> Account {
        let number = self.directory.account_number(self.name());
        Account { name: self.name().to_owned(), number, password: self.user.password.clone() }
    }

    /// Lets it ask no more than this; nothing more when what is returned is dropped.
    pub fn limit(&mut self, budget: Budget) -> GiveUp {
        let budget = Arc::new(budget);
        self.budget = Some(Arc::clone(&budget));
        GiveUp(budget)
    }

    /// The same user, for what goes on after the request has been answered.
    pub fn unlimited(&self) -> Self {
        Caller { budget: None, ..self.clone() }
    }

    /// Whether something could not be asked that had to be: what was found out is not all.
    pub fn has_given_up(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.is_spent())
    }

    fn may_ask(&self) -> bool {
        self.budget.as_ref().is_none_or(|budget| budget.allows_another())
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

    /// Whether it sees the connections of a user, and who is at their other ends.
    pub fn sees_connections_of(&self, user: &[u8]) -> bool {
        self.is_monitor() || self.name().as_bytes() == user
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
                Some(grant) => self.may_ask() && grant.authority().permits_vhost(vhost),
                None => self.directory.permission(self.name(), vhost).is_some(),
            }
    }

    fn access(&self, vhost: &str) -> Result<Access, String> {
        match &self.grant {
            Some(_) if !self.may_ask() => Err(NO_ANSWER.to_owned()),
            Some(grant) => Ok(Access::granted(grant, vhost)),
            None => Ok(self.accounts.access(self.name(), vhost)),
        }
    }

    /// The caller as it is now: asks the user's authority again, which may take long where that is another program.
    ///
    /// # Errors
    /// When the user is gone, has another password, or would not be let in any more, or when its session or what it has logged
    /// in with is at its end.
    pub fn again(&self, now_ms: u64) -> Result<Caller, Refusal> {
        let goes_on = |life: &Weak<Life>| life.upgrade().is_some_and(|life| life.goes_on(now_ms));
        if !self.session.as_ref().is_none_or(goes_on) {
            return Err(Refusal::challenge());
        }
        let directory = self.accounts.directory();
        let user = match &self.grant {
            Some(grant) => {
                let is_over = grant.expires_ms().is_some_and(|until| until <= now_ms);
                let is_let_in = !is_over && grant.ask_again();
                is_let_in.then(|| Arc::clone(grant.authority().user()))
            }
            None => self.account().user_in(&directory),
        };
        let user = user.ok_or_else(Refusal::challenge)?;
        Ok(Caller { user, directory, ..self.clone() })
    }

    /// As [`Caller::again`] in a group that home has asked, which alone can ask an authority or knows of the session: with the
    /// end of a token, and with the group's copy of the users. The password was home's to check: the group may learn later that
    /// this login has replaced its hash.
    ///
    /// # Errors
    /// When the user is gone, or when what it has logged in with is at its end.
    pub fn again_inside(&self, now_ms: u64) -> Result<Caller, Refusal> {
        let expires_ms = self.grant.as_ref().and_then(|grant| grant.expires_ms());
        if expires_ms.is_some_and(|until| until <= now_ms) {
            return Err(Refusal::challenge());
        }
        // One whom the group had heard nothing of yet is as home has said.
        let is_kept = |user: &Arc<User>| Arc::ptr_eq(user, &self.user);
        if self.grant.is_some() || !self.directory.user(self.name()).is_some_and(is_kept) {
            return Ok(self.clone());
        }
        let directory = self.accounts.directory();
        let user = self.account().whatever_password(&directory);
        let user = user.ok_or_else(Refusal::challenge)?;
        Ok(Caller { user, directory, ..self.clone() })
    }

    /// As [`Caller::again`], away from the threads that serve connections where it may take long.
    pub async fn asked_again(&self, now_ms: u64) -> Result<Caller, Refusal> {
        if !self.is_known_elsewhere() {
            return self.again(now_ms);
        }
        let caller = self.clone();
        let asking = tokio::task::spawn_blocking(move || caller.again(now_ms));
        asking.await.unwrap_or_else(|_| Err(Refusal::challenge()))
    }

    /// Whether it may see all that it might see before: by its tags, and by the directory the vhosts that it might enter, as
    /// far as these are there still.
    pub fn still_sees_all(&self, before: &Caller, admin: &Admin) -> bool {
        if before.is_administrator() && !self.is_administrator()
            || before.is_monitor() && !self.is_monitor()
        {
            return false;
        }
        let is_same = Arc::ptr_eq(&self.directory, &before.directory);
        is_same || self.is_administrator() || self.grant.is_some() || {
            let lost = self.directory.vhosts_lost(&before.directory, self.name());
            !lost.into_iter().any(|vhost| admin.has_vhost(vhost))
        }
    }

    /// Looks whether one whom a token or another program has let in still may what it might: what the directory says of its users
    /// is looked at with each change. It may take long.
    ///
    /// # Errors
    /// As [`Caller::again`], and when it may less.
    pub fn check_grant(&self, admin: &Admin, now_ms: u64) -> Result<(), Refusal> {
        if self.grant.is_none() {
            return Ok(());
        }
        match self.again(now_ms)?.still_sees_all(self, admin) {
            true => Ok(()),
            false => Err(Refusal::not_authorised(NOT_PERMITTED)),
        }
    }

    /// The user in whose name accounts are changed, if it is one of them.
    pub fn author(&self) -> Option<Arc<User>> {
        self.grant.is_none().then(|| Arc::clone(&self.user))
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
        let mut access = self.access(vhost)?;
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
        let mut access = self.access(vhost)?;
        access.check_topic(right, exchange, key).map_err(|refusal| refusal.to_string())
    }
}

fn need(is_permitted: bool, reason: &str) -> Result<(), Refusal> {
    if is_permitted { Ok(()) } else { Err(Refusal::not_authorised(reason)) }
}
