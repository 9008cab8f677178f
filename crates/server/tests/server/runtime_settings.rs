//! The log's level and the memory limit are changed while the broker runs.

use crate::cluster::{Three, get};
use crate::cluster_operated::ctl;
use crate::support::operated::Operated;
use crate::support::{Client, Heard, wait_until};
use courser_codec::FieldTable;
use courser_connection::client::Config;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What the log says at the level debug whenever a client comes.
const OPENED: &str = "vhost opened";

/// A broker with this file of settings, whose log goes into the file that is named, in the folder.
fn start(settings: &str) -> (Operated, PathBuf, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let (config, log) = (folder.path().join("courser.yaml"), folder.path().join("log"));
    std::fs::write(&config, settings).expect("a file");
    let broker = Operated::start_with(|command| {
        command.env_remove("COURSER_LOG_LEVEL").arg("--config").arg(&config);
        command.stderr(std::fs::File::create(&log).expect("a file"));
    });
    (broker, log, folder)
}

fn lines(log: &Path, part: &str) -> usize {
    let text = std::fs::read_to_string(log).expect("text");
    text.lines().filter(|line| line.contains(part)).count()
}

async fn wait_for(log: &Path, part: &str, count: usize) {
    wait_until(part, async || lines(log, part) >= count).await;
}

