//! A node begins to serve the clients of a group, and ends.

use super::*;
use crate::driver::SHUTDOWN;
use crate::notices::Settings;
use crate::runtime_settings::share;
use crate::storage::Storage;
use courser_broker::{Broker, LEADER_CHANGED};
use std::error::Error;
use std::io;
use std::iter::successors;
use std::pin::pin;

/// How long a node that has come to lead may not serve because of what it can't read, before another one is to lead.
const MEND_PATIENCE: Duration = Duration::from_secs(5);

/// A broker on a group's log, and what of the settings could not be applied to it.
type OpenBroker = (Arc<Broker>, Storage, Vec<(Settings, StartError)>);

impl Inner {
    /// The settings for the broker of one group. As this node may come to lead all of them, each has its share of the memory.
    fn config_of_group(&self, mut config: Config) -> Config {
        let all = self.around.runtime.memory_high_bytes();
        config.limits.memory_high_bytes = share(all, self.groups_here(&config));
        config
    }

    /// The groups that this node may come to lead, all together.
    fn groups_here(&self, config: &Config) -> u64 {
        let known = self.groups.all().len() as u64;
        known.max(config.cluster.groups.into()).max(1)
    }

    /// Opens the broker on the group's log and serves, if this node still leads then.
    pub(super) async fn promote(
        self: &Arc<Self>,
        group: &Arc<Group>,
        member: &Arc<Member>,
        term: u64,
    ) -> Result<bool, String> {
        let number = group.number.0;
        tracing::info!(term, group = number, "this node leads the group");
        let (settings, started) = (self.config(), Instant::now());
        let config = self.config_of_group(settings.clone());
        let leads = || *member.leadership().borrow() == Leadership::Serving { term };
        let opened = self.open_while_leading(group, member, term, &config, leads).await?;
        let started_service = match opened {
            Ok((broker, storage, wrong)) if leads() => {
                for (which, error) in wrong {
                    self.around.notices.settings_applied(number, which, false);
                    tracing::error!(group = number, %error, "this node serves without what it can't apply of its settings");
                }
                if !group.is_home() {
                    let recovery = self.folder.formation().and_then(|formation| formation.recovery);
                    broker.admin().set_recoveries(recovery.map_or(0, |one| one.times));
                    self.front.adopt_at_first(group, &broker, leads).await;
                }
                self.around.runtime.follow_memory_limit(&broker, self.groups_here(&settings));
                Service::start(broker, storage, &settings, &self.around).await
            }
            Ok(opened) => {
                self.blocking(move || drop(opened)).await?;
                return Ok(false);
            }
            Err(error) => Err(error),
        };
        match started_service {
            Ok(service) => {
                let elapsed_ms = started.elapsed().as_millis() as u64;
                tracing::info!(term, group = number, elapsed_ms, "serving clients");
                if !group.is_home() {
                    self.front.follow_home(group, &service);
                }
                group.set_serves(Serves::Here(Arc::new(service)));
                // Those that are read again from now on are applied to this group, too.
                if *self.config.lock() != settings {
                    tokio::spawn(Arc::clone(self).apply_settings(Arc::clone(group)));
                }
                Ok(true)
            }
            // The node that leads now does it.
            Err(error) if !leads() => {
                tracing::info!(term, group = number, %error, "this node leads no more");
                Ok(false)
            }
            Err(error) => {
                Err(format!("this node can't serve group {number}, though it leads: {error}"))
            }
        }
    }

    /// Applies the settings of now to a group that this node has come to lead with those of before.
    async fn apply_settings(self: Arc<Self>, group: Arc<Group>) {
        let turn = Arc::clone(&self.reloads).lock_owned().await;
        let Serves::Here(service) = group.serves() else { return };
        let config = service::of_known_vhosts(&service.shared.broker, self.config());
        let broker = Arc::downgrade(&service.shared.broker);
        drop(service);
        let setting_up = move || service::set_up_again(&broker, &config);
        let Err(error) = service::in_turn(turn, setting_up).await else { return };
        // Without the lead, nothing can be changed.
        if matches!(group.serves(), Serves::Here(_)) {
            let number = group.number.0;
            self.around.notices.settings_applied(number, Settings::Reloaded, false);
            tracing::error!(group = number, %error, "this node serves without what it can't apply of its settings");
        }
    }

