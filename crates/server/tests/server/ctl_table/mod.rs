//! What every command of `courser ctl` says and ends with when what it names is not there, when its user may not do
//! it, and when the login is wrong.
//!
//! `expected.txt` has a row for each. A command without one fails the test.

use crate::support::operated::{Operated, Said, said};
use clap::{Args as _, Command};
use courser_ctl::Ctl;
use std::collections::BTreeSet;
use std::thread;

/// What stands in a row for the name of what is not there; and what is there in its place.
const MISSING: &str = "nothing";
const THERE: &str = "there";
/// Runs of the program at the same time.
const AT_ONCE: usize = 4;

/// A row: a command line, and what it comes to.
struct Row {
    line: &'static str,
    /// For an administrator, where nothing has the name. `None` if that depends on no name.
    missing: Option<Expected>,
    /// For a user with the tag management and no permissions.
    refused: Expected,
    /// With a wrong password.
    wrong_login: Expected,
}

/// A code, and a part of what is said.
#[derive(Clone, Copy)]
struct Expected(i32, &'static str);

impl Expected {
    fn read(cell: &'static str) -> Option<Self> {
        let (code, text) = cell.split_once(' ').unwrap_or((cell, ""));
        (cell != "-").then(|| Expected(code.parse().expect("a code"), text))
    }

    fn fits(self, said: &Said) -> bool {
        let Expected(code, text) = self;
        said.code == Some(code) && (said.out.contains(text) || said.error.contains(text))
    }
}

fn rows() -> Vec<Row> {
    let lines = include_str!("expected.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let row = |line: &'static str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [line, missing, refused, wrong_login] = cells[..] else { panic!("{line}") };
        Row {
            line,
            missing: Expected::read(missing),
            refused: Expected::read(refused).expect("a code"),
            wrong_login: Expected::read(wrong_login).expect("a code"),
        }
    };
    lines.map(row).collect()
}

/// The words of a command line; two quotes are an empty one.
fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace("''", "")).collect()
}

/// The names of all commands, those of commands with commands of their own with both words.
fn commands() -> BTreeSet<String> {
    let ctl = Ctl::augment_args(Command::new("ctl"));
    let named = |command: &Command| match command.get_subcommands().count() {
        0 => vec![command.get_name().to_owned()],
        _ => command
            .get_subcommands()
            .map(|inner| format!("{} {}", command.get_name(), inner.get_name()))
            .collect(),
    };
    ctl.get_subcommands().flat_map(named).collect()
}

/// A broker in which one of each kind is there, and a user who may do nothing with it.
fn world() -> Operated {
    let broker = Operated::start();
    for line in [
        "add_vhost there",
        "add_user there there",
        "add_user low low",
        "set_user_tags low management",
        "set_permissions -p there there .* .* .*",
        "set_topic_permissions -p there there amq.topic .* .*",
        "set_policy -p there there .* {\"max-length\":5}",
        "set_operator_policy -p there there .* {\"max-length\":5}",
        "set_parameter -p there federation-upstream-set there {}",
        "set_global_parameter there {}",
    ] {
        let words = words(line);
        broker.quiet(&words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let queues = r#"{"queues":[{"name":"there","durable":true,"auto_delete":false,"arguments":{}}],
        "exchanges":[{"name":"there","type":"direct","durable":true,"auto_delete":false,"internal":false,"arguments":{}}]}"#;
    std::fs::write(broker.folder.path().join(THERE), queues).expect("a file");
    broker.quiet(&["import_definitions", "-p", THERE, THERE]);
    broker
}

/// What a row comes to otherwise than expected.
fn wrong(broker: &Operated, row: &Row) -> Vec<String> {
    let url = broker.url();
    let there = words(row.line).into_iter().map(|word| match word.as_str() {
        MISSING => THERE.to_owned(),
        _ => word,
    });
    let there: Vec<String> = there.collect();
    let as_low = |password: &str| {
        let mut command = broker.command();
        command.env("COURSER_CTL_PASSWORD", password).args(["-q", "--url", &url, "--user", "low"]);
        said(command.args(&there))
    };
    let mut wrong = Vec::new();
    let mut cell = |case: &str, expected: Expected, said: Said| {
        if !expected.fits(&said) {
            wrong.push(format!("{}, {case}: {said:?}", row.line));
        }
    };
    if let Some(expected) = row.missing {
        let mut command = broker.command();
        command.args(["-q", "--data-dir", "data"]).args(words(row.line));
        cell("not there", expected, said(&mut command));
    }
    cell("not permitted", row.refused, as_low("low"));
    cell("wrong login", row.wrong_login, as_low("wrong"));
    wrong
}

#[test]
fn every_command_says_what_is_not_there_not_permitted_and_not_logged_in() {
    let rows = rows();
    let broker = world();
    let (broker, all) = (&broker, &rows);
    let parts: Vec<Vec<String>> = thread::scope(|scope| {
        let part = |nth: usize| {
            let mine = all.iter().skip(nth).step_by(AT_ONCE);
            mine.flat_map(|row| wrong(broker, row)).collect()
        };
        let parts: Vec<_> = (0..AT_ONCE).map(|nth| scope.spawn(move || part(nth))).collect();
        parts.into_iter().map(|part| part.join().expect("no panic")).collect()
    });
    let mut wrong: Vec<String> = parts.into_iter().flatten().collect();
    let has_row = |command: &String| {
        let begins = |row: &Row| format!("{} ", row.line).starts_with(&format!("{command} "));
        rows.iter().any(begins)
    };
    let without = commands().into_iter().filter(|command| !has_row(command));
    wrong.extend(without.map(|command| format!("{command} has no row")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
