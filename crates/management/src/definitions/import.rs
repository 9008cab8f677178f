//! Reading definitions: what is in the file is made or overwritten, what is not stays. Queues and
//! exchanges that are there stay as they are.
//!
//! It is done in an order in which everything is there that the next thing needs. It is no
//! transaction: what comes before a mistake stays.

use super::around::default_type;
use super::bindings::Bound;
use super::check::{check, unknown_keys};
use super::compare::named;
use super::error::{ImportError, not_made, refused};
use super::foreign::{leave_out_parameters, strip};
use super::policies::NamedPolicy;
use super::skipped::{Rows, Skipped};
use crate::api::vhost_limits::{self, NamedLimits};
use crate::call::Call;
use crate::groups::count;
use crate::json::to_table;
use crate::refusal::Refusal;
use courser_auth::{Hashing, PasswordHash};
use courser_broker::admin::{
    Admin, ExchangeKind, ExchangeSettings, NewQueue, Parameter, PolicyKind, VhostSettings,
    VhostView,
};
use courser_codec::FieldTable;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

#[cfg(test)]
mod tests;

/// How much was in definitions that have been made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Users.
    pub users: usize,
    /// Vhosts.
    pub vhosts: usize,
    /// Exchanges, queues and bindings.
    pub topology: usize,
    /// Rows whose names are reserved, bindings whose ends are not there, parameters whose components are not,
    /// policies whose keys are all RabbitMQ's, policies and permissions with patterns that are refused now and that an
    /// earlier version has taken, and what is in `refused`.
    pub skipped: usize,
    /// Rows that are in order, and that what there is refuses.
    pub refused: Rows,
    /// What was left out and why, a line for each reason, with the first 20 of each. The log has them too.
    pub warnings: Vec<String>,
}

/// Milliseconds after which a token is looked at again, or another program is asked, whether who asks still may.
const ASK_AGAIN_MS: u64 = 1000;

/// What is imported into.
pub(super) struct Import<'a> {
    pub(super) admin: &'a Admin,
    /// For definitions of one vhost, that one.
    vhost: Option<&'a str>,
    /// The request, if one asks for the import.
    pub(super) call: Option<&'a Call>,
    /// When it was last looked whether who asks still may, where that takes long.
    asked_ms: u64,
    /// How many groups vhosts can be in.
    pub(super) groups: u16,
    /// How passwords are hashed that stand in the file.
    hashing: Hashing,
    /// The policies that have been set all at the same moment.
    pub(super) set_at_once: BTreeSet<NamedPolicy>,
    /// The bindings that are there, as far as it was looked for some.
    pub(super) bound: Bound,
    pub(super) done: Imported,
    /// What was skipped.
    pub(super) skipped: Skipped,
}

/// Makes what a file describes, that of a whole broker with so many groups. Passwords in it are hashed that way. Rows that some
/// broker could make, and that this one refuses because of what it has, are left out.
///
/// # Errors
/// The first row that no broker could make, or that can't be kept. What came before it stays.
pub fn import(
    admin: &Admin,
    text: &[u8],
    hashing: Hashing,
    groups: u16,
) -> Result<Imported, ImportError> {
    Import::new(admin, None, None, groups, hashing).of(text)
}

/// The same, for who asks for it.
pub(crate) fn import_into(
    call: &Call,
    text: &[u8],
    vhost: Option<&str>,
) -> Result<Imported, ImportError> {
    let (admin, hashing) = (call.admin(), call.api.settings.accounts.hashing());
    Import::new(admin, vhost, Some(call), count(call), hashing).of(text)
}

/// The rows of a list; a list that is not there has none.
pub(super) fn rows<'d>(
    document: &'d Map<String, Value>,
    list: &str,
) -> Result<Vec<&'d Value>, ImportError> {
    match document.get(list) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(rows)) => Ok(rows.iter().collect()),
        Some(_) => Err(ImportError::new(format!("{list} is no list"))),
    }
}

pub(super) fn typed<T: DeserializeOwned>(list: &str, row: &Value) -> Result<T, ImportError> {
    serde_json::from_value(row.clone())
        .map_err(|error| ImportError::new(format!("{list}: {error}")))
}

impl<'a> Import<'a> {
    fn new(
        admin: &'a Admin,
        vhost: Option<&'a str>,
        call: Option<&'a Call>,
        groups: u16,
        hashing: Hashing,
    ) -> Self {
        Import {
            admin,
            vhost,
            call,
            asked_ms: call.map_or(0, |call| call.api.now_ms()),
            groups,
            hashing,
            set_at_once: BTreeSet::new(),
            bound: Bound::default(),
            done: Imported::default(),
            skipped: Skipped::default(),
        }
    }

    fn of(mut self, text: &[u8]) -> Result<Imported, ImportError> {
        let Ok(Value::Object(mut document)) = serde_json::from_slice(text) else {
            return Err(ImportError::no_json());
        };
        for key in unknown_keys(&document) {
            self.skipped.unknown.push(key.to_owned());
        }
        strip(&mut document, |policy| self.skipped.strip(policy));
        leave_out_parameters(&mut document, |component, row| {
            self.skipped.parameter(component, row)
        });
        let made = self.all(&document);
        self.skipped.tell();
        (self.done.skipped, self.done.warnings) = (self.skipped.rows(), self.skipped.warnings());
        self.done.refused = self.skipped.refused;
        made.map(|()| self.done)
    }

