//! The broker as its operator sees it: what there is, page by page, and what may be changed.
//!
//! An HTTP API, a command line or a page of metrics reads and changes the broker through an [`Admin`]
//! and through nothing else. Lists are in the order of vhost and name. A list is what there was at one
//! moment; an item on it is shown as it is when its turn comes, and no lock is held in between.

mod accounts;
mod bindings;
mod channels;
mod checks;
mod commands;
mod connections;
mod declare;
mod durable;
mod exchanges;
mod figures;
mod group_definitions;
mod groups;
mod interventions;
mod messages;
mod page;
mod parameters;
mod policy_preview;
mod publish;
mod queues;
mod relocate;
mod route_trace;
mod shown;
mod streams;
mod transfer;
mod unacked;
mod vhosts;

pub use bindings::{Admits, BindingView};
pub use channels::{ChannelView, ConsumerView, StreamPlace};
pub use checks::{
    check_binding, check_exchange, check_name, check_queue, check_vhost, is_predefined,
};
pub use commands::NewBinding;
pub use connections::{ConnectionView, DEFAULT_CLOSE_REASON};
pub use declare::NewQueue;
pub use durable::Durable;
pub use exchanges::{ExchangeView, OverdueView};
pub use figures::{ChannelsView, ConnectionFigures, Held, MemoryUses, QueueFigures};
pub use groups::ClusterGroup;
pub use messages::{GetMode, MESSAGES_MAX};
pub use page::{Listing, PAGE_MAX, Page, PageRequest, Start, View};
pub use parameters::{CLUSTER_NAME, GlobalParameter, Parameter};
pub use policy_preview::{PolicyPreview, PolicyPreviewing, PreviewedExchange, PreviewedQueue};
pub use publish::{NewMessage, Published, Publishing};
pub use queues::{QueueGlance, QueueView, StreamView};
pub use relocate::{MayWrite, MoveTo, Relocated, Relocation, Selection};
pub use route_trace::{RouteStep, RouteTrace, RoutedBinding, RoutedQueue};
pub use shown::MessageView;
pub use streams::{StreamFollower, StreamPage};
pub use transfer::{Arrival, Export, Import, LeftBehind, VhostHandle};
pub use unacked::UnackedView;
pub use vhosts::{MessageTotals, VhostView};

pub use crate::accounts::AccountsError;
pub use crate::arguments::{ArgumentOf, Effect, KnownArgument, known_arguments};
pub use crate::broker::Alarms;
pub use crate::counts::{
    COUNTED_TYPES, ChannelCounts, DeadCounts, DeliveryCounts, ExchangeCounts, MessageCounts,
    MessageSizes, PublishCounts, QueueCounts, SIZE_LIMITS, TypeCounts,
};
pub use crate::exchange::{ExchangeKind, ExchangeSettings, Overdue};
pub use crate::fault::Fault;
pub use crate::memory::table_bytes;
pub use crate::monitor::{
    Churn, ClientProperties, ConnectionDetails, ConnectionState, EVENTS_MAX, Event, EventKind,
    Followed, Follower, PeerCertificate, TlsSession, TrafficCounts,
};
pub use crate::persistence::GroupDefinitions;
pub use crate::policy::{ApplyTo, Policy, PolicyError, PolicyKind, is_rabbitmq_only, policy_keys};
pub use crate::queue::{Amount, DelayedRetry, DelayedStatus, QueueContents, QueueStatus, Retried};
pub use crate::stream::Start as StreamStart;
pub use crate::vhost::{VhostLimits, VhostSettings, WriteTarget};
pub use courser_store::{Figures as LogFigures, SYNC_DURATIONS};

use crate::broker::Broker;
use crate::exchange::Exchange;
use crate::queue::Queue;
use crate::vhost::Vhost;
use accounts::Author;
use courser_auth::User;
use std::fmt;
use std::sync::Arc;

/// What an operator may ask of a broker, and do to it. Cheap to clone. No method waits for a client. What changes something that
/// survives, or shows a message, may wait for the disk: not for a thread of an async runtime.
#[derive(Clone)]
pub struct Admin {
    broker: Arc<Broker>,
    /// The user who asks for changes, if there is one.
    author: Option<Arc<Author>>,
    /// Users with the tag `protected` stay as they are.
    spares_protected: bool,
}

impl Broker {
    /// The interface for operators.
    pub fn admin(self: &Arc<Self>) -> Admin {
        Admin { broker: Arc::clone(self), author: None, spares_protected: false }
    }
}

