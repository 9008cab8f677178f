//! A request on its way to its handler: who asks, what for, and with which words.

use crate::Api;
use crate::caller::Caller;
use crate::groups::HOME;
use crate::groups::inside::Inside;
use crate::json::Columns;
use crate::refusal::{Refusal, is_vhost_gone};
use crate::reply::Reply;
use crate::shares::Share;
use crate::taken;
use crate::values::values;
use bytes::Bytes;
use courser_broker::admin::{Admin, Fault};
use hyper::{HeaderMap, Method};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;

/// What a handler answers.
pub(crate) type Outcome = Result<Reply, Refusal>;

/// A request that has found its route and whose sender may use it.
pub(crate) struct Call {
    pub api: Arc<Api>,
    pub admin: Admin,
    /// The user who asks; none where no credentials are needed.
    pub caller: Option<Caller>,
    pub method: Method,
    /// Path and query, as they came.
    pub target: String,
    /// With several groups: on whose behalf home asks this one.
    pub inside: Option<Arc<Inside>>,
    /// What stands in the path for the names in the route's pattern.
    pub params: Vec<(&'static str, Vec<u8>)>,
    pub query: Vec<(String, String)>,
    /// What its body may have.
    pub takes: Option<&'static taken::Body>,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What the body takes up of the room for all of them.
    pub _room: Option<Share>,
    pub peer: SocketAddr,
    /// It came through TLS.
    pub is_tls: bool,
    /// Says when the broker stops.
    pub stopping: watch::Receiver<bool>,
}

impl Call {
    /// The broker, on behalf of who asks.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// The same question, without what came with it, for who answers it bit by bit.
    pub fn later(&self) -> Call {
        Call {
            api: Arc::clone(&self.api),
            admin: self.admin.clone(),
            // A list asks nothing more while it waits for its client, and keeps no place of those who ask.
            caller: self.caller.as_ref().map(Caller::unlimited),
            method: self.method.clone(),
            target: String::new(),
            inside: self.inside.clone(),
            params: Vec::new(),
            query: self.query.clone(),
            takes: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            _room: None,
            peer: self.peer,
            is_tls: self.is_tls,
            stopping: self.stopping.clone(),
        }
    }

    /// The same request, whose permissions have been asked for.
    pub fn unlimited(self) -> Call {
        Call { caller: self.caller.as_ref().map(Caller::unlimited), ..self }
    }

    /// Whether a list is wanted row by row, to be merged with others.
    pub fn wants_rows(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.rows)
    }

    /// The group that this broker is, if there are several.
    pub fn group(&self) -> Option<u16> {
        let groups = self.api.settings.groups.as_ref();
        let home = || groups.is_some_and(|groups| !groups.others().is_empty()).then_some(HOME);
        self.inside.as_ref().map(|inside| inside.group).or_else(home)
    }

    /// Whether what is in a vhost is here: home knows of those that other groups have.
    pub fn is_here(&self, vhost: &str) -> bool {
        self.api.is_here(vhost)
    }

    /// Who asks. Refuses where a route needs no credentials.
    pub fn caller(&self) -> Result<&Caller, Refusal> {
        self.caller.as_ref().ok_or_else(Refusal::challenge)
    }

    /// Looks whether who has asked for something that goes on for long still may. Home does where it passes something on.
    ///
    /// # Errors
    /// If not.
    pub fn check_asker(&self) -> Result<(), Refusal> {
        self.admin.check_author()?;
        match self.caller.as_ref().filter(|_| self.inside.is_none()) {
            Some(caller) => caller.check_grant(&self.admin, self.api.now_ms()),
            None => Ok(()),
        }
    }

    /// The name of who asks, for what is counted by user.
    pub fn user(&self) -> &str {
        self.caller.as_ref().map_or("", Caller::name)
    }

    /// What stands in the path for a name of the pattern, as the bytes that it is.
    pub fn bytes(&self, name: &str) -> &[u8] {
        let found = self.params.iter().find(|(known, _)| *known == name);
        found.map_or(&[], |(_, value)| value)
    }

    /// Whether the pattern has this name.
    pub fn has(&self, name: &str) -> bool {
        self.params.iter().any(|(known, _)| *known == name)
    }

