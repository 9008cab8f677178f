//! What `ARCHITECTURE.md` says of the crates and of what waits, held against `cargo metadata` and the sources.
//!
//! Only what a crate is built with counts; its tests and examples may use what they like.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files and folders of the server that may name the journal: those that choose it, configure it
/// and look into it. What serves connections sees the traits of `courser-store` only.
const SEES_THE_JOURNAL: [&str; 6] =
    ["config", "data_dir.rs", "main.rs", "scrub", "scrub.rs", "storage.rs"];

/// Runtimes, sockets and system calls: a crate without I/O is built with none of them.
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

/// A row of the table of crates.
struct Row {
    package: String,
    /// Our packages that it is built with, directly.
    built_with: BTreeSet<String>,
    /// Packages that it must not be built with, however indirectly.
    never_with: BTreeSet<String>,
}

impl Row {
    fn all() -> Vec<Row> {
        let read = |cells: Vec<String>| {
            let [name, _, built_with, never_with] = <[String; 4]>::try_from(cells).expect("a row");
            let mut never: BTreeSet<String> = quoted(&never_with).map(package).collect();
            if never_with.contains("I/O") {
                never.extend(IO.map(str::to_owned));
            }
            let package = quoted(&name).map(package).next().expect("a crate");
            Row {
                package,
                built_with: quoted(&built_with).map(self::package).collect(),
                never_with: never,
            }
        };
        table("## The crates").into_iter().map(read).collect()
    }
}

/// The cells of the table below a heading of the architecture, without its head.
fn table(heading: &str) -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = fs::read_to_string(page).expect("the page");
    let below = page.lines().skip_while(|line| *line != heading);
    let rows =
        below.skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| {
        let row = row.trim_matches('|');
        row.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows: Vec<Vec<String>> = rows.skip(2).map(cells).collect();
    assert!(!rows.is_empty(), "there is no table below {heading}");
    rows
}

/// What stands between backquotes.
fn quoted(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The package of a crate by its folder.
fn package(name: &str) -> String {
    match name {
        "server" => "courser".to_owned(),
        _ => format!("courser-{name}"),
    }
}

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

    /// Our packages that one of them is built with directly.
    fn ours_built_with(&self, name: &str) -> BTreeSet<String> {
        let id = self.ours.iter().find(|id| self.names[*id] == name).expect("one of ours");
        let built_with = self.built_with[id].iter().filter(|one| self.ours.contains(*one));
        built_with.map(|one| self.names[one].clone()).collect()
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
fn each_crate_is_built_with_what_the_architecture_says() {
    let workspace = Workspace::read();
    let ours: BTreeSet<String> = workspace.ours().map(str::to_owned).collect();
    let rows = Row::all();
    let named: BTreeSet<String> = rows.iter().map(|row| row.package.clone()).collect();
    assert_eq!(ours, named, "the table of crates has other crates than there are");
    for row in rows {
        let used: BTreeSet<String> = workspace.ours_built_with(&row.package);
        assert_eq!(
            used, row.built_with,
            "{} is built with others than the table says",
            row.package
        );
    }
}

#[test]
fn no_crate_is_built_with_what_it_must_never_be() {
    let workspace = Workspace::read();
    for row in Row::all() {
        let used = workspace.all_built_with(&row.package);
        let wrong: Vec<&String> =
            row.never_with.iter().filter(|one| used.contains(one.as_str())).collect();
        assert!(wrong.is_empty(), "{} must not be built with {wrong:?}", row.package);
    }
}

#[test]
fn only_the_servers_storage_and_tools_name_the_journal() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut looked_at, mut found) = (0, Vec::new());
    for path in sources(&src) {
        let within = path.strip_prefix(&src).expect("below");
        // Unit tests may give a node a disk of the journal's.
        if SEES_THE_JOURNAL.iter().any(|may| within.starts_with(may))
            || within.ends_with("tests.rs")
            || within.components().any(|part| part.as_os_str() == "tests")
        {
            continue;
        }
        looked_at += 1;
        if fs::read_to_string(&path).expect("text").contains("courser_journal::") {
            found.push(within.to_owned());
        }
    }
    assert!(looked_at > 5, "the sources are not where they were");
    assert!(found.is_empty(), "{found:?} must not name the journal");
}

#[test]
fn management_sees_of_the_broker_what_is_for_its_operator() {
    let (mut looked_at, mut found) = (0, Vec::new());
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../management/src")) {
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
    assert!(looked_at > 10, "the sources are not where they were");
    assert!(found.is_empty(), "{found:?} must name courser_broker::admin only");
}

#[test]
fn only_the_files_that_the_architecture_names_have_unsafe_code() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut found, mut open) = (BTreeSet::new(), Vec::new());
    for entry in fs::read_dir(&crates).expect("a folder") {
        let of_crate = entry.expect("an entry").path().join("src");
        let with_unsafe: Vec<PathBuf> =
            sources(&of_crate).into_iter().filter(|path| has_unsafe(path)).collect();
        if with_unsafe.is_empty() {
            let roots = ["lib.rs", "main.rs"].map(|root| of_crate.join(root));
            open.extend(roots.into_iter().filter(|root| root.exists() && !forbids_unsafe(root)));
        }
        let within = |path: &PathBuf| {
            path.strip_prefix(&crates).expect("below").to_string_lossy().into_owned()
        };
        found.extend(with_unsafe.iter().map(within));
    }
    let named = table("## Unsafe code").into_iter().filter_map(|row| {
        let name = quoted(&row[0]).next()?.to_owned();
        Some(name)
    });
    assert_eq!(found, named.collect(), "the table of unsafe code names other files");
    assert!(open.is_empty(), "{open:?} must forbid unsafe code");
}

#[test]
fn what_waits_is_held_by_tests_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut named, mut wrong) = (0, Vec::new());
    for row in table("## What waits") {
        let [.., tests] = &row[..] else { continue };
        let mut is_named = false;
        // The name of a file, and those of tests in it, up to the next file.
        for part in tests.split('`').collect::<Vec<_>>()[1..].chunks(2) {
            let [file, functions] = part else { continue };
            is_named = true;
            let path = match file.split_once('/') {
                Some(("crates", _)) => root.join(file),
                Some(("src", _)) => root.join("crates/server").join(file),
                _ => root.join("crates/server/tests/server").join(file),
            };
            let Ok(text) = fs::read_to_string(&path) else {
                wrong.push(format!("{file} is not there"));
                continue;
            };
            for function in functions.split([',', ' ']).filter(|name| !name.is_empty()) {
                named += 1;
                if !text.contains(&format!("fn {function}(")) {
                    wrong.push(format!("{file} has no {function}"));
                }
            }
        }
        if !is_named {
            wrong.push(format!("no test is named for: {}", row.join(" | ")));
        }
    }
    assert!(named > 30, "the table is not where it was");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// All source files in a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut pending, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

fn has_unsafe(path: &Path) -> bool {
    let text = fs::read_to_string(path).expect("text");
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let is_part_of_name = |c: char| c.is_alphanumeric() || c == '_';
    code.flat_map(|line| line.split(|c| !is_part_of_name(c))).any(|word| word == "unsafe")
}

fn forbids_unsafe(root: &Path) -> bool {
    fs::read_to_string(root).expect("text").contains("#![forbid(unsafe_code)]")
}
