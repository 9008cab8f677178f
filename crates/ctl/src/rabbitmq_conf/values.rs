//! What values are here: sizes, times, addresses, and settings that are made of several keys.

use super::lines::{Line, value, values};
use super::logins::mechanisms;
use super::{Fate, set};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};

/// A value here; nothing where it is what would be anyway.
pub(crate) type Read = Result<Option<Value>, String>;

pub(super) fn number(text: &str) -> Read {
    let read = text.parse::<u64>();
    read.map(|number| Some(number.into())).map_err(|_| format!("'{text}' is not a whole number"))
}

/// A number, or `infinity`.
pub(super) fn limit(text: &str) -> Read {
    if text == "infinity" { Ok(None) } else { number(text) }
}

/// Milliseconds as seconds, rounded up.
pub(super) fn whole_seconds(text: &str) -> Read {
    let read = text.parse::<u64>();
    read.map(|milliseconds| Some(milliseconds.div_ceil(1000).into()))
        .map_err(|_| format!("'{text}' is not a number of milliseconds"))
}

pub(super) fn http_method(text: &str) -> Read {
    match text {
        "get" | "post" => Ok(Some(text.into())),
        other => Err(format!("'{other}' is neither get nor post")),
    }
}

pub(super) fn text(text: &str) -> Read {
    Ok(Some(text.into()))
}

/// A number of bytes, with a unit or without.
pub(crate) fn size(text: &str) -> Read {
    let lower = text.to_lowercase();
    let digits = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor: u64 = match lower[digits.len()..].trim() {
        "" | "b" => 1,
        "k" | "kb" => 1000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" | "ki" => 1 << 10,
        "mib" | "mi" => 1 << 20,
        "gib" | "gi" => 1 << 30,
        "tb" | "t" => 1_000_000_000_000,
        _ => return Err(format!("'{text}' is not a size such as 2GB")),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .map(|bytes| Some(bytes.into()))
        .ok_or_else(|| format!("'{text}' is not a size such as 2GB"))
}

pub(crate) fn level(text: &str) -> Read {
    match text {
        "debug" | "info" | "error" => Ok(Some(text.into())),
        "notice" => Ok(Some("info".into())),
        "warning" => Ok(Some("warn".into())),
        "critical" | "alert" | "emergency" => Ok(Some("error".into())),
        "none" => Ok(Some("off".into())),
        other => Err(format!("unknown level '{other}'")),
    }
}

/// Which name of a certificate is the user's.
pub(super) fn login_from(text: &str) -> Read {
    match text {
        "distinguished_name" => Ok(None),
        "common_name" => Ok(Some("common_name".into())),
        "subject_alternative_name" | "subject_alt_name" => Ok(Some("san_dns".into())),
        other => Err(format!("unknown value '{other}'")),
    }
}

/// An address as it is listened on: a port alone means all addresses. One of IPv6 needs no brackets: the port is behind
/// the last colon.
fn address(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("0.0.0.0", text));
    let host = match host {
        "localhost" => "127.0.0.1",
        host => host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host),
    };
    match (host.parse::<IpAddr>(), port.parse()) {
        (Ok(host), Ok(port)) => Ok(SocketAddr::new(host, port).to_string()),
        _ => Err(format!("'{text}' is not an address and port")),
    }
}

pub(super) fn push(settings: &mut Value, path: &str, item: Value) {
    let (section, name) = path.split_once('.').unwrap_or(("", path));
    let place = if section.is_empty() { &mut settings[name] } else { &mut settings[section][name] };
    match place {
        Value::Array(list) => list.push(item),
        other => *other = json!([item]),
    }
}

fn listener(path: &'static str, text: &str, settings: &mut Value) -> Fate {
    if text == "none" {
        set(settings, path, json!([]));
        return Fate::Taken(path.to_owned());
    }
    match address(text) {
        Ok(address) => {
            push(settings, path, address.into());
            Fate::Taken(path.to_owned())
        }
        Err(why) => Fate::Wrong(why),
    }
}

pub(super) fn tcp(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    listener("listen", text, settings)
}

pub(super) fn ssl(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    listener("tls.listen", text, settings)
}

/// Port and address are two keys there.
fn http(kind: &str, path: &'static str, usual: &str, lines: &[Line], settings: &mut Value) -> Fate {
    let port = value(lines, &format!("management.{kind}.port")).unwrap_or(usual);
    let ip = value(lines, &format!("management.{kind}.ip")).unwrap_or("0.0.0.0");
    match address(&format!("{ip}:{port}")) {
        Ok(address) => {
            set(settings, path, json!([address]));
            Fate::Taken(path.to_owned())
        }
        Err(why) => Fate::Wrong(why),
    }
}

pub(super) fn management(_: &str, _: &str, lines: &[Line], settings: &mut Value) -> Fate {
    http("tcp", "management.listen", "15672", lines, settings)
}

pub(super) fn management_tls(_: &str, _: &str, lines: &[Line], settings: &mut Value) -> Fate {
    http("ssl", "management.tls_listen", "15671", lines, settings)
}

