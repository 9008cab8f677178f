//! The command itself.

use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use crate::broker::{Broker, Faults};

/// Longer than anything takes, also on a busy machine, and no part of a run that is not ended.
pub const PATIENCE: Duration = Duration::from_secs(300);

async fn perftest(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perftest"));
    command.args(args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.spawn().unwrap()).await
}

/// What comes of a run, which is killed if it goes on for too long.
async fn ended(child: Child) -> Output {
    let id = child.id().to_string();
    let mut waiting = tokio::task::spawn_blocking(move || child.wait_with_output().unwrap());
    match tokio::time::timeout(PATIENCE, &mut waiting).await {
        Ok(output) => output.unwrap(),
        Err(_) => {
            let killed = Command::new("kill").args(["-KILL", &id]).status();
            panic!("it ran on, and was killed: {killed:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_prints_lines_and_a_report_and_writes_files() {
    let broker = Broker::start(Faults::default()).await;
    let folder = std::env::temp_dir().join(format!("perftest-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (json, html) = (folder.join("report.json"), folder.join("report.html"));
    let output = perftest(&[
        "-uri",
        &broker.uri,
        "-duration",
        "2s",
        "-rate",
        "100",
        "-confirm",
        "10",
        "-json",
        json.to_str().unwrap(),
        "-html",
        html.to_str().unwrap(),
    ])
    .await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let lines: Vec<_> = text.lines().take_while(|line| line.starts_with("published: ")).collect();
    assert!((1..=3).contains(&lines.len()), "{text}");
    assert!(lines[0].ends_with(&format!("confirmed: {}", lines[0].rsplit(' ').next().unwrap())));
    assert!(
        text.contains("\nThroughput:\n  Published: ") && text.contains("\nConfirm Latency:\n"),
        "{text}"
    );
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(report["published"]["total"], report["consumed"]["total"]);
    assert!(std::fs::read_to_string(html).unwrap().starts_with("<!doctype html>"));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn its_exit_code_tells_what_has_happened() {
    let good = Broker::start(Faults::default()).await;
    let output = perftest(&["--uri", &good.uri, "--messages", "10", "--quiet"]).await;
    assert_eq!(output.status.code(), Some(0));
    let lossy = Broker::start(Faults { loses: Some(5), ..Faults::default() }).await;
    let line =
        ["--uri", &lossy.uri, "--messages", "10", "--confirm", "5", "--drain-timeout", "200ms"];
    let output = perftest(&line).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("FAILED: 1 message was lost"));
    let output = perftest(&["--uri", "amqp://127.0.0.1:1"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot connect"));
    for options in [&["--nonsense"][..], &["--uri", "nonsense"], &["--ca", "/no/such/file"]] {
        assert_eq!(perftest(options).await.status.code(), Some(2), "{options:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_cannot_be_written_is_told_before_the_run() {
    let broker = Broker::start(Faults::default()).await;
    for option in ["--json", "--html"] {
        let run = ["--uri", &broker.uri, "--duration", "3600s", option, "/no/such/folder/report"];
        // It does not wait for the end of what is measured: nothing is.
        let output = perftest(&run).await;
        assert_eq!(output.status.code(), Some(2), "{option}");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(told.contains("cannot write /no/such/folder/report"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_cannot_begin_leaves_no_report() {
    let name = format!("perftest-none-{}.json", std::process::id());
    let report = std::env::temp_dir().join(name);
    let output =
        perftest(&["--uri", "amqp://127.0.0.1:1", "--json", report.to_str().unwrap()]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(!report.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_reports_are_compared_and_a_worse_one_fails_if_asked_to() {
    let broker = Broker::start(Faults::default()).await;
    let folder = std::env::temp_dir().join(format!("perftest-compare-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [fast, slow] = ["fast.json", "slow.json"].map(|name| folder.join(name));
    let [fast, slow] = [&fast, &slow].map(|path| path.to_str().unwrap());
    for (rate, json) in [("0", fast), ("20", slow)] {
        let run = ["--uri", &broker.uri, "--messages", "21", "--rate", rate, "--json", json];
        assert_eq!(perftest(&run).await.status.code(), Some(0));
    }
    let output = perftest(&["compare", fast, slow]).await;
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("published, msg/s") && text.contains("  rate: 0, then 20"), "{text}");
    let output = perftest(&["compare", fast, slow, "-fail-above", "50"]).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("FAILED: published, msg/s: worse by"));
    assert_eq!(perftest(&["compare", fast, "/no/such/report"]).await.status.code(), Some(2));
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn churn_prints_a_report_and_its_exit_code_tells_of_failures() {
    let broker = Broker::start(Faults::default()).await;
    let output = perftest(&["churn", "channels", "-uri", &broker.uri, "-count", "5"]).await;
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Channels opened and closed: 5 ("), "{text}");
    let missing = ["churn", "channels", "--uri", "amqp://127.0.0.1:1", "--count", "5"];
    assert_eq!(perftest(&missing).await.status.code(), Some(1));
    assert_eq!(perftest(&["churn", "nonsense"]).await.status.code(), Some(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn completions_know_commands_and_options() {
    for shell in ["bash", "zsh", "fish"] {
        let output = perftest(&["completions", shell]).await;
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["variable-rate", "routing-keys", "churn", "compare"] {
            assert!(script.contains(word), "{word} is missing in that of {shell}");
        }
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_output_has_no_reader_ends_and_cleans_up() {
    let broker = Broker::start(Faults::default()).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_perftest"))
        .args(["--uri", &broker.uri, "--duration", "3600s", "--rate", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = ended(child).await;
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "no panic");
    assert_eq!(output.status.code(), Some(1));
    assert!(broker.queues().is_empty(), "the queue that was made is deleted");
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_and_sigterm_print_the_report_so_far() {
    for signal in ["-INT", "-TERM"] {
        stop_with(signal).await;
    }
}

#[cfg(unix)]
async fn stop_with(signal: &str) {
    let broker = Broker::start(Faults::default()).await;
    let child = Command::new(env!("CARGO_BIN_EXE_perftest"))
        .args(["--uri", &broker.uri, "--duration", "3600s", "--rate", "100"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let output = ended(child).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("s, interrupted\n") && text.contains("Consumer Latency:\n  min: "),
        "{text}"
    );
    assert_eq!(output.status.code(), Some(0), "{signal}");
    assert!(broker.queues().is_empty(), "the queue that was made is deleted");
}