    /// Opens the broker on the group's log, as long as this node leads. Other nodes bring what is damaged, and the disk may give
    /// later what it refuses now. Anything else is read once more: the disk or memory may have changed it on its way.
    pub(super) async fn open_while_leading(
        &self,
        group: &Arc<Group>,
        member: &Arc<Member>,
        term: u64,
        config: &Config,
        leads: impl Fn() -> bool,
    ) -> Result<Result<OpenBroker, StartError>, String> {
        let (number, mut unserved_since, mut first) = (group.number.0, Instant::now(), None);
        loop {
            let mended = member.mended();
            let error = match self.open_broker(group, member, term, config.clone()).await? {
                Err(error) if leads() => error,
                opened => return Ok(opened),
            };
            tracing::warn!(group = number, %error, "this node leads and can't serve yet: it tries again");
            if cannot_open_yet(member) || member.mended() > mended || is_refusal(&error) {
                self.mend_before_opening(group, member, &mut unserved_since).await?;
            } else if let Some(first) = first {
                // Where that came after the log was taken for the broker, the second one says only that.
                return Ok(Err(first));
            } else {
                first = Some(error);
            }
        }
    }

    /// Opens the broker on the group's log.
    async fn open_broker(
        &self,
        group: &Group,
        member: &Arc<Member>,
        term: u64,
        settings: Config,
    ) -> Result<Result<OpenBroker, StartError>, String> {
        let (member, now_ms) = (Arc::clone(member), self.around.clock.now_ms());
        let number = group.number.0;
        let opening = self.blocking(move || {
            let gauge = Arc::new(MemoryGauge::default());
            let shards = member.shards(term, Arc::clone(&gauge));
            let limits = settings.broker_limits();
            let (broker, storage) = storage::open_on(&shards, number, gauge, limits, now_ms)?;
            let wrong = service::prepare_to_lead(&broker, settings);
            Ok((broker, storage, wrong))
        });
        opening.await
    }

    /// Has other nodes bring what is damaged here. Where that takes a while, or what could be brought did not suffice, or the disk
    /// gives nothing, another node may lead: its log may be whole. What is damaged here is brought meanwhile.
    async fn mend_before_opening(
        &self,
        group: &Arc<Group>,
        member: &Arc<Member>,
        unserved_since: &mut Instant,
    ) -> Result<(), String> {
        let (members, of, own) = (Arc::clone(&self.members), Arc::clone(group), Arc::clone(member));
        let mended = member.mended();
        self.blocking(move || members.mend(&of, &own)).await?;
        if cannot_open_yet(member) || member.mended() == mended {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        if member.needs_copy() {
            self.give_lead_up(group, member, "it needs a copy of another node's log").await;
        } else if unserved_since.elapsed() >= MEND_PATIENCE {
            *unserved_since = Instant::now();
            self.hand_lead_over(group, member, "it can't read all of its log yet").await;
        }
        Ok(())
    }

    /// As [`Inner::end_service`], where this node stops.
    pub(super) async fn stop_serving(&self, group: &Group) {
        self.end_service(group, Serves::Unknown, SHUTDOWN).await;
    }

    /// As [`Inner::end_service`], where the lead is lost.
    pub(super) async fn demote(&self, group: &Group, serves: Serves) {
        self.end_service(group, serves, LEADER_CHANGED).await;
    }

    /// Says who serves from now on. If this node does, every connection is closed with this text and the broker dropped, which may
    /// wait for the disk: [`Group::ended`] waits for that.
    async fn end_service(&self, group: &Group, serves: Serves, text: &'static str) {
        let before = group.serves();
        group.set_serves(serves);
        let Serves::Here(service) = before else { return };
        let number = group.number.0;
        for which in [Settings::AtFirst, Settings::Reloaded] {
            self.around.notices.settings_applied(number, which, true);
        }
        tracing::info!(
            group = number,
            "this node serves the group no more: closing its clients' connections"
        );
        let (ending, busy) = (group.begin_ending().await, Arc::clone(&self.busy));
        tokio::spawn(async move {
            let _ending = ending;
            service.say_goodbye(text, DEMOTION_TIMEOUT).await;
            let _busy = busy.read_owned().await;
            // The threads that make checkpoints end with it.
            if let Err(error) = tokio::task::spawn_blocking(move || drop(service)).await {
                tracing::error!(%error, "the broker's end was interrupted");
            }
        });
    }
}

/// Whether other nodes have to bring something before the broker can be opened.
fn cannot_open_yet(member: &Member) -> bool {
    member.wants_pieces() || member.needs_copy()
}

/// Whether the system has refused something, such as to read.
fn is_refusal(error: &StartError) -> bool {
    successors(Some(error as &dyn Error), |error| (**error).source())
        .any(|cause| cause.is::<io::Error>())
}

/// Does what may wait for the disk, and says meanwhile which node leads if it is not this one any more: its clients go there.
pub(super) async fn tell_meanwhile<T>(
    group: &Group,
    mut leadership: watch::Receiver<Leadership>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Ok(()) = leadership.changed() => group.set_serves(match *leadership.borrow_and_update() {
                Leadership::Following { leader: Some(leader) } => Serves::There(leader),
                _ => Serves::Unknown,
            }),
        }
    }
}
