//! The number of the journal, which is a secret.

use crate::support::Broker;
use std::io::Read as _;

/// With it a publisher could make a body that is taken for a part of the log: `docs/journal-format.md`.
#[tokio::test]
async fn nothing_that_can_be_read_over_http_tells_the_number_of_the_journal() {
    let broker = Broker::start().await;
    let segment = broker.folder.path().join("data/journal/0000000000000000.log");
    let mut header = [0; 24];
    std::fs::File::open(segment)
        .and_then(|mut file| file.read_exact(&mut header))
        .expect("it is there");
    let number = u64::from_le_bytes(header[16..].try_into().expect("eight bytes"));
    let hex = format!("{number:016x}");
    let shown =
        [hex.clone(), hex.to_uppercase(), number.to_string(), number.swap_bytes().to_string()];
    let mut answers = Vec::new();
    for path in ["", "/per-object", "/detailed", "/memory-breakdown"] {
        answers.push((path, broker.metrics(&format!("/metrics{path}")).await));
    }
    for path in ["overview", "nodes", "cluster", "attention", "definitions", "global-parameters"] {
        answers.push((path, broker.get(&format!("/api/{path}")).await));
    }
    for (path, answer) in answers {
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(!text.is_empty() && shown.iter().all(|one| !text.contains(one)), "{path}: {text}");
    }
    let page = String::from_utf8(broker.metrics("/metrics").await.body).expect("text");
    let id = broker.admin().log_figures().id;
    assert!(id != 0 && page.contains(&format!("\"courser-cluster-id-{id:08x}\"")), "{page}");
    broker.stop().await;
}
