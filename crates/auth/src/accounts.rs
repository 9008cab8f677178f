//! The accounts of a broker, shared by all its connections.

use crate::access::Access;
use crate::authority::{Authority, Grant};
use crate::backoff::{Backoff, Tried};
use crate::bounds::{NAME_BYTES_MAX, PASSWORD_BYTES_MAX};
use crate::directory::Directory;
use crate::login::{Attempt, Login, LoginRefused, Step, Verified};
use crate::operator;
use crate::password::{Hashing, PasswordHash};
use crate::record::Record;
use crate::rehashed::Rehashed;
use crate::user::{Origin, User};
use crate::verified::VerifiedCache;
use crate::view::View;
use crate::views::Views;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use zeroize::Zeroizing;

/// How logins are dealt with.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Users who may come from this machine only.
    pub loopback_users: BTreeSet<String>,
    /// How new passwords are hashed.
    pub hashing: Hashing,
}

/// The accounts of a broker.
pub struct Accounts {
    directory: ArcSwap<Directory>,
    /// Goes up with each change, after it can be seen.
    generation: AtomicU64,
    /// Held from the decision on a change to its effect.
    changing: Mutex<()>,
    views: Mutex<Views>,
    settings: ArcSwap<Settings>,
    backoff: Mutex<Backoff>,
    verified: Mutex<VerifiedCache>,
    rehashed: Mutex<Rehashed>,
}

impl Accounts {
    /// The accounts of a directory.
    pub fn new(directory: Directory, settings: Settings) -> Arc<Self> {
        Arc::new(Accounts {
            directory: ArcSwap::from_pointee(directory),
            generation: AtomicU64::new(1),
            changing: Mutex::default(),
            views: Mutex::default(),
            settings: ArcSwap::from_pointee(settings),
            backoff: Mutex::default(),
            verified: Mutex::new(VerifiedCache::new()),
            rehashed: Mutex::default(),
        })
    }

