//! Exchanges.

use super::{get, stats};
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::list::paged;
use crate::rates::{Range, object_in};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use courser_broker::admin::{ExchangeView, Listing};
use serde_json::json;

pub(crate) const ROUTES: &[Route] = &[
    get("/api/exchanges", Needs::Login, exchanges, "The exchanges that the caller may see."),
    get("/api/exchanges/{vhost}", Needs::Vhost, exchanges, "The exchanges of a vhost."),
    get("/api/exchanges/{vhost}/{exchange}", Needs::Vhost, exchange, "An exchange."),
];

fn exchanges(call: &Call) -> Outcome {
    let vhosts = call.vhosts()?;
    let listing = call.admin().exchanges(None)?;
    let within = Listing::within(listing, |vhost| vhosts.contains(vhost));
    let render = renderer(call)?;
    paged(call, within, render)
}

fn exchange(call: &Call) -> Outcome {
    let exchange = call.admin().exchange(call.text("vhost")?, call.exchange("exchange"))?;
    let mut fields = Fields::new(&call.columns());
    renderer(call)?(&exchange, &mut fields);
    fields.put("incoming", json!([])).put("outgoing", json!([]));
    Ok(Reply::object(fields))
}

/// Adds the members of an exchange, and what was counted of it.
fn renderer(call: &Call) -> Result<impl Fn(&ExchangeView, &mut Fields) + Send + 'static, Refusal> {
    let call = call.later();
    let with_stats = !call.is_set("disable_stats");
    let range = Range::asked(&call, "msg_rates")?;
    Ok(move |exchange: &ExchangeView, fields: &mut Fields| {
        render(exchange, fields);
        if with_stats {
            let object = object_in(&exchange.vhost, "exchange", &name(&exchange.name));
            let counters = stats::of_exchange(&exchange.counts);
            stats::put(&call, fields, &object, &counters, range);
        }
    })
}

fn render(exchange: &ExchangeView, fields: &mut Fields) {
    fields
        .put("name", name(&exchange.name))
        .put("vhost", exchange.vhost.as_str())
        .put("type", exchange.kind)
        .put("durable", exchange.durable)
        .put("auto_delete", exchange.auto_delete)
        .put("internal", exchange.internal)
        .put_with("arguments", || from_table(&exchange.arguments))
        .put("user_who_performed_action", "rmq-internal")
        .put_some("policy", exchange.policy.as_deref());
}
