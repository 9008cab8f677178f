//! Who may depend on whom in this workspace, held against `cargo metadata`.
//!
//! Only what a crate is built with counts; its tests and examples may use what they like.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What each crate is built with, as far as it is ours: all that it may be.
const ALLOWED: [(&str, &[&str]); 15] = [
    ("courser-auth", &[]),
    ("courser-codec", &[]),
    ("courser-connection", &["courser-codec"]),
    ("courser-oauth", &["courser-auth"]),
    ("courser-store", &[]),
    ("courser-broker", &["courser-auth", "courser-codec", "courser-store"]),
    ("courser-journal", &["courser-store"]),
    ("courser-cluster", &["courser-journal", "courser-store"]),
    ("courser-client", &["courser-codec", "courser-connection"]),
    ("courser-gateway", &["courser-codec", "courser-connection", "courser-client"]),
    ("courser-perftest", &["courser-codec", "courser-connection", "courser-client"]),
    ("courser-codegen", &[]),
    ("courser-ctl", &[]),
    ("courser-management", &["courser-auth", "courser-broker", "courser-codec", "courser-store"]),
    (
        "courser-sim",
        &["courser-auth", "courser-broker", "courser-codec", "courser-journal", "courser-store"],
    ),
];

/// Crates without a rule of their own: the server stands on top of everything.
const WITHOUT_RULE: [&str; 1] = ["courser"];

/// The files and folders of the server that may name the journal: those that choose it, configure it
/// and look into it. What serves connections sees the traits of `courser-store` only.
const SEES_THE_JOURNAL: [&str; 6] =
    ["config", "data_dir.rs", "main.rs", "scrub", "scrub.rs", "storage.rs"];

/// These do no I/O and have no tasks, whatever they are built with.
const WITHOUT_IO: [&str; 6] = [
    "courser-auth",
    "courser-broker",
    "courser-codec",
    "courser-connection",
    "courser-oauth",
    "courser-store",
];

/// Runtimes, sockets and system calls.
const IO: [&str; 9] = [
    "tokio",
    "mio",
    "socket2",
    "async-std",
    "smol",
    "rustix",
    "nix",
    "signal-hook",
    "courser-journal",
];

/// Who is built with the broker.
const ABOVE_THE_BROKER: [&str; 3] = ["courser", "courser-management", "courser-sim"];

/// Packages by what they are built with, ours and others', directly.
struct Workspace {
    ours: BTreeSet<String>,
    names: BTreeMap<String, String>,
    built_with: BTreeMap<String, BTreeSet<String>>,
}

impl Workspace {
    fn read() -> Self {
        let host = run("rustc", &["-vV"]);
        let host = host.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let metadata = run(
            env!("CARGO"),
            &[
                "metadata",
                "--format-version=1",
                "--filter-platform",
                host,
                "--manifest-path",
                manifest,
            ],
        );
        let metadata: Value = serde_json::from_str(&metadata).expect("JSON");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let list = |value: &Value| value.as_array().expect("a list").clone();
        let ours = list(&metadata["workspace_members"]).iter().map(text).collect();
        let packages = list(&metadata["packages"]);
        let names = packages.iter().map(|one| (text(&one["id"]), text(&one["name"]))).collect();
        let is_built = |dependency: &&Value| {
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null())
        };
        let nodes = list(&metadata["resolve"]["nodes"]);
        let built_with = nodes.iter().map(|node| {
            let dependencies = list(&node["deps"]);
            let built = dependencies.iter().filter(is_built).map(|one| text(&one["pkg"]));
            (text(&node["id"]), built.collect())
        });
        Workspace { ours, names, built_with: built_with.collect() }
    }

    /// The names of our packages, by which the rules speak.
    fn ours(&self) -> impl Iterator<Item = &str> {
        self.ours.iter().map(|id| &*self.names[id])
    }

    /// The names of all packages that one of ours is built with, however indirectly.
    fn all_built_with(&self, name: &str) -> BTreeSet<&str> {
        let mut pending: Vec<&String> =
            self.ours.iter().filter(|id| self.names[*id] == name).collect();
        let mut found = BTreeSet::new();
        while let Some(id) = pending.pop() {
            for dependency in self.built_with.get(id).into_iter().flatten() {
                if found.insert(&*self.names[dependency]) {
                    pending.push(dependency);
                }
            }
        }
        found
    }
}

fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn each_crate_is_built_with_no_more_of_ours_than_its_layer_allows() {
    let workspace = Workspace::read();
    let ours: BTreeSet<&str> = workspace.ours().collect();
    for (name, allowed) in ALLOWED {
        assert!(ours.contains(name), "{name} is not there any more: take it out of the rules");
        let used: Vec<&str> = workspace.all_built_with(name).intersection(&ours).copied().collect();
        let beyond: Vec<&&str> = used.iter().filter(|one| !allowed.contains(*one)).collect();
        assert!(beyond.is_empty(), "{name} must not be built with {beyond:?}");
    }
}

#[test]
fn every_crate_has_its_rule() {
    let workspace = Workspace::read();
    let has_rule =
        |name: &&str| WITHOUT_RULE.contains(name) || ALLOWED.iter().any(|(ruled, _)| ruled == name);
    let without: Vec<&str> = workspace.ours().filter(|name| !has_rule(name)).collect();
    assert!(without.is_empty(), "say what {without:?} may be built with");
}

#[test]
fn only_the_servers_storage_and_tools_name_the_journal() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut pending = vec![src.clone()];
    let (mut looked_at, mut found) = (0, Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let within = path.strip_prefix(&src).expect("below").to_string_lossy().into_owned();
            if SEES_THE_JOURNAL.contains(&&*within) {
                continue;
            }
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                looked_at += 1;
                let text = fs::read_to_string(&path).expect("text");
                if text.contains("courser_journal::") {
                    found.push(within);
                }
            }
        }
    }
    assert!(looked_at > 5, "the sources are not where they were");
    assert!(found.is_empty(), "{found:?} must not name the journal");
}

#[test]
fn management_sees_of_the_broker_what_is_for_its_operator() {
    let mut pending = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../management/src")];
    let (mut looked_at, mut found) = (0, Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            // Those begin brokers of their own.
            if path.ends_with("tests.rs") {
                continue;
            }
            looked_at += 1;
            let text = fs::read_to_string(&path).expect("text");
            let names = text.split("courser_broker").skip(1);
            let others = names.filter(|rest| !rest.starts_with("::admin::"));
            found.extend(others.map(|_| path.clone()));
        }
    }
    assert!(looked_at > 10, "the sources are not where they were");
    assert!(found.is_empty(), "{found:?} must name courser_broker::admin only");
}

#[test]
fn the_inner_crates_do_no_io() {
    let workspace = Workspace::read();
    for name in WITHOUT_IO {
        let used = workspace.all_built_with(name);
        let io: Vec<&&str> = IO.iter().filter(|one| used.contains(**one)).collect();
        assert!(io.is_empty(), "{name} must not be built with {io:?}");
    }
}

#[test]
fn clients_tools_and_bindings_are_not_built_with_the_broker() {
    let workspace = Workspace::read();
    for name in workspace.ours().filter(|name| !ABOVE_THE_BROKER.contains(name)) {
        let used = workspace.all_built_with(name);
        let above = used.contains("courser") || used.contains("courser-broker");
        assert!(!above, "{name} must not be built with the broker");
    }
}
