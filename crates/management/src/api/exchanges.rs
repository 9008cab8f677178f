//! Exchanges.

use super::get;
use crate::call::{Call, Outcome};
use crate::json::{Fields, from_table, name};
use crate::list::paged;
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
    paged(call, Listing::within(listing, |vhost| vhosts.iter().any(|one| one == vhost)), render)
}

fn exchange(call: &Call) -> Outcome {
    let exchange = call.admin().exchange(call.text("vhost")?, call.exchange("exchange"))?;
    let mut fields = Fields::new(&call.columns());
    render(&exchange, &mut fields);
    fields.put("incoming", json!([])).put("outgoing", json!([]));
    Ok(Reply::object(fields))
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
