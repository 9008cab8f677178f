//! Everything by itself: which of it is wanted, and with which labels.

use super::families::channels::{CHANNELS, CONNECTIONS, ChannelRow};
use super::families::{cluster, exchanges, protocols, queues};
use super::query::Query;
use super::table::{Each, Page};
use super::text::Labels;
use super::wanted::Wanted;
use courser_broker::admin::{
    Admin, ChannelsView, ConnectionFigures, ExchangeView, Listing, QueueFigures,
};
use std::sync::Arc;

/// Families whose rows are of a channel and of something in a vhost.
const IN_VHOST: [&str; 2] = ["channel_exchange_metrics", "channel_queue_metrics"];

/// Adds what is wanted of queues, channels, connections and exchanges.
pub(crate) fn add(page: &mut Page, admins: &[&Admin], query: &Query, prefix: &'static str) {
    let families = queues::FAMILIES.iter().filter(|family| query.wants(family.name));
    let families: Vec<_> = families.collect();
    if !families.is_empty() {
        let lists = queue_lists(admins, query);
        for family in families {
            let is_known = queues::KNOWN.contains(&family.name);
            page.listed(prefix, family.metrics, lists.clone(), each_queue(is_known, false));
        }
        page.listed(prefix, cluster::QUEUE, lists, each_queue(true, true));
    }
    for family in CHANNELS.iter().filter(|family| query.wants(family.name)) {
        let with_vhost = IN_VHOST.contains(&family.name);
        let each = each_channel(query, with_vhost);
        let lists = admins.iter().map(|admin| admin.channel_figures()).collect();
        page.listed(prefix, family.metrics, lists, each);
    }
    for family in CONNECTIONS.iter().filter(|family| query.wants(family.name)) {
        let lists = admins.iter().map(|admin| admin.connection_figures()).collect();
        page.listed(prefix, family.metrics, lists, each_connection());
    }
    if query.wants(exchanges::EACH.name) {
        let each = each_exchange(false);
        page.listed(prefix, exchanges::EACH.metrics, exchange_lists(admins, query), each);
    }
}

/// Adds what is wanted of facts about exchanges.
pub(crate) fn add_exchange_facts(
    page: &mut Page,
    admins: &[&Admin],
    query: &Query,
    prefix: &'static str,
) {
    for family in cluster::EXCHANGES.iter().filter(|family| query.wants(family.name)) {
        page.listed(prefix, family.metrics, exchange_lists(admins, query), each_exchange(true));
    }
}

/// The queues of the vhosts that are wanted. Without a vhost that could be missing, there is a list;
/// likewise below.
fn queue_lists(
    admins: &[&Admin],
    query: &Query,
) -> Vec<Arc<Wanted<Listing<QueueFigures>, QueueFigures>>> {
    let lists = admins.iter().filter_map(|admin| admin.queue_figures(None).ok());
    let lists = lists.map(|all| {
        let names = query.clone();
        let has_queue = move |queue: &QueueFigures| names.has_queue(queue.name.as_bytes());
        Arc::new(Wanted::new(all.within(|vhost| query.has_vhost(vhost)), has_queue))
    });
    lists.collect()
}

fn exchange_lists(admins: &[&Admin], query: &Query) -> Vec<Listing<ExchangeView>> {
    let lists = admins.iter().filter_map(|admin| admin.exchanges(None).ok());
    lists.map(|all| all.within(|vhost| query.has_vhost(vhost))).collect()
}

/// Without those that are held, unless what is told is known of them as well.
fn each_queue(is_known: bool, with_type: bool) -> Each<QueueFigures, QueueFigures> {
    Box::new(move |queue, labels, tell| {
        if queue.is_held && !is_known {
            return;
        }
        labels.add("vhost", &*queue.vhost);
        labels.add("queue", queue.name.as_bytes());
        if with_type {
            labels.add("queue_type", protocols::type_label(queue.queue_type));
            labels.add("membership", "leader");
        }
        tell(labels, queue);
    })
}

fn each_channel(query: &Query, with_vhost: bool) -> Each<ChannelsView, ChannelRow> {
    let query = query.clone();
    Box::new(move |ChannelsView(channels), labels, tell| {
        for channel in channels.iter().filter(|channel| query.has_vhost(&channel.vhost)) {
            labels.clear();
            labels.add("channel", format!("{} ({})", channel.connection, channel.number));
            labels.add("connection", &channel.connection);
            if with_vhost {
                labels.add("vhost", &channel.vhost);
            }
            tell(labels, &ChannelRow::of(channel));
        }
    })
}

/// What is said of a connection is labelled as a channel: RabbitMQ does so.
fn each_connection() -> Each<ConnectionFigures, ConnectionFigures> {
    Box::new(|connection, labels, tell| {
        labels.add("channel", &connection.name);
        labels.add("connection", &connection.name);
        tell(labels, connection);
    })
}

/// Facts are told of exchanges that clients can bind to and publish to.
fn each_exchange(as_fact: bool) -> Each<ExchangeView, ExchangeView> {
    Box::new(move |exchange, labels: &mut Labels, tell| {
        if as_fact && (exchange.name.is_empty() || exchange.internal) {
            return;
        }
        labels.add("vhost", &exchange.vhost);
        labels.add("exchange", exchange.name.as_bytes());
        if as_fact {
            labels.add("type", exchange.kind);
        }
        tell(labels, exchange);
    })
}
