//! `courser ctl consume`: messages of a queue or stream as they come.

use crate::ctl_publishing::{waiting, with_queue};
use crate::support::operated::{Operated, said};
use crate::support::{ended, wait_until};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};

/// A consumer that runs, and what it prints.
struct Consuming {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Consuming {
    /// Over the socket in the data folder.
    fn start(broker: &Operated, arguments: &[&str]) -> Self {
        let mut command = broker.command();
        command.args(["--data-dir", "data", "-s", "consume"]).args(arguments);
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().expect("a process");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        Consuming { child, out }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line
    }

    fn interrupt(&self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it runs");
    }

    /// What it ends with, and says as an error.
    fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "", "nothing more is printed");
        let output = ended(self.child);
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_printed_as_they_come_and_are_gone_when_ctrl_c_ends_it() {
    let broker = with_queue("q");
    let mut consuming = Consuming::start(&broker, &["q"]);
    wait_until("it consumes", async || {
        let listed = broker.json(&["list_consumers", "queue_name", "prefetch_count"]);
        listed == json!([{ "queue_name": "q", "prefetch_count": 100 }])
    })
    .await;
    let connections = broker.json(&["list_connections", "user", "name"]);
    assert_eq!(connections[0]["user"], "(operator)", "{connections}");
    for text in ["one", "two\u{7}"] {
        broker.quiet(&["publish", "-r", "q", text]);
    }
    assert!(consuming.line().contains("\tq\tfalse\t3\tstring\tone\t[{\"delivery_mode\",2}]\n"));
    assert!(consuming.line().contains("\ttwo\\u{7}\t"), "control characters are escaped");
    consuming.interrupt();
    assert_eq!(consuming.ended(), (Some(0), String::new()));
    assert_eq!(waiting(&broker, "q"), 0, "they were acknowledged");
}

#[test]
fn as_many_messages_are_taken_as_are_counted() {
    let broker = with_queue("q");
    broker.quiet(&["publish", "-r", "q", "--count", "5", "x"]);
    let lines = broker.quiet(&["--formatter", "json", "consume", "q", "--count", "3"]);
    let lines: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((&lines[0]["payload"], &lines[0]["redelivered"]), (&json!("x"), &json!(false)));
    let left = broker.json(&["get", "q", "--count", "9"]);
    assert_eq!(left.as_array().map(Vec::len), Some(2));
    assert_eq!(left[0]["redelivered"], false, "no more were taken");
    let table = broker.quiet(&["consume", "q", "--count", "2"]);
    assert!(table.starts_with("exchange\trouting_key\tredelivered\t"), "{table}");
    assert_eq!(table.lines().count(), 3, "one header: {table}");
}

#[test]
fn a_stream_is_read_from_an_offset_and_keeps_its_messages() {
    let broker = Operated::start();
    broker.quiet(&["declare_queue", "log", "--type", "stream"]);
    for text in ["a", "b", "c"] {
        broker.quiet(&["publish", "-r", "log", text]);
    }
    for (offset, expected) in [("first", "abc"), ("1", "bc"), ("last", "c")] {
        let count = expected.len().to_string();
        let lines = broker.quiet(&[
            "--formatter",
            "json_stream",
            "consume",
            "log",
            "--offset",
            offset,
            "--count",
            &count,
        ]);
        let payload = |line: &str| {
            let message: Value = serde_json::from_str(line).expect("JSON");
            message["payload"].as_str().expect("text").to_owned()
        };
        assert_eq!(lines.lines().map(payload).collect::<String>(), expected, "{offset}");
    }
    assert_eq!(waiting(&broker, "log"), 3);
    let error = broker.refused(65, &["consume", "log", "--offset", "firs"]);
    assert!(error.contains("x-stream-offset"), "{error}");
    assert!(broker.refused(65, &["get", "log"]).contains("use consume --offset first"));
}

#[test]
fn a_user_consumes_over_http_with_its_permissions() {
    let broker = with_queue("q");
    broker.quiet(&["publish", "-r", "q", "hello"]);
    broker.quiet(&["add_user", "ada", "s3cret"]);
    broker.quiet(&["set_user_tags", "ada", "management"]);
    let consume = |user: &str, password: &str| {
        let mut command = broker.command();
        command.env("COURSER_CTL_PASSWORD", password);
        command.args([
            "--url",
            &broker.url(),
            "--user",
            user,
            "-s",
            "consume",
            "q",
            "--count",
            "1",
        ]);
        said(&mut command)
    };
    let unknown = consume("ada", "wrong");
    assert_eq!(unknown.code, Some(77), "{unknown:?}");
    let stranger = consume("ada", "s3cret");
    assert_eq!(stranger.code, Some(65), "{stranger:?}");
    assert!(stranger.error.contains("access to vhost '/' refused for user 'ada'"), "{stranger:?}");
    broker.quiet(&["set_permissions", "ada", "", "", "^q$"]);
    let allowed = consume("ada", "s3cret");
    assert_eq!((allowed.code, &*allowed.error), (Some(0), ""), "{allowed:?}");
    assert!(allowed.out.contains("\thello\t"), "{allowed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_not_be_consumed_is_an_error() {
    let broker = with_queue("q");
    for (code, wrong, why) in [
        (65, &["none"][..], "no queue 'none' in vhost '/'"),
        (65, &["-p", "none", "q"], "vhost none not found"),
        (64, &["q", "--formatter", "erlang"], "use the formatters table, csv or json_stream"),
        (64, &["q", "--count", "0"], "not a whole number above 0"),
        (64, &["q", "--prefetch", "70000"], "at most 65535"),
        (64, &["q", "--argument", "a=null"], "the argument a can't be sent"),
    ] {
        let error = broker.refused(code, &[&["consume"], wrong].concat());
        assert!(error.contains(why), "{wrong:?}: {error}");
    }
    let consuming = Consuming::start(&broker, &["q"]);
    let has_consumer = async || broker.json(&["list_consumers"]) != json!([]);
    wait_until("it consumes", has_consumer).await;
    broker.quiet(&["delete_queue", "q"]);
    let (code, error) = consuming.ended();
    assert_eq!(code, Some(69), "{error}");
    assert!(error.contains("the broker has ended the consumer: the queue was deleted"), "{error}");
    let without = Operated::start_with(|command| {
        command.env("COURSER_MANAGEMENT_WEBSOCKET", "false");
    });
    let error = without.refused(69, &["consume", "q"]);
    assert!(error.contains("'management.websocket'"), "{error}");
}
