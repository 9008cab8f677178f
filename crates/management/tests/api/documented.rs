//! The examples of the page about the HTTP API, run as they stand there.

use crate::support::Broker;
use courser_broker::admin::Admin;
use std::path::Path;
use std::process::{Command, Output};

const PAGE: &str = include_str!("../../../../docs/management.md");

/// Where the page says that a broker is.
const USUAL: &str = "http://127.0.0.1:15672";

/// A command of the page, and what it prints if the page says so.
#[derive(Debug, Default)]
struct Example {
    command: String,
    printed: String,
}

/// What stands behind `$ ` in blocks without a language, with the lines that a backslash joins, and the
/// output below.
fn examples(page: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let mut in_block = false;
    // Lines above the first command of a block belong to no example.
    let (mut inside, mut begun, mut continued) = (false, false, false);
    for line in page.lines() {
        if line.starts_with("```") {
            inside = !in_block && line == "```";
            in_block = !in_block;
            (begun, continued) = (false, false);
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| inside) {
            (begun, continued) = (true, line.ends_with('\\'));
            examples.push(Example { command: command.to_owned(), printed: String::new() });
        } else if let Some(example) = examples.last_mut().filter(|_| begun) {
            let text = if continued { &mut example.command } else { &mut example.printed };
            text.push('\n');
            text.push_str(line);
            continued &= line.ends_with('\\');
        }
    }
    examples
}

fn has_curl() -> bool {
    Command::new("curl").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a command in a folder; an answer of 400 or above is a failure.
fn run(command: &str, folder: &Path) -> Output {
    let command = command.replace("curl -s ", "curl -s --fail-with-body --max-time 60 ");
    Command::new("sh").args(["-c", &command]).current_dir(folder).output().expect("a shell")
}

fn check(example: &Example, server: &str, folder: &Path) {
    assert!(example.command.contains(USUAL), "no broker in {example:?}");
    let output = run(&example.command.replace(USUAL, server), folder);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {output:?}", example.command);
    let expected = example.printed.trim();
    assert!(expected.is_empty() || printed.trim() == expected, "{}: {printed}", example.command);
}

fn ready(admin: &Admin) -> Option<usize> {
    admin.queue("/", b"orders").ok().map(|queue| queue.ready)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_examples_of_the_page_do_what_it_says() {
    if !has_curl() {
        eprintln!("SKIPPED: no curl on this machine, so the examples were not run");
        return;
    }
    let broker = Broker::start().await;
    let (server, admin) = (format!("http://{}", broker.http()), broker.admin());
    let folder = tempfile::tempdir().expect("a folder");
    let examples = examples(PAGE);
    assert!(examples.len() >= 7, "{examples:?}");
    let ran = tokio::task::spawn_blocking(move || {
        let mut most = 0;
        for example in &examples {
            check(example, &server, folder.path());
            most = most.max(ready(&admin).unwrap_or(0));
        }
        assert_eq!((most, ready(&admin)), (1, Some(0)), "a message is published and taken");
        let wrong = format!("curl -s -u guest:guest {server}/api/nothing");
        assert!(!run(&wrong, folder.path()).status.success(), "an error is seen");
    });
    ran.await.expect("all examples");
}
