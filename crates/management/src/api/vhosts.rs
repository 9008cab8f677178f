//! Vhosts.

use super::{get, stats};
use crate::call::{Call, Outcome};
use crate::definitions::metadata;
use crate::json::Fields;
use crate::list::{Items, Owned, Place, paged};
use crate::rates::{Range, put_counters};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::{TrafficCounts, VhostView};
use serde_json::json;
use std::collections::HashMap;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/vhosts", Needs::Login, vhosts, "The vhosts that the caller may see."),
    get("/api/vhosts/{vhost}", Needs::Administrator, vhost, "A vhost."),
    get(
        "/api/vhosts/{vhost}/permissions",
        Needs::Administrator,
        super::users::permissions_in_vhost,
        "Who may do what in a vhost.",
    ),
    get(
        "/api/vhosts/{vhost}/topic-permissions",
        Needs::Administrator,
        super::users::topic_permissions_in_vhost,
        "Who may use which routing keys in a vhost.",
    ),
    get(
        "/api/vhosts/{vhost}/connections",
        Needs::Vhost,
        super::connections::connections,
        "The connections in a vhost.",
    ),
    get(
        "/api/vhosts/{vhost}/channels",
        Needs::Vhost,
        super::channels::channels,
        "The channels in a vhost.",
    ),
    get("/api/vhost-limits", Needs::Login, all_limits, "The limits of all vhosts that have some."),
    get("/api/vhost-limits/{vhost}", Needs::Login, limits, "The limits of a vhost."),
];

/// A vhost, with what came and went through the connections to it.
#[derive(Clone)]
struct Shown {
    vhost: VhostView,
    traffic: TrafficCounts,
}

impl Owned for Shown {
    fn owned_bytes(&self) -> usize {
        self.vhost.owned_bytes()
    }
}

fn vhosts(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let all = call.admin().vhosts().into_iter();
    let visible = all.filter(|vhost| caller.is_monitor() || caller.may_enter(&vhost.name));
    let visible = visible.filter(|vhost| call.is_here(&vhost.name)).collect();
    let shown = with_traffic(call, visible)?;
    let render = renderer(call)?;
    let named = Items::new(shown, |one| one.vhost.name.clone());
    let placed = named.placed(|one| Place::of(&one.vhost.name));
    paged(call, placed, move |(_, one), fields| render(one, fields))
}

fn vhost(call: &Call) -> Outcome {
    let vhost = call.admin().vhost(call.text("vhost")?).ok_or_else(Refusal::not_found)?;
    let mut fields = Fields::new(&call.columns());
    let render = renderer(call)?;
    for one in with_traffic(call, vec![vhost])? {
        render(&one, &mut fields);
    }
    Ok(Reply::object(fields))
}

fn with_traffic(call: &Call, vhosts: Vec<VhostView>) -> Result<Vec<Shown>, Refusal> {
    let traffic = match call.is_set("disable_stats") {
        true => HashMap::new(),
        false => call.admin().traffic_of_vhosts(),
    };
    let shown = vhosts.into_iter().map(|vhost| {
        let traffic = traffic.get(&vhost.name).copied().unwrap_or_default();
        Shown { vhost, traffic }
    });
    Ok(shown.collect())
}

fn renderer(call: &Call) -> Result<impl Fn(&Shown, &mut Fields) + Send + 'static, Refusal> {
    let call = call.later();
    let with_stats = !call.is_set("disable_stats");
    let lengths = Range::asked(&call, "lengths")?;
    let data = Range::asked(&call, "data_rates")?;
    let messages = Range::asked(&call, "msg_rates")?;
    Ok(move |one: &Shown, fields: &mut Fields| {
        let vhost = &one.vhost;
        head(&call, vhost, fields);
        if !with_stats {
            return;
        }
        let Ok(totals) = call.admin().message_totals(&vhost.name) else { return };
        let object = format!("vhost {}", vhost.name);
        let counters = [
            ("messages", totals.ready + totals.unacked + totals.delayed),
            ("messages_ready", totals.ready),
            ("messages_unacknowledged", totals.unacked),
        ];
        put_counters(&call, fields, &object, &counters, lengths);
        let counters =
            [("recv_oct", one.traffic.received_bytes), ("send_oct", one.traffic.sent_bytes)];
        put_counters(&call, fields, &format!("traffic of {object}"), &counters, data);
        stats::put(&call, fields, &object, &stats::of_messages(&vhost.counts), messages);
    })
}

fn head(call: &Call, vhost: &VhostView, fields: &mut Fields) {
    let node = &call.api.settings.node.name;
    let kind = vhost.default_queue_type.as_deref().unwrap_or("classic");
    fields
        .put("name", vhost.name.as_str())
        .put("description", vhost.description.as_str())
        .put("tags", vhost.tags.clone())
        .put("default_queue_type", kind)
        .put_with("metadata", || metadata(vhost))
        .put("tracing", vhost.tracing)
        .put("protected_from_deletion", vhost.protected)
        .put("cluster_state", json!({ node.as_str(): "running" }))
        .put_some("group", call.group());
}

fn all_limits(call: &Call) -> Outcome {
    let caller = call.caller()?;
    let all = call.admin().vhosts().into_iter();
    list_limits(
        call,
        all.filter(|one| caller.is_monitor() || caller.may_enter(&one.name)).collect(),
    )
}

fn limits(call: &Call) -> Outcome {
    let (caller, name) = (call.caller()?, call.text("vhost")?);
    if !caller.is_monitor() && !caller.may_enter(name) {
        return Err(Refusal::missing("Not Found"));
    }
    let vhost = call.admin().vhost(name).ok_or_else(Refusal::not_found)?;
    list_limits(call, vec![vhost])
}

fn list_limits(call: &Call, vhosts: Vec<VhostView>) -> Outcome {
    let limited = |vhost: &VhostView| {
        vhost.limits.connections_max.is_some() || vhost.limits.queues_max.is_some()
    };
    let vhosts: Vec<VhostView> = vhosts.into_iter().filter(limited).collect();
    let named = Items::new(vhosts, |vhost| vhost.name.clone());
    paged(call, named, |(_, vhost), fields| {
        let mut value = Fields::default();
        value.put_some("max-connections", vhost.limits.connections_max);
        value.put_some("max-queues", vhost.limits.queues_max);
        fields.put("vhost", vhost.name.as_str()).put("value", value.finish());
    })
}
