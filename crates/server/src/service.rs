//! A broker that serves the clients that are let in: all that begins when its shards are open, and ends with them.
//!
//! A broker by itself has one from its start to its end. A node of a cluster has one as long as it leads.

use crate::accounts;
use crate::auth_http::HttpUsers;
use crate::blocking;
use crate::clock::Clock;
use crate::cluster::Front;
use crate::config::Config;
use crate::definitions::{self, Skips};
use crate::doors::Addresses;
use crate::driver::Shared;
use crate::gateway::{self, Gateway};
use crate::login::{Elsewhere, Logins};
use crate::negotiated;
use crate::notices::{Notices, Settings};
use crate::oauth::{self, Tokens};
use crate::places::Places;
use crate::runtime_settings::RuntimeSettings;
use crate::scrub::Scrubber;
use crate::server::StartError;
use crate::storage::{Checkpoints, Storage, StoreFailed};
use crate::suspension::Suspension;
use crate::throttle::Throttles;
use crate::timers;
use crate::tls::Certificates;
use crate::{management, metrics};
use courser_broker::Broker;
use courser_management::{Api, Cluster, Exporter, Ledger};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use std::{io, thread};
use tokio::sync::{Mutex, OwnedMutexGuard, oneshot, watch};

/// What is around a broker, and may outlive it.
pub(crate) struct Around {
    pub clock: Clock,
    pub places: Arc<Places>,
    /// Descriptors for handshakes at the gateway's endpoints.
    pub handshakes: usize,
    pub addresses: Addresses,
    pub certificates: Arc<Certificates>,
    /// Who knows users besides the broker.
    pub elsewhere: Elsewhere,
    /// The cluster that this is a node of.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Where clients come to that node.
    pub front: Weak<Front>,
    /// What reads the journals for damage, if anything does.
    pub scrub: Option<Arc<Scrubber>>,
    /// What could not be done as an operator has asked.
    pub notices: Arc<Notices>,
    /// Settings that an operator can change.
    pub runtime: Arc<RuntimeSettings>,
    /// Totals of metrics, those of brokers that have ended included.
    pub ledger: Arc<Ledger>,
}

/// A broker that serves. Dropping it ends it without ceremony.
pub(crate) struct Service {
    pub shared: Arc<Shared>,
    pub api: Arc<Api>,
    pub exporter: Arc<Exporter>,
    /// Keeps the totals when it ends.
    _counted: Counted,
    pub gateway: Option<Gateway>,
    pub checkpoints: Checkpoints,
    /// Who keeps the broker alive must not keep this, or it would never be gone.
    stop: Arc<watch::Sender<bool>>,
    failure: watch::Receiver<Option<String>>,
}