    fn all(&mut self, document: &Map<String, Value>) -> Result<(), ImportError> {
        if self.vhost.is_none() {
            self.each(document, "users", Self::user)?;
            self.each(document, "vhosts", Self::vhost)?;
            // A permission without the topic permissions that restrict it permits every routing key; these alone permit nothing.
            self.each(document, "topic_permissions", Self::topic_permission)?;
            self.each(document, "permissions", Self::permission)?;
        }
        self.each(document, "exchanges", Self::exchange)?;
        if self.vhost.is_none() {
            self.each(document, "global_parameters", Self::global_parameter)?;
        }
        self.set_policies_at_once(document)?;
        self.each(document, "policies", Self::policy)?;
        self.each(document, "parameters", Self::parameter)?;
        self.each(document, "queues", Self::queue)?;
        self.each(document, "bindings", Self::binding)
    }

    fn each(
        &mut self,
        document: &Map<String, Value>,
        list: &str,
        mut make: impl FnMut(&mut Self, &Value) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        rows(document, list)?.into_iter().try_for_each(|row| {
            self.check_asker()?;
            match make(self, row) {
                Err(why) if self.leaves_out(list, row, &why) => {
                    self.skipped.refuse(row, &why);
                    Ok(())
                }
                made => made,
            }
        })
    }

    /// Whether a row is passed over that was not made: at a start, if only what there is refuses it. Clients may have made that
    /// since the file was imported the last time, and none is to keep the broker from serving the others.
    fn leaves_out(&self, list: &str, row: &Value, why: &ImportError) -> bool {
        self.call.is_none() && why.is_of_state() && check(list, row, None).is_ok()
    }

    /// A file may be long, and the right to import it taken meanwhile.
    pub(super) fn check_asker(&mut self) -> Result<(), ImportError> {
        self.admin.check_author().map_err(|error| ImportError::new(error.to_string()))?;
        let Some(call) = self.call else { return Ok(()) };
        let now_ms = call.api.now_ms();
        if now_ms.saturating_sub(self.asked_ms) < ASK_AGAIN_MS {
            return Ok(());
        }
        self.asked_ms = now_ms;
        call.check_asker().map_err(|refused| ImportError::new(reason(&refused)))
    }

    /// A name that begins with `amq.` is the broker's own.
    fn skip(&mut self, row: String) -> Result<(), ImportError> {
        self.skipped.reserved.push(row);
        Ok(())
    }

    fn user(&mut self, row: &Value) -> Result<(), ImportError> {
        let said = super::users::user(row, |password| PasswordHash::new(password, self.hashing))?;
        let put = self.admin.put_user(&said.name, &[], |user| {
            said.apply(user);
            Ok(())
        });
        put.map_err(|error| not_made("user", &said.name, &error))?;
        self.done.users += 1;
        Ok(())
    }

    pub(super) fn known_vhost(&self, vhost: &str) -> Result<VhostView, ImportError> {
        match self.admin.vhost(vhost) {
            Some(view) => Ok(view),
            None => {
                let why = format!(
                    "Please create virtual host \"{vhost}\" prior to importing definitions."
                );
                Err(ImportError::new(why).of_state())
            }
        }
    }

