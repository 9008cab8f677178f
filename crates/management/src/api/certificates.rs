//! The certificates that the broker shows and those that it trusts, whether they expire, and what TLS connections can be like.

use super::diagnosis::Finding;
use super::get;
use crate::call::{Call, Outcome};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes::{Needs, Route};
use crate::settings::{Certificate, ListenerFacts};
use hyper::StatusCode;
use serde_json::{Value, json};

pub(crate) const ROUTES: &[Route] = &[
    get(
        "/api/certificates",
        Needs::Monitoring,
        certificates,
        "The certificates that the broker shows and those that it trusts, with where they are used.",
    ),
    get(
        "/api/tls",
        Needs::Monitoring,
        tls,
        "The versions of TLS and the cipher suites that there are for clients, and which of them the settings allow.",
    ),
    get(
        "/api/health/checks/certificate-expiration/{within}/{unit}",
        Needs::Login,
        expiration,
        "No certificate expires within a number of days, weeks, months or years.",
    ),
];

/// Certificates that expire sooner than this are worth a word.
const EXPIRES_SOON_S: i64 = 30 * 24 * 3600;

/// Certificates in use that have expired, or soon will.
pub(super) fn findings(call: &Call, findings: &mut Vec<Finding>) {
    let now_s = i64::try_from(call.api.now_ms() / 1000).unwrap_or(i64::MAX);
    let (mut expired, mut expiring) = (Vec::new(), Vec::new());
    for certificate in (call.api.settings.certificates)() {
        let left_s = certificate.not_after_s.saturating_sub(now_s);
        let shown = format!("{} ({})", certificate.path, certificate.subject);
        let object = json!({ "certificate": certificate.path });
        if left_s <= 0 {
            let text =
                format!("The certificate in {shown} has expired: peers that check it refuse it");
            let ended_ms = u64::try_from(certificate.not_after_s).unwrap_or(0) * 1000;
            let finding = Finding::new("critical", "certificate_expired", text);
            expired.push(finding.since(Some(ended_ms)).about(object));
        } else if left_s < EXPIRES_SOON_S {
            let hours = left_s / 3600;
            let left =
                if hours < 48 { format!("{hours} hours") } else { format!("{} days", hours / 24) };
            let text = format!("The certificate in {shown} expires in {left}");
            expiring.push(Finding::new("warning", "certificate_expires", text).about(object));
        }
    }
    findings.extend(expired.into_iter().chain(expiring));
}

fn shown(call: &Call, certificate: &Certificate) -> Value {
    let expires_in_s = certificate.not_after_s - (call.api.now_ms() / 1000) as i64;
    json!({
        "path": certificate.path,
        "use": certificate.purpose,
        "hosts": certificate.hosts,
        "subject": certificate.subject,
        "alternative_names": certificate.alternative_names,
        "issuer": certificate.issuer,
        "serial": certificate.serial,
        "not_before_ms": certificate.not_before_s * 1000,
        "not_after_ms": certificate.not_after_s * 1000,
        "expires_in_s": expires_in_s,
        "listeners": listeners(call),
    })
}

/// Where they are used: everywhere where there is TLS.
fn listeners(call: &Call) -> Vec<Value> {
    let all = call.api.settings.node.listeners.iter().filter(|one| one.is_tls());
    let shown = all.map(|ListenerFacts { protocol, address }| {
        json!({ "protocol": protocol, "address": address.to_string() })
    });
    shown.collect()
}

fn certificates(call: &Call) -> Outcome {
    let all = (call.api.settings.certificates)();
    let all: Vec<Value> = all.iter().map(|one| shown(call, one)).collect();
    Ok(Reply::json(&all))
}

fn tls(call: &Call) -> Outcome {
    Ok(Reply::json(&call.api.settings.node.tls))
}

fn expiration(call: &Call) -> Outcome {
    let days: u64 = match call.text("unit")? {
        "days" => 1,
        "weeks" => 7,
        "months" => 30,
        "years" => 365,
        _ => {
            let reason = "Time unit not recognised. Supported units: days, weeks, months, years.";
            return Err(Refusal::bad_request(reason));
        }
    };
    let within = call.text("within")?.parse::<u32>();
    let within = within.map_err(|_| Refusal::bad_request("Invalid expiration value."))?;
    let within_s = u64::from(within).saturating_mul(days).saturating_mul(86_400);
    let until_s = (call.api.now_ms() / 1000).saturating_add(within_s);
    let all = (call.api.settings.certificates)();
    let expires = |one: &&Certificate| u64::try_from(one.not_after_s).unwrap_or(0) <= until_s;
    let expired: Vec<Value> =
        all.iter().filter(expires).map(|one| about_expired(call, one)).collect();
    if expired.is_empty() {
        return Ok(Reply::json(&json!({ "status": "ok" })));
    }
    let body = json!({ "status": "failed", "reason": "Certificates expiring", "expired": expired });
    Ok(Reply::json(&body).with_status(StatusCode::SERVICE_UNAVAILABLE))
}

fn about_expired(call: &Call, certificate: &Certificate) -> Value {
    let mut about = shown(call, certificate);
    about["node"] = call.api.settings.node.name.as_str().into();
    about
}