/// A broker whose totals are kept when this goes, also while its metrics are still read.
struct Counted(Arc<Exporter>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Makes what the configuration wants to be there before any client is served. Blocks until it is durable.
///
/// # Errors
/// What can't be had.
pub(crate) fn prepare(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    // Before the users that a broker without any would make.
    load_definitions(broker, config, || follow_before_definitions(broker, config))?;
    set_up_accounts(broker, config)?;
    set_up(broker, config)
}

/// The same as far as it goes, for a node that comes to lead: all nodes may have the same mistake in their settings, and one after
/// the other would end of it. Returns what can't be had, and of which settings.
pub(crate) fn prepare_to_lead(broker: &Arc<Broker>, config: Config) -> Vec<(Settings, StartError)> {
    let follow = || {
        // What is wrong with them is told below.
        drop(follow_before_definitions(broker, &config));
        Ok(())
    };
    let loaded = load_definitions(broker, &config, follow);
    // Users that the definitions could not bring are no reason to let `guest` in.
    let set_up_users = if loaded.is_ok() { set_up_accounts } else { accounts::set_up_in_group };
    let has_users = set_up_users(broker, &config);
    let is_set_up = set_up(broker, &of_known_vhosts(broker, config));
    let done = [
        (Settings::AtFirst, loaded),
        (Settings::AtFirst, has_users),
        (Settings::Reloaded, is_set_up),
    ];
    done.into_iter().filter_map(|(which, done)| Some((which, done.err()?))).collect()
}

/// These settings without policies that [`set_up`] would refuse, as there is no vhost for them.
pub(crate) fn of_known_vhosts(broker: &Broker, config: Config) -> Config {
    let is_home = broker.group() == 0;
    config.without_policies_of_no_vhost(|vhost| !is_home || broker.vhost(vhost).is_some())
}

/// Has what is there follow the policies of the configuration before definitions change those that are set: it may keep what these
/// would drop. Policies of vhosts that are not there yet come with the others.
fn follow_before_definitions(broker: &Broker, config: &Config) -> Result<(), StartError> {
    let mut policies = config.all_policies()?;
    policies.retain(|(vhost, ..)| broker.vhost(vhost).is_some());
    broker.configure_policies(policies).map_err(StartError::Policy)
}

/// Makes the definitions that the configuration names. In a cluster, the log has what was made of them when the lead moves, and
/// what was changed since then. `before` is done before anything is made, if anything is.
fn load_definitions(
    broker: &Arc<Broker>,
    config: &Config,
    before: impl FnOnce() -> Result<(), StartError>,
) -> Result<(), StartError> {
    if broker.group() != 0 {
        // It has the users and vhosts that home gives it.
        return Ok(());
    }
    let admin = broker.admin();
    let known = admin.cluster_groups().last().map_or(1, |last| last.number + 1);
    let node = management::node_name(config);
    let (groups, skips) = match config.cluster.is_on() {
        // Those that are wanted and not there yet are founded once a node leads home.
        true => (known.max(config.cluster.groups), Skips::LastOf(&node)),
        false if config.management.skip_if_unchanged => (known, Skips::Last),
        false => (known, Skips::Nothing),
    };
    let path = &config.management.load_definitions;
    definitions::load(&admin, path, skips, config.auth.hashing(), groups, before)
}

fn set_up_accounts(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    match broker.group() {
        0 => accounts::set_up(broker, config),
        _ => accounts::set_up_in_group(broker, config),
    }
}

impl Service {
    /// Begins to serve with a broker that is prepared.
    ///
    /// # Errors
    /// When the gateway can't start.
    pub async fn start(
        broker: Arc<Broker>,
        storage: Storage,
        config: &Config,
        around: &Around,
    ) -> Result<Self, StartError> {
        blocking::install();
        let (stop, stopping) = watch::channel(false);
        let stop = Arc::new(stop);
        let (failed, failure) = watch::channel(None);
        broker.on_failure(move |reason| {
            failed.send_replace(Some(reason.to_owned()));
        });
        broker.begin_to_serve(around.clock.now_ms());
        let elsewhere = around.elsewhere.clone();
        let logins = Logins::new(broker.accounts(), elsewhere, around.clock.clone());
        let shared = Arc::new(Shared {
            broker,
            clock: around.clock.clone(),
            logins,
            connection: Arc::new(negotiated::plain(config)),
            tls_connection: Arc::new(negotiated::with_tls(config)),
            send_timeout: config.send_timeout(),
            places: Arc::clone(&around.places),
            throttles: Arc::new(Throttles::default()),
            suspension: Suspension::new(&around.notices),
            paced: 0.into(),
            farewell: OnceLock::new(),
        });
        let gateway = gateway::start(config, &shared, around.handshakes, &stopping).await?;
        let api = management::api(config, &shared, around, &stop);
        let exporter = metrics::exporter(config, &api, &around.ledger, gateway.as_ref());
        timers::start(&shared.broker, around.clock.clone(), stopping);
        let checkpoints = storage.start_checkpoints(&around.notices);
        let _counted = Counted(Arc::clone(&exporter));
        Ok(Service { shared, api, exporter, _counted, gateway, checkpoints, stop, failure })
    }

    /// One of several around a broker, without anything that others have to end. It ends when `stop` says so.
    #[cfg(test)]
    pub fn of(shared: &Arc<Shared>, stop: Arc<watch::Sender<bool>>) -> Self {
        let config = Config::default();
        let notices = Arc::new(Notices::new(shared.clock.clone()));
        let around = Around {
            clock: shared.clock.clone(),
            places: Arc::clone(&shared.places),
            handshakes: 0,
            addresses: Addresses::default(),
            certificates: Certificates::new(Vec::new(), &notices),
            elsewhere: Elsewhere::default(),
            cluster: None,
            front: Weak::new(),
            scrub: None,
            notices,
            runtime: RuntimeSettings::new(&config, &shared.clock),
            ledger: Arc::default(),
        };
        let api = management::api(&config, shared, &around, &stop);
        let exporter = metrics::exporter(&config, &api, &around.ledger, None);
        let (_counted, checkpoints) = (Counted(Arc::clone(&exporter)), Checkpoints::default());
        let (shared, failure) = (Arc::clone(shared), watch::channel(None).1);
        Service { shared, api, exporter, _counted, gateway: None, checkpoints, stop, failure }
    }

    /// Says when it ends.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stop.subscribe()
    }

    /// Waits until the store has failed, and says why.
    pub async fn failed(&self) -> StoreFailed {
        let mut failure = self.failure.clone();
        match failure.wait_for(Option::is_some).await {
            Ok(reason) => StoreFailed { reason: reason.clone().unwrap_or_default() },
            // The broker is gone, and with it whatever could fail.
            Err(_) => std::future::pending().await,
        }
    }

    /// Closes every connection with 320 and this text, and waits as long as `timeout` at most for the clients to take note.
    pub async fn say_goodbye(&self, text: &'static str, timeout: Duration) {
        self.shared.broker.begin_stop();
        // The first reason is the one that counts.
        let _ = self.shared.farewell.set(text);
        // An error means that no receiver is left.
        let _ = self.stop.send(true);
        let _ = tokio::time::timeout(timeout, self.stop.closed()).await;
    }
}

