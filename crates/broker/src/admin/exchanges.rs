//! Exchanges as an operator sees them.

use super::Admin;
use super::page::View;
use crate::counts::ExchangeCounts;
use crate::exchange::{Exchange, Overdue};
use crate::monitor::Named;
use crate::vhost::Vhost;
use courser_codec::{FieldTable, ShortString};
use std::sync::Arc;

/// An exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeView {
    /// The vhost it is in.
    pub vhost: String,
    /// Its name; empty for the default exchange.
    pub name: ShortString,
    /// Its type, as `exchange.declare` names it.
    pub kind: &'static str,
    /// Survives a restart of the broker.
    pub durable: bool,
    /// Goes with its last binding.
    pub auto_delete: bool,
    /// Takes messages from other exchanges only.
    pub internal: bool,
    /// Every vhost has it, and it can't be deleted.
    pub predefined: bool,
    /// The arguments as declared.
    pub arguments: FieldTable,
    /// The name of the policy that counts for it.
    pub policy: Option<String>,
    /// Where messages go that find no destination here.
    pub alternate_exchange: Option<ShortString>,
    /// Bindings that it is the source of; the default exchange has none of its own.
    pub bindings: usize,
    /// How many messages have passed through it.
    pub counts: ExchangeCounts,
}

/// An exchange at which messages stay whose delay is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverdueView {
    /// The vhost it is in.
    pub vhost: String,
    /// Its name.
    pub exchange: ShortString,
    /// Since when they stay, and why.
    pub overdue: Overdue,
}

impl Admin {
    /// Exchanges at which messages stay whose delay is over, `most` at most, of the vhosts for which `is_shown` holds.
    pub fn overdue(&self, most: usize, is_shown: &dyn Fn(&str) -> bool) -> Vec<OverdueView> {
        let vhosts = self.chosen_vhosts(None).unwrap_or_default().into_iter();
        let found = vhosts.filter(|vhost| is_shown(&vhost.name)).flat_map(|vhost| {
            let exchanges = vhost.ordered_exchanges();
            let overdue = exchanges.starting_at(0).filter_map(|exchange| {
                let (vhost, overdue) = (vhost.name.clone(), exchange.overdue()?);
                Some(OverdueView { vhost, exchange: exchange.name.clone(), overdue })
            });
            overdue.collect::<Vec<_>>()
        });
        found.take(most).collect()
    }
}

impl Named for Exchange {
    fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }
}

impl View for ExchangeView {
    type Item = Exchange;
    type Group = Arc<Vhost>;

    fn view(vhost: &Arc<Vhost>, exchange: &Arc<Exchange>) -> Self {
        let settings = &exchange.settings;
        ExchangeView {
            vhost: vhost.name.clone(),
            name: exchange.name.clone(),
            kind: settings.kind.name(),
            durable: settings.durable,
            auto_delete: settings.auto_delete,
            internal: settings.internal,
            predefined: crate::vhost::is_predefined(&exchange.name),
            arguments: settings.arguments.clone(),
            policy: exchange.policy().map(|policy| policy.policy.name.clone()),
            alternate_exchange: exchange.alternate().map(|name| ShortString::clone(&name)),
            bindings: exchange.binding_count(),
            counts: exchange.counts.read(),
        }
    }
}
