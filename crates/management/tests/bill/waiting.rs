//! What a list has in memory that waits for its client.

use crate::clients::with_channels;
use crate::counting::{measured, used_kib};
use crate::direct::{Asked, Direct, HERE, head};
use crate::largest::QUEUE;
use crate::{asked, asked_over};
use courser_auth::{Permission, TopicPermission};
use courser_broker::admin::{ApplyTo, NewBinding, NewQueue, Parameter, Policy, PolicyKind};
use courser_codec::{FieldTable, ShortString};
use courser_management::{Exporter, ServerFigures};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::watch;

/// Longer than a list waits for its client, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Queues, and KiB of the arguments of each.
const QUEUES: usize = 340;
const ARGUMENTS_KIB: usize = 30;

/// A list of queues is made row by row: those that come later are not copied before their turn.
pub async fn check(direct: &Direct, user: &str) {
    let admin = direct.broker.admin();
    for nth in 0..QUEUES {
        let arguments = FieldTable::new().with("x-note", "a".repeat(ARGUMENTS_KIB << 10));
        let queue = NewQueue { durable: false, auto_delete: false, arguments };
        admin.declare_queue("/", &format!("wide{nth}"), queue).expect("a queue");
    }
    for query in ["", "?page=1&page_size=500&name=wide", "?sort=name"] {
        let before = used_kib();
        let mut stream = direct.connect(HERE);
        let request = head(&Asked::new("GET", &format!("/api/queues{query}")).by(user), 0);
        stream.write_all(request.as_bytes()).await.expect("it is taken");
        stream.read_exact(&mut [0; 4096]).await.expect("the answer begins");
        // What follows is made as far as it is before it waits.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let waiting = used_kib().saturating_sub(before);
        assert!(waiting < QUEUES * ARGUMENTS_KIB / 4, "{query}: {waiting} KiB wait");
    }
}

/// Bindings, and KiB of the arguments of each: together more than a user has for lists.
const BINDINGS: usize = 1350;
/// What a list may have that finds no room.
const REFUSED_KIB: usize = 4 << 10;
/// Vhosts with policies, parameters and permissions, how many of each, and bytes of each pattern of a permission.
const VHOSTS: usize = 8;
const POLICIES: usize = 500;
const PARAMETERS: usize = 20;
const TOPIC_PERMISSIONS: usize = 80;
const PERMISSIONS: usize = 50;
const PATTERN_BYTES: usize = 4096;
/// Bytes of the value of a parameter.
const VALUE_BYTES: usize = 60_000;