/// Clients are asked for certificates if they are checked, and have to have one if that is said, too.
pub(super) fn verify(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if text != "verify_peer" {
        return Fate::NotNeeded("by default, clients are not asked for certificates".to_owned());
    }
    let is_required = value(lines, "ssl_options.fail_if_no_peer_cert") == Some("true");
    let asked = if is_required { "required" } else { "optional" };
    set(settings, "tls.client_certificates", asked.into());
    if mechanisms(lines).any(|one| one == "EXTERNAL") {
        return Fate::Taken("tls.client_certificates".to_owned());
    }
    Fate::Taken(
        "tls.client_certificates (a client with a certificate may then log in as the user of its name: EXTERNAL)"
            .to_owned(),
    )
}

pub(super) fn peer_cert(_: &str, _: &str, lines: &[Line], _: &mut Value) -> Fate {
    match value(lines, "ssl_options.verify") {
        Some("verify_peer") => Fate::Taken("tls.client_certificates".to_owned()),
        _ => Fate::NotNeeded("it has no effect without verify = verify_peer".to_owned()),
    }
}

pub(super) fn authorities(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if value(lines, "ssl_options.verify") != Some("verify_peer") {
        return Fate::NotNeeded(
            "clients' certificates are not checked; chains go into tls.certificate".to_owned(),
        );
    }
    set(settings, "tls.client_ca", text.into());
    Fate::Taken("tls.client_ca".to_owned())
}

/// TLS 1.2 is the oldest that there is.
pub(super) fn version(_: &str, text: &str, lines: &[Line], settings: &mut Value) -> Fate {
    if text == "tlsv1" || text == "tlsv1.1" {
        return Fate::NotThere(format!("{text}: clients need TLS 1.2 or newer"));
    }
    let mut all = values(lines, "ssl_options.versions.");
    let oldest = if all.all(|(_, one)| one == "tlsv1.3") { "1.3" } else { "1.2" };
    set(settings, "tls.min_version", oldest.into());
    Fate::Taken("tls.min_version".to_owned())
}

pub(super) fn origin(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    push(settings, "management.cors_origins", text.into());
    Fate::Taken("management.cors_origins".to_owned())
}

/// In RabbitMQ, every client is taken for a proxy then.
pub(super) fn proxies(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    if text != "true" {
        return Fate::NotNeeded("by default, no address is a trusted proxy".to_owned());
    }
    for list in ["amqp.proxy_protocol_from", "tls.proxy_protocol_from"] {
        set(settings, list, json!(["0.0.0.0/0", "::/0"]));
    }
    Fate::Taken(
        "amqp.proxy_protocol_from, tls.proxy_protocol_from (name only your proxies there)"
            .to_owned(),
    )
}

/// A type by its name, or by that of RabbitMQ's module.
pub(super) fn queue_type(_: &str, text: &str, _: &[Line], _: &mut Value) -> Fate {
    match text.trim_start_matches("rabbit_").trim_end_matches("_queue") {
        "classic" => Fate::NotNeeded("it is the default".to_owned()),
        kind @ ("quorum" | "stream") => Fate::NotThere(format!(
            "queues without a type are classic: change it in each vhost with courser ctl update_vhost_metadata VHOST \
             --default-queue-type {kind}, or in definitions"
        )),
        _ => Fate::Wrong(format!("unknown queue type '{text}'")),
    }
}

/// How long consumers of all queues have, which policies say here, in each vhost.
pub(super) fn consumer_timeout(_: &str, text: &str, _: &[Line], _: &mut Value) -> Fate {
    match text.parse::<u64>() {
        Ok(limit_ms) => Fate::NotThere(format!(
            "quorum queues have 30 minutes, others no limit: change it in each vhost with the policy key \
             consumer-timeout: {limit_ms}, or the argument x-consumer-timeout"
        )),
        Err(_) => Fate::Wrong(format!("'{text}' is not a number of milliseconds")),
    }
}

pub(super) fn formatter(_: &str, text: &str, _: &[Line], _: &mut Value) -> Fate {
    match text {
        "plaintext" => Fate::NotNeeded("it is how the log is written".to_owned()),
        other => Fate::NotThere(format!(
            "{other}: the log is text, a line for each entry, with name=value behind its message: have what collects it \
             read that"
        )),
    }
}

pub(super) fn vhost(_: &str, text: &str, _: &[Line], settings: &mut Value) -> Fate {
    if text == "/" {
        return Fate::NotNeeded("it always exists".to_owned());
    }
    push(settings, "vhosts", json!({ "name": text }));
    Fate::Taken("vhosts".to_owned())
}

/// What follows from keys that are not there: RabbitMQ listens everywhere, asks with GET, takes tokens without an end, and
/// takes nothing else over HTTP where its page logs people in with them.
pub(super) fn finish(lines: &[Line], settings: &mut Value) {
    if values(lines, "listeners.tcp").next().is_none() {
        settings["listen"] = json!(["0.0.0.0:5672"]);
    }
    if let Some(auth_http) = settings.get_mut("auth_http")
        && auth_http.get("method").is_none()
    {
        auth_http["method"] = "get".into();
    }
    if let Some(oauth) = settings.get_mut("oauth")
        && oauth.get("require_exp").is_none()
    {
        oauth["require_exp"] = false.into();
    }
    if let Some(oauth) = settings.get_mut("oauth")
        && oauth.get("client_id").is_some()
        && oauth.get("disable_basic_auth").is_none()
    {
        oauth["disable_basic_auth"] = true.into();
    }
}
