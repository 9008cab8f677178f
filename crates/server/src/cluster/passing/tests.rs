use super::*;
use crate::cluster::opening::open_ok;
use crate::places::Places;
use crate::websocket::WebSocket;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Passes on between a client and a node, whose ends are returned; the places, of which there is one; how it ends.
async fn passing(
    opening: Opening,
    send_timeout: Option<Duration>,
) -> (DuplexStream, DuplexStream, Arc<Places>, JoinHandle<io::Result<End>>) {
    let ((client, mut own), (node, mut to_node)) = (duplex(1000), duplex(1000));
    let places = Arc::new(Places::new(1));
    let (sender, receiver) = oneshot::channel();
    places.admit(|mut place| {
        let passing =
            async move { pass(&mut own, &mut to_node, &mut place, opening, send_timeout).await };
        let task = tokio::spawn(passing);
        let handle = task.abort_handle();
        sender.send(task).expect("it is waited for");
        handle
    });
    (client, node, places, receiver.await.expect("it has begun"))
}

#[tokio::test(start_paused = true)]
async fn everything_is_passed_on_in_both_directions_to_the_end() {
    let (client, node, _places, passing) = passing(Opening::of_amqp(), Some(TIMEOUT)).await;
    let all: Vec<u8> = (0..1_000_000_u32).map(|n| (n % 251) as u8).collect();
    for mut stream in [client, node].map(tokio::io::split).map(|(mut read, mut write)| {
        let all = all.clone();
        tokio::spawn(async move {
            let mut heard = Vec::new();
            let saying = async {
                write.write_all(&all).await.expect("it is taken");
                write.shutdown().await.expect("it is taken");
            };
            tokio::join!(saying, async { read.read_to_end(&mut heard).await.expect("an end") });
            assert!(heard == all);
        })
    }) {
        (&mut stream).await.expect("no panic");
    }
    assert_eq!(passing.await.expect("no panic").expect("no error"), End::Said);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_given_up_and_one_that_takes_little_is_not() {
    let (mut client, mut node, _places, passing) = passing(Opening::of_amqp(), Some(TIMEOUT)).await;
    tokio::spawn(async move { while node.write_all(&[7; 1000]).await.is_ok() {} });
    for _ in 0..10 {
        tokio::time::sleep(TIMEOUT * 2 / 3).await;
        client.read_exact(&mut [0; 1000]).await.expect("more of it");
        assert!(!passing.is_finished());
    }
    let since = Instant::now();
    assert_eq!(passing.await.expect("no panic").expect("no error"), End::Stalled);
    assert!(since.elapsed() >= TIMEOUT, "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_end_when_the_node_has_ended_is_given_up() {
    let (_client, node, _places, passing) = passing(Opening::of_amqp(), None).await;
    drop(node);
    assert_eq!(passing.await.expect("no panic").expect("no error"), End::Left);
}

#[tokio::test]
async fn a_client_keeps_its_place_once_the_node_has_let_it_in() {
    type Begin = fn() -> Opening;
    let [amqp, web_socket]: [Begin; 2] = [Opening::of_amqp, Opening::of_web_socket];
    let (heartbeat, open_ok) = ([8, 0, 0, 0, 0, 0, 0, 0xce], open_ok());
    let framed = |first| [&[first, open_ok.len() as u8][..], &open_ok].concat();
    for (opening, said, is_kept) in [
        (amqp, heartbeat.repeat(2), false),
        (amqp, [&heartbeat[..], &open_ok].concat(), true),
        // A client chooses what comes back behind its ping.
        (web_socket, framed(0x8a), false),
        (web_socket, framed(0x82), true),
    ] {
        let (mut client, mut node, places, passing) = passing(opening(), None).await;
        for part in [&said[..9], &said[9..]] {
            node.write_all(part).await.expect("it is taken");
            client.read_exact(&mut vec![0; part.len()]).await.expect("the same");
        }
        let admission = places.admit(|place| tokio::spawn(async { drop(place) }).abort_handle());
        assert_eq!(admission == crate::places::Admission::Refused, is_kept, "{said:?}");
        assert!(!passing.is_finished());
        drop((client, node));
        assert_eq!(passing.await.is_ok(), is_kept);
    }
}

/// A node that has said all this, piece by piece.
struct Pieces(VecDeque<Vec<u8>>);

impl AsyncRead for Pieces {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        out.put_slice(&self.0.pop_front().unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pieces {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl ClientStream for Pieces {}

#[tokio::test]
async fn what_comes_at_once_behind_the_opening_is_passed_on_as_well() {
    let (mut client, mut own) = duplex(1000);
    let places = Arc::new(Places::new(1));
    places.admit(|mut place| {
        let mut node = Pieces([open_ok(), b"more".to_vec(), open_ok()].into());
        let passing =
            async move { pass(&mut own, &mut node, &mut place, Opening::of_amqp(), None).await };
        tokio::spawn(passing).abort_handle()
    });
    let mut heard = Vec::new();
    client.shutdown().await.expect("it is taken");
    client.read_to_end(&mut heard).await.expect("an end");
    assert_eq!(heard, [&open_ok()[..], b"more", &open_ok()].concat());
}

/// A pipe whose end is known to the test.
struct Pipe {
    pipe: DuplexStream,
    has_hung_up: Arc<AtomicBool>,
    is_thrown_away: Arc<AtomicBool>,
    passed_on: Arc<AtomicU64>,
}

impl Pipe {
    fn new(pipe: DuplexStream) -> Self {
        let (has_hung_up, is_thrown_away) = (Arc::default(), Arc::default());
        Pipe { pipe, has_hung_up, is_thrown_away, passed_on: Arc::default() }
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_read(cx, out)
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.pipe).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.pipe).poll_shutdown(cx)
    }
}

impl ClientStream for Pipe {
    fn has_hung_up(&self) -> bool {
        self.has_hung_up.load(Relaxed)
    }

    fn passed_on(&self) -> u64 {
        self.passed_on.load(Relaxed)
    }

    fn throw_away_unsent(&self) {
        self.is_thrown_away.store(true, Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_while_the_node_reads_nothing_of_it_is_noticed() {
    let ((mut client, own), (mut node, to_node)) = (duplex(20_000), duplex(1000));
    let (mut own, mut to_node) = (Pipe::new(own), Pipe::new(to_node));
    let (goes, is_told) = (Arc::clone(&own.has_hung_up), Arc::clone(&to_node.is_thrown_away));
    let (sender, receiver) = oneshot::channel();
    Arc::new(Places::new(1)).admit(|mut place| {
        let passing =
            async move { pass(&mut own, &mut to_node, &mut place, Opening::of_amqp(), None).await };
        let task = tokio::spawn(passing);
        let handle = task.abort_handle();
        sender.send(task).expect("it is waited for");
        handle
    });
    let passing = receiver.await.expect("it has begun");
    client.write_all(&[7; 20_000]).await.expect("there is room");
    goes.store(true, Relaxed);
    // What it has said is heard as long as the node goes on reading.
    for _ in 0..10 {
        node.read_exact(&mut [0; 1000]).await.expect("more of it");
        tokio::time::sleep(LOOK_INTERVAL * 2 / 3).await;
        assert!(!passing.is_finished() && !is_told.load(Relaxed));
    }
    goes.store(false, Relaxed);
    tokio::time::sleep(100 * LOOK_INTERVAL).await;
    assert!(!passing.is_finished(), "it is still there");
    goes.store(true, Relaxed);
    let ended = tokio::time::timeout(2 * LOOK_INTERVAL, passing).await.expect("it is noticed");
    assert_eq!(ended.expect("no panic").expect("no error"), End::Gone);
    assert!(is_told.load(Relaxed), "the node does not hear of it");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_what_its_stream_holds_is_not_given_up() {
    let ((_client, own), (mut node, mut to_node)) = (duplex(1000), duplex(1000));
    let mut own = Pipe::new(own);
    let (passed_on, (sender, receiver)) = (Arc::clone(&own.passed_on), oneshot::channel());
    Arc::new(Places::new(1)).admit(|mut place| {
        let timeout = Some(TIMEOUT);
        let passing = async move {
            pass(&mut own, &mut to_node, &mut place, Opening::of_amqp(), timeout).await
        };
        let task = tokio::spawn(passing);
        let handle = task.abort_handle();
        sender.send(task).expect("it is waited for");
        handle
    });
    let passing = receiver.await.expect("it has begun");
    tokio::spawn(async move { while node.write_all(&[7; 1000]).await.is_ok() {} });
    for _ in 0..10 {
        tokio::time::sleep(TIMEOUT * 2 / 3).await;
        passed_on.fetch_add(1, Relaxed);
        assert!(!passing.is_finished());
    }
    assert_eq!(passing.await.expect("no panic").expect("no error"), End::Stalled);
}

/// A WebSocket that tells the test what it keeps.
struct Socket {
    socket: WebSocket<DuplexStream>,
    keeps: Arc<AtomicUsize>,
}

impl Socket {
    fn noting<T>(&mut self, ask: impl FnOnce(Pin<&mut WebSocket<DuplexStream>>) -> T) -> T {
        let answer = ask(Pin::new(&mut self.socket));
        self.keeps.store(self.socket.keeps(), Relaxed);
        answer
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.noting(|socket| socket.poll_read(cx, out))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.noting(|socket| socket.poll_write(cx, bytes))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.noting(|socket| socket.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.noting(|socket| socket.poll_shutdown(cx))
    }
}

impl ClientStream for Socket {
    fn passed_on(&self) -> u64 {
        self.socket.passed_on()
    }

    fn release_memory(&mut self, cx: &mut Context<'_>) {
        self.noting(|mut socket| socket.release_memory(cx));
    }
}

#[tokio::test(start_paused = true)]
async fn a_web_socket_gives_back_its_room_for_messages_when_nothing_is_passed_on() {
    const PAYLOAD_BYTES: usize = 50_000;
    let ((mut client, own), (mut node, mut to_node)) = (duplex(100_000), duplex(100_000));
    let mut own = Socket { socket: WebSocket::new(own, 1 << 17), keeps: Arc::default() };
    let (keeps, at_first) = (Arc::clone(&own.keeps), own.socket.keeps());
    let places = Arc::new(Places::new(1));
    places.admit(|mut place| {
        let opening = Opening::of_amqp();
        let passing = async move { pass(&mut own, &mut to_node, &mut place, opening, None).await };
        tokio::spawn(passing).abort_handle()
    });
    let payload = vec![7; PAYLOAD_BYTES];
    let size = (PAYLOAD_BYTES as u32).to_be_bytes();
    let frame = [&[3, 0, 1][..], &size, &payload, &[0xce]].concat();
    for _ in 0..3 {
        node.write_all(&frame).await.expect("it is taken");
        let mut message = vec![0; 4 + frame.len()];
        client.read_exact(&mut message).await.expect("all of it");
        assert!(message.ends_with(&frame));
        assert!(keeps.load(Relaxed) > at_first + PAYLOAD_BYTES);
        tokio::time::sleep(3 * BUFFERS_KEPT).await;
        assert_eq!(keeps.load(Relaxed), at_first);
    }
}
