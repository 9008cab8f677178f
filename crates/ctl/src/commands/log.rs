//! The broker's log, and its certificates.

use crate::client::segment;
use crate::failure::{Failure, UNAVAILABLE};
use crate::format::rfc3339;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "log_tail",
        about: "Show the last lines of the broker's log",
        arguments: &[
            option("number", "Number of lines [default: 50]").short('N'),
            option("level", "Only lines of at least this level: error, warn, info, debug or trace"),
        ],
        examples: &["log_tail -N 20", "log_tail --number 20 --level warn"],
        intent: "Last lines of the broker's log ...",
        action: Action::Run(tail),
    },
    Spec {
        name: "certificates",
        about: "List the certificates in use and when they expire",
        arguments: &[],
        examples: &["certificates"],
        intent: "Certificates ...",
        action: Action::Run(certificates),
    },
    Spec {
        name: "check_certificate_expiration",
        about: "No certificate expires soon",
        arguments: &[
            option("within", "Number of units [default: 4]"),
            option("unit", "days, weeks, months or years [default: weeks]"),
        ],
        examples: &["check_certificate_expiration --within 2 --unit weeks"],
        intent: "Checking certificate expiration ...",
        action: Action::Run(expiration),
    },
];

fn tail(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let mut path = format!("/api/log?count={}", input.count("number")?.unwrap_or(50));
    if let Some(level) = input.find("level") {
        path = format!("{path}&level={}", segment(level));
    }
    let found = session.client.get(&path)?;
    let lines = found.as_array().map_or(&[][..], Vec::as_slice);
    let text = |line: &Value, member: &str| line[member].as_str().unwrap_or_default().to_owned();
    let shown = lines.iter().map(|line| {
        format!(
            "{} [{}] {}: {}",
            rfc3339(line["at_ms"].as_u64().unwrap_or_default()),
            text(line, "level"),
            text(line, "target"),
            text(line, "text")
        )
    });
    Ok(Output::Text(shown.collect::<Vec<_>>().join("\n")))
}

fn certificates(session: &mut Session, _: &Input) -> Result<Output, Failure> {
    let found = session.client.get("/api/certificates")?;
    let columns = ["path", "use", "subject", "issuer", "not_before_ms", "not_after_ms"];
    Ok(super::lists::rows(&found, &columns, |_| true))
}

fn expiration(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let (within, unit) =
        (input.find("within").unwrap_or("4"), input.find("unit").unwrap_or("weeks"));
    let path =
        format!("/api/health/checks/certificate-expiration/{}/{}", segment(within), segment(unit));
    let answer = session.client.call(Method::GET, &path, Bytes::new())?;
    if answer.status != 503 {
        crate::client::good(answer)?;
        return Ok(Output::Text(format!("No certificate expires within {within} {unit}.")));
    }
    let found = answer.json()?;
    let expired = found["expired"].as_array().map_or(&[][..], Vec::as_slice);
    let is_over = |one: &&Value| one["expires_in_s"].as_i64().is_some_and(|left| left <= 0);
    let (over, soon): (Vec<_>, Vec<_>) = expired.iter().partition(is_over);
    let named = |what: String, which: &[&Value]| {
        let paths: Vec<&str> = which.iter().filter_map(|one| one["path"].as_str()).collect();
        (!paths.is_empty()).then(|| format!("{what}: {}", paths.join(", ")))
    };
    let said = [
        named("Certificates have expired".to_owned(), &over),
        named(format!("Certificates expire within {within} {unit}"), &soon),
    ];
    let text = said.into_iter().flatten().collect::<Vec<_>>().join("\n");
    Err(Failure::error(UNAVAILABLE, text))
}
