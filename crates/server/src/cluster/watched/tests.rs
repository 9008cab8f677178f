//! Clients of several groups, whose brokers are the machine of a connection and no more.

use super::super::replayed::Replayed;
use super::*;
use courser_client::{Connection, Error, Options};
use courser_codec::{Frame, HEARTBEAT_FRAME, Method, PROTOCOL_HEADER, ShortStr, Table};
use courser_codec::{channel, connection};
use courser_connection::server::{self, Event};
use courser_connection::{Credentials, login_refusal};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

const PATIENCE: Duration = Duration::from_secs(20);
/// Pipes that take so many bytes at a time.
const CUTS: [usize; 4] = [1, 3, 17, 64 << 10];

/// What a broker does about something that its client wants.
type Reply = Box<dyn FnOnce(&mut server::Connection)>;

/// A broker of some vhosts, which lets in clients with the password.
#[derive(Clone, Copy)]
struct Broker {
    password: &'static str,
    vhosts: &'static [&'static str],
}

const HOME: Broker = Broker { password: "guest", vhosts: &["home"] };
const OTHER: Broker = Broker { password: "guest", vhosts: &["orders"] };

impl Broker {
    /// Serves a client until its end, as the driver does.
    async fn serve(self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let mut machine = server::Connection::new(Arc::default(), Instant::now());
        let (mut input, mut bytes) = (Vec::new(), vec![0; 4096]);
        while !machine.is_closed() {
            let count = stream.read(&mut bytes).await.expect("a pipe");
            if count == 0 {
                break;
            }
            input.extend_from_slice(&bytes[..count]);
            let mut rest = &input[..];
            loop {
                let is_over = match machine.next(&mut rest, Instant::now()) {
                    Some(event) => {
                        if let Some(answer) = self.handle(&event) {
                            answer(&mut machine);
                        }
                        false
                    }
                    None => true,
                };
                let said = std::mem::take(machine.output());
                stream.write_all(&said).await.expect("a pipe");
                stream.flush().await.expect("a pipe");
                if is_over {
                    break;
                }
            }
            let left = rest.len();
            input.drain(..input.len() - left);
        }
        stream.shutdown().await.expect("a pipe");
    }

    fn handle(self, event: &Event<'_>) -> Option<Reply> {
        let now = Instant::now();
        match event {
            Event::Login { credentials, .. } => {
                let mechanism = credentials.mechanism();
                let Credentials::Plain { password, .. } = credentials else { return None };
                let is_right = *password == self.password.as_bytes();
                Some(Box::new(move |machine| match is_right {
                    true => machine.login_accepted(now),
                    false => machine.login_refused(&login_refusal(mechanism), now),
                }))
            }
            Event::Open { virtual_host } => {
                let name = virtual_host.to_string();
                Some(Box::new(move |machine| match self.vhosts.contains(&&*name) {
                    true => machine.open_accepted(now),
                    false => machine.open_refused(530, &format!("vhost {name} not found"), now),
                }))
            }
            _ => None,
        }
    }
}

/// A client's end of a pipe to a node that takes clients of `home` in, and passes those of other vhosts on to `other`.
/// The task returns whether the client was passed on.
fn node(home: Broker, other: Broker, cut: usize) -> (DuplexStream, JoinHandle<bool>) {
    let (client, stream) = duplex(cut);
    let decide = move |vhost: String| -> Decision<Broker> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            (!HOME.vhosts.contains(&&*vhost)).then_some(other)
        })
    };
    let (watched, redirected) = Watched::new(Box::new(stream), decide);
    let serving = tokio::spawn(async move {
        home.serve(watched).await;
        let Ok(Redirected { stream, said, way }) = redirected.await else { return false };
        way.serve(Replayed::new(stream, said)).await;
        true
    });
    (client, serving)
}

async fn open(client: DuplexStream, vhost: &str, password: &str) -> Result<Connection, Error> {
    let options = Options {
        virtual_host: vhost.try_into().expect("a short name"),
        credentials: Credentials::Plain { user: b"guest".into(), password: password.into() },
        ..Options::default()
    };
    let opening = Connection::open_on(client, options);
    tokio::time::timeout(PATIENCE, opening).await.expect("an answer")
}

/// The code with which a broker has closed a connection.
fn code(opened: Result<Connection, Error>) -> u16 {
    match opened {
        Err(Error::ConnectionClosed(reason)) => reason.code,
        other => panic!("not closed: {other:?}"),
    }
}

