//! Facts that other metrics are joined with: which vhosts, exchanges and queues there are.

use crate::metrics::table::{Family, Metric, flag, gauge};
use crate::metrics::text::Value;
use courser_broker::admin::{ExchangeView, QueueFigures, VhostView};

pub(crate) const VHOSTS: Family<VhostView> = Family {
    name: "vhost_status",
    metrics: &[gauge("vhost_status", "1 for a vhost that can be entered", one)],
};

pub(crate) const EXCHANGES: &[Family<ExchangeView>] = &[
    Family {
        name: "exchange_bindings",
        metrics: &[gauge("exchange_bindings", "Bindings of an exchange", |exchange| {
            exchange.bindings.into()
        })],
    },
    Family {
        name: "exchange_names",
        metrics: &[gauge("exchange_name", "1 for an exchange that is there", one)],
    },
];

pub(crate) const QUEUE: &[Metric<QueueFigures>] = &[flag("queue_info", "What a queue is", one)];

fn one<T>(_: &T) -> Value {
    Value::Whole(1)
}
