//! Settings of the log.

use super::ConfigError;
use serde::{Deserialize, Serialize};

/// What is written to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// error, warn, info, debug or trace; also per module, as `info,courser=debug`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Log { level: "info".into() }
    }
}

impl Log {
    /// Refuses a level that there is not: the log's filter would take it for the name of a module,
    /// and say nothing any more.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        check_level(&self.level).map_err(|why| ConfigError::invalid("log.level", &why))
    }
}

/// Whether there are the levels that this names, or why not.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    for directive in text.split(',') {
        let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level).trim();
        if !levels.iter().any(|known| level.eq_ignore_ascii_case(known)) {
            return Err(format!("names the level '{level}'; there are {}", levels.join(", ")));
        }
    }
    Ok(())
}
