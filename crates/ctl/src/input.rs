//! The arguments of a command, as they were given.

use crate::failure::Failure;
use crate::spec::Argument;
use clap::ArgMatches;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Read as _;

/// Bytes of a password that is read from standard input.
const PASSWORD_BYTES_MAX: u64 = 4096;
/// Arguments that name something.
const NAMES: [&str; 7] = ["user", "name", "queue", "component", "pid", "source", "destination"];

/// The arguments of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub vhost: Option<String>,
    values: HashMap<String, Vec<String>>,
    flags: Vec<String>,
}

impl Input {
    pub fn new(spec: &crate::spec::Spec, matches: &ArgMatches) -> Self {
        let mut input = Input { vhost: matches.get_one("vhost").cloned(), ..Input::default() };
        for argument in spec.arguments {
            if argument.kind == crate::spec::Kind::Flag {
                if matches.get_flag(argument.name) {
                    input.flags.push(argument.name.to_owned());
                }
                continue;
            }
            let values = matches.get_many::<String>(argument.name);
            if let Some(values) = values {
                input.values.insert(argument.name.to_owned(), values.cloned().collect());
            }
        }
        input
    }

    /// Refuses a name that is empty: nothing has such a name, and a path without it means something else.
    pub fn refuse_empty_names(&self, spec: &crate::spec::Spec) -> Result<(), Failure> {
        if self.vhost.as_deref() == Some("") {
            return Err(Failure::usage("the name of the vhost (-p) is empty"));
        }
        // The default exchange has an empty name, and access to it may be asked for.
        let named = spec.arguments.iter().filter(|one| {
            NAMES.contains(&one.name) && !(one.name == "name" && spec.name == "check_access")
        });
        for Argument { name, .. } in named {
            if self.find(name) == Some("") {
                return Err(Failure::usage(format!("{}: the {name} is empty", spec.name)));
            }
        }
        Ok(())
    }

    /// The vhost that is asked for; the usual one where none is.
    pub fn vhost(&self) -> &str {
        self.vhost.as_deref().unwrap_or("/")
    }

    /// Puts a value in the place of an argument.
    pub fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), vec![value.to_owned()]);
    }

    /// The value of an argument, if it was given.
    pub fn find(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.first().map(String::as_str)
    }

    /// The value of an argument that has to be there; empty if it is not.
    pub fn text(&self, name: &str) -> &str {
        self.find(name).unwrap_or_default()
    }

    /// All values of an argument.
    pub fn texts(&self, name: &str) -> &[String] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// The value of an argument that is a whole number of at least 1.
    pub fn count(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.find(name) else { return Ok(None) };
        match text.parse() {
            Ok(count) if count > 0 => Ok(Some(count)),
            _ => Err(Failure::usage(format!("{name}: '{text}' is not a whole number above 0"))),
        }
    }

    /// The value of an argument as JSON.
    pub fn json(&self, name: &str) -> Result<Value, Failure> {
        let text = self.text(name);
        serde_json::from_str(text).map_err(|error| {
            let why = format!("Could not parse JSON document: {text}: {error}");
            Failure::error(crate::failure::DATA, why)
        })
    }

    /// A password that is an argument, or else the first line of standard input, where no other user of
    /// the machine sees it.
    pub fn password(&self) -> Result<String, Failure> {
        if let Some(password) = self.find("password") {
            return Ok(password.to_owned());
        }
        let mut text = String::new();
        let read = std::io::stdin().lock().take(PASSWORD_BYTES_MAX).read_to_string(&mut text);
        read.map_err(|error| Failure::usage(format!("can't read the password: {error}")))?;
        match text.lines().next() {
            Some(line) if !line.is_empty() => Ok(line.to_owned()),
            _ => Err(Failure::usage("password cannot be empty")),
        }
    }

    /// A text whose `{name}` are replaced by arguments, each changed by `shown`.
    pub fn fill(&self, template: &str, shown: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, behind)) = rest.split_once('{') {
            let Some((name, behind)) = behind.split_once('}') else { break };
            text.push_str(before);
            text.push_str(&shown(&self.value_of(name)));
            rest = behind;
        }
        text.push_str(rest);
        text
    }

    fn value_of(&self, name: &str) -> String {
        match name {
            "vhost" if !self.values.contains_key("vhost") => self.vhost().to_owned(),
            _ => match self.texts(name) {
                [one] => one.clone(),
                several => several.join(", "),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_filled_with_arguments() {
        let mut input = Input::default();
        input.values.insert("user".into(), vec!["me".into()]);
        input.values.insert("tags".into(), vec!["a".into(), "b".into()]);
        let text = input.fill("user \"{user}\" [{tags}] in {vhost} {", str::to_owned);
        assert_eq!(text, "user \"me\" [a, b] in / {");
        let path = input.fill("/api/x/{vhost}/{user}", crate::client::segment);
        assert_eq!(path, "/api/x/%2F/me");
    }
}
