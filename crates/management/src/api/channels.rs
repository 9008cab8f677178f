//! Channels.

use super::{consumers, get, stats};
use crate::call::{Call, Outcome};
use crate::json::{Fields, name};
use crate::list::{Gathering, Items, Place, paged, whole};
use crate::rates::Range;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::ChannelView;
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get("/api/channels", Needs::Login, channels, "The channels that the caller may see."),
    get("/api/channels/{name}", Needs::Login, channel, "A channel."),
];

/// The name that a channel is known by.
pub(super) fn channel_name(connection: &str, number: u16) -> String {
    format!("{connection} ({number})")
}

/// Address and port of the client, as the name of its connection says.
pub(super) fn peer(connection: &str) -> (String, u16) {
    let address = connection.split_once(" -> ").map(|(peer, _)| peer);
    let parsed = address.and_then(|address| address.parse::<std::net::SocketAddr>().ok());
    parsed.map_or((String::new(), 0), |peer| (peer.ip().to_string(), peer.port()))
}

fn listed(channels: Vec<ChannelView>) -> Items<ChannelView> {
    let named = Items::new(channels, |one| channel_name(&one.connection, one.number));
    named.placed(|one| Place::of(&one.connection))
}

/// The channels in the vhost that is asked for, or in all.
pub(super) fn channels(call: &Call) -> Outcome {
    let (caller, vhost) = (call.caller()?, super::connections::known_vhost(call)?);
    let (mut found, mut gathering) = (Vec::new(), Gathering::new(call)?);
    call.admin().for_each_channel(vhost, &mut |channel| {
        let is_seen = caller.sees_connections_of(channel.user.as_bytes());
        if is_seen && gathering.admits(&channel) {
            found.push(channel);
        }
    })?;
    let render = renderer(call)?;
    let found = listed(found).in_room(gathering.finish()?);
    paged(call, found, move |(_, channel), fields| render(channel, fields))
}

/// The channels of the connection in the path.
pub(super) fn channels_of_connection(call: &Call) -> Outcome {
    let connection = super::connections::known(call, false)?;
    let channels = call.admin().channels_of(&connection.name)?;
    let render = renderer(call)?;
    whole(call, listed(channels), move |(_, channel), fields| render(channel, fields))
}

/// The channel in the path, if the caller may see it, or change it.
pub(super) fn known(call: &Call, to_change: bool) -> Result<ChannelView, Refusal> {
    let wanted = call.text("name")?;
    let (connection, number) = wanted
        .rsplit_once(" (")
        .and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?.parse::<u16>().ok()?)))
        .ok_or_else(Refusal::not_found)?;
    let channels = call.admin().channels_of(connection)?;
    let channel = channels.into_iter().find(|one| one.number == number);
    let channel = channel.ok_or_else(Refusal::not_found)?;
    call.caller()?.need_ownership(&name(&channel.user), to_change)?;
    Ok(channel)
}

fn channel(call: &Call) -> Outcome {
    let channel = known(call, false)?;
    let mut fields = Fields::new(&call.columns());
    renderer(call)?(&channel, &mut fields);
    let mut own = Vec::new();
    call.admin().for_each_consumer_on(&channel.connection, channel.number, &mut |consumer| {
        consumers::add(call, &consumer, &mut own);
    })?;
    fields.put("consumer_details", own).put("publishes", json!([])).put("deliveries", json!([]));
    Ok(Reply::object(fields))
}

fn renderer(call: &Call) -> Result<impl Fn(&ChannelView, &mut Fields) + Send + 'static, Refusal> {
    let call = call.later();
    let range = Range::asked(&call, "msg_rates")?;
    let with_stats = !call.is_set("disable_stats");
    Ok(move |channel: &ChannelView, fields: &mut Fields| {
        let user = name(&channel.user);
        let (peer_host, peer_port) = peer(&channel.connection);
        let connection: Value = json!({
            "name": channel.connection,
            "peer_host": peer_host,
            "peer_port": peer_port,
        });
        fields
            .put("name", channel_name(&channel.connection, channel.number))
            .put("number", channel.number)
            .put("vhost", channel.vhost.as_str())
            .put("user", user.as_str())
            .put("user_who_performed_action", user)
            .put("node", call.api.settings.node.name.as_str())
            .put("connection_details", connection);
        if with_stats {
            fields
                .put("state", if channel.flow_active { "running" } else { "flow" })
                .put("consumer_count", channel.consumers)
                .put("confirm", channel.confirms)
                .put("transactional", channel.transactional)
                .put("prefetch_count", channel.prefetch)
                .put("global_prefetch_count", channel.global_prefetch)
                .put("messages_unacknowledged", channel.unacked)
                .put("messages_unconfirmed", channel.unconfirmed)
                .put("messages_uncommitted", 0)
                .put("acks_uncommitted", 0)
                .put("pending_raft_commands", 0)
                .put("cached_segments", 0)
                .put("reductions", 0);
            let object = format!("channel {}", channel_name(&channel.connection, channel.number));
            stats::put(&call, fields, &object, &stats::of_channel(&channel.counts), range);
        }
    })
}
