//! Bindings as definitions carry them.

use super::error::{ImportError, not_made, refused};
use super::import::{Import, arguments, text};
use crate::json::from_table;
use courser_auth::Resource;
use courser_broker::admin::NewBinding;
use courser_codec::ShortString;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// What JSON says of the arguments of bindings, by vhost, source, destination, whether that is a queue, and routing key.
pub(super) type Bound =
    HashMap<(String, ShortString, ShortString, bool, ShortString), HashSet<String>>;

/// What a row says of a binding.
pub(super) fn binding(row: &Value) -> Result<NewBinding, ImportError> {
    let source = text(row, "source", "binding")?;
    let destination = text(row, "destination", "binding")?;
    let key = text(row, "routing_key", "binding")?;
    let refused = |why: &dyn std::fmt::Display| refused("binding to", destination, why);
    let to_queue = match text(row, "destination_type", "binding")? {
        "queue" => true,
        "exchange" => false,
        other => return Err(refused(&format_args!("'{other}' is no type of destination"))),
    };
    let short =
        |name: &str| ShortString::try_from(name).map_err(|_| refused(&"a name is too long"));
    Ok(NewBinding {
        source: short(source)?,
        destination: short(destination)?,
        to_queue,
        routing_key: short(key)?,
        arguments: arguments(row).map_err(|why| refused(&why))?,
    })
}

impl Import<'_> {
    pub(super) fn binding(&mut self, row: &Value) -> Result<(), ImportError> {
        let vhost = &*self.vhost_of(row, "binding")?.to_owned();
        self.known_vhost(vhost)?;
        let binding = binding(row)?;
        if binding.source.is_empty() {
            // Every queue has it.
            return Ok(());
        }
        let (source, destination) = (&binding.source, &binding.destination);
        let exchange = |name: &ShortString| self.admin.exchange(vhost, name.as_bytes()).map(drop);
        let ends = [
            exchange(source),
            match binding.to_queue {
                true => self.admin.queue(vhost, destination.as_bytes()).map(drop),
                false => exchange(destination),
            },
        ];
        // What can't be looked for is told by the attempt to bind.
        if ends.iter().any(|end| end.as_ref().is_err_and(|fault| fault.code == 404)) {
            let kind = if binding.to_queue { "queue" } else { "exchange" };
            let row = format!("'{source}' to {kind} '{destination}' in vhost '{vhost}'");
            self.skipped.without_end.push(row);
            return Ok(());
        }
        let name = destination.to_string();
        if !self.is_bound(vhost, &binding) {
            let bound = self.admin.bind(vhost, binding);
            bound.map_err(|fault| not_made("binding to", &name, &fault))?;
        }
        self.done.topology += 1;
        Ok(())
    }

    /// Whether there is a binding of which JSON says the same: it has no widths of numbers, and an export of one that a client has
    /// made would make another one beside it. From now on it counts as there.
    fn is_bound(&mut self, vhost: &str, binding: &NewBinding) -> bool {
        if binding.arguments.is_empty() {
            return false;
        }
        let NewBinding { source, destination, to_queue, routing_key, arguments } = binding;
        let (source, destination) = (source.clone(), destination.clone());
        let key = (vhost.to_owned(), source, destination, *to_queue, routing_key.clone());
        let there = self.bound.entry(key).or_insert_with_key(|(_, source, destination, ..)| {
            let name = destination.as_bytes();
            let resource = if *to_queue { Resource::Queue(name) } else { Resource::Exchange(name) };
            let (source, keys) = (source.as_bytes(), [routing_key.to_string()]);
            let there = self.admin.bindings_by_key(vhost, source, resource, &keys, &mut |_| true);
            let there = there.unwrap_or_default();
            there.iter().map(|binding| from_table(&binding.arguments).to_string()).collect()
        });
        !there.insert(from_table(arguments).to_string())
    }
}
