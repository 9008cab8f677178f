//! A vhost on its way to a node that falls silent. The clock stands still where nothing else does.

use super::{FAILED, HOLD, STEP_TIMEOUT, give, take};
use crate::testing::start;
use courser_auth::Permission;
use courser_broker::admin::{Admin, NewMessage, NewQueue};
use courser_codec::FieldTable;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::time::Instant;

const V: &str = "moved";
/// More than a pipe takes at once.
const BODY_BYTES: usize = 256 << 10;

/// Makes the vhost, with a queue and a message.
async fn fill(admin: &Admin) {
    admin.change_vhost(V, |_| ()).expect("a vhost");
    admin.set_permission("guest", V, Permission::all()).expect("let in");
    let queue = NewQueue { durable: true, auto_delete: false, arguments: FieldTable::new() };
    admin.declare_queue(V, "q", queue).expect("a queue");
    publish(admin).await;
}

/// Publishes a message, as far as the vhost takes one.
async fn publish(admin: &Admin) {
    let message = NewMessage {
        routing_key: "q".try_into().expect("short"),
        body: vec![7; BODY_BYTES].into(),
        ..NewMessage::default()
    };
    let publishing = admin.publish("guest", V, &message).expect("it is taken");
    publishing.await.expect("it is routed");
}

/// Gives the vhost to what `other` makes of its pipe, and sees that it goes on here after the limit.
async fn goes_on_after<T>(other: impl AsyncFnOnce(&mut DuplexStream) -> T) -> T {
    let (server, _folder) = start().await;
    let admin = server.admin();
    fill(&admin).await;
    let (ours, mut theirs) = tokio::io::duplex(4096);
    let (_stop, stopping) = watch::channel(false);
    tokio::time::pause();
    let began = Instant::now();
    let giving = give(admin.clone(), (V.to_owned(), 1), ours, stopping);
    // Its end of the pipe stays open.
    let ((), done) = in_time(async { tokio::join!(giving, other(&mut theirs)) }).await;
    assert!(began.elapsed() >= STEP_TIMEOUT);
    tokio::time::resume();
    publish(&admin).await;
    assert_eq!(admin.queue(V, b"q").expect("it is here").ready, 2);
    server.stop().await.expect("a clean stop");
    done
}

/// Something that ends with the other node's silence.
async fn in_time<T>(carrying: impl Future<Output = T>) -> T {
    tokio::time::timeout(10 * STEP_TIMEOUT, carrying).await.expect("a silent node is given up")
}

/// All that comes of a vhost, as it comes.
async fn pieces(theirs: &mut DuplexStream) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let len = theirs.read_u32_le().await.expect("a length");
        assert_ne!(len, FAILED);
        all.extend_from_slice(&len.to_le_bytes());
        if len == 0 {
            return all;
        }
        let mut piece = vec![0; len as usize];
        theirs.read_exact(&mut piece).await.expect("a piece");
        all.append(&mut piece);
    }
}

#[tokio::test]
async fn a_vhost_goes_on_where_it_was_when_the_other_node_takes_no_piece() {
    goes_on_after(async |_| ()).await;
}

#[tokio::test]
async fn a_vhost_goes_on_where_it_was_when_the_other_node_does_not_say_that_it_has_it() {
    goes_on_after(pieces).await;
}

#[tokio::test]
async fn a_vhost_is_not_served_where_it_came_in_part_or_its_node_does_not_say_that_it_holds_it() {
    let all = goes_on_after(pieces).await;
    let (server, _folder) = start().await;
    let admin = server.admin();
    for (sent, says_hold) in [(all.len() / 2, false), (all.len(), true)] {
        let (ours, mut theirs) = tokio::io::duplex(all.len());
        theirs.write_all(&all[..sent]).await.expect("some of it");
        let taking = take(admin.clone(), (V, 1), ours);
        let falling_silent = async {
            // Its log is on the disk by then, which no clock waits for.
            let said = if says_hold { theirs.read_u8().await.ok() } else { None };
            tokio::time::pause();
            (said, Instant::now())
        };
        let carried = async { tokio::join!(taking, falling_silent) };
        let (taken, (said, began)) = in_time(carried).await;
        assert_eq!(taken, Err("the other node is silent".to_owned()));
        assert_eq!(said, says_hold.then_some(HOLD));
        assert!(began.elapsed() >= STEP_TIMEOUT);
        tokio::time::resume();
        assert!(!is_there(&admin));
        // What came in part is thrown away, on a thread of its own. What came whole is kept for home to say where it is.
        while !says_hold && !admin.arrivals().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(admin.forget_arrival(V, 1).expect("it can be kept"), says_hold);
    }
    server.stop().await.expect("a clean stop");
}

fn is_there(admin: &Admin) -> bool {
    admin.vhosts().iter().any(|one| one.name == V)
}
