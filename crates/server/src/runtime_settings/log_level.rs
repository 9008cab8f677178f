//! What the process logs. It has one log, however many brokers are in it.

use super::Changeable;
use crate::config::{check_level, has_trace};
use courser_management::{NewLevel, SettingInEffect};
use parking_lot::Mutex;
use std::sync::OnceLock;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::{FilterFn, ParseError};
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Bytes of all that can be set.
const LEVEL_BYTES_MAX: usize = 1024;

static FILTER: OnceLock<Filter> = OnceLock::new();

struct Filter {
    handle: Handle<EnvFilter, Registry>,
    level: Mutex<Changeable<String>>,
}

/// A layer for the program that sets up `tracing`: it lets through what this level says, as the setting `log.level` has it, until the
/// HTTP API or a reload of any broker in this process changes that. The first one of a process counts. Whatever the level is, it
/// lets through nothing of the level `trace` but what the broker itself says: libraries write there what clients send.
///
/// # Errors
/// When the level can't be understood.
pub fn log_filter(level: &str) -> Result<impl Layer<Registry>, ParseError> {
    let (layer, handle) = reload::Layer::new(EnvFilter::try_new(level)?);
    let level = Mutex::new(Changeable::new(level.to_owned()));
    // One that is there already stays.
    let _ = FILTER.set(Filter { handle, level });
    // Behind the filter that is replaced, so that no level and no span of an operator's undoes it.
    Ok(layer.and_then(FilterFn::new(is_no_payload as fn(&Metadata<'_>) -> bool)))
}

fn is_no_payload(about: &Metadata<'_>) -> bool {
    *about.level() != Level::TRACE || has_trace(about.target())
}

fn filter() -> Result<&'static Filter, String> {
    FILTER
        .get()
        .ok_or_else(|| "the program that the broker runs in has a log of its own".to_owned())
}

/// What is logged.
pub(super) fn shown() -> Result<SettingInEffect, String> {
    Ok(filter()?.level.lock().shown(None))
}

/// Logs what the configuration says from now on.
pub(super) fn configure(configured: &str) {
    let Ok(filter) = filter() else { return };
    let mut level = filter.level.lock();
    let before = level.value.clone();
    if before == configured {
        *level = Changeable::new(configured.to_owned());
        return;
    }
    let tell =
        || tracing::info!(level = configured, before, "the log level is that of the configuration");
    match filter.log_from(configured, tell) {
        Ok(()) => *level = Changeable::new(configured.to_owned()),
        Err(error) => tracing::error!(error, "the log level stays as it is"),
    }
}

/// Changes what is logged.
pub(super) fn set(new: &NewLevel, by: &str, now_ms: u64) -> Result<SettingInEffect, String> {
    let filter = filter()?;
    let mut level = filter.level.lock();
    let wanted = wanted(&level.value, new)?;
    let before = level.value.clone();
    filter.log_from(&wanted, || {
        tracing::info!(by, level = wanted, before, "the log level was changed")
    })?;
    let before = level.set(wanted.clone(), by, now_ms);
    Ok(level.shown(Some(before)))
}

impl Filter {
    /// Tells it where the line is shown: before, unless only what is logged from now on has such lines.
    fn log_from(&self, level: &str, change: impl Fn()) -> Result<(), String> {
        let tell = || {
            change();
            if level.split(',').any(|directive| directive.trim().eq_ignore_ascii_case("trace")) {
                tracing::info!(
                    "libraries write from debug on: at trace they would write what clients send"
                );
            }
        };
        let filter = EnvFilter::try_new(level).map_err(|error| format!("'{level}': {error}"))?;
        let was_shown = tracing::enabled!(Level::INFO);
        if was_shown {
            tell();
        }
        self.handle.reload(filter).map_err(|error| error.to_string())?;
        if !was_shown {
            tell();
        }
        Ok(())
    }
}

/// What is to be logged where this was: all that is said, or that of one target besides the others.
fn wanted(now: &str, new: &NewLevel) -> Result<String, String> {
    let wanted = match &new.target {
        None => new.level.clone(),
        Some(target) => {
            check_target(target)?;
            let of_target = |directive: &&str| {
                directive.rsplit_once('=').is_some_and(|(known, _)| known.trim() == target)
            };
            let others = now.split(',').filter(|directive| !of_target(directive));
            let own = format!("{target}={}", new.level);
            others.chain([&*own]).collect::<Vec<_>>().join(",")
        }
    };
    check_level(&wanted).map_err(|why| format!("the log level {why}"))?;
    match wanted.len() {
        0..=LEVEL_BYTES_MAX => Ok(wanted),
        _ => Err(format!(
            "the level would be longer than {LEVEL_BYTES_MAX} bytes: set one for all targets first"
        )),
    }
}

fn check_target(target: &str) -> Result<(), String> {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match target.split("::").all(is_name) {
        true => Ok(()),
        false => Err(format!(
            "'{target}' is no target: each line of the log names its own, such as courser::cluster"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(now: &str, level: &str, target: Option<&str>) -> Result<String, String> {
        super::wanted(now, &NewLevel { level: level.into(), target: target.map(str::to_owned) })
    }

    #[test]
    fn a_level_for_a_target_leaves_the_others() {
        for (now, level, target, expected) in [
            ("info", "debug", None, "debug"),
            ("warn,a=debug", "info", None, "info"),
            ("info", "warn,courser=debug", None, "warn,courser=debug"),
            ("info", "debug", Some("courser::cluster"), "info,courser::cluster=debug"),
            (
                "info,courser::cluster=debug",
                "off",
                Some("courser::cluster"),
                "info,courser::cluster=off",
            ),
            (
                "info,courser=debug",
                "warn",
                Some("courser::cluster"),
                "info,courser=debug,courser::cluster=warn",
            ),
        ] {
            assert_eq!(wanted(now, level, target).as_deref(), Ok(expected), "{now}, {level}");
        }
    }

    #[test]
    fn what_is_no_level_and_no_target_is_refused() {
        for (level, target, expected) in [
            (
                "loud",
                None,
                "names the level 'loud'; there are off, error, warn, info, debug, trace",
            ),
            ("", None, "names the level ''"),
            ("debug", Some("courser=info"), "'courser=info' is no target"),
            ("debug", Some(""), "'' is no target"),
            ("debug", Some("a,b"), "'a,b' is no target"),
        ] {
            let why = wanted("info", level, target).expect_err("no level");
            assert!(why.contains(expected), "{why}");
        }
        let long = "x".repeat(LEVEL_BYTES_MAX);
        assert!(wanted("info", "debug", Some(&long)).is_err());
    }
}
