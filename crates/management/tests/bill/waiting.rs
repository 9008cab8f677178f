//! What a list has in memory that waits for its client.

use crate::asked;
use crate::counting::{measured, used_kib};
use crate::direct::{Asked, Direct, HERE, head};
use crate::largest::QUEUE;
use courser_broker::admin::{NewBinding, NewQueue};
use courser_codec::{FieldTable, ShortString};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Queues, and KiB of the arguments of each.
const QUEUES: usize = 100;
const ARGUMENTS_KIB: usize = 100;

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
const BINDINGS: usize = 400;
/// What a list may have that finds no room.
const REFUSED_KIB: usize = 4 << 10;

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
    let path = format!("/api/bindings/%2F/e/amq.topic/q/{QUEUE}");
    let lists = ["/api/bindings", &path, "/api/exchanges/%2F/amq.topic/bindings/source"];
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
        // The first goes on until it has noticed that its client is gone.
        while !is_served().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn short(text: &str) -> ShortString {
    text.try_into().expect("short")
}
