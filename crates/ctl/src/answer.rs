//! An answer of a broker's HTTP API, and whether it is one.

use crate::failure::{DATA, Failure, NO_PERMISSION, UNAVAILABLE};
use bytes::Bytes;
use serde_json::Value;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// What the body is said to be; empty if that is not said.
    pub content_type: String,
    /// The body, whole.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// If it is none.
    pub fn json(&self) -> Result<Value, Failure> {
        serde_json::from_slice(&self.body).map_err(Failure::answer)
    }

    /// What a refusal gives as its reason.
    pub fn reason(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        match &body["reason"] {
            Value::String(reason) => reason.trim_end().to_owned(),
            Value::Null => format!("the broker answered with status {}", self.status),
            other => other.to_string(),
        }
    }

    /// Whether it is a success.
    pub fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it can't come from a broker's API: that speaks JSON, but for the payload of a message, and
    /// says when it has nothing to say. What stands in front of a broker refuses in words of its own.
    pub fn is_foreign(&self) -> bool {
        let is_json = self.content_type.starts_with("application/json");
        match self.status {
            201 | 204 if self.body.is_empty() => false,
            200..=299 => !is_json && !self.content_type.starts_with("application/octet-stream"),
            300..=399 => true,
            404 => !is_json && !self.body.is_empty(),
            _ => false,
        }
    }
}

/// The answer if it is a success; what it says otherwise.
///
/// # Errors
/// What the broker refuses for.
pub fn good(answer: Answer) -> Result<Answer, Failure> {
    if answer.is_good() {
        return Ok(answer);
    }
    let reason = answer.reason();
    Err(match answer.status {
        401 if reason == "Not_Authorized" => {
            Failure::error(NO_PERMISSION, "the user or the password is wrong")
        }
        401 => {
            Failure::error(NO_PERMISSION, format!("the user is not permitted to do this: {reason}"))
        }
        404 => Failure::error(DATA, format!("not found: {reason}")),
        400 => Failure::error(DATA, reason),
        _ => Failure::error(UNAVAILABLE, reason),
    })
}

/// As [`good`], for what the broker may refuse though nothing that was given is wrong.
///
/// # Errors
/// What the broker refuses for.
pub fn permitted(answer: Answer) -> Result<Answer, Failure> {
    let is_refusal = answer.status == 400;
    good(answer).map_err(|failure| match is_refusal {
        true => Failure { code: UNAVAILABLE, ..failure },
        false => failure,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, content_type: &str, body: &'static str) -> Answer {
        Answer { status, content_type: content_type.to_owned(), body: body.into() }
    }

    #[test]
    fn answers_that_no_api_gives_are_told() {
        for (status, content_type, body) in [
            (200, "text/html", "<html>"),
            (200, "", ""),
            (204, "text/html", "<html>"),
            (302, "application/json", "{}"),
            (404, "text/html", "<html>"),
        ] {
            assert!(answer(status, content_type, body).is_foreign(), "{status} {content_type}");
        }
        for (status, content_type, body) in [
            (200, "application/json; charset=utf-8", "[]"),
            (200, "application/octet-stream", "payload"),
            (201, "", ""),
            (204, "", ""),
            (404, "application/json", "{}"),
            (503, "text/html", "a proxy"),
        ] {
            assert!(!answer(status, content_type, body).is_foreign(), "{status} {content_type}");
        }
    }

    #[test]
    fn refusals_have_their_codes() {
        let refused = |status, body: &'static str| {
            good(answer(status, "application/json", body)).expect_err("a refusal").code
        };
        assert_eq!(refused(401, r#"{"reason":"Not_Authorized"}"#), NO_PERMISSION);
        assert_eq!(refused(404, ""), DATA);
        assert_eq!(refused(400, r#"{"reason":["a",1]}"#), DATA);
        assert_eq!(refused(503, "not JSON"), UNAVAILABLE);
    }
}
