//! Clients of three nodes with two groups, and of vhosts in both.

use super::super::drain::Pace;
use super::super::testing::{HOME, ONE, PATIENCE, Three, wait_until};
use super::*;
use crate::accounts::let_guest_into;
use courser_client::{Connection, Error, Options, Outgoing, QueueOptions};
use courser_connection::Credentials;
use futures_util::{Sink, Stream as _};
use std::future::poll_fn;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, DuplexStream};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// A vhost in home, and one in the other group.
const VHOSTS: [(&str, GroupNumber); 2] = [("at-home", HOME), ("away", ONE)];

/// With a vhost in each group.
async fn start() -> Three {
    let three = Three::start().await;
    for (vhost, group) in VHOSTS {
        place(&three, vhost, group).await;
    }
    three
}

/// Has a vhost be in a group.
async fn place(three: &Three, vhost: &str, number: GroupNumber) {
    let home = three.service(HOME).await;
    let admin = home.shared.broker.admin();
    match admin.vhost_handle(vhost) {
        None => {
            admin.change_vhost(vhost, |settings| settings.group = number.0).expect("a vhost");
        }
        Some(vhost) => admin.set_vhost_group(&vhost, number.0).expect("a vhost"),
    }
    let_guest_into(&home.shared.broker, vhost).expect("a permission");
    three.spread().await;
    let there = three.admin(ONE).await;
    wait_until("the other group knows", async || there.vhost(vhost).is_some() == (number == ONE))
        .await;
}

async fn open(
    three: &Three,
    index: usize,
    vhost: &str,
    password: &str,
) -> Result<Connection, Error> {
    let stream = TcpStream::connect(three.nodes[index].addresses().amqp[0]).await;
    let opening = Connection::open_on(stream.expect("a listener"), options(vhost, password));
    tokio::time::timeout(PATIENCE, opening).await.expect("an answer")
}

fn options(vhost: &str, password: &str) -> Options {
    Options {
        virtual_host: vhost.try_into().expect("a short name"),
        credentials: Credentials::Plain { user: b"guest".into(), password: password.into() },
        ..Options::default()
    }
}

/// Publishes a message and takes it again.
async fn use_queue(connection: &Connection, queue: &str) {
    let channel = connection.open_channel().await.expect("a channel");
    channel.queue_declare(queue, QueueOptions::durable()).await.expect("a queue");
    channel.confirm_select().await.expect("confirms");
    // More than fits into one frame.
    let body = vec![7; 300_000];
    let message = Outgoing::new(&body).persistent();
    let confirm = channel.publish("", queue, message).await.expect("published");
    assert!(confirm.await.expect("a confirm").is_ack());
    let message = channel.get(queue, true).await.expect("a queue").expect("a message");
    assert!(message.body() == body);
}

