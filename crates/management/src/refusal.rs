//! Why a request is not done: a status, and a body with `error` and `reason`.

use courser_auth::AccountError;
use courser_broker::admin::{AccountsError, Fault, PolicyError};
use courser_codec::reply_code;
use hyper::StatusCode;
use serde_json::{Value, json};

/// Characters of a text in a reason, and bytes of all of it as JSON: what it quotes of a request may be long.
const TEXT_CHARS_MAX: usize = 2048;
const REASON_BYTES_MAX: usize = 32 << 10;

/// Whether what is in a vhost could not be read because that has been deleted or has moved to another group.
pub(crate) fn is_vhost_gone(fault: &Fault) -> bool {
    matches!(fault.code, reply_code::NOT_FOUND | reply_code::NOT_ALLOWED)
}

/// Why a request is not done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    /// `error` and `reason`; an empty body without them.
    pub body: Option<(String, Value)>,
    /// Asks for credentials.
    pub challenge: bool,
    /// Some of what was asked for may be done.
    pub is_partial: bool,
}

impl Refusal {
    pub fn new(status: StatusCode, error: &str, reason: impl Into<Value>) -> Self {
        let mut reason = reason.into();
        cut(&mut reason);
        if !reason.is_string() {
            let text = reason.to_string();
            if text.len() > REASON_BYTES_MAX {
                reason = text.into();
                cut(&mut reason);
            }
        }
        Refusal { body: Some((error.to_owned(), reason)), ..Refusal::empty(status) }
    }

    pub fn empty(status: StatusCode) -> Self {
        Refusal { status, body: None, challenge: false, is_partial: false }
    }

    /// The same, of a request of which some may be done.
    pub fn partial(self) -> Self {
        Refusal { is_partial: true, ..self }
    }

    /// 400 with a text, or with a list as RabbitMQ prints some of its reasons.
    pub fn bad_request(reason: impl Into<Value>) -> Self {
        Refusal::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// The request names a host that the settings do not.
    pub fn misdirected() -> Self {
        let reason = "This host is not served here (management.hosts)";
        Refusal::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", reason)
    }

    /// There is no such object.
    pub fn not_found() -> Self {
        Refusal::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// 404 in the other spelling, as writes and forbidden vhosts have it.
    pub fn missing(reason: impl Into<Value>) -> Self {
        Refusal::new(StatusCode::NOT_FOUND, "not_found", reason)
    }

    /// The user may log in, but not do this.
    pub fn not_authorised(reason: impl Into<Value>) -> Self {
        Refusal::new(StatusCode::UNAUTHORIZED, "not_authorised", reason)
    }

    /// The credentials are wrong.
    pub fn not_authorized(reason: impl Into<Value>) -> Self {
        Refusal::new(StatusCode::UNAUTHORIZED, "not_authorized", reason)
    }

    /// Too many logins have failed.
    pub fn wait(wait_ms: u64) -> Self {
        let seconds = wait_ms.div_ceil(1000);
        let reason = format!("Too many logins failed: the next is possible in {seconds} s.");
        Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", reason)
    }

    /// There are no credentials.
    pub fn challenge() -> Self {
        Refusal { challenge: true, ..Refusal::empty(StatusCode::UNAUTHORIZED) }
    }

    /// What a permission for AMQP operations refuses.
    pub fn access_refused() -> Self {
        Refusal::not_authorised("Access refused.")
    }

    /// The broker could not do what was right to ask for.
    pub fn internal(reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_server_error", reason)
    }

    /// Who has to be asked does not answer.
    pub fn unavailable(reason: &str) -> Self {
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason)
    }

    /// A member that has to be there.
    pub fn key_missing(names: &[&str]) -> Self {
        let missing: Vec<String> =
            names.iter().map(|name| format!("{{key_missing,{name}}}")).collect();
        Refusal::bad_request(format!("[{}]", missing.join(",")))
    }

    /// The body that says it.
    pub fn to_json(&self) -> Vec<u8> {
        match &self.body {
            Some((error, reason)) => json!({ "error": error, "reason": reason }).to_string().into(),
            None => Vec::new(),
        }
    }
}

/// Shortens texts, of lists too.
fn cut(reason: &mut Value) {
    match reason {
        Value::String(text) => {
            if let Some((end, _)) = text.char_indices().nth(TEXT_CHARS_MAX) {
                text.truncate(end);
                text.push_str("...");
                text.shrink_to_fit();
            }
        }
        Value::Array(list) => list.iter_mut().for_each(cut),
        Value::Object(members) => members.values_mut().for_each(cut),
        _ => {}
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault.code {
            _ if fault.is_of_a_going_broker() => Refusal::unavailable(&fault.explanation),
            403 => Refusal::access_refused(),
            404 => Refusal::not_found(),
            541 => Refusal::internal(fault.explanation),
            _ => Refusal::bad_request(fault.explanation),
        }
    }
}

impl From<AccountsError> for Refusal {
    fn from(error: AccountsError) -> Self {
        match error {
            AccountsError::Refused(AccountError::NoUser(_)) => Refusal::not_found(),
            AccountsError::Refused(error) => error.into(),
            AccountsError::NotHome(fault) => fault.into(),
            AccountsError::NotPermitted => Refusal::challenge(),
            AccountsError::NoVhost(_) => Refusal::bad_request("vhost_or_user_not_found"),
            AccountsError::Store(error) => Refusal::internal(error),
        }
    }
}

impl From<AccountError> for Refusal {
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Pattern { error, .. } => {
                Refusal::bad_request(json!(["invalid_regexp", error.to_string()]))
            }
            AccountError::Random => Refusal::internal(AccountError::Random),
            error => Refusal::bad_request(error.to_string()),
        }
    }
}

impl From<PolicyError> for Refusal {
    fn from(error: PolicyError) -> Self {
        match error {
            PolicyError::NotServed(fault) => fault.into(),
            PolicyError::NoVhost(_) => Refusal::missing("vhost_not_found"),
            PolicyError::Store(error) => Refusal::internal(error),
            PolicyError::NotNow(fault) => fault.into(),
            error => Refusal::bad_request(format!("Validation failed\n\n{error}\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_refusal_quotes_of_a_request_is_cut() {
        let long = "\u{e9}".repeat(10 << 20);
        let many = vec!["\u{e9}".repeat(2000); 1000];
        for reason in [json!(long), json!(["not_base64", long]), json!(["not_string", many])] {
            let refused = Refusal::bad_request(reason).to_json();
            assert!(refused.len() < 3 * TEXT_CHARS_MAX, "{} bytes", refused.len());
            assert!(String::from_utf8(refused).is_ok_and(|text| text.contains("\u{e9}...")));
        }
        let refused = Refusal::bad_request(json!(["not_string", { long: 1 }])).to_json();
        assert!(refused.len() < 3 * TEXT_CHARS_MAX, "{} bytes", refused.len());
        let short = "\u{e9}".repeat(TEXT_CHARS_MAX);
        let refused = Refusal::bad_request(short.clone());
        assert_eq!(refused.body, Some(("bad_request".into(), short.into())));
    }
}
