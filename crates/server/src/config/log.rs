//! Settings of the log.

use super::ConfigError;
use serde::{Deserialize, Serialize};

/// What is written to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// error, warn, info, debug or trace; also per module, as `info,courser=debug`. Libraries write at most at `debug`.
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

/// Whether there are the levels that this names, and the targets have them; or why not.
pub(crate) fn check_level(text: &str) -> Result<(), String> {
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    for directive in text.split(',') {
        let (target, level) = match directive.rsplit_once('=') {
            Some((target, level)) => (Some(target.trim()), level.trim()),
            None => (None, directive.trim()),
        };
        if !levels.iter().any(|known| level.eq_ignore_ascii_case(known)) {
            return Err(format!("names the level '{level}'; there are {}", levels.join(", ")));
        }
        if let Some(target) = target.filter(|target| !has_trace(target))
            && level.eq_ignore_ascii_case("trace")
        {
            return Err(format!(
                "names the level trace for '{target}', which is none of the broker's own targets: libraries write what clients \
                 send there, passwords included. Use debug"
            ));
        }
    }
    Ok(())
}

/// Whether lines of a target are written at the level trace: those of the broker itself. Libraries write there what passes through
/// them, such as frames with passwords and bodies.
pub(crate) fn has_trace(target: &str) -> bool {
    target.starts_with("courser")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_targets_of_the_broker_have_the_level_trace() {
        for good in
            ["trace", "info,courser=trace", "warn, courser_cluster::member = TRACE,mio=debug"]
        {
            assert_eq!(check_level(good), Ok(()), "{good}");
        }
        for bad in
            ["tungstenite=trace", "trace,hyper_util::client=Trace", "info,[span]=trace", "=trace"]
        {
            let why = check_level(bad).expect_err(bad);
            assert!(why.contains("none of the broker's own targets"), "{why}");
        }
    }
}