    /// As [`Call::bytes`], where only text has a meaning.
    pub fn text(&self, name: &str) -> Result<&str, Refusal> {
        std::str::from_utf8(self.bytes(name))
            .map_err(|_| Refusal::bad_request(format!("{name} is not UTF-8")))
    }

    /// The name of the exchange in the path: the default one has two names.
    pub fn exchange(&self, name: &str) -> &[u8] {
        match self.bytes(name) {
            b"amq.default" => b"",
            exchange => exchange,
        }
    }

    /// The value of a parameter of the query.
    pub fn query(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether a flag of the query says yes: `?flag` does as `?flag=true`. What is neither, and what only looks like one,
    /// has been refused ([`taken::check_query`]).
    pub fn is_set(&self, name: &str) -> bool {
        matches!(self.query(name), Some("true" | ""))
    }

    /// Which members are wanted.
    pub fn columns(&self) -> Columns {
        self.query("columns").map_or_else(Columns::all, Columns::parse)
    }

    /// The one vhost that is asked for, by the path or by the header `x-vhost`.
    pub fn vhost(&self) -> Result<Option<&str>, Refusal> {
        if self.has("vhost") {
            return self.text("vhost").map(Some);
        }
        let Some(header) = self.headers.get("x-vhost") else { return Ok(None) };
        let name = std::str::from_utf8(header.as_bytes())
            .map_err(|_| Refusal::bad_request("x-vhost is not UTF-8"))?;
        Ok(Some(name).filter(|name| !name.is_empty()))
    }

    /// The vhosts of a list: the one that is asked for, or all that the caller may enter.
    pub fn vhosts(&self) -> Result<BTreeSet<String>, Refusal> {
        let caller = self.caller()?;
        if let Some(vhost) = self.vhost()? {
            let is_there =
                self.admin().has_vhost(vhost) && self.is_here(vhost) && caller.may_enter(vhost);
            return Ok(is_there.then(|| vhost.to_owned()).into_iter().collect());
        }
        let all = self.admin().vhosts().into_iter().map(|vhost| vhost.name);
        Ok(all.filter(|name| self.is_here(name) && caller.may_enter(name)).collect())
    }

    /// Has `look` read each vhost of a list. One that is deleted or moves away before it is read is not in the list.
    pub fn for_each_vhost(
        &self,
        mut look: impl FnMut(&str) -> Result<(), Fault>,
    ) -> Result<(), Refusal> {
        for vhost in self.vhosts()? {
            match look(&vhost) {
                Err(fault) if !is_vhost_gone(&fault) => return Err(fault.into()),
                _ => {}
            }
        }
        Ok(())
    }

    /// The body as an object. Nothing at all is an empty one. Members that the request does not know are refused.
    pub fn object(&self) -> Result<Map<String, Value>, Refusal> {
        let members = object(&self.body)?;
        // A request that is in no table takes none.
        self.takes.unwrap_or(&taken::NOTHING).check(&members)?;
        Ok(members)
    }
}

/// Parameters of a query.
pub(crate) const PARAMETERS_MAX: usize = 64;
/// Parameters that name several, and how many: each is compared with each member of each row, or with each event.
const LISTS: [(&str, &str); 2] = [("columns", "members"), ("kind", "kinds")];
const NAMED_MAX: usize = 256;
/// Parameters that are the path of a column, and the characters of one.
const PATHS: [&str; 2] = ["sort", "has"];
const PATH_CHARS_MAX: usize = 256;

/// Refuses a query that would have all rows of a list, or all events, take long.
pub(crate) fn check_query(query: &[(String, String)]) -> Result<(), Refusal> {
    if query.len() > PARAMETERS_MAX {
        let reason = format!("The query has more than {PARAMETERS_MAX} parameters");
        return Err(Refusal::bad_request(reason));
    }
    for (name, value) in query {
        if let Some((_, named)) = LISTS.iter().find(|(list, _)| list == name)
            && value.split(',').count() > NAMED_MAX
        {
            let reason = format!("{name} names more than {NAMED_MAX} {named}");
            return Err(Refusal::bad_request(reason));
        }
        if PATHS.contains(&name.as_str()) && value.chars().count() > PATH_CHARS_MAX {
            let reason =
                format!("{name} is longer than the {PATH_CHARS_MAX} characters of any column");
            return Err(Refusal::bad_request(reason));
        }
    }
    Ok(())
}

/// Values and names in a body, each of which takes many times the bytes that it is written with.
const VALUES_MAX: usize = 100_000;

/// A body as an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Refusal> {
    if matches!(body.trim_ascii(), b"" | b"null" | b"undefined") {
        return Ok(Map::new());
    }
    if values(body) > VALUES_MAX {
        let reason = format!("The body has more than {VALUES_MAX} values");
        return Err(Refusal::bad_request(reason));
    }
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(Value::String(_)) => Err(Refusal::bad_request(
            "The body is a JSON string where an object is expected; was it encoded twice?",
        )),
        Ok(_) | Err(_) => Err(Refusal::bad_request("not_json")),
    }
}

