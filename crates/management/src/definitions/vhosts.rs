//! Vhosts as definitions carry them.

use super::error::{ImportError, not_made, refused};
use super::import::{Import, flag, reason, text};
use crate::api::vhost_limits::NamedLimits;
use crate::api::{Said, change_placed};
use crate::groups;
use courser_broker::admin::{VhostSettings, check_vhost};
use serde_json::Value;

/// The group that a row wants, which is one of so many. Where there is one, all vhosts are in it, also those of an export from where
/// there are several.
pub(super) fn wanted_group(row: &Value, groups: u16) -> Result<Option<u16>, ImportError> {
    if groups <= 1 {
        return Ok(None);
    }
    let name = text(row, "name", "vhost")?;
    let members = row.as_object().cloned().unwrap_or_default();
    let because = |refusal| refused("vhost", name, reason(&refusal));
    match groups::wanted(&members).map_err(because)? {
        Some(none) if none >= groups => Err(because(groups::no_group(none)).of_state()),
        wanted => Ok(wanted),
    }
}

/// What a row says of a vhost, and its limits.
fn said(name: &str, row: &Value) -> Result<(Said, NamedLimits), ImportError> {
    let limits = NamedLimits::read(row.get("limits").unwrap_or(&Value::Null));
    let limits = limits.map_err(|why| refused("vhost", name, why))?;
    // Older files have it beside the name.
    let said = row.get("metadata").unwrap_or(row).as_object().cloned().unwrap_or_default();
    let said = Said::read(&said).map_err(|refusal| refused("vhost", name, reason(&refusal)))?;
    Ok((said, limits))
}

/// Refuses a row of which no vhost can be made.
pub(super) fn check(row: &Value) -> Result<(), ImportError> {
    let name = text(row, "name", "vhost")?;
    let (said, limits) = said(name, row)?;
    let mut settings = VhostSettings::default();
    said.apply(&mut settings);
    limits.apply(&mut settings.limits);
    let checked = check_vhost(name, &settings);
    checked.map_err(|fault| refused("vhost", name, fault.explanation))
}

impl Import<'_> {
    /// A vhost that is there stays in its group: only a move, which takes its messages along, changes that.
    pub(super) fn vhost(&mut self, row: &Value) -> Result<(), ImportError> {
        let name = text(row, "name", "vhost")?;
        let wanted = match self.admin.vhost(name) {
            None => wanted_group(row, self.groups)?,
            Some(_) => None,
        };
        let (said, limits) = said(name, row)?;
        let tracing =
            row.get("tracing").map(|_| flag(row, "tracing", "vhost", name)).transpose()?;
        let change = |settings: &mut VhostSettings| {
            said.apply(settings);
            limits.apply(&mut settings.limits);
            settings.tracing = tracing.unwrap_or(settings.tracing);
            settings.group = wanted.unwrap_or(settings.group);
        };
        match self.call {
            Some(call) => change_placed(call, name, wanted, None, change)
                .map_err(|refusal| refused("vhost", name, reason(&refusal)))?,
            None => self
                .admin
                .change_vhost(name, change)
                .map_err(|fault| not_made("vhost", name, &fault))?,
        };
        self.done.vhosts += 1;
        Ok(())
    }
}