    /// The vhost that a row is for.
    pub(super) fn vhost_of<'r>(
        &'r self,
        row: &'r Value,
        what: &str,
    ) -> Result<&'r str, ImportError> {
        match self.vhost {
            Some(vhost) => Ok(vhost),
            None => text(row, "vhost", what),
        }
    }

    fn exchange(&mut self, row: &Value) -> Result<(), ImportError> {
        let name = text(row, "name", "exchange")?;
        let vhost = self.vhost_of(row, "exchange")?;
        self.known_vhost(vhost)?;
        if name.is_empty() || name.starts_with("amq.") {
            let row = format!("exchange '{name}' in vhost '{vhost}'");
            return self.skip(row);
        }
        if self.admin.exchange(vhost, name.as_bytes()).is_err() {
            let settings = exchange_of(name, row)?;
            let declared = self.admin.declare_exchange(vhost, name, &settings);
            declared.map_err(|fault| not_made("exchange", name, &fault))?;
        }
        self.done.topology += 1;
        Ok(())
    }

    fn queue(&mut self, row: &Value) -> Result<(), ImportError> {
        let name = text(row, "name", "queue")?;
        let vhost = self.vhost_of(row, "queue")?;
        let view = self.known_vhost(vhost)?;
        if name.starts_with("amq.") {
            let row = format!("queue '{name}' in vhost '{vhost}'");
            return self.skip(row);
        }
        if self.admin.queue(vhost, name.as_bytes()).is_err() {
            let queue = queue_of(name, row, default_type(view.default_queue_type.as_deref()))?;
            let declared = self.admin.declare_queue(vhost, name, queue);
            declared.map_err(|fault| not_made("queue", name, &fault))?;
        }
        self.done.topology += 1;
        Ok(())
    }

    fn parameter(&mut self, row: &Value) -> Result<(), ImportError> {
        let (component, name) =
            (text(row, "component", "parameter")?, text(row, "name", "parameter")?);
        let vhost = self.vhost_of(row, "parameter")?;
        let value = value(row, "parameter", name)?;
        match component {
            "operator_policy" => {
                let vhost = vhost.to_owned();
                self.set_policy(&vhost, name, value, PolicyKind::Operator)
            }
            vhost_limits::COMPONENT => {
                self.known_vhost(vhost)?;
                // The parameter is all of them, unlike what the row of a vhost says.
                let limits = NamedLimits::read(value);
                let limits = limits.map_err(|why| refused("vhost", vhost, why))?.only();
                let change = |settings: &mut VhostSettings| settings.limits = limits;
                let set = self.admin.change_known_vhost(vhost, change);
                set.map_err(|fault| not_made("vhost", vhost, &fault))
            }
            _ => {
                self.known_vhost(vhost)?;
                let checked = crate::api::check_parameter(component, name, value);
                checked.map_err(|refusal| refused("parameter", name, reason(&refusal)))?;
                let parameter = Parameter {
                    vhost: vhost.to_owned(),
                    component: component.to_owned(),
                    name: name.to_owned(),
                    value: value.to_string(),
                };
                let set = self.admin.set_parameter(&parameter);
                set.map_err(|fault| not_made("parameter", name, &fault))?;
                self.skipped.kept(component, row);
                Ok(())
            }
        }
    }

    fn global_parameter(&mut self, row: &Value) -> Result<(), ImportError> {
        let name = text(row, "name", "global parameter")?;
        let value = value(row, "global parameter", name)?;
        let set = self.admin.set_global_parameter(name, &value.to_string());
        set.map(drop).map_err(|fault| not_made("global parameter", name, &fault))
    }
}

/// What a row says of an exchange.
pub(super) fn exchange_of(name: &str, row: &Value) -> Result<ExchangeSettings, ImportError> {
    let kind = text(row, "type", "exchange")?;
    let unknown = || refused("exchange", name, format_args!("unknown exchange type '{kind}'"));
    Ok(ExchangeSettings {
        kind: ExchangeKind::parse(kind.as_bytes()).ok_or_else(unknown)?,
        durable: flag(row, "durable", "exchange", name)?,
        auto_delete: flag(row, "auto_delete", "exchange", name)?,
        internal: flag(row, "internal", "exchange", name)?,
        arguments: arguments(row).map_err(|why| refused("exchange", name, why))?,
    })
}

/// What a row says of a queue, whose type may stand beside its arguments, and is [`default_type`] if nothing says it.
pub(super) fn queue_of(
    name: &str,
    row: &Value,
    default_type: Option<&str>,
) -> Result<NewQueue, ImportError> {
    let mut arguments = arguments(row).map_err(|why| refused("queue", name, why))?;
    let durable = flag(row, "durable", "queue", name)?;
    let auto_delete = flag(row, "auto_delete", "queue", name)?;
    let default_type = default_type.filter(|_| durable && !auto_delete);
    let kind = row.get("type").and_then(Value::as_str).or(default_type);
    // Classic queues need not say so, unless they would be others without that.
    let kind = kind.filter(|kind| *kind != "classic" || default_type.is_some());
    if let Some(kind) = kind.filter(|_| arguments.get("x-queue-type").is_none()) {
        arguments = arguments.with("x-queue-type", kind);
    }
    Ok(NewQueue { durable, auto_delete, arguments })
}

pub(super) fn text<'r>(row: &'r Value, member: &str, what: &str) -> Result<&'r str, ImportError> {
    let found = row.get(member).and_then(Value::as_str);
    let why = || format!("a {what} has no text '{member}': {}", named(row));
    found.ok_or_else(|| ImportError::new(why()))
}

pub(super) fn value<'r>(row: &'r Value, what: &str, name: &str) -> Result<&'r Value, ImportError> {
    row.get("value").ok_or_else(|| refused(what, name, "it has no value"))
}

/// A flag of the row of something, also as text; false without it.
pub(super) fn flag(row: &Value, member: &str, what: &str, name: &str) -> Result<bool, ImportError> {
    match row.get(member) {
        None | Some(Value::Null | Value::Bool(false)) => Ok(false),
        Some(Value::Bool(true)) => Ok(true),
        Some(Value::String(text)) if text == "true" => Ok(true),
        Some(Value::String(text)) if text == "false" => Ok(false),
        Some(_) => Err(refused(what, name, format_args!("{member} is either true or false"))),
    }
}

pub(super) fn arguments(row: &Value) -> Result<FieldTable, &'static str> {
    match row.get("arguments") {
        None | Some(Value::Null) => Ok(FieldTable::new()),
        Some(value) => to_table(value).ok_or("arguments is no object that a table can hold"),
    }
}

pub(super) fn reason(refusal: &Refusal) -> String {
    let reason = refusal.body.as_ref().map(|(_, reason)| reason);
    reason.map_or_else(String::new, |reason| match reason {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}