/// A list that is gathered is refused before it is there where another one of its user has the room.
pub async fn check_gathered(direct: &Direct, user: &str) {
    for nth in 0..BINDINGS {
        let binding = NewBinding {
            source: short("amq.topic"),
            destination: short(QUEUE),
            to_queue: true,
            routing_key: short(&format!("wide.{nth}")),
            arguments: FieldTable::new().with("x-note", "a".repeat(ARGUMENTS_KIB << 10)),
        };
        direct.broker.admin().bind("/", binding).expect("bound");
    }
    set_long_texts(direct, user);
    let path = format!("/api/bindings/%2F/e/amq.topic/q/{QUEUE}");
    let lists = [
        "/api/bindings",
        &path,
        "/api/exchanges/%2F/amq.topic/bindings/source",
        "/api/policies",
        "/api/parameters",
        "/api/permissions",
        "/api/topic-permissions",
    ];
    let ask = |path: &str| head(&Asked::new("GET", path).by(user), 0);
    let mut first = direct.connect(HERE);
    first.write_all(ask(lists[0]).as_bytes()).await.expect("it is taken");
    first.read_exact(&mut [0; 4096]).await.expect("the answer begins");
    for path in lists {
        let (status, cost) = measured(asked(direct, ask(path).as_bytes())).await;
        assert_eq!(status, 503, "{path}");
        assert!(cost.memory_kib < REFUSED_KIB, "{path}: {cost:?}");
    }
    drop(first);
    for path in lists {
        let is_served = async || asked(direct, ask(path).as_bytes()).await == 200;
        let begun = Instant::now();
        // The first goes on until it has noticed that its client is gone.
        while !is_served().await {
            assert!(begun.elapsed() < PATIENCE, "{path} is never served");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Connections, channels of each, and what a page of metrics may have that is written connection by connection.
const CONNECTIONS: usize = 100;
const CHANNELS: u16 = 150;
const SCRAPE_KIB: usize = 4 << 10;

/// A page of metrics has some channels in memory, not those of a hundred connections.
pub async fn check_scrape(direct: &Direct) {
    let _sessions = with_channels(direct, CONNECTIONS, CHANNELS);
    let (api, ledger) = (Arc::clone(&direct.api), Arc::default());
    let exporter = Exporter::new(api, ledger, ServerFigures::default, false);
    let stop = watch::Sender::new(false);
    for gzip in ["", "accept-encoding: gzip\r\n"] {
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        let peer = SocketAddr::from((HERE, 1));
        tokio::spawn(Arc::clone(&exporter).serve(theirs, peer, stop.subscribe()));
        let path = "/metrics/detailed?family=channel_metrics&family=channel_exchange_metrics";
        let request = format!("GET {path} HTTP/1.1\r\nhost: b\r\nconnection: close\r\n{gzip}\r\n");
        let (status, cost) = measured(asked_over(ours, request.as_bytes())).await;
        assert_eq!(status, 200);
        assert!(cost.memory_kib < SCRAPE_KIB, "{gzip}: {cost:?}");
    }
}

/// Makes policies, parameters and permissions whose texts are long: of each kind more than a list may have that finds no room.
/// The patterns of policies are not: each is compiled several times.
fn set_long_texts(direct: &Direct, user: &str) {
    let admin = direct.broker.admin();
    let long = || format!("[{}]", "a".repeat(PATTERN_BYTES - 2));
    let text = "t".repeat(250);
    let mut definition = FieldTable::new();
    for key in ["alternate-exchange", "dead-letter-exchange", "dead-letter-routing-key"] {
        definition = definition.with(key, text.clone());
    }
    for vhost in (0..VHOSTS).map(|nth| format!("long{nth}")) {
        admin.change_vhost(&vhost, |_| {}).expect("a vhost");
        admin.set_permission(user, &vhost, Permission::all()).expect("let in");
        for nth in 0..POLICIES {
            let policy = Policy {
                name: format!("{nth}{text}"),
                pattern: "^none".to_owned(),
                apply_to: ApplyTo::All,
                priority: 0,
                definition: definition.clone(),
            };
            admin.set_policy(&vhost, PolicyKind::User, policy).expect("there is room");
        }
        for nth in 0..PARAMETERS {
            let parameter = Parameter {
                vhost: vhost.clone(),
                component: "federation-upstream-set".to_owned(),
                name: nth.to_string(),
                value: format!("[\"{}\"]", "v".repeat(VALUE_BYTES)),
            };
            admin.set_parameter(&parameter).expect("there is room");
        }
        for nth in 0..TOPIC_PERMISSIONS {
            let topic = TopicPermission { write: long(), read: long() };
            let set = admin.set_topic_permission(user, &vhost, &nth.to_string(), topic);
            set.expect("a permission");
        }
    }
    for nth in 0..PERMISSIONS {
        let name = format!("long{nth}");
        direct.add_user(&name, "");
        for vhost in (0..VHOSTS).map(|nth| format!("long{nth}")) {
            let permission = Permission { configure: long(), write: long(), read: long() };
            admin.set_permission(&name, &vhost, permission).expect("let in");
        }
    }
}

fn short(text: &str) -> ShortString {
    text.try_into().expect("short")
}
