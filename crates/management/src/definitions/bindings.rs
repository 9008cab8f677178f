//! Bindings as definitions carry them.

use super::error::{ImportError, not_made, refused};
use super::import::{Import, arguments, text};
use courser_broker::admin::NewBinding;
use courser_codec::ShortString;
use serde_json::Value;

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
        let vhost = self.vhost_of(row, "binding")?;
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
        let bound = self.admin.bind(vhost, binding);
        bound.map_err(|fault| not_made("binding to", &name, &fault))?;
        self.done.topology += 1;
        Ok(())
    }
}
