//! Closing connections and channels, and what else is done to the broker as a whole.

use super::nodes::is_this;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Changes, Needs, Route, Verb};
use courser_broker::admin::DEFAULT_CLOSE_REASON;

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Verb::Delete,
        pattern: "/api/connections/{name}",
        needs: Needs::Login,
        changes: Changes::Memory,
        handler: close,
        doc: "Closes a connection; the header X-Reason says why.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/connections/username/{user}",
        needs: Needs::Login,
        changes: Changes::Memory,
        handler: close_all_of_user,
        doc: "Closes all connections of a user.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/channels/{name}",
        needs: Needs::Login,
        changes: Changes::Memory,
        handler: close_channel,
        doc: "Closes a channel; its connection stays. The header X-Reason says why.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/reset",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: reset,
        doc: "Forgets what rates are made from.",
    },
    Route {
        method: Verb::Delete,
        pattern: "/api/reset/{node}",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: reset,
        doc: "The same, for a node.",
    },
    Route {
        method: Verb::Post,
        pattern: "/api/rebalance/queues",
        needs: Needs::Administrator,
        changes: Changes::Memory,
        handler: rebalance,
        doc: "Spreads queues over the nodes: with one there is nothing to do.",
    },
];

fn reason(call: &Call) -> &str {
    let given = call.headers.get("x-reason").and_then(|reason| reason.to_str().ok());
    given.filter(|reason| !reason.is_empty()).unwrap_or(DEFAULT_CLOSE_REASON)
}

fn close(call: &Call) -> Outcome {
    let connection = super::connections::known(call, true)?;
    call.admin().close_connection(&connection.name, reason(call))?;
    Ok(Reply::done())
}

fn close_channel(call: &Call) -> Outcome {
    let channel = super::channels::known(call, true)?;
    call.admin().close_channel(&channel.connection, channel.number, reason(call))?;
    Ok(Reply::done())
}

fn close_all_of_user(call: &Call) -> Outcome {
    let user = call.text("user")?;
    call.caller()?.need_ownership(user, true)?;
    call.admin().close_connections_of_user(user, reason(call));
    Ok(Reply::done())
}

fn reset(call: &Call) -> Outcome {
    if call.has("node") {
        is_this(call)?;
    }
    call.api.rates.reset();
    Ok(Reply::done())
}

fn rebalance(_: &Call) -> Result<Reply, Refusal> {
    Ok(Reply::done())
}