/// Members of an object, read as leniently as older tools need.
pub(crate) trait Members {
    /// A text that has to be there.
    fn required_text(&self, name: &str) -> Result<&str, Refusal>;
    /// A text that may be there.
    fn text(&self, name: &str) -> Result<Option<&str>, Refusal>;
    /// A flag, also as text; `default` without it.
    fn flag(&self, name: &str, default: bool) -> Result<bool, Refusal>;
    /// A whole number, also as text.
    fn integer(&self, name: &str) -> Result<Option<i64>, Refusal>;
}

impl Members for Map<String, Value> {
    fn required_text(&self, name: &str) -> Result<&str, Refusal> {
        match self.get(name) {
            Some(Value::String(text)) => Ok(text),
            Some(other) => Err(Refusal::bad_request(serde_json::json!(["not_string", other]))),
            None => Err(Refusal::key_missing(&[name])),
        }
    }

    fn text(&self, name: &str) -> Result<Option<&str>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.required_text(name).map(Some),
        }
    }

    fn flag(&self, name: &str, default: bool) -> Result<bool, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(Refusal::bad_request(serde_json::json!(["not_boolean", other]))),
        }
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        match self.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Number(number)) if number.is_i64() => Ok(number.as_i64()),
            Some(Value::String(text)) if text.parse::<i64>().is_ok() => Ok(text.parse().ok()),
            Some(_) => Err(Refusal::bad_request(serde_json::json!(["not_int", name]))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_that_say_nothing_are_empty_objects() {
        for body in ["", " ", "null", "undefined", "{}"] {
            assert_eq!(object(body.as_bytes()), Ok(Map::new()), "{body:?}");
        }
        assert!(object(b"{").is_err());
        assert!(object(b"\"{}\"").is_err());
        assert!(object(b"[]").is_err());
        assert!(object(b"[1]").is_err());
    }

    #[test]
    fn bodies_of_more_values_than_memory_should_hold_are_refused() {
        let numbers = |count: usize| format!("{{\"a\":[{}]}}", vec!["0"; count].join(","));
        assert!(object(numbers(VALUES_MAX - 10).as_bytes()).is_ok());
        assert!(object(numbers(VALUES_MAX).as_bytes()).is_err());
        let text = format!("{{\"a\":\"\\\"{}\"}}", ",".repeat(2 * VALUES_MAX));
        assert!(object(text.as_bytes()).is_ok(), "it is one value");
    }

    #[test]
    fn flags_and_numbers_may_be_texts() {
        let Value::Object(members) =
            json!({ "a": "true", "b": false, "c": "maybe", "d": "12", "e": 1.5, "f": 3 })
        else {
            unreachable!("it is an object")
        };
        assert_eq!(members.flag("a", false), Ok(true));
        assert_eq!(members.flag("b", true), Ok(false));
        assert_eq!(members.flag("none", true), Ok(true));
        assert_eq!(members.integer("d"), Ok(Some(12)));
        assert_eq!(members.integer("f"), Ok(Some(3)));
        assert!(members.integer("e").is_err());
        let refusal = members.flag("c", true).expect_err("it is neither");
        assert_eq!(refusal, Refusal::bad_request(json!(["not_boolean", "maybe"])));
    }
}
