//! Clients that never come to open a vhost: what they may make the broker hold, and that it is counted.

use crate::Server;
use crate::driver::serve;
use crate::inside::INSIDE;
use crate::testing::start;
use courser_codec::{FieldTable, PROTOCOL_HEADER, Table, connection};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

/// Bytes that follow a login, though the client was not let in.
const BEHIND: usize = 200_000;

fn connect(server: &Server) -> DuplexStream {
    let (shared, stopping) = server.serving();
    let place = shared.places.admit_own().expect("a place");
    let (pipe, theirs) = tokio::io::duplex(1 << 20);
    tokio::spawn(serve(pipe, INSIDE, place, "a test".into(), Arc::clone(shared), stopping));
    theirs
}

/// The largest frame with which a client may log in that says all it can of itself, in entries of two bytes.
fn start_ok(user: &str, frame_bytes: usize) -> Vec<u8> {
    let capabilities = FieldTable::new().with("authentication_failure_close", true);
    let mut said = FieldTable::new().with("capabilities", capabilities).to_entries();
    said.extend(b"\0V".repeat((frame_bytes - said.len() - 100) / 2));
    let response = format!("\0{user}\0wrong");
    let start_ok = connection::StartOk {
        client_properties: Table::from_entries(&said),
        mechanism: "PLAIN".try_into().expect("short"),
        response: response.as_bytes(),
        locale: "en_US".try_into().expect("short"),
    };
    let mut bytes = PROTOCOL_HEADER.to_vec();
    start_ok.write_frame(0, &mut bytes);
    bytes
}

/// Waits until what is held for clients without a session is as it should be.
async fn held(server: &Server, is_it: impl Fn(u64) -> bool) -> u64 {
    for _ in 0..1000 {
        let bytes = server.admin().memory_uses().newcomers;
        if is_it(bytes) {
            return bytes;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} bytes", server.admin().memory_uses().newcomers)
}

#[tokio::test]
async fn what_a_client_says_before_it_is_let_in_is_counted_and_no_more_than_it_has_sent() {
    let (server, _folder) = start().await;
    let mut refused = connect(&server);
    refused.write_all(&start_ok("stranger", 4000)).await.expect("sent");
    let mut answer = vec![0; 10_000];
    while !answer.windows(11).any(|bytes| bytes == b"was refused") {
        refused.read_buf(&mut answer).await.expect("an answer");
    }
    let bytes = held(&server, |bytes| bytes >= 3800).await;
    assert!(bytes <= 9000, "{bytes}");
    drop(refused);
    assert_eq!(held(&server, |bytes| bytes == 0).await, 0);
    server.stop().await.expect("a clean stop");
}

#[tokio::test]
async fn what_follows_a_login_is_not_read_before_that_is_decided() {
    let (server, _folder) = start().await;
    let mut guessing = connect(&server);
    let mut bytes = start_ok("guest", 4000);
    bytes.extend(vec![8; BEHIND]);
    guessing.write_all(&bytes).await.expect("sent");
    // The password is looked at on another thread meanwhile, and this one has looked at the rest.
    let most = held(&server, |bytes| bytes > 0).await;
    assert!(most < 20_000, "{most}");
    drop(guessing);
    held(&server, |bytes| bytes == 0).await;
    server.stop().await.expect("a clean stop");
}
