//! Cookies that scripts can't read and that no other site's page sends along.

use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST};

/// A cookie, by how its name begins. Browsers send cookies to all ports of a host: the port that they ask at follows, so
/// that brokers on one machine don't take each other's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookie(pub &'static str);

/// How long a browser keeps a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    UntilItCloses,
    Seconds(u32),
}

impl Cookie {
    /// The header that gives it to a browser.
    pub fn set(
        self,
        headers: &HeaderMap,
        value: &str,
        kept: Kept,
        is_tls: bool,
        path_prefix: &str,
    ) -> String {
        let name = self.name(headers);
        let path = if path_prefix.is_empty() { "/" } else { path_prefix };
        let secure = if is_tls { "; Secure" } else { "" };
        let ends = match kept {
            Kept::UntilItCloses => String::new(),
            Kept::Seconds(seconds) => format!("; Max-Age={seconds}"),
        };
        format!("{name}={value}; Path={path}; HttpOnly; SameSite=Strict{secure}{ends}")
    }

    /// The header that takes it back.
    pub fn clear(self, headers: &HeaderMap, is_tls: bool, path_prefix: &str) -> String {
        self.set(headers, "", Kept::Seconds(0), is_tls, path_prefix)
    }

    /// What a browser sends.
    pub fn value(self, headers: &HeaderMap) -> Option<&str> {
        let wanted = self.name(headers);
        let lists = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = lists.flat_map(|list| list.split(';'));
        cookies.find_map(|cookie| {
            let (name, value) = cookie.trim().split_once('=')?;
            (name == wanted).then_some(value)
        })
    }

    /// Its name for whom a request asks.
    fn name(self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        port.map_or_else(|| self.0.to_owned(), |port| format!("{}_{port}", self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    const SESSION: Cookie = Cookie("courser_session");

    #[test]
    fn cookies_are_for_this_broker_only() {
        let headers = HeaderMap::new();
        let cookie = SESSION.set(&headers, "x", Kept::UntilItCloses, true, "");
        assert_eq!(cookie, "courser_session=x; Path=/; HttpOnly; SameSite=Strict; Secure");
        let brief = SESSION.set(&headers, "x", Kept::Seconds(9), false, "/mq");
        assert_eq!(brief, "courser_session=x; Path=/mq; HttpOnly; SameSite=Strict; Max-Age=9");
        let gone = SESSION.clear(&headers, false, "/mq");
        assert_eq!(gone, "courser_session=; Path=/mq; HttpOnly; SameSite=Strict; Max-Age=0");
    }

    #[test]
    fn the_cookie_is_found_among_others() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, "a=b; courser_session=s; c=d".parse().expect("a value"));
        assert_eq!(SESSION.value(&headers), Some("s"));
        assert_eq!(SESSION.value(&HeaderMap::new()), None);
    }

    #[test]
    fn each_port_of_a_host_has_a_cookie_of_its_own() {
        let to = |host: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            let cookies = "courser_session=no; courser_session_15672=a; courser_session_15673=b";
            headers.insert(COOKIE, HeaderValue::from_static(cookies));
            headers
        };
        for (host, secret) in [
            ("broker:15672", "a"),
            ("[::1]:15673", "b"),
            ("broker", "no"),
            ("[fe80::]", "no"),
            ("broker:x; Path=/", "no"),
        ] {
            assert_eq!(SESSION.value(&to(host)), Some(secret), "{host}");
        }
        let cookie = SESSION.set(&to("broker:15673"), "x", Kept::UntilItCloses, false, "");
        assert!(cookie.starts_with("courser_session_15673=x; "), "{cookie}");
    }
}
