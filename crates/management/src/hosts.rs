//! The names that requests are sent to (`Host`).
//!
//! A page of another site can have its own name resolve to this machine (DNS rebinding): its browser then takes the API for
//! a part of that site. The browser sends neither cookies nor passwords that it knows of the broker, but the page may try
//! those that everybody knows: those of `guest`, who may come from this machine only, as the browser does. Others can
//! make names resolve that have a dot in them, and no others.

use crate::settings::Web;
use hyper::HeaderMap;
use hyper::header::HOST;
use std::net::Ipv4Addr;

/// Whether a request names this machine: by an address, by a name that no one outside can have resolve to it, or by one
/// that the settings list.
pub(crate) fn names_this(headers: &HeaderMap, web: &Web) -> bool {
    let Some(host) = headers.get(HOST) else { return true };
    let Ok(host) = host.to_str() else { return false };
    let name = without_port(host).trim_end_matches('.');
    let is_listed = web.hosts.iter().any(|one| one.eq_ignore_ascii_case(name));
    is_listed || !name.contains('.') || is_address(name) || is_local(name)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_address(name: &str) -> bool {
    name.starts_with('[') || name.parse::<Ipv4Addr>().is_ok()
}

/// Browsers have these stand for this machine, whatever others say.
fn is_local(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn names(host: &'static str, listed: &[&str]) -> bool {
        let hosts = listed.iter().map(|name| (*name).to_owned()).collect();
        let web = Web { hosts, ..Web::default() };
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
        names_this(&headers, &web)
    }

    #[test]
    fn addresses_and_names_without_a_dot_are_this_machine() {
        for host in [
            "127.0.0.1:15672",
            "192.0.2.1",
            "[::1]:15672",
            "[fe80::1.2.3.4]",
            "localhost:15672",
            "rabbitmq:15672",
            "a.localhost",
            "A.LOCALHOST.:80",
        ] {
            assert!(names(host, &[]), "{host}");
        }
        assert!(names_this(&HeaderMap::new(), &Web::default()), "HTTP/1.0 names none");
    }

    #[test]
    fn names_that_others_can_have_resolve_are_not_unless_they_are_listed() {
        for host in [
            "evil.example:15672",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "evil.example.",
            "127.0.0.1:x.evil.example",
        ] {
            assert!(!names(host, &["mq.example"]), "{host}");
        }
        assert!(names("MQ.example:443", &["mq.example"]));
    }
}
