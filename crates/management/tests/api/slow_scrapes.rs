//! What pages of metrics have in memory whose readers take them slowly.

use crate::direct::{Direct, ELSEWHERE};
use crate::rooms::{counts, declare, time_stands_still, world};
use courser_broker::admin::ConnectionDetails;
use courser_broker::{Identity, Session};
use courser_codec::ShortString;
use courser_management::{Exporter, ServerFigures};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(60);
/// Queues, each with a name so long that a page of all is larger than what goes out at once.
const QUEUES: usize = 400;
const NAME_BYTES: usize = 200;
/// Readers, of which few enough are served.
const READERS: usize = 200;
/// What the scrapes of one address may have.
const ADDRESS_BYTES: u64 = 16 << 20;

/// Channels of one connection: their rows of one metric are larger than what goes out at once.
const CHANNELS: u16 = 2000;

/// How rows of channels begin.
const CHANNEL_ROW: &str = "rabbitmq_detailed_channel_";

/// A reader that takes the head of its page, and nothing more.
struct Reader {
    head: String,
    rest: DuplexStream,
}

impl Reader {
    /// Takes more, until a line begins so. Returns whether the page goes on until then.
    async fn reads_until(&mut self, beginning: &str) -> bool {
        let mut lines = BufReader::new(&mut self.rest).lines();
        loop {
            match tokio::time::timeout(PATIENCE, lines.next_line()).await.expect("in time") {
                Ok(Some(line)) if line.starts_with(beginning) => return true,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

async fn read_slowly(exporter: &Arc<Exporter>, from: [u8; 4], path: &str) -> Reader {
    let (mut ours, theirs) = tokio::io::duplex(1024);
    let stop = watch::Sender::new(false);
    let serving = Arc::clone(exporter).serve(theirs, SocketAddr::from((from, 1)), stop.subscribe());
    tokio::spawn(async move {
        serving.await;
        drop(stop);
    });
    let request = format!("GET {path} HTTP/1.1\r\nhost: broker\r\n\r\n");
    ours.write_all(request.as_bytes()).await.expect("it is taken");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let reading = tokio::time::timeout(PATIENCE, ours.read_u8()).await;
        head.push(reading.expect("in time").expect("an answer"));
    }
    Reader { head: String::from_utf8(head).expect("text"), rest: ours }
}

fn open_channels(direct: &Direct, user: &str) -> Session {
    let admission = direct.broker.admit(user, "/").expect("let in");
    let user = ShortString::try_from(user).expect("short");
    let identity = Identity { user, cancel_notify: true, impersonator: false };
    let details = ConnectionDetails { name: "c".repeat(NAME_BYTES), ..Default::default() };
    let mut session = direct.broker.open_connection(admission, identity, 128 << 10, details);
    for number in 1..=CHANNELS {
        session.admit_channel().expect("let in");
        session.open_channel(number);
    }
    session
}

#[tokio::test]
async fn scrapes_that_wait_for_their_readers_are_counted_and_each_address_has_its_part() {
    let direct = Direct::new();
    for nth in 0..QUEUES {
        declare(&direct, &format!("{nth}{}", "q".repeat(NAME_BYTES)));
    }
    let (api, ledger) = (Arc::clone(&direct.api), Arc::default());
    let exporter = Exporter::new(api, ledger, ServerFigures::default, false);
    // A page that its reader does not take ends after a while, and all of them are to be there at once.
    let still = time_stands_still();
    let mut served = Vec::new();
    let refused = loop {
        let reader = read_slowly(&exporter, ELSEWHERE, "/metrics/per-object").await;
        if !reader.head.starts_with("HTTP/1.1 200 ") {
            break reader.head;
        }
        served.push(reader);
        assert!(served.len() < READERS, "all of them are served");
    };
    assert!(refused.starts_with("HTTP/1.1 503 ") && refused.contains("retry-after: "), "{refused}");
    assert!(served.len() > 10, "{} are served", served.len());
    let counted = direct.broker.admin().memory_uses().answers;
    let least = served.len() as u64 * (200 << 10);
    assert!((least..=ADDRESS_BYTES).contains(&counted), "{counted} bytes of {}", served.len());
    for path in ["/metrics", "/metrics/per-object"] {
        let other = read_slowly(&exporter, [192, 0, 2, 99], path).await;
        assert!(other.head.starts_with("HTTP/1.1 200 "), "{path}: {}", other.head);
    }
    drop((served, still));
    tokio::time::resume();
    counts(&direct, |counted| counted == 0).await;
}

#[tokio::test]
async fn a_page_whose_later_parts_are_larger_than_its_beginning_takes_more_of_the_room_or_breaks_off()
 {
    let direct = world(&["user"]);
    for nth in 0..QUEUES {
        declare(&direct, &format!("{nth}{}", "q".repeat(NAME_BYTES)));
    }
    let _session = open_channels(&direct, "user");
    let (api, ledger) = (Arc::clone(&direct.api), Arc::default());
    let exporter = Exporter::new(api, ledger, ServerFigures::default, false);
    let path = "/metrics/detailed?family=queue_coarse_metrics&family=channel_metrics";
    let still = time_stands_still();
    let (mut begun, mut broken_off) = (Vec::new(), 0);
    for _ in 0..READERS {
        let reader = read_slowly(&exporter, ELSEWHERE, path).await;
        if !reader.head.starts_with("HTTP/1.1 200 ") {
            break;
        }
        begun.push(reader);
    }
    for reader in &mut begun {
        broken_off += usize::from(!reader.reads_until(CHANNEL_ROW).await);
    }
    let counted = direct.broker.admin().memory_uses().answers;
    assert!(
        counted <= ADDRESS_BYTES,
        "{counted} bytes of {}, {broken_off} broken off",
        begun.len()
    );
    assert!(broken_off > 0 && broken_off < begun.len(), "{broken_off} of {}", begun.len());
    let mut other = read_slowly(&exporter, [192, 0, 2, 99], path).await;
    assert!(other.reads_until(CHANNEL_ROW).await, "there is room for others");
    drop((begun, other, still));
    tokio::time::resume();
    counts(&direct, |counted| counted == 0).await;
}
