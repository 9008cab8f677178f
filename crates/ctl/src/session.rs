//! A command on its way: the broker that it asks, and what is shown of it.

use crate::client::{Client, body, good, segment};
use crate::failure::{DATA, Failure, TEMPORARY, UNAVAILABLE};
use crate::format::{Style, plain};
use crate::input::Input;
use crate::node_name::NodeName;
use crate::spec::{Action, Body, Change, From, List, Output, Spec};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;

/// A broker that is asked for one command.
pub(crate) struct Session {
    pub client: Client,
    pub style: Style,
    /// The name that its node has to have, if one was given.
    pub node: Option<NodeName>,
}

/// Commands that wait for a broker: it says its name only when it is there.
const WAITING: [&str; 3] = ["await_startup", "wait", "await_online_nodes"];

/// What is said where a list's path is not there, unless the list says something else.
const NO_VHOST: (u8, &str) = (DATA, "Virtual host '{vhost}' does not exist");

impl Session {
    /// Does what a command says.
    pub fn run(&mut self, spec: &Spec, input: &Input) -> Result<Output, Failure> {
        if let Action::NotHere(why) = spec.action {
            return Err(Failure::error(UNAVAILABLE, why));
        }
        input.refuse_empty_names(spec)?;
        let columns = match &spec.action {
            Action::List(list) => chosen(list, input)?,
            _ => Vec::new(),
        };
        self.say_intent(spec, input)?;
        if self.client.timeout().is_zero() {
            let text = format!("Error: operation {} timed out. Timeout value used: 0", spec.name);
            return Err(Failure::new(TEMPORARY, text));
        }
        let waits = WAITING.contains(&spec.name);
        if let Some(node) = self.node.as_ref().filter(|_| !waits) {
            node.check(&mut self.client)?;
        }
        let shown = self.done(spec, &columns, input)?;
        if let Some(node) = self.node.as_ref().filter(|_| waits) {
            node.check(&mut self.client)?;
        }
        Ok(shown)
    }