/// Makes the vhosts that the configuration names, and has its policies followed.
///
/// # Errors
/// The first that can't be had.
pub(crate) fn set_up(broker: &Arc<Broker>, config: &Config) -> Result<(), StartError> {
    let policies = config.all_policies()?;
    if broker.group() != 0 {
        return broker.configure_policies(policies).map_err(StartError::Policy);
    }
    // Asked before anything is changed.
    config.check_vhosts_of_policies(|vhost| broker.vhost(vhost).is_some())?;
    for vhost in &config.vhosts {
        let is_new = broker.vhost(&vhost.name).is_none();
        broker.define_vhost(&vhost.name, vhost.limits()).map_err(StartError::Vhost)?;
        if is_new {
            accounts::let_guest_into(broker, &vhost.name)?;
        }
    }
    broker.configure_policies(policies).map_err(StartError::Policy)
}

/// Has reloads of the settings take effect one after the other, in the order in which they are asked for.
pub(crate) type Reloads = Arc<Mutex<()>>;

/// As [`set_up`] while the broker serves, which is not kept for that before it is its turn: one that serves no more needs no
/// settings.
///
/// # Errors
/// The first that can't be had.
pub(crate) fn set_up_again(broker: &Weak<Broker>, config: &Config) -> Result<(), StartError> {
    broker.upgrade().map_or(Ok(()), |broker| set_up(&broker, config))
}

/// Has settings taken over, on a thread of its own: changes of policies come one after the other, all names are matched with those
/// of the configuration, and the log may have no room. No stop waits for that. The `turn` ends when all of it is done, also if
/// the future is dropped.
///
/// # Errors
/// Those of `work`, or that there is no thread for it.
pub(crate) async fn in_turn(
    turn: OwnedMutexGuard<()>,
    work: impl FnOnce() -> Result<(), StartError> + Send + 'static,
) -> Result<(), StartError> {
    let (tell, told) = oneshot::channel();
    let thread = thread::Builder::new().name("reload".into());
    let thread = thread.spawn(move || {
        let done = work();
        drop(turn);
        // The broker stops if none waits for it any more.
        let _ = tell.send(done);
    });
    thread.map_err(StartError::Reload)?;
    told.await.unwrap_or_else(|_| Err(StartError::Reload(io::Error::other("a panic"))))
}

/// Who knows users that this broker does not have, if any program does: with so many descriptors for questions to it.
///
/// # Errors
/// When that can't be set up.
pub(crate) fn elsewhere(config: &Config, questions: usize) -> Result<Elsewhere, StartError> {
    let anonymous = Some(config.auth.anonymous_user.clone()).filter(|user| !user.is_empty());
    if let Some(user) = &anonymous {
        tracing::warn!(user, "clients are let in without credentials, as this user");
    }
    let mut elsewhere = Elsewhere { anonymous, ..Elsewhere::default() };
    if config.auth_http.is_used() {
        if config.auth_http.timeout_ms >= config.amqp.handshake_timeout_ms {
            tracing::warn!(
                "auth_http.timeout_ms is not less than amqp.handshake_timeout_ms: AMQP clients are disconnected before a login that takes so long is refused"
            );
        }
        let program = HttpUsers::new(&config.auth_http, questions);
        elsewhere.program = Some(program.map_err(|error| StartError::AuthHttp(error.to_string()))?);
    }
    if config.oauth.is_used() {
        let tokens = Tokens::new(&config.oauth);
        elsewhere.tokens = Some(tokens.map_err(|error| StartError::OAuth(error.to_string()))?);
        let client = oauth::client(&config.oauth);
        elsewhere.client = client.map_err(|error| StartError::OAuth(error.to_string()))?;
    }
    Ok(elsewhere)
}

/// Waits until the broker stops, or is gone: at once if it stopped before the receiver was made.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stops| *stops).await;
}

#[cfg(test)]
mod tests;
