//! On whose behalf a request comes that the API of home passes on to that of a group: a header says so, which counts on no other
//! connections than those that a node makes to another one, or to itself.

use super::HOME;
use crate::Api;
use crate::caller::Caller;
use crate::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use courser_auth::{Grant, Login, PasswordHash, Tags, User};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// The header.
pub(crate) const INSIDE: HeaderName = HeaderName::from_static("x-courser-inside");

/// What it says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Inside {
    /// The group that is asked.
    pub group: u16,
    /// A list is wanted row by row, to be merged with others.
    pub rows: bool,
    /// Where the client is.
    pub from: SocketAddr,
    user: String,
    tags: Vec<String>,
    /// The version of home's definitions that has the user like that.
    version: u64,
    standing: Standing,
}

/// How the user has come in.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Standing {
    /// As one of the users that all groups have a copy of.
    Kept,
    /// As the operator.
    Operator,
    /// As a user of another authority; this says who, to [`crate::Settings::readmit`].
    Granted(String),
}

impl Inside {
    /// What is said to a group on behalf of `caller`, who is as home's definitions of this version say.
    ///
    /// # Errors
    /// When what it may do can't be told to others.
    pub fn new(
        caller: &Caller,
        version: u64,
        group: u16,
        rows: bool,
        from: SocketAddr,
    ) -> Result<Self, Refusal> {
        let standing = match &caller.grant {
            _ if caller.is_operator() => Standing::Operator,
            None => Standing::Kept,
            Some(grant) => Standing::Granted(grant.authority().passport().ok_or_else(|| {
                Refusal::internal("what this user may do can't be told to the other groups")
            })?),
        };
        let tags = caller.user.tags.iter().map(str::to_owned).collect();
        let user = caller.name().to_owned();
        Ok(Inside { group, rows, from, user, tags, version, standing })
    }

    /// The value of the header.
    pub fn to_header(&self) -> Result<HeaderValue, Refusal> {
        let text = serde_json::to_vec(self).map_err(Refusal::internal)?;
        HeaderValue::from_str(&URL_SAFE_NO_PAD.encode(text)).map_err(Refusal::internal)
    }

    /// What the header of a request says.
    pub fn read(headers: &HeaderMap) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(headers.get(&INSIDE)?.as_bytes()).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Who asks.
    ///
    /// # Errors
    /// When it is unknown here what the caller may do.
    pub fn caller(&self, api: &Api) -> Result<Caller, Refusal> {
        let accounts = &api.settings.accounts;
        match &self.standing {
            Standing::Operator => Ok(Caller::operator(accounts)),
            Standing::Kept => Ok(Caller::new(self.kept(api)?, accounts)),
            Standing::Granted(passport) => {
                let readmit = api.settings.readmit.as_ref();
                let authority = readmit.and_then(|readmit| readmit(passport)).ok_or_else(|| {
                    Refusal::internal("what this user may do is not known on this node")
                })?;
                let user = Arc::clone(authority.user());
                let grant = Some(Grant::new(authority));
                Ok(Caller::of_login(Login { user, account: None, rehashed: None, grant }, accounts))
            }
        }
    }

    /// The user as it is here. A group that has not adopted yet what home knew when it asked goes by the tags that home says the
    /// user has; home knows all. What a group knows that home did not counts also for a request that comes late.
    ///
    /// # Errors
    /// When there is no such user any more.
    fn kept(&self, api: &Api) -> Result<Arc<User>, Refusal> {
        // First the version, then the directory: what is adopted in between is in that.
        let knows_more = self.group == HOME || api.admin.adopted_version().0 >= self.version;
        let directory = api.settings.accounts.directory();
        let user = directory.user(&self.user);
        if knows_more {
            return user.map(Arc::clone).ok_or_else(Refusal::challenge);
        }
        let has_tags =
            |user: &&Arc<User>| user.tags.iter().eq(self.tags.iter().map(String::as_str));
        if let Some(user) = user.filter(has_tags) {
            return Ok(Arc::clone(user));
        }
        let mut user = User::new(&self.user, PasswordHash::none());
        // They are those of a user, which are never too many.
        user.tags = Tags::new(self.tags.iter().map(String::as_str)).unwrap_or_default();
        Ok(Arc::new(user))
    }
}
