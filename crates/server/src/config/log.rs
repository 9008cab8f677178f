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
        let levels = ["off", "error", "warn", "info", "debug", "trace"];
        for directive in self.level.split(',') {
            let level = directive.rsplit_once('=').map_or(directive, |(_, level)| level).trim();
            if !levels.iter().any(|known| level.eq_ignore_ascii_case(known)) {
                let why = format!("names the level '{level}'; there are {}", levels.join(", "));
                return Err(ConfigError::invalid("log.level", &why));
            }
        }
        Ok(())
    }
}
