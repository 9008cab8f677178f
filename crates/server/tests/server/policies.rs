//! Vhosts and policies of the configuration: what is refused, what is followed, and SIGHUP.

use crate::support::{PATIENCE, Process, output};
use courser::Config;
use courser_client::{Connection, Error, QueueOptions};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DOCUMENTED: &str = include_str!("../../../../docs/policies.md");

fn written(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("courser.yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

fn refused(text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = written(&folder, text);
    let error = Config::load(Some(&path), []).expect_err("a mistake").to_string();
    let told = error.strip_prefix(&format!("{}: ", path.display()));
    told.unwrap_or_else(|| panic!("names the file: {error}")).to_owned()
}

/// A broker that logs into a file.
fn start(folder: &TempDir, config: &Path) -> Process {
    let log = std::fs::File::create(folder.path().join("log")).expect("a file");
    let mut command = Process::command();
    command.args(["--listen", "127.0.0.1:0"]).arg("--config").arg(config);
    command.arg("--data-dir").arg(folder.path().join("data")).stderr(log);
    Process::start_with(command)
}

fn wait_for_log(folder: &TempDir, wanted: &str) {
    let start = Instant::now();
    loop {
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        if log.contains(wanted) {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "no '{wanted}' in {log}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

async fn open(broker: &Process, vhost: &str) -> Result<Connection, Error> {
    let vhost = vhost.replace('/', "%2F");
    Connection::open(&format!("amqp://guest:guest@{}/{vhost}", broker.address)).await
}

/// How many of three messages a queue keeps.
async fn kept_of_three(connection: &Connection, queue: &str) -> u32 {
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare(queue, QueueOptions::default()).await.expect("a queue");
    channel.queue_purge(queue).await.expect("an empty queue");
    channel.confirm_select().await.expect("confirms");
    for _ in 0..3 {
        let published = channel.publish("", queue, courser_client::Outgoing::new("x")).await;
        published.expect("published").await.expect("confirmed");
    }
    let passive = channel.queue_info(queue).await.expect("the queue");
    passive.message_count
}

#[test]
fn what_is_wrong_is_named_with_its_key() {
    let policy = |rest: &str| refused(&format!("policies:\n  - name: a\n    pattern: q\n{rest}"));
    assert_eq!(
        policy("    definition: { ttl: 1 }\n").split(';').next(),
        Some("policies[0].definition.ttl is unknown")
    );
    assert_eq!(
        policy("    definition: { max-length: -1 }\n"),
        "policies[0].definition.max-length is not good: {value_negative,-1}"
    );
    assert_eq!(
        policy("    definition: { max-length: 1 }\n    apply_to: everything\n"),
        "policies[0].apply_to is 'everything'; there are all, queues, exchanges, classic_queues, \
         quorum_queues, streams"
    );
    assert!(policy("").contains("policies[0]: missing field `definition`"), "{}", policy(""));
    assert!(policy("    definition: {}\n    prio: 1\n").contains("unknown field `prio`"));
    let pattern = "operator_policies:\n  - { name: a, pattern: '(', definition: { expires: 1 } }\n";
    assert!(refused(pattern).starts_with("operator_policies[0].pattern "), "{}", refused(pattern));
    assert_eq!(refused("vhosts: [{ name: '' }]"), "vhosts[0].name must have 1 to 255 bytes");
    assert_eq!(refused("vhosts: [{ name: a }, { name: a }]"), "vhosts[1].name is there twice");
}

#[tokio::test]
async fn vhosts_of_the_configuration_are_there_with_their_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = written(&folder, "vhosts: [{ name: small, max_connections: 1, max_queues: 1 }]\n");
    let broker = start(&folder, &config);
    let first = open(&broker, "small").await.expect("a connection");
    let Err(refused) = open(&broker, "small").await else { panic!("one too many") };
    assert!(refused.to_string().contains("connection limit (1) is reached"), "{refused}");
    let channel = first.open_channel().await.expect("a channel");
    channel.queue_declare("a", QueueOptions::default()).await.expect("a queue");
    let more = channel.queue_declare("b", QueueOptions::default()).await.expect_err("one too many");
    assert!(more.to_string().contains("queue limit in vhost 'small' (1) is reached"), "{more}");
    first.close().await.expect("closed");
    open(&broker, "/").await.expect("a connection");
}

#[tokio::test]
async fn sighup_replaces_policies_and_a_mistake_keeps_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = |most: i64| {
        format!("policies: [{{ name: p, pattern: '^q', definition: {{ max-length: {most} }} }}]\n")
    };
    let config = written(&folder, &policy(1));
    let broker = start(&folder, &config);
    let connection = open(&broker, "/").await.expect("a connection");
    assert_eq!(kept_of_three(&connection, "q").await, 1);
    written(&folder, &policy(2));
    broker.signal("HUP");
    wait_for_log(&folder, "configuration reloaded");
    assert_eq!(kept_of_three(&connection, "q").await, 2);
    written(&folder, &policy(-1));
    broker.signal("HUP");
    wait_for_log(&folder, "courser.yaml: policies[0].definition.max-length is not good");
    assert_eq!(kept_of_three(&connection, "q").await, 2);
    written(&folder, "policies: []\n");
    broker.signal("HUP");
    wait_for_log(&folder, "policies=0");
    assert_eq!(kept_of_three(&connection, "q").await, 3);
}

#[tokio::test]
async fn a_broker_stops_while_what_is_there_follows_policies_of_the_configuration() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = written(&folder, "policies: []\n");
    let mut broker = start(&folder, &config);
    let connection = open(&broker, "/").await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    for nth in 0..1000 {
        let name = format!("{nth:04}{}", "ab".repeat(123));
        channel.queue_declare(&name, QueueOptions::default()).await.expect("a queue");
    }
    connection.close().await.expect("closed");
    // Each takes some milliseconds for each name.
    let policy = |nth: usize| {
        let pattern = format!("^[0-9]{{4}}(?:a*b?){{{nth}}}[^a-z]");
        let definition = "{ expires: 3600000 }";
        format!("  - {{ name: p{nth}, pattern: '{pattern}', definition: {definition} }}\n")
    };
    let policies: String = (581..=600).map(policy).collect();
    written(&folder, &format!("policies:\n{policies}"));
    broker.signal("HUP");
    let start = Instant::now();
    while !told(&folder, "list_policies").contains("p600") {
        assert!(start.elapsed() < PATIENCE, "none is taken over");
        std::thread::sleep(Duration::from_millis(10));
    }
    broker.signal("TERM");
    assert!(broker.wait().success());
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    assert!(!log.contains("reloaded"), "the stop has waited for that: {log}");
}

/// What an operator is told.
fn told(folder: &TempDir, what: &str) -> String {
    let mut command = Command::new(Process::command().get_program());
    command.arg("ctl").arg("--data-dir").arg(folder.path().join("data"));
    let output = output(command.args(["-q", what]));
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What needs attention, of what the settings are about.
fn attention(folder: &TempDir) -> Vec<String> {
    let said = told(folder, "attention");
    let kinds = said.lines().filter_map(|line| line.split('\t').nth(1));
    kinds.filter(|kind| kind.starts_with("settings_")).map(str::to_owned).collect()
}

#[test]
fn settings_that_are_not_in_effect_need_attention_until_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = written(&folder, "policies: []\n");
    let broker = start(&folder, &config);
    let reloaded = |text: &str, wanted: &[&str]| {
        written(&folder, text);
        broker.signal("HUP");
        let start = Instant::now();
        loop {
            let found = attention(&folder);
            if found == wanted {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{text}: {found:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    assert!(attention(&folder).is_empty());
    reloaded("policies: [{ name: 1 }]\n", &["settings_not_reloaded"]);
    reloaded("vhosts: [{ name: a }]\n", &[]);
    reloaded("limits: { connections_max: 5 }\n", &["settings_need_restart"]);
    reloaded("policies: []\n", &[]);
    reloaded("cluster: { groups: 2 }\n", &["settings_need_restart"]);
    reloaded("limits: { nothing: 5 }\n", &["settings_need_restart", "settings_not_reloaded"]);
    // As it was started.
    reloaded("policies: []\n", &[]);
}

#[tokio::test]
async fn a_policy_for_a_vhost_that_there_is_not_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let vhost = |most: u64| format!("vhosts: [{{ name: a, max_connections: {most} }}]\n");
    let config = written(&folder, &vhost(1));
    let broker = start(&folder, &config);
    let policies = "operator_policies:\n  - { name: p, pattern: q, definition: { expires: 1 } }\n  \
                    - { name: p, vhost: b, pattern: q, definition: { expires: 1 } }\n";
    written(&folder, &format!("{}{policies}", vhost(2)));
    broker.signal("HUP");
    wait_for_log(&folder, "operator_policies[1].vhost is 'b', which there is not");
    let _first = open(&broker, "a").await.expect("a connection");
    let Err(refused) = open(&broker, "a").await else { panic!("the limit is still 1") };
    assert!(refused.to_string().contains("limit (1) is reached"), "{refused}");
}

#[tokio::test]
async fn the_example_of_the_documentation_does_what_it_says() {
    let (_, rest) = DOCUMENTED.split_once("```yaml\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let folder = tempfile::tempdir().expect("a folder");
    let config = written(&folder, example);
    let broker = start(&folder, &config);
    let orders = open(&broker, "orders").await.expect("a connection");
    assert_eq!(kept_of_three(&orders, "tmp.import").await, 2, "the policy");
    assert_eq!(kept_of_three(&orders, "invoices").await, 3, "no policy");
    let channel = orders.open_channel().await.expect("a channel");
    let generous = QueueOptions::default().with("x-max-length", 1_000_000);
    channel.queue_declare("generous", generous).await.expect("a queue");
}

#[test]
fn definitions_with_patterns_that_an_earlier_version_took_stop_no_start_and_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let definitions = folder.path().join("definitions.json");
    let text = r#"{
        "users": [{"name": "app", "password_hash": "", "tags": ""}],
        "vhosts": [{"name": "shop"}],
        "permissions": [{"user": "app", "vhost": "shop", "configure": "", "write": "^(?#mine)q", "read": ""}],
        "topic_permissions": [{"user": "app", "vhost": "shop", "exchange": "amq.topic", "write": "^(?#mine)q", "read": ""}],
        "policies": [{"vhost": "shop", "name": "p", "pattern": "^(?#mine)q", "definition": {"max-length": 5}}]
    }"#;
    std::fs::write(&definitions, text).expect("a file");
    let config = format!("management: {{ load_definitions: {} }}\n", definitions.display());
    let config = written(&folder, &config);
    for _ in 0..2 {
        let mut broker = start(&folder, &config);
        wait_for_log(
            &folder,
            "topic permission of user 'app' for exchange 'amq.topic' in vhost 'shop', permission of user 'app' in vhost \
             'shop', policy 'p' in vhost 'shop'",
        );
        // What it has taken in is on the disk then.
        broker.signal("TERM");
        assert!(broker.wait().success());
    }
    let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
    let kept = "permits nothing: set it anew user=\"app\" vhost=\"shop\" exchange=\"amq.topic\"";
    assert!(log.contains(kept), "{log}");
}

#[tokio::test]
async fn definitions_of_a_start_drop_nothing_that_a_policy_of_the_configuration_keeps() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("definitions.json");
    let config = format!(
        "policies: [{{ name: big, pattern: '^q', priority: 10, definition: {{ max-length: 100 }} }}]\n\
         management: {{ load_definitions: '{}' }}\n",
        file.display()
    );
    let config = written(&folder, &config);
    let small = |most: u32| {
        format!(
            r#"{{"policies":[{{"vhost":"/","name":"small","pattern":".*","definition":{{"max-length":{most}}}}}]}}"#
        )
    };
    std::fs::write(&file, small(10)).expect("a file");
    let mut broker = start(&folder, &config);
    let connection = open(&broker, "/").await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    let durable = QueueOptions { durable: true, ..QueueOptions::default() };
    channel.queue_declare("q", durable).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    for _ in 0..50 {
        let message = courser_client::Outgoing::new("x").persistent();
        channel.publish("", "q", message).await.expect("published").await.expect("confirmed");
    }
    connection.close().await.expect("closed");
    broker.signal("TERM");
    assert!(broker.wait().success());
    std::fs::write(&file, small(20)).expect("a file");
    let broker = start(&folder, &config);
    let connection = open(&broker, "/").await.expect("a connection");
    let channel = connection.open_channel().await.expect("a channel");
    assert_eq!(channel.queue_info("q").await.expect("the queue").message_count, 50);
}
