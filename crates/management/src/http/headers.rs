//! Headers that answers have besides their own: for caches, and for browsers.

use super::body::Outgoing;
use crate::sessions::CHANGE_HEADER;
use crate::settings::Web;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, ORIGIN, STRICT_TRANSPORT_SECURITY,
};
use hyper::{Method, Response};

/// What pages may do that are shown from here. The web page has its styles and its data from here, and
/// no other page shows it in a frame.
const POLICY: &str = "default-src 'self'; script-src 'self'; object-src 'none'; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'; img-src 'self' data:";
/// How long a browser may remember what it may send from elsewhere.
const PREFLIGHT_SECONDS: &str = "1800";

/// What pages of all origins may do, if they may read what needs no credentials.
const READING: &str = "OPTIONS, HEAD, GET";

/// What a path has to say about requests for it.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    /// The methods that it has.
    pub allow: &'a str,
    /// Reading it needs no credentials.
    pub is_public: bool,
}

impl Access<'static> {
    /// There is nothing at the path.
    pub const NONE: Self = Access { allow: "", is_public: false };
    /// The web page, and what leads to a page.
    pub const PAGE: Self = Access { allow: READING, is_public: true };
}

/// What a request says of where its answer goes.
pub(super) struct Asked {
    method: Method,
    origin: Option<HeaderValue>,
    headers: Option<HeaderValue>,
    is_tls: bool,
}

impl Asked {
    pub fn new(method: &Method, headers: &HeaderMap, is_tls: bool) -> Self {
        Asked {
            method: method.clone(),
            origin: headers.get(ORIGIN).cloned(),
            headers: headers.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned(),
            is_tls,
        }
    }

    /// The answer with the headers that every one has.
    pub fn finish(
        &self,
        mut answer: Response<Outgoing>,
        access: Access<'_>,
        web: &Web,
    ) -> Response<Outgoing> {
        let headers = answer.headers_mut();
        set(headers, ALLOW, access.allow);
        let always = [
            ("content-security-policy", POLICY),
            ("vary", "accept, accept-encoding, origin"),
            ("server", "Courser"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ];
        for (name, value) in always {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let unless_set = HeaderValue::from_static("no-cache");
        headers.entry("cache-control").or_insert(unless_set);
        if self.is_tls && web.hsts_max_age_s > 0 {
            let age = format!("max-age={}", web.hsts_max_age_s);
            set(headers, STRICT_TRANSPORT_SECURITY, &age);
        }
        self.share(headers, access, web);
        answer
    }

    /// Lets pages from elsewhere read the answer, as far as the settings name them. Those that only `*` names may not send
    /// credentials: their scripts could try known ones, or those of the people who look at them.
    fn share(&self, headers: &mut HeaderMap, access: Access<'_>, web: &Web) {
        let Some(origin) = &self.origin else { return };
        let text = origin.to_str().unwrap_or("null");
        let (wanted, methods) = if web.names_origin(text) {
            headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            set(headers, ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
            (self.headers.clone(), access.allow)
        } else if web.shares_with(text) && access.is_public {
            set(headers, ACCESS_CONTROL_ALLOW_ORIGIN, "*");
            (self.headers.as_ref().and_then(without_credentials), READING)
        } else {
            return;
        };
        if self.method == Method::OPTIONS {
            set(headers, ACCESS_CONTROL_ALLOW_METHODS, methods);
            set(headers, ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECONDS);
            if let Some(wanted) = wanted {
                headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, wanted);
            }
        }
    }
}

/// The headers of a list that neither are credentials nor go with them.
fn without_credentials(list: &HeaderValue) -> Option<HeaderValue> {
    let names = list.to_str().ok()?.split(',').map(str::trim);
    let is_good = |name: &&str| {
        [AUTHORIZATION, CHANGE_HEADER]
            .iter()
            .all(|other| !name.eq_ignore_ascii_case(other.as_str()))
    };
    let kept = names.filter(is_good).collect::<Vec<_>>().join(", ");
    HeaderValue::from_str(&kept).ok().filter(|kept| !kept.is_empty())
}

/// Sets a header, unless its value is nothing or can't be one.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value)
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}
