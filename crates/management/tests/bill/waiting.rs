//! What a list has in memory that waits for its client.

use crate::counting::used_kib;
use crate::direct::{Asked, Direct, HERE, head};
use courser_broker::admin::NewQueue;
use courser_codec::FieldTable;
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