fn changed(before: &str, level: &str) -> String {
    format!(r#"the log level was changed by="(operator)" level="{level}" before="{before}""#)
}

#[tokio::test]
async fn the_log_has_lines_of_the_level_that_is_set_until_another_one_is() {
    let (broker, log, _folder) = start("");
    Client::connect(broker.broker.address).await;
    let said = broker.quiet(&["set_log_level", "debug", "courser::driver"]);
    let expected = "The log level is info,courser::driver=debug now and was info. A restart or a reload of the \
                    configuration sets it to info.\n";
    assert_eq!(said, expected);
    assert_eq!(lines(&log, OPENED), 0);
    Client::connect(broker.broker.address).await;
    wait_for(&log, OPENED, 1).await;
    // As RabbitMQ's tool has it, with its names of levels.
    broker.quiet(&["set_log_level", "courser::driver", "warning"]);
    Client::connect(broker.broker.address).await;
    // What is logged behind that comes behind it.
    broker.quiet(&["set_log_level", "none"]);
    broker.quiet(&["set_log_level", "info"]);
    wait_for(&log, &changed("off", "info"), 1).await;
    assert_eq!(lines(&log, OPENED), 1);
    for (before, level) in [
        ("info", "info,courser::driver=debug"),
        ("info,courser::driver=debug", "info,courser::driver=warn"),
        ("info,courser::driver=warn", "off"),
    ] {
        assert_eq!(lines(&log, &changed(before, level)), 1, "{level}");
    }
}

#[tokio::test]
async fn what_is_no_level_and_no_limit_is_refused_with_what_there_is() {
    let broker = Operated::start();
    for (code, arguments, expected) in [
        (65, &["set_log_level", "loud"][..], "there are off, error, warn, info, debug, trace"),
        (65, &["set_log_level", "debug", "a=b"], "'a=b' is no target"),
        (65, &["set_log_level", "trace", "tungstenite"], "none of the broker's own targets"),
        (65, &["set_log_level", "info,hyper_util=trace"], "none of the broker's own targets"),
        (64, &["set_log_level", "connection", "debug"], "a category of RabbitMQ's log"),
        (65, &["set_log_level", "debug", "--member", "b"], "no node 'b'"),
        (64, &["set_vm_memory_high_watermark", "0"], "above 0 and up to 1"),
        (64, &["set_vm_memory_high_watermark", "4GiB"], "absolute 4GiB"),
        (64, &["set_vm_memory_high_watermark", "absolute", "much"], "'much' is not a size"),
    ] {
        let said = broker.refused(code, arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
    let status = broker.json(&["status"]);
    assert_eq!(status["log_level"]["changed_by"], Value::Null);
    assert_eq!(status["memory_limit"]["changed_by"], Value::Null);
}

#[tokio::test]
async fn a_reload_sets_level_and_limit_to_what_the_configuration_has() {
    let (broker, log, _folder) =
        start("limits: { memory_high_bytes: 2000000000 }\nlog: { level: warn }\n");
    broker.quiet(&["set_log_level", "info"]);
    broker.quiet(&["set_vm_memory_high_watermark", "absolute", "1GB"]);
    let found = broker.json(&["environment"]);
    assert_eq!(
        (&found["log"]["level"], &found["limits"]["memory_high_bytes"]),
        (&json!("info"), &json!(1_000_000_000))
    );
    let changed = &found["changed_at_run_time"];
    assert_eq!(changed["log.level"]["configured"], "warn");
    assert_eq!(changed["limits.memory_high_bytes"]["changed_by"], "(operator)");
    let status = broker.quiet(&["status"]);
    assert!(
        status.contains("Level: info (changed at run time by (operator); configured: warn)"),
        "{status}"
    );
    assert!(
        status.contains("1.0000 gb (changed at run time by (operator); configured: 2.0000 gb)"),
        "{status}"
    );

    broker.broker.signal("HUP");
    wait_for(&log, "the log level is that of the configuration", 1).await;
    wait_until("the limit is the configured one", async || {
        broker.json(&["status"])["memory_limit"]["value"] == 2_000_000_000_u64
    })
    .await;
    let found = broker.json(&["environment"]);
    assert_eq!(
        (&found["log"]["level"], &found["changed_at_run_time"]),
        (&json!("warn"), &Value::Null)
    );
    assert_eq!(lines(&log, "take effect after a restart"), 0);
}

#[tokio::test]
async fn what_is_shown_to_be_in_effect_is_what_a_reload_has_set() {
    let (broker, log, folder) =
        start("amqp: { channel_max: 7 }\nlimits: { memory_high_bytes: 4000000000 }\n");
    let settings = "amqp: { channel_max: 8 }\nlimits: { memory_high_bytes: 2000000000 }\nlog: { level: debug }\n\
                    vhosts: [{ name: later }]\n";
    std::fs::write(folder.path().join("courser.yaml"), settings).expect("a file");
    broker.broker.signal("HUP");
    wait_for(&log, "configuration reloaded", 1).await;
    let found = broker.json(&["environment"]);
    assert_eq!(found["log"]["level"], "debug");
    assert_eq!(found["limits"]["memory_high_bytes"], 2_000_000_000_u64);
    assert_eq!(found["vhosts"][0]["name"], "later");
    assert_eq!(found["amqp"]["channel_max"], 7, "that takes a restart");
    assert_eq!(found["changed_at_run_time"], Value::Null);

    broker.quiet(&["set_vm_memory_high_watermark", "absolute", "3GB"]);
    let found = broker.json(&["environment"]);
    assert_eq!(found["limits"]["memory_high_bytes"], 3_000_000_000_u64);
    let changed = &found["changed_at_run_time"];
    assert_eq!(changed["limits.memory_high_bytes"]["configured"], 2_000_000_000_u64);
    assert_eq!(changed["log.level"], Value::Null);
}

#[tokio::test]
async fn publishers_are_held_back_by_a_lower_limit_and_go_on_with_a_higher_one() {
    let broker = Operated::start();
    let capabilities = FieldTable::new().with("connection.blocked", true);
    let client_properties = FieldTable::new().with("capabilities", capabilities);
    let told = Config { client_properties, ..Config::default() };
    let mut client = Client::connect_with(broker.broker.address, told).await;
    client.declare("q").await;
    client.publish("q", &vec![7; 10_000_000]).await;
    wait_until("it is there", async || client.count("q").await == 1).await;
    let set = |limit: &[&str]| broker.quiet(&[&["set_vm_memory_high_watermark"], limit].concat());
    set(&["absolute", "5MB"]);
    let alarms = broker.quiet(&["alarms"]);
    assert!(alarms.contains("Memory alarm"), "{alarms}");
    // Who publishes is told.
    client.publish("q", b"one more").await;
    assert_eq!(client.next().await, Heard::Blocked("low on memory".into()));
    set(&["0.5"]);
    assert_eq!(client.next().await, Heard::Unblocked);
    assert!(broker.quiet(&["alarms"]).contains("no alarms"));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_node_of_a_cluster_has_its_own_limit() {
    let three = Three::start().await;
    let leader = three.wait_for_leader().await;
    let follower = (leader + 1) % 3;
    let http = three.node(leader).addresses().http[0];
    let asked = async |path: &str| -> Value {
        let (status, text) = get(http, path).await;
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).expect("JSON")
    };
    let limits = async || {
        let mut all = Vec::new();
        for at in 0..3 {
            let path = format!("/api/nodes/{}/memory-limit", three.node(at).name());
            all.push(asked(&path).await["value"].as_u64().expect("bytes"));
        }
        all
    };
    let before = limits().await;
    let set: &[&str] = &["set_vm_memory_high_watermark", "absolute", "777777777"];
    let done = ctl(&three.configs[follower], set).await;
    assert!(done.status.success(), "{done:?}");
    let mut expected = before.clone();
    expected[follower] = 777_777_777;
    assert_eq!(limits().await, expected);

    let by_name: [&[&str]; 3] = [
        &["set_vm_memory_high_watermark", "absolute", "888888888", "--member", "a"],
        &["set_vm_memory_high_watermark", "absolute", "888888888", "--member", "b"],
        &["set_vm_memory_high_watermark", "absolute", "888888888", "--member", "c"],
    ];
    let done = ctl(&three.configs[follower], by_name[leader]).await;
    assert!(done.status.success(), "{done:?}");
    expected[leader] = 888_888_888;
    assert_eq!(limits().await, expected);
    // The broker that the node has follows it.
    let shown = asked("/api/nodes").await;
    let shown = shown.as_array().expect("nodes").iter().find(|one| one["mem_limit"].is_u64());
    assert_eq!(shown.expect("the leader")["mem_limit"], 888_888_888);
    let unknown = ctl(&three.configs[leader], &["set_log_level", "info", "--member", "d"]).await;
    assert_eq!(unknown.status.code(), Some(65), "{unknown:?}");
    three.stop().await;
}