/// Why a connection was refused, in the words that the client gets.
fn refusal(opened: Result<Connection, Error>) -> (u16, String) {
    match opened {
        Err(Error::ConnectionClosed(reason)) => (reason.code, reason.text.clone()),
        other => panic!("not refused: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_all_nodes_reach_the_vhosts_of_all_groups() {
    let three = start().await;
    let home = three.leader(HOME).await;
    for leader in 0..3 {
        three.move_lead(ONE, leader).await;
        for index in 0..3 {
            for (vhost, group) in VHOSTS {
                let connection = open(&three, index, vhost, "guest").await;
                let connection =
                    connection.unwrap_or_else(|error| panic!("{index} {vhost}: {error}"));
                use_queue(&connection, &format!("from-{index}")).await;
                let at = if group == ONE { leader } else { home };
                assert_eq!(three.leader(group).await, at);
                let connections = three.admin(group).await.connections(Some(vhost));
                let connections = connections.expect("a vhost");
                let names: Vec<_> = connections.iter().map(|one| one.name).collect();
                let door = three.nodes[index].addresses().amqp[0];
                assert_eq!(names.len(), 1, "{names:?}");
                assert!(names[0].ends_with(&format!(" -> {door}")), "{names:?}");
                connection.close().await.expect("a good end");
            }
        }
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_let_in_is_told_what_every_broker_tells() {
    let three = start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, (home + 1) % 3).await;
    for index in 0..3 {
        for (vhost, _) in VHOSTS {
            let (code, text) = refusal(open(&three, index, vhost, "wrong").await);
            assert_eq!(code, 403);
            assert!(text.starts_with("ACCESS_REFUSED - Login was refused"), "{text}");
        }
        let (code, text) = refusal(open(&three, index, "not-there", "guest").await);
        assert_eq!((code, &*text), (530, "NOT_ALLOWED - vhost not-there not found"));
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_wants_a_vhost_that_no_node_serves_is_told_so() {
    let three = start().await;
    let home = three.service(HOME).await;
    let admin = home.shared.broker.admin();
    // A group that there is not, which is as one whose majority is away.
    admin.change_vhost("lost", |settings| settings.group = 9).expect("a vhost");
    let_guest_into(&home.shared.broker, "lost").expect("a permission");
    let leader = three.leader(HOME).await;
    let (at_home, elsewhere) = tokio::join!(
        open(&three, leader, "lost", "guest"),
        open(&three, (leader + 1) % 3, "lost", "guest"),
    );
    for opened in [at_home, elsewhere] {
        let (code, text) = refusal(opened);
        assert_eq!(code, 541);
        assert_eq!(
            text,
            "INTERNAL_ERROR - vhost 'lost' is down: no node serves its group, which is 9"
        );
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_lead_of_a_group_moves_only_its_own_clients_are_closed() {
    let three = start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, (home + 1) % 3).await;
    let (mut staying, mut closed) = (Vec::new(), Vec::new());
    for index in 0..3 {
        staying.push(open(&three, index, "at-home", "guest").await.expect("a connection"));
        closed.push(open(&three, index, "away", "guest").await.expect("a connection"));
    }
    three.move_lead(ONE, (home + 2) % 3).await;
    for connection in closed {
        let ended = tokio::time::timeout(PATIENCE, connection.closed()).await;
        ended.expect("the end of the connection");
    }
    for connection in staying {
        use_queue(&connection, "kept").await;
    }
    for index in 0..3 {
        let connection = open(&three, index, "away", "guest").await.expect("a connection");
        use_queue(&connection, "again").await;
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vhost_that_has_moved_is_found_by_nodes_that_remember_where_it_was() {
    let three = start().await;
    let home = three.leader(HOME).await;
    three.move_lead(ONE, (home + 1) % 3).await;
    // All nodes ask, and remember the answer.
    for index in 0..3 {
        for (vhost, group) in VHOSTS {
            open(&three, index, vhost, "guest").await.expect("a connection");
            assert_eq!(three.front(index).group_of(vhost).await, Ok(Some(group)));
        }
    }
    place(&three, "at-home", ONE).await;
    place(&three, "away", HOME).await;
    for index in 0..3 {
        for (vhost, group) in [("at-home", ONE), ("away", HOME)] {
            let connection = open(&three, index, vhost, "guest").await;
            let connection = connection.unwrap_or_else(|error| panic!("{index} {vhost}: {error}"));
            use_queue(&connection, "moved").await;
            let there = three.admin(group).await.connections(Some(vhost)).expect("a vhost");
            assert_eq!(there.len(), 1);
            connection.close().await.expect("a good end");
        }
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_passed_on_is_counted_once_and_gives_its_places_back() {
    let three = start().await;
    let (home, home_service) = (three.leader(HOME).await, three.service(HOME).await);
    let mut count = 0;
    for leader in [home, (home + 1) % 3] {
        three.move_lead(ONE, leader).await;
        let service = three.service(ONE).await;
        let connections = || service.shared.broker.admin().connections(None).expect("all").len();
        for index in (0..3).chain(0..3).chain(0..3) {
            let connection = open(&three, index, "away", "guest").await.expect("a connection");
            count += 1;
            assert_eq!(connections(), 1);
            connection.close().await.expect("a good end");
            wait_until("it is gone everywhere", async || {
                connections() == 0 && (0..3).all(|node| three.front(node).places.taken() == 0)
            })
            .await;
        }
        assert_eq!(home_service.shared.logins.counts(), (count, 0));
        assert!(leader == home || service.shared.logins.counts() == (0, 0));
    }
    drop(home_service);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_never_logs_in_at_a_follower_gives_its_place_back() {
    for groups in [1, 2] {
        let three = Three::start_with(|config| {
            config.cluster.groups = groups;
            config.amqp.handshake_timeout_ms = 200;
        })
        .await;
        let follower = (three.leader(HOME).await + 1) % 3;
        let address = three.nodes[follower].addresses().amqp[0];
        // It hears of the end, and keeps its socket all the same.
        let mut silent = TcpStream::connect(address).await.expect("a listener");
        let mut said = Vec::new();
        let reading = tokio::time::timeout(PATIENCE, silent.read_to_end(&mut said)).await;
        let _ended = reading.expect("an end");
        wait_until("its place is free", async || three.front(follower).places.taken() == 0).await;
        drop(silent);
        three.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_drained_says_goodbye_to_the_clients_of_all_groups() {
    let three = start().await;
    let home = three.leader(HOME).await;
    let drained = (home + 2) % 3;
    three.move_lead(ONE, (home + 1) % 3).await;
    let (mut closed, mut staying) = (Vec::new(), Vec::new());
    for (vhost, _) in VHOSTS {
        closed.push(open(&three, drained, vhost, "guest").await.expect("a connection"));
        staying.push(open(&three, home, vhost, "guest").await.expect("a connection"));
    }
    three.front(drained).drain(Pace { group: 10, pause_ms: 0 });
    for connection in closed {
        let ended = tokio::time::timeout(PATIENCE, connection.closed()).await;
        match ended.expect("the end of the connection") {
            Error::ConnectionClosed(reason) => {
                assert_eq!(reason.code, 320);
                let text = "CONNECTION_FORCED - Node was put into maintenance mode";
                assert_eq!(reason.text, text);
            }
            error => panic!("{error}"),
        }
    }
    for connection in staying {
        use_queue(&connection, "kept").await;
    }
    three.stop().await;
}

/// A stream of bytes over a WebSocket.
async fn websocket(address: SocketAddr) -> DuplexStream {
    let request = format!("ws://{address}/ws/amqp").into_client_request().expect("a URL");
    let stream = TcpStream::connect(address).await.expect("a connection");
    let (mut socket, _) = tokio_tungstenite::client_async(request, stream).await.expect("a socket");
    let (mut inner, outer) = tokio::io::duplex(1 << 20);
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 << 10];
        loop {
            tokio::select! {
                read = inner.read(&mut buffer) => match read {
                    Ok(count @ 1..) => {
                        let message = Message::binary(buffer[..count].to_vec());
                        poll_fn(|cx| Pin::new(&mut socket).poll_ready(cx)).await.expect("room");
                        Pin::new(&mut socket).start_send(message).expect("sent");
                        poll_fn(|cx| Pin::new(&mut socket).poll_flush(cx)).await.expect("sent");
                    }
                    _ => return,
                },
                message = poll_fn(|cx| Pin::new(&mut socket).poll_next(cx)) => match message {
                    Some(Ok(Message::Binary(bytes))) => {
                        if inner.write_all(&bytes).await.is_err() {
                            return;
                        }
                    }
                    Some(Ok(_)) => {}
                    _ => return,
                },
            }
        }
    });
    outer
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_over_websocket_reach_the_vhosts_of_all_groups() {
    let three = start().await;
    let home = three.leader(HOME).await;
    for leader in [home, (home + 1) % 3] {
        three.move_lead(ONE, leader).await;
        for node in &three.nodes {
            for (vhost, _) in VHOSTS {
                let stream = websocket(node.addresses().http[0]).await;
                let opening = Connection::open_on(stream, options(vhost, "guest"));
                let opened = tokio::time::timeout(PATIENCE, opening).await.expect("an answer");
                let connection = opened.unwrap_or_else(|error| panic!("{vhost}: {error}"));
                use_queue(&connection, "browsers").await;
                connection.close().await.expect("a good end");
            }
        }
    }
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_whose_vhost_is_asked_for_in_vain_is_sent_away_in_time() {
    let three = start().await;
    let front = three.front((three.leader(HOME).await + 1) % 3);
    // As while other questions are not answered.
    let questions = &front.whereabouts.questions;
    let all = questions.available_permits() as u32;
    let others = questions.acquire_many(all).await.expect("open");
    let note = Note::amqp(&Peer::new(SocketAddr::from(([127, 0, 0, 1], 1)), None), "a client");
    let deciding = Arc::clone(front).decide("away".into(), note);
    let decided = tokio::time::timeout(PATIENCE, deciding).await.expect("in time");
    assert!(matches!(decided, Some(Elsewhere::Nowhere(..))));
    drop(others);
    three.stop().await;
}
