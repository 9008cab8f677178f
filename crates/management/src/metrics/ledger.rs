//! What the brokers of a process have counted, those included that have ended, as their groups are led
//! elsewhere: totals never decrease.

use super::figures::LoginCounts;
use crate::Api;
use courser_broker::admin::{Churn, LogFigures, MessageCounts, MessageSizes, TrafficCounts};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// The totals of a process.
#[derive(Default)]
pub struct Ledger(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    ended: Counts,
    /// Those that count still, by number.
    live: Vec<(u64, Arc<Api>)>,
    next: u64,
}

/// What is counted since a broker began.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub messages: MessageCounts,
    pub sizes: MessageSizes,
    pub traffic: TrafficCounts,
    pub churn: Churn,
    /// With what the logs take now.
    pub log: LogFigures,
    pub http_logins: LoginCounts,
    pub amqp_logins: LoginCounts,
}

impl Ledger {
    /// Counts what a broker counts. Returns its number.
    pub(super) fn begin(&self, api: &Arc<Api>) -> u64 {
        let mut kept = self.0.lock();
        let number = kept.next;
        kept.next += 1;
        kept.live.push((number, Arc::clone(api)));
        number
    }

    /// Keeps what a broker has counted, which counts no more.
    pub(super) fn end(&self, number: u64) {
        let mut kept = self.0.lock();
        let Some(at) = kept.live.iter().position(|(one, _)| *one == number) else { return };
        let (_, api) = kept.live.swap_remove(at);
        let mut last = Counts::of(&api);
        last.log = LogFigures {
            checkpoint_bytes: 0,
            segments: 0,
            log_bytes: 0,
            live_bytes: 0,
            spare_bytes: 0,
            ..last.log
        };
        kept.ended.add(&last);
    }

    pub(super) fn read(&self) -> Counts {
        let kept = self.0.lock();
        let mut all = kept.ended.clone();
        kept.live.iter().for_each(|(_, api)| all.add(&Counts::of(api)));
        all
    }
}

impl Counts {
    fn of(api: &Api) -> Self {
        let (succeeded, failed) = api.logins.counts();
        Counts {
            messages: api.admin.message_counts(),
            sizes: api.admin.message_sizes(),
            traffic: api.admin.traffic(),
            churn: api.admin.churn(),
            log: api.admin.log_figures(),
            http_logins: LoginCounts { succeeded, failed },
            amqp_logins: (api.settings.amqp_logins)(),
        }
    }

    fn add(&mut self, more: &Counts) {
        self.messages += &more.messages;
        self.sizes
            .messages
            .iter_mut()
            .zip(more.sizes.messages)
            .for_each(|(sum, more)| *sum += more);
        self.sizes.bytes += more.sizes.bytes;
        self.traffic += &more.traffic;
        self.log += &more.log;
        let (churn, http, amqp) = (&mut self.churn, &mut self.http_logins, &mut self.amqp_logins);
        for (sum, more) in [
            (&mut churn.connections_opened, more.churn.connections_opened),
            (&mut churn.connections_closed, more.churn.connections_closed),
            (&mut churn.channels_opened, more.churn.channels_opened),
            (&mut churn.channels_closed, more.churn.channels_closed),
            (&mut churn.queues_declared, more.churn.queues_declared),
            (&mut churn.queues_created, more.churn.queues_created),
            (&mut churn.queues_deleted, more.churn.queues_deleted),
            (&mut http.succeeded, more.http_logins.succeeded),
            (&mut http.failed, more.http_logins.failed),
            (&mut amqp.succeeded, more.amqp_logins.succeeded),
            (&mut amqp.failed, more.amqp_logins.failed),
        ] {
            *sum += more;
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger").field("live", &self.0.lock().live.len()).finish_non_exhaustive()
    }
}
