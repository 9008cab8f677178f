//! Requests for changes in the audit log, whatever comes of them: those to paths that there are not too, and
//! those whose clients leave before they are answered. Questions are not, whatever their method.

use super::answer::{PARTIAL, is_question};
use super::request::Connected;
use crate::Api;
use crate::audit::{Entry, Written};
use crate::routes::{Needs, Route};
use hyper::{Method, Request, Response, Uri};
use std::net::SocketAddr;
use std::sync::Arc;

/// What is noted of a request whose client has left: whether it was done is not known.
const LEFT: u16 = 499;

/// Bytes of a query that are noted.
const QUERY_BYTES_MAX: usize = 256;

/// A request that is to be noted.
pub(super) struct Noting {
    /// None where it is not, or has been noted.
    api: Option<Arc<Api>>,
    /// Who sends it, once that is known.
    pub user: Option<String>,
    peer: SocketAddr,
    method: Method,
    path: String,
    /// It is carried out, and that may change something.
    is_begun: bool,
}

impl Noting {
    pub fn new<B>(api: &Arc<Api>, connected: &Connected, request: &Request<B>) -> Self {
        let method = request.method().clone();
        let looks = matches!(method, Method::GET | Method::HEAD | Method::OPTIONS);
        // Home has noted what it passes on.
        let is_noted = api.audit.is_some() && !looks && !connected.is_inside;
        let (user, peer, path) = (None, connected.address, shown(request.uri()));
        let api = is_noted.then(|| Arc::clone(api));
        Noting { api, user, peer, method, path, is_begun: false }
    }

    /// Takes note of which request it is.
    pub fn is_for(&mut self, route: &Route) {
        if is_question(route) {
            self.api = None;
        }
    }

    /// Takes note that it has been read and let in. A login changes nothing.
    pub fn begin(&mut self, route: &Route) {
        self.is_begun = !matches!(route.needs, Needs::Credentials | Needs::Code);
    }

    /// Notes what has come of it.
    pub async fn end<B>(mut self, answer: &Response<B>) {
        let is_partial = answer.headers().contains_key(PARTIAL);
        if let Some((api, line)) = self.note(answer.status().as_u16(), is_partial)
            && let Some(audit) = &api.audit
        {
            // What fails is said in the log, and what is done is done.
            audit.wait_for(line).await;
        }
    }

    fn note(&mut self, status: u16, is_partial: bool) -> Option<(Arc<Api>, Written)> {
        let api = self.api.take()?;
        let (at_ms, user, peer) = (api.now_ms(), self.user.as_deref(), self.peer);
        let (method, path, is_begun) = (self.method.as_str(), &*self.path, self.is_begun);
        let entry = Entry { at_ms, user, peer, method, path, status, is_begun, is_partial };
        let line = api.audit.as_ref()?.note(&entry)?;
        Some((api, line))
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        drop(self.note(LEFT, false));
    }
}

/// A path with its query, of which only switches and numbers are shown: what else there is may be a secret.
fn shown(uri: &Uri) -> String {
    let Some(query) = uri.query() else { return uri.path().to_owned() };
    let is_plain = |value: &str| {
        matches!(value, "" | "true" | "false")
            || value.len() < 10 && value.bytes().all(|byte| byte.is_ascii_digit())
    };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !is_plain(value) => format!("{name}=..."),
        Some(_) => pair.to_owned(),
        // A value without a name.
        None => "...".to_owned(),
    });
    let mut query = pairs.collect::<Vec<_>>().join("&");
    if query.len() > QUERY_BYTES_MAX {
        query.truncate(query.floor_char_boundary(QUERY_BYTES_MAX));
        query.push_str("...");
    }
    format!("{}?{query}", uri.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_queries_are_not_noted() {
        for (uri, expected) in [
            (
                "/api/queues/%2F/q?if-empty=true&count=10",
                "/api/queues/%2F/q?if-empty=true&count=10",
            ),
            ("/api/login?password=geheim&x=1", "/api/login?password=...&x=1"),
            ("/api/x?geheim", "/api/x?..."),
            ("/api/x", "/api/x"),
        ] {
            assert_eq!(shown(&Uri::from_static(uri)), expected);
        }
    }

    #[test]
    fn of_a_long_query_the_beginning_is_noted() {
        let long = format!("/api/x?if-empty=true&_{}=1", "a".repeat(5000));
        let noted = shown(&long.parse().expect("an address"));
        assert!(
            noted.starts_with("/api/x?if-empty=true&_aaa") && noted.ends_with("a..."),
            "{noted}"
        );
        assert_eq!(noted.len(), "/api/x?".len() + QUERY_BYTES_MAX + "...".len());
    }
}