impl Admin {
    /// The same on behalf of a user, who has just been let in: users and permissions are changed as long as the user is there with
    /// the same password and tags, which is looked at while they are locked.
    pub fn on_behalf_of(&self, user: Arc<User>) -> Admin {
        let author = Some(Arc::new(Author::new(user)));
        Admin { author, ..self.clone() }
    }

    /// The same, but it changes no user with the tag `protected`, nor what one may do.
    pub fn sparing_protected(&self) -> Admin {
        Admin { spares_protected: true, ..self.clone() }
    }
}

impl Admin {
    /// All vhosts, by name; at home those of other groups as well.
    pub fn vhosts(&self) -> Vec<VhostView> {
        self.all_vhosts().iter().map(|vhost| VhostView::of(vhost)).collect()
    }

    /// Whether there is a vhost of this name; at home also if it is in another group.
    pub fn has_vhost(&self, name: &str) -> bool {
        self.broker.vhost(name).is_some()
    }

    /// One vhost.
    pub fn vhost(&self, name: &str) -> Option<VhostView> {
        self.broker.vhost(name).map(|vhost| VhostView::of(&vhost))
    }

    /// What the queues of a vhost hold together: looks at every one of them.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn message_totals(&self, vhost: &str) -> Result<MessageTotals, Fault> {
        Ok(MessageTotals::of(&self.known_vhost(vhost)?))
    }

    /// How many messages have come and gone, in all vhosts that there ever were.
    pub fn message_counts(&self) -> MessageCounts {
        self.broker.message_counts()
    }

    /// How large the messages were that clients have published.
    pub fn message_sizes(&self) -> MessageSizes {
        self.broker.monitor.sizes.read()
    }

    /// The queues of a vhost, or of all.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn queues(&self, vhost: Option<&str>) -> Result<Listing<QueueView>, Fault> {
        let vhosts = self.chosen_vhosts(vhost)?.into_iter();
        Ok(Listing::new(vhosts.map(|vhost| {
            let queues = vhost.ordered_queues();
            (vhost.name.clone(), vhost, queues)
        })))
    }

    /// One queue.
    ///
    /// # Errors
    /// When it is not there.
    pub fn queue(&self, vhost: &str, name: &[u8]) -> Result<QueueView, Fault> {
        let (vhost, queue) = self.known_queue(vhost, name)?;
        Ok(QueueView::view(&vhost, &queue))
    }

    /// The `timestamp` of the message of a queue whose turn it is, in seconds since 1970, if it has one; read from the log if
    /// it is there.
    ///
    /// # Errors
    /// When the queue is not there.
    pub fn head_timestamp(&self, vhost: &str, name: &[u8]) -> Result<Option<u64>, Fault> {
        let (vhost, queue) = self.known_queue(vhost, name)?;
        Ok(queue.head_timestamp(&*vhost.shard().store))
    }

    /// The exchanges of a vhost, or of all.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn exchanges(&self, vhost: Option<&str>) -> Result<Listing<ExchangeView>, Fault> {
        let vhosts = self.chosen_vhosts(vhost)?.into_iter();
        Ok(Listing::new(vhosts.map(|vhost| {
            let exchanges = vhost.ordered_exchanges();
            (vhost.name.clone(), vhost, exchanges)
        })))
    }

    /// One exchange; the default one has an empty name.
    ///
    /// # Errors
    /// When it is not there.
    pub fn exchange(&self, vhost: &str, name: &[u8]) -> Result<ExchangeView, Fault> {
        let (vhost, exchange) = self.known_exchange(vhost, name)?;
        Ok(ExchangeView::view(&vhost, &exchange))
    }

    /// The bindings of which an exchange is the source, by destination, as far as they are admitted.
    ///
    /// # Errors
    /// When the exchange is not there.
    pub fn bindings_from(
        &self,
        vhost: &str,
        exchange: &[u8],
        admits: Admits<'_>,
    ) -> Result<Vec<BindingView>, Fault> {
        let (vhost, exchange) = self.known_exchange(vhost, exchange)?;
        Ok(bindings::from_exchange(&vhost, &exchange, admits))
    }

    /// The bindings that lead to a queue, by source, as far as they are admitted; the first is the one by its name.
    ///
    /// # Errors
    /// When the queue is not there.
    pub fn bindings_to_queue(
        &self,
        vhost: &str,
        queue: &[u8],
        admits: Admits<'_>,
    ) -> Result<Vec<BindingView>, Fault> {
        let (vhost, queue) = self.known_queue(vhost, queue)?;
        Ok(bindings::to_queue(&vhost, &queue, admits))
    }

    /// The bindings that lead to an exchange, by source, as far as they are admitted.
    ///
    /// # Errors
    /// When the exchange is not there.
    pub fn bindings_to_exchange(
        &self,
        vhost: &str,
        exchange: &[u8],
        admits: Admits<'_>,
    ) -> Result<Vec<BindingView>, Fault> {
        let (vhost, exchange) = self.known_exchange(vhost, exchange)?;
        Ok(bindings::to_exchange(&vhost, &exchange, admits))
    }

    /// Calls `each` with the bindings of a vhost, by source, as far as they are admitted; those of one source at a time are in
    /// memory.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn for_each_binding(
        &self,
        vhost: &str,
        admits: Admits<'_>,
        each: &mut dyn FnMut(BindingView),
    ) -> Result<(), Fault> {
        let vhost = self.known_vhost(vhost)?;
        for exchange in vhost.ordered_exchanges().starting_at(0) {
            let found = bindings::from_exchange(&vhost, exchange, admits);
            found.into_iter().for_each(&mut *each);
        }
        Ok(())
    }

    /// The policies of one kind, those from the configuration included, by name.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn policies(&self, vhost: &str, kind: PolicyKind) -> Result<Vec<Policy>, Fault> {
        Ok(self.known_vhost(vhost)?.policies(kind))
    }

    /// Those that were set, without any from the configuration, by name.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn kept_policies(&self, vhost: &str, kind: PolicyKind) -> Result<Vec<Policy>, Fault> {
        Ok(self.known_vhost(vhost)?.policies_now().list_kept(kind))
    }

    /// Calls `each` with the vhost and the name of each policy that matches nothing, as its pattern was taken by an earlier
    /// version and can't be compiled any more, and with why.
    pub fn for_each_refused_policy(&self, each: &mut dyn FnMut(&str, &str, &str)) {
        self.broker.for_each_refused_policy(each);
    }

    /// Says what time it is, in milliseconds since 1970, before a change: clients may not have said so for a while. Events
    /// that tell of the change have this time.
    pub fn set_time(&self, now_ms: u64) {
        self.broker.set_time(now_ms);
    }

    /// What is short, if publishers have to wait.
    pub fn alarms(&self) -> Alarms {
        self.broker.alarms()
    }

    /// Since when, in milliseconds since 1970, what is due at a certain time has not been served for too long: times to live,
    /// delays, and whatever else the broker does by the clock.
    pub fn timers_unserved_since_ms(&self) -> Option<u64> {
        self.broker.timers.unserved_since_ms()
    }

    /// Bytes that waiting messages use.
    pub fn memory_used_bytes(&self) -> u64 {
        self.broker.memory_used_bytes()
    }

    /// Bytes of memory from which on publishers are held back.
    pub fn memory_high_bytes(&self) -> u64 {
        self.broker.memory_high_bytes()
    }

    fn all_vhosts(&self) -> Vec<Arc<Vhost>> {
        let mut vhosts = self.broker.vhosts();
        vhosts.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        vhosts
    }

    fn chosen_vhosts(&self, name: Option<&str>) -> Result<Vec<Arc<Vhost>>, Fault> {
        match name {
            Some(name) => Ok(vec![self.known_vhost(name)?]),
            None => {
                let mut vhosts = self.all_vhosts();
                vhosts.retain(|vhost| self.broker.serves(vhost));
                Ok(vhosts)
            }
        }
    }

    /// A vhost that is served here: of one that is in another group, only what is said of it is known.
    fn known_vhost(&self, name: &str) -> Result<Arc<Vhost>, Fault> {
        let vhost = self.vhost_of_any_group(name)?;
        self.broker.check_serves(&vhost)?;
        Ok(vhost)
    }

    fn vhost_of_any_group(&self, name: &str) -> Result<Arc<Vhost>, Fault> {
        self.broker
            .vhost(name)
            .ok_or_else(|| Fault::not_found(format_args!("vhost '{name}' not found")))
    }

    fn known_queue(&self, vhost: &str, name: &[u8]) -> Result<(Arc<Vhost>, Arc<Queue>), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let queue = vhost.queue(name).ok_or_else(|| vhost.no_queue(name))?;
        Ok((vhost, queue))
    }

    fn known_exchange(
        &self,
        vhost: &str,
        name: &[u8],
    ) -> Result<(Arc<Vhost>, Arc<Exchange>), Fault> {
        let vhost = self.known_vhost(vhost)?;
        let exchange = vhost.exchange_or_fault(name)?;
        Ok((vhost, exchange))
    }
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").finish_non_exhaustive()
    }
}