    fn done(
        &mut self,
        spec: &Spec,
        columns: &[(&'static str, From)],
        input: &Input,
    ) -> Result<Output, Failure> {
        match &spec.action {
            Action::List(list) => self.list(list, columns, input),
            Action::Change(change) => self.change(change, input),
            Action::Run(run) => run(self, input),
            Action::NotHere(why) => Err(Failure::error(UNAVAILABLE, *why)),
        }
    }

    fn say_intent(&self, spec: &Spec, input: &Input) -> Result<(), Failure> {
        if spec.intent.is_empty() {
            return Ok(());
        }
        if let Action::List(List { is_long: true, .. }) = spec.action {
            let timeout_s = self.client.timeout().as_secs_f64();
            self.style.say(&format!("Timeout: {timeout_s:.1} seconds ..."))?;
        }
        self.style.say(&input.fill(spec.intent, str::to_owned))
    }

    fn list(
        &mut self,
        list: &List,
        columns: &[(&'static str, From)],
        input: &Input,
    ) -> Result<Output, Failure> {
        let needed = list.narrowed.map_or(&[][..], |(needed, _)| needed);
        let members = members(columns, needed);
        let path = format!("{}?columns={members}", input.fill(list.path, segment));
        let found = match (self.client.find(&path)?, list.missing) {
            (Some(found), _) => found,
            (None, missing) => {
                let (code, text) = missing.unwrap_or(NO_VHOST);
                return Err(Failure::error(code, input.fill(text, str::to_owned)));
            }
        };
        let Value::Array(mut found) = found else {
            return Err(Failure::answer("it is not a list"));
        };
        if let Some((_, narrow)) = list.narrowed {
            narrow(self, input, &mut found)?;
        }
        let row = |one: &Value| columns.iter().map(|(_, from)| value(one, *from)).collect();
        Ok(Output::Rows {
            columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(),
            rows: found.iter().map(row).collect(),
        })
    }

    /// Does something for several things, one after the other, each of which has the time of a command. It ends with the
    /// first one that fails: what was done before stays.
    pub fn each(
        &mut self,
        names: &[&str],
        mut act: impl FnMut(&mut Self, usize) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for (index, name) in names.iter().enumerate() {
            self.client.restart_clock();
            if let Err(Failure { code, text }) = act(self, index) {
                let (at, count) = (index + 1, names.len());
                return Err(Failure::new(
                    code,
                    format!("{text}\nThis was {at} of {count}: {}", plain(name)),
                ));
            }
        }
        Ok(())
    }

    /// What was done of several things; it is shown too where it was not all.
    pub fn shown(&self, done: Output, ended: Result<(), Failure>) -> Result<Output, Failure> {
        match ended {
            Ok(()) => Ok(done),
            Err(failure) => {
                // If that can't be written, why it ended still counts more.
                let _ = self.style.write(done, &mut std::io::stdout().lock());
                Err(failure)
            }
        }
    }

    fn change(&mut self, change: &Change, input: &Input) -> Result<Output, Failure> {
        let sent = match change.body {
            Body::Nothing => Bytes::new(),
            Body::Made(made) => body(&made(input)?),
        };
        let method = Method::from_bytes(change.method.as_bytes()).unwrap_or_default();
        let answer = self.client.call(method, &input.fill(change.path, segment), sent)?;
        if !answer.is_good() {
            let fits = change.refusals.iter().find(|one| one.status == answer.status);
            let Some(fits) = fits else { return good(answer).map(|_| Output::Nothing) };
            let text = input.fill(fits.text, str::to_owned);
            return match fits.code {
                0 => Ok(Output::Text(text)),
                code => Err(Failure::error(code, text)),
            };
        }
        Ok(match change.done {
            "" => Output::Nothing,
            done => Output::Text(input.fill(done, str::to_owned)),
        })
    }
}

/// The members that columns need: no more has to be sent.
fn members(columns: &[(&'static str, From)], needed: &[&'static str]) -> String {
    let member = |from: &From| match *from {
        From::Member(path) | From::Json(path) => path.split('.').next(),
        From::Always(_) => None,
    };
    let shown = columns.iter().filter_map(|(_, from)| member(from));
    shown.chain(needed.iter().copied()).collect::<Vec<_>>().join(",")
}

/// The columns that are asked for.
fn chosen(list: &List, input: &Input) -> Result<Vec<(&'static str, From)>, Failure> {
    let known = |name: &str| list.columns.iter().find(|(known, _)| *known == name).copied();
    // `list_queues name messages` and `list_queues name,messages` are the same.
    let asked = input.texts("columns").iter().flat_map(|text| text.split([',', ' ']));
    let asked: Vec<&str> = asked.filter(|name| !name.is_empty()).collect();
    if asked.is_empty() {
        return Ok(list.default.iter().filter_map(|name| known(name)).collect());
    }
    let unknown: Vec<&str> = asked.iter().filter(|name| known(name).is_none()).copied().collect();
    if unknown.is_empty() {
        return Ok(asked.iter().filter_map(|name| known(name)).collect());
    }
    let names: Vec<&str> = list.columns.iter().map(|(name, _)| *name).collect();
    Err(Failure::usage(format!(
        "Info key(s) {} are not supported. Supported: {}",
        unknown.join(", "),
        names.join(", ")
    )))
}

/// What a column shows of an object.
fn value(object: &Value, from: From) -> Value {
    let member = |path: &str| {
        path.split('.').try_fold(object, |value, name| value.get(name)).cloned().unwrap_or_default()
    };
    match from {
        From::Member(path) => member(path),
        From::Json(path) => member(path).to_string().into(),
        From::Always(text) => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn each_of_several_things_has_the_time_of_a_command() {
        let target = Target::Local("none".into());
        let client = Client::new(target, Duration::from_secs(1 << 20)).expect("a client");
        let mut session = Session { client, style: Style::default(), node: None };
        let mut seen = Vec::new();
        let ended = session.each(&["a", "b"], |session, index| {
            seen.push(index);
            // Others have taken all of it.
            assert!(!session.client.is_late());
            session.client.end_clock();
            Ok(())
        });
        assert_eq!((ended, seen), (Ok(()), vec![0, 1]));
    }

    #[test]
    fn columns_are_members_of_members_and_missing_ones_are_null() {
        let object = json!({ "a": { "b": 1 }, "c": { "d": [true] } });
        assert_eq!(value(&object, From::Member("a.b")), json!(1));
        assert_eq!(value(&object, From::Member("a.x.y")), Value::Null);
        assert_eq!(value(&object, From::Json("c")), json!("{\"d\":[true]}"));
        assert_eq!(value(&object, From::Always("queue")), json!("queue"));
    }
}
