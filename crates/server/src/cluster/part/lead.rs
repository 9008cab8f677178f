//! A node begins to serve the clients of a group, and ends.

use super::*;
use crate::driver::SHUTDOWN;
use crate::storage::Storage;
use courser_broker::{Broker, LEADER_CHANGED};
use std::pin::pin;

/// How long a node that has come to lead may not serve because of what is damaged, before another one is to lead.
const MEND_PATIENCE: Duration = Duration::from_secs(5);

/// A broker on a group's log, and what of the settings could not be applied to it.
type OpenBroker = (Arc<Broker>, Storage, Vec<StartError>);

impl Inner {
    /// The settings for the broker of one group. As this node may come to lead all of them, each has its share of the memory.
    fn config_of_group(&self) -> Config {
        let mut config = self.config();
        let known = self.groups.all().len() as u64;
        let groups = known.max(config.cluster.groups.into());
        if groups > 1 {
            config.limits.memory_high_bytes = config.broker_limits().memory_high_bytes / groups;
        }
        config
    }

    /// Opens the broker on the group's log and serves, if this node still leads then.
    pub(super) async fn promote(
        &self,
        group: &Arc<Group>,
        member: &Arc<Member>,
        term: u64,
    ) -> Result<bool, String> {
        let number = group.number.0;
        tracing::info!(term, group = number, "this node leads the group");
        let (config, started) = (self.config_of_group(), Instant::now());
        let leads = || *member.leadership().borrow() == Leadership::Serving { term };
        let mut unserved_since = started;
        let opened = loop {
            let mended = member.mended();
            match self.open_broker(group, member, term, config.clone()).await? {
                Err(error) if leads() && (member.wants_pieces() || member.mended() > mended) => {
                    tracing::warn!(group = number, %error, "others are asked for what is damaged here");
                    self.mend_before_opening(group, member, &mut unserved_since).await?;
                }
                opened => break opened,
            }
        };
        let started_service = match opened {
            Ok((broker, storage, wrong)) if leads() => {
                for error in wrong {
                    tracing::error!(group = number, %error, "this node serves without what it can't apply of its settings");
                }
                if !group.is_home() {
                    let recovery = self.folder.formation().and_then(|formation| formation.recovery);
                    broker.admin().set_recoveries(recovery.map_or(0, |one| one.times));
                    self.front.adopt_at_first(group, &broker, leads).await;
                }
                Service::start(broker, storage, &config, &self.around).await
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
                Ok(true)
            }
            // Whoever leads now does it.
            Err(error) if !leads() => {
                tracing::info!(term, group = number, %error, "this node leads no more");
                Ok(false)
            }
            Err(error) => {
                Err(format!("this node can't serve group {number}, though it leads: {error}"))
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
            let seed = getrandom::u64().map_err(StartError::Random)?;
            let limits = settings.broker_limits();
            let (broker, storage) = storage::open_on(&shards, number, gauge, limits, seed, now_ms)?;
            let wrong = service::prepare_to_lead(&broker, settings);
            Ok((broker, storage, wrong))
        });
        opening.await
    }

    /// Has other nodes bring what is damaged here. Where that takes a while, or what could be brought did not suffice, another node
    /// may lead: its log may be whole. What is damaged here is brought meanwhile.
    async fn mend_before_opening(
        &self,
        group: &Arc<Group>,
        member: &Arc<Member>,
        unserved_since: &mut Instant,
    ) -> Result<(), String> {
        let (members, of, own) = (Arc::clone(&self.members), Arc::clone(group), Arc::clone(member));
        self.blocking(move || members.mend(&of, &own)).await?;
        if member.wants_pieces() {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        if unserved_since.elapsed() >= MEND_PATIENCE {
            *unserved_since = Instant::now();
            self.hand_lead_over(group, member, "its log is damaged, which takes long to mend")
                .await;
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