    /// All users and permissions as they are now.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.load_full()
    }

    /// Deals with logins in another way from now on.
    pub fn configure(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// How new passwords are to be hashed.
    pub fn hashing(&self) -> Hashing {
        self.settings.load().hashing
    }

    /// Goes up with each change.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Changes something: `decide` says what, `keep` writes it down, and only then it takes effect:
    /// at once, for all sessions. Returns what was changed.
    ///
    /// # Errors
    /// Those of `decide` and `keep`; then nothing has changed.
    pub fn change<E>(
        &self,
        decide: impl FnOnce(&Directory) -> Result<Vec<Record>, E>,
        keep: impl FnOnce(&[Record]) -> Result<(), E>,
    ) -> Result<Vec<Record>, E> {
        let _changing = self.changing.lock();
        let current = self.directory.load_full();
        let records = decide(&current)?;
        if records.is_empty() {
            return Ok(records);
        }
        keep(&records)?;
        let mut directory = Directory::clone(&current);
        for record in &records {
            directory.apply(record.clone());
        }
        self.replace(directory);
        Ok(records)
    }

    /// Takes over what a log held, and the user of the configuration file: before a client
    /// can ask.
    pub fn restore(&self, directory: Directory) {
        let _changing = self.changing.lock();
        self.replace(directory);
    }

    fn replace(&self, directory: Directory) {
        self.directory.store(Arc::new(directory));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// What a user may do in a vhost, from now on.
    pub fn access(self: &Arc<Self>, user: &str, vhost: &str) -> Access {
        let (seen, view) = self.view(user, vhost);
        Access::new(Arc::clone(self), seen, view)
    }

    /// What a user may do in a vhost, and the generation of which that is true at least.
    pub(crate) fn view(&self, user: &str, vhost: &str) -> (u64, Arc<View>) {
        // First the number, then the directory: what is newer than its number is looked at again.
        let generation = self.generation();
        let directory = self.directory.load();
        let key = (user.to_owned(), vhost.to_owned());
        let known = self.views.lock().get(&key);
        let view = match known {
            Some((seen, view)) if seen == generation => return (seen, view),
            Some((_, view)) if view.is_current(&directory) => view,
            _ => Arc::new(View::new(&directory, user, vhost)),
        };
        // There may be much to drop: not while others wait for the lock.
        let dropped = self.views.lock().keep(key, generation, &view);
        drop(dropped);
        (generation, view)
    }

    /// Begins the login of a user who comes from `from`. What is not decided at once needs
    /// [`Attempt::verify`], and then [`Accounts::finish`].
    pub fn login(&self, name: &[u8], password: &[u8], from: IpAddr, now_ms: u64) -> Step {
        let shown = String::from_utf8_lossy(&name[..name.len().min(NAME_BYTES_MAX)]).into_owned();
        if password.is_empty() {
            return Step::Done(Err(LoginRefused::BlankPassword(shown)));
        }
        if let Err(refused) = self.may_try(Tried::User(name), from, now_ms) {
            return Step::Done(Err(refused));
        }
        let directory = self.directory.load();
        let user = std::str::from_utf8(name).ok().and_then(|name| directory.user(name)).cloned();
        if let Some(user) = &user {
            let hash = &user.password;
            // What is kept in clear in a file needs no slow check, and an earlier one counts.
            let is_right = match hash.is_quick() {
                true => !user.is_kept() && hash.verify(password),
                false => self.verified.lock().knows(&user.name, password, &hash.encode(), now_ms),
            };
            if is_right {
                return Step::Done(self.admit(&directory, user, from, None));
            }
        }
        let taken = password.len().min(PASSWORD_BYTES_MAX + 1);
        Step::Verify(Attempt {
            name: shown,
            user,
            password: Zeroizing::new(password[..taken].to_vec()),
            from,
            hashing: self.hashing(),
        })
    }

    /// Whether a login may be tried now, or too many have failed.
    ///
    /// # Errors
    /// [`LoginRefused::Wait`].
    pub fn may_try(&self, tried: Tried<'_>, from: IpAddr, now_ms: u64) -> Result<(), LoginRefused> {
        match self.backoff.lock().wait_ms(from, tried, now_ms) {
            0 => Ok(()),
            wait_ms => {
                let name = tried.name();
                let shown = &name[..name.len().min(NAME_BYTES_MAX)];
                let user = String::from_utf8_lossy(shown).into_owned();
                Err(LoginRefused::Wait { user, wait_ms })
            }
        }
    }

    /// Lets in a user whose name is vouched for, as by the authority that signed its certificate.
    ///
    /// # Errors
    /// If there is no such user, or it may not come from there.
    pub fn login_vouched(&self, name: &str, from: IpAddr) -> Result<Login, LoginRefused> {
        let directory = self.directory.load();
        match directory.user(name) {
            Some(user) => self.admit(&directory, user, from, None),
            None => Err(LoginRefused::InvalidCredentials(name.to_owned())),
        }
    }

    /// Lets in a user of an authority other than the directory, which says what it may do.
    ///
    /// # Errors
    /// If it may not come from there.
    pub fn login_granted(
        &self,
        authority: Arc<dyn Authority>,
        tried: Tried<'_>,
        from: IpAddr,
    ) -> Result<Login, LoginRefused> {
        let user = Arc::clone(authority.user());
        if user.name == operator::NAME {
            // The audit log could not tell the two apart.
            let why = "this is the name of who operates the machine".to_owned();
            return Err(LoginRefused::Elsewhere { user: user.name.clone(), why });
        }
        self.backoff.lock().succeeded(from, tried);
        self.come_from(&user, from)?;
        Ok(Login { user, account: None, rehashed: None, grant: Some(Grant::new(authority)) })
    }

    /// Ends a login whose password has been checked.
    ///
    /// # Errors
    /// If the login is refused. [`LoginRefused::NotChecked`] says that the user has got another hash meanwhile: to begin again
    /// decides it.
    pub fn finish(&self, verified: Verified, now_ms: u64) -> Result<Login, LoginRefused> {
        let (name, from) = (verified.attempt.name.clone(), verified.attempt.from);
        let decided = self.decide(verified, now_ms);
        if let Err(LoginRefused::InvalidCredentials(_)) = decided {
            self.login_failed(Tried::User(name.as_bytes()), from, now_ms);
        }
        decided
    }

    /// As [`Accounts::finish`] where another authority is asked after this: a wrong password does not count as a failure
    /// until [`Accounts::login_failed`] says so.
    ///
    /// # Errors
    /// As [`Accounts::finish`].
    pub fn decide(&self, verified: Verified, now_ms: u64) -> Result<Login, LoginRefused> {
        let Verified { attempt, is_right, rehashed } = verified;
        let Attempt { name, user: before, password, from, .. } = attempt;
        let directory = self.directory.load();
        let now = before.as_ref().and_then(|user| directory.user(&user.name));
        let (Some(before), Some(user)) = (before, now) else {
            return Err(LoginRefused::InvalidCredentials(name));
        };
        if !self.has_password(user, &before.password) {
            // Whether the password is the one that the user has now is not known.
            return Err(LoginRefused::NotChecked(name));
        }
        if !is_right {
            return Err(LoginRefused::InvalidCredentials(name));
        }
        self.backoff.lock().succeeded(from, Tried::User(name.as_bytes()));
        // Another login may have replaced the hash meanwhile, which is done once.
        let rehashed = rehashed.filter(|_| user.password == before.password);
        let hash = rehashed.as_ref().unwrap_or(&user.password).encode();
        self.verified.lock().remember(&user.name, &password, &hash, now_ms);
        self.admit(&directory, user, from, rehashed)
    }

    /// Counts a refused login.
    pub fn login_failed(&self, tried: Tried<'_>, from: IpAddr, now_ms: u64) {
        self.backoff.lock().failed(from, tried, now_ms);
    }

    /// The record that keeps a stronger hash, if the user still has the password that it is of: for a [`Accounts::change`].
    pub fn rehash(&self, directory: &Directory, login: &Login) -> Option<Record> {
        let hash = login.rehashed.clone()?;
        let user = directory.user(&login.user.name)?;
        if user.password != login.user.password {
            return None;
        }
        let change = |user: &mut User| {
            user.password = hash.clone();
            Ok(())
        };
        let record = directory.change_user(&login.user.name, change).ok()?;
        let has = |name: &str, hash: &PasswordHash| {
            directory.user(name).is_some_and(|user| user.password == *hash)
        };
        self.rehashed.lock().note(login, hash, has);
        Some(record)
    }

    /// Whether a user has the password that this hash is of, which a login may have replaced by a stronger one meanwhile.
    pub fn has_password(&self, user: &User, hash: &PasswordHash) -> bool {
        user.password == *hash || self.rehashed.lock().is_same(&user.name, hash, &user.password)
    }

    /// Whether what a login was checked against still holds: its account is the one that there is, with the same password.
    pub fn still_holds(&self, login: &Login) -> bool {
        let directory = self.directory.load();
        let is_same = || directory.account_number(&login.user.name) == login.account;
        let now = directory.user(&login.user.name);
        login.grant.is_some()
            || is_same() && now.is_some_and(|now| self.has_password(now, &login.user.password))
    }

    fn admit(
        &self,
        directory: &Directory,
        user: &Arc<User>,
        from: IpAddr,
        rehashed: Option<PasswordHash>,
    ) -> Result<Login, LoginRefused> {
        self.come_from(user, from)?;
        let account = directory.account_number(&user.name);
        Ok(Login { user: Arc::clone(user), account, rehashed, grant: None })
    }
}

impl Accounts {
    /// Lets a user come from there.
    ///
    /// # Errors
    /// [`LoginRefused::LoopbackOnly`].
    pub fn come_from(&self, user: &User, from: IpAddr) -> Result<(), LoginRefused> {
        // Where a file says it of its user, it is for the file to say.
        let is_of_file = user.origin == Origin::ConfigurationFile;
        let settings = self.settings.load();
        let listed = !is_of_file && settings.loopback_users.contains(&user.name);
        match (listed || user.loopback_only) && !from.to_canonical().is_loopback() {
            true => Err(LoginRefused::LoopbackOnly(user.name.clone())),
            false => Ok(()),
        }
    }
}

impl std::fmt::Debug for Accounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Accounts").field("users", &self.directory.load().user_count()).finish()
    }
}