#[tokio::test]
async fn a_client_stays_where_its_vhost_is() {
    for cut in CUTS {
        let (client, serving) = node(HOME, OTHER, cut);
        let connection = open(client, "home", "guest").await.expect("a connection");
        connection.open_channel().await.expect("a channel");
        connection.close().await.expect("a good end");
        assert!(!serving.await.expect("a node"), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_client_of_another_vhost_goes_on_where_that_is() {
    for cut in CUTS {
        let (client, serving) = node(HOME, OTHER, cut);
        let connection = open(client, "orders", "guest").await.expect("a connection");
        connection.open_channel().await.expect("a channel");
        connection.close().await.expect("a good end");
        assert!(serving.await.expect("a node"), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused_before_a_look_for_the_vhost() {
    for cut in CUTS {
        let (client, serving) = node(HOME, OTHER, cut);
        assert_eq!(code(open(client, "orders", "wrong").await), 403);
        assert!(!serving.await.expect("a node"), "cut at {cut}");
    }
}

#[tokio::test]
async fn what_the_other_broker_refuses_the_client_is_told() {
    for cut in CUTS {
        let (client, serving) = node(HOME, Broker { vhosts: &[], ..OTHER }, cut);
        assert_eq!(code(open(client, "orders", "guest").await), 530);
        assert!(serving.await.expect("a node"), "cut at {cut}");

        let (client, serving) = node(HOME, Broker { password: "new", ..OTHER }, cut);
        assert_eq!(code(open(client, "orders", "guest").await), 403);
        assert!(serving.await.expect("a node"), "cut at {cut}");
    }
}

/// All that a client says who waits for no answer.
fn in_one_go(vhost: &'static str, password: &str) -> Vec<u8> {
    let mut bytes = PROTOCOL_HEADER.to_vec();
    let entry = b"\x0ccapabilitiesF\0\0\0\x1f\x1cauthentication_failure_closet\x01";
    let response = format!("\0guest\0{password}");
    let start_ok = connection::StartOk {
        client_properties: Table::from_entries(entry),
        mechanism: ShortStr::from_static("PLAIN"),
        response: response.as_bytes(),
        locale: ShortStr::from_static("en_US"),
    };
    start_ok.write_frame(0, &mut bytes);
    let tune_ok = connection::TuneOk { channel_max: 7, frame_max: 4096, heartbeat: 0 };
    tune_ok.write_frame(0, &mut bytes);
    connection::Open { virtual_host: ShortStr::from_static(vhost) }.write_frame(0, &mut bytes);
    bytes.extend_from_slice(&HEARTBEAT_FRAME);
    channel::Open {}.write_frame(1, &mut bytes);
    bytes
}

/// The names of the methods that a client hears who says so much at once.
async fn heard(said: Vec<u8>, cut: usize) -> (Vec<&'static str>, bool) {
    let (client, serving) = node(HOME, OTHER, cut);
    let (mut from, mut to) = tokio::io::split(client);
    let saying = tokio::spawn(async move {
        to.write_all(&said).await.expect("a pipe");
        to.shutdown().await.expect("a pipe");
    });
    let mut heard = Vec::new();
    let hearing = from.read_to_end(&mut heard);
    tokio::time::timeout(PATIENCE, hearing).await.expect("an end").expect("a pipe");
    saying.await.expect("all is said");
    let (mut rest, mut names) = (&heard[..], Vec::new());
    while let Some((frame, len)) = Frame::parse(rest, 0).expect("frames") {
        names.push(Method::decode(frame.payload).expect("a method").name());
        rest = &rest[len..];
    }
    assert_eq!(rest, b"");
    (names, serving.await.expect("a node"))
}

#[tokio::test]
async fn a_client_that_does_not_wait_for_answers_gets_each_once() {
    for cut in CUTS {
        for (vhost, is_elsewhere) in [("home", false), ("orders", true)] {
            let (names, was_passed_on) = heard(in_one_go(vhost, "guest"), cut).await;
            let greeting = ["connection.start", "connection.tune"];
            let all = [greeting, ["connection.open-ok", "channel.open-ok"]].concat();
            assert_eq!(names, all, "{vhost}, cut at {cut}");
            assert_eq!(was_passed_on, is_elsewhere);
        }
        let (names, was_passed_on) = heard(in_one_go("orders", "wrong"), cut).await;
        assert_eq!(names, ["connection.start", "connection.close"], "cut at {cut}");
        assert!(!was_passed_on);
    }
}

#[tokio::test]
async fn who_does_not_speak_amqp_is_told_so() {
    let (mut client, serving) = node(HOME, OTHER, 64);
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("a pipe");
    let mut answer = [0; 8];
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(answer, PROTOCOL_HEADER);
    drop(client);
    assert!(!serving.await.expect("a node"));
}

/// What a client has said up to a vhost, and what its broker has said to that, over a pipe of so many bytes.
async fn greeted(
    cut: usize,
) -> (DuplexStream, Watched<u8>, oneshot::Receiver<Redirected<u8>>, oneshot::Sender<()>) {
    let (mut client, stream) = duplex(cut);
    let (decides, decided) = oneshot::channel();
    let decide = |_| -> Decision<u8> { Box::pin(async { decided.await.ok().map(|()| 7) }) };
    let (mut watched, redirected) = Watched::new(Box::new(stream), decide);
    client.write_all(&in_one_go("orders", "guest")).await.expect("a pipe");
    let mut greeting = Vec::new();
    let start = connection::Start {
        version_major: 0,
        version_minor: 9,
        server_properties: Table::EMPTY,
        mechanisms: b"PLAIN",
        locales: b"en_US",
    };
    start.write_frame(0, &mut greeting);
    connection::Tune { channel_max: 7, frame_max: 4096, heartbeat: 3 }
        .write_frame(0, &mut greeting);
    watched.write_all(&greeting).await.expect("a pipe");
    let mut heard = vec![0; greeting.len()];
    client.read_exact(&mut heard).await.expect("a pipe");
    let mut passed = vec![0; 4096];
    let count = watched.read(&mut passed).await.expect("a pipe");
    assert!(count > 0 && passed[..count].ends_with(b"\0\x07\0\0\x10\0\0\0\xce"), "up to tune-ok");
    (client, watched, redirected, decides)
}

#[tokio::test]
async fn a_client_does_not_go_in_the_middle_of_a_frame() {
    let (mut client, mut watched, mut redirected, decides) = greeted(1024).await;
    watched.write_all(&HEARTBEAT_FRAME[..3]).await.expect("a pipe");
    decides.send(()).expect("a decision that is waited for");
    let mut byte = [0];
    let soon = Duration::from_millis(50);
    tokio::time::timeout(soon, watched.read(&mut byte)).await.expect_err("a frame is not whole");
    watched.write_all(&HEARTBEAT_FRAME[3..]).await.expect("a pipe");
    assert_eq!(watched.read(&mut byte).await.expect("a pipe"), 0);
    let Redirected { mut stream, said, way } = redirected.try_recv().expect("a client");
    assert_eq!((&said[..], way), (&in_one_go("orders", "guest")[..], 7));

    // The first broker has nothing more to say to it.
    watched.write_all(&HEARTBEAT_FRAME).await.expect("sent");
    watched.shutdown().await.expect("ended");
    stream.write_all(b"other").await.expect("a pipe");
    drop(stream);
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.expect("a pipe");
    assert_eq!(heard, [&HEARTBEAT_FRAME[..], b"other"].concat());
}

#[tokio::test]
async fn a_client_whose_connection_is_closed_meanwhile_stays() {
    let (client, mut watched, mut redirected, decides) = greeted(1024).await;
    let mut close = Vec::new();
    let reply_text = ShortStr::from_static("CONNECTION_FORCED");
    let method = connection::Close { reply_code: 320, reply_text, class_id: 0, method_id: 0 };
    method.write_frame(0, &mut close);
    watched.write_all(&close).await.expect("a pipe");
    decides.send(()).expect("a decision that is waited for");
    // The broker reads the rest, and with it the answer to its close.
    let mut rest = vec![0; 4096];
    let count = watched.read(&mut rest).await.expect("a pipe");
    assert!(in_one_go("orders", "guest").ends_with(&rest[..count]) && count > 0);
    redirected.try_recv().map(drop).expect_err("it stays");
    drop(client);
    assert_eq!(watched.read(&mut rest).await.expect("a pipe"), 0);
}

/// Both ends of a connection.
async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let (ours, theirs) = tokio::join!(listener.accept(), TcpStream::connect(address));
    (ours.expect("a connection").0, theirs.expect("a connection"))
}

#[tokio::test]
async fn a_client_that_hangs_up_is_noticed_before_all_is_read_that_it_has_said() {
    for is_replayed in [false, true] {
        let (ours, mut theirs) = connected().await;
        let (stream, _watch): (Box<dyn ClientStream>, _) = match is_replayed {
            true => (Box::new(Replayed::new(Box::new(ours), Vec::new().into())), None),
            false => {
                let stays = |_: String| Box::pin(async { None }) as Decision<()>;
                let (watched, watch) = Watched::new(Box::new(ours), stays);
                (Box::new(watched), Some(watch))
            }
        };
        theirs.write_all(b"not read").await.expect("room");
        assert!(!stream.has_hung_up());
        drop(theirs);
        let noticed = async {
            while !stream.has_hung_up() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, noticed).await.expect("it is noticed");
    }
}
