use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(50);
/// Fewer than two messages.
const PIPE_BYTES: usize = 1500;
const FRAME_MAX: u32 = 4096;

/// A broker's end that pings this often, and its client's end, at which nothing is answered.
async fn pair() -> (WebSocket<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(PIPE_BYTES);
    let mut socket = WebSocket::new(ours, FRAME_MAX);
    socket.pings = Pings::new(INTERVAL);
    (socket, theirs)
}

/// A frame of 1,000 bytes.
fn frame() -> Vec<u8> {
    let mut frame = vec![3, 0, 1, 0, 0, 3, 0xe0];
    frame.resize(999, 7);
    frame.push(0xce);
    frame
}

fn context() -> Context<'static> {
    Context::from_waker(std::task::Waker::noop())
}

/// What comes of a look for something to read.
fn look(socket: &mut WebSocket<DuplexStream>) -> Poll<io::Result<()>> {
    let _ = Pin::new(&mut *socket).poll_flush(&mut context());
    Pin::new(socket).poll_read(&mut context(), &mut ReadBuf::new(&mut [0; 16]))
}

#[tokio::test]
async fn a_client_that_takes_what_waits_for_it_is_not_given_up_for_a_ping_behind_all_that() {
    let (mut socket, mut client) = pair().await;
    let begun = Instant::now();
    while begun.elapsed() < INTERVAL * 8 {
        // The socket is full but for a moment.
        while Pin::new(&mut socket).poll_write(&mut context(), &frame()).is_ready() {}
        tokio::time::sleep(INTERVAL / 10).await;
        client.read_exact(&mut [0; 1000]).await.expect("more");
        assert!(look(&mut socket).is_pending(), "after {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn it_is_not_written_to_by_the_log_thread_though_the_socket_below_may_be() {
    // It has timers, which need the runtime.
    let (below, _client) = duplex(PIPE_BYTES);
    let below = Keeping { stream: below, passed_on: Arc::default() };
    assert!(below.is_written_anywhere());
    assert!(!WebSocket::new(below, FRAME_MAX).is_written_anywhere());
}

#[tokio::test]
async fn a_client_that_neither_answers_nor_takes_anything_is_given_up() {
    for is_full in [false, true] {
        let (mut socket, _client) = pair().await;
        while is_full && Pin::new(&mut socket).poll_write(&mut context(), &frame()).is_ready() {}
        let Poll::Ready(ended) = wait(&mut socket).await else { unreachable!("it was waited for") };
        // Who sees to it that a full one is written to gives it up (`amqp.send_timeout_ms`).
        assert_eq!(ended.is_err(), !is_full);
    }
}

/// Waits for an end, or ten intervals.
async fn wait(socket: &mut WebSocket<DuplexStream>) -> Poll<io::Result<()>> {
    for _ in 0..20 {
        if let Poll::Ready(ended) = look(socket) {
            return Poll::Ready(ended);
        }
        tokio::time::sleep(INTERVAL / 2).await;
    }
    Poll::Ready(Ok(()))
}

#[tokio::test]
async fn what_a_client_takes_of_a_message_is_known_before_it_has_taken_all() {
    let (mut socket, mut client) = pair().await;
    while Pin::new(&mut socket).poll_write(&mut context(), &frame()).is_ready() {}
    let before = socket.passed_on();
    client.read_exact(&mut [0; 100]).await.expect("a part of it");
    assert!(Pin::new(&mut socket).poll_flush(&mut context()).is_pending());
    assert_eq!(socket.passed_on(), before + 100);
}

#[tokio::test]
async fn what_waits_in_a_socket_is_known() {
    let (mut socket, _client) = pair().await;
    let frame = frame();
    let mut taken = 0;
    while Pin::new(&mut socket).poll_write(&mut context(), &frame).is_ready() {
        taken += frame.len();
    }
    let kept = taken - PIPE_BYTES;
    assert!(kept > 0);
    let below = socket.protocol.stream().stream.keeps();
    assert!((kept..kept + 10 * frame.len()).contains(&(socket.keeps() - below)));
}

/// A stream that keeps some of what it has taken, as TLS does.
struct Keeping {
    stream: DuplexStream,
    passed_on: Arc<AtomicU64>,
}

impl ClientStream for Keeping {
    fn is_written_anywhere(&self) -> bool {
        true
    }

    fn passed_on(&self) -> u64 {
        self.passed_on.load(Ordering::Relaxed)
    }
}

impl AsyncRead for Keeping {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Keeping {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test]
async fn what_the_stream_below_passes_on_of_what_it_keeps_is_known() {
    let (stream, _client) = duplex(PIPE_BYTES);
    let passed_on = Arc::<AtomicU64>::default();
    let below = Keeping { stream, passed_on: Arc::clone(&passed_on) };
    let socket = WebSocket::new(below, FRAME_MAX);
    let before = socket.passed_on();
    passed_on.store(100, Ordering::Relaxed);
    assert_eq!(socket.passed_on(), before + 100);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_a_message_slowly_is_not_given_up_for_a_ping_before_it() {
    let (mut socket, mut client) = pair().await;
    tokio::time::sleep(INTERVAL).await;
    assert!(look(&mut socket).is_pending(), "a ping is sent");
    while Pin::new(&mut socket).poll_write(&mut context(), &frame()).is_ready() {}
    for _ in 0..10 {
        tokio::time::sleep(INTERVAL / 2).await;
        client.read_exact(&mut [0; 50]).await.expect("a part of it");
        assert!(look(&mut socket).is_pending());
    }
}

#[tokio::test]
async fn a_client_that_is_not_read_is_pinged_and_judged_when_it_is_read_again() {
    let (mut socket, mut client) = pair().await;
    for _ in 0..10 {
        assert!(Pin::new(&mut socket).poll_flush(&mut context()).is_ready());
        tokio::time::sleep(INTERVAL / 2).await;
    }
    let mut pings = [0; 4];
    client.read_exact(&mut pings).await.expect("two pings");
    assert_eq!(pings, [0x89, 0, 0x89, 0]);
    // An answer has come meanwhile: 1 byte of head, no payload, a mask.
    client.write_all(&[0x8a, 0x80, 0, 0, 0, 0]).await.expect("an answer");
    assert!(look(&mut socket).is_pending());
}

#[tokio::test]
async fn a_client_that_is_gone_is_noticed_while_it_is_not_read() {
    let (mut socket, client) = pair().await;
    drop(client);
    let noticed = async {
        while !matches!(Pin::new(&mut socket).poll_flush(&mut context()), Poll::Ready(Err(_))) {
            tokio::time::sleep(INTERVAL / 2).await;
        }
    };
    tokio::time::timeout(PATIENCE, noticed).await.expect("a ping that can't be sent tells");
}

#[tokio::test]
async fn a_message_is_read_as_it_comes_and_not_at_its_end() {
    // A binary frame of 1 MiB in a message that goes on behind it; the mask leaves all as it is.
    let head = [0x02, 0xff, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0];
    let (mut socket, mut client) = pair().await;
    client.write_all(&head).await.expect("room");
    for sent in [b"AMQP", b"0091"] {
        client.write_all(sent).await.expect("room");
        let mut read = [0; 4];
        socket.read_exact(&mut read).await.expect("what was sent");
        assert_eq!(&read, sent);
    }
}

#[tokio::test]
async fn a_client_that_sends_pings_and_reads_nothing_is_answered_some_of_them() {
    const PINGS: usize = 10_000;
    let (mut socket, client) = pair().await;
    let (mut answers, mut asking) = tokio::io::split(client);
    // A masked ping of 125 bytes, and the mask that changes nothing.
    let mut ping = vec![0x89, 0x80 | 125, 0, 0, 0, 0];
    ping.resize(6 + 125, 7);
    for _ in 0..PINGS {
        let mut rest = &ping[..];
        while !rest.is_empty() {
            let writing = Pin::new(&mut asking).poll_write(&mut context(), rest);
            match writing {
                Poll::Ready(written) => rest = &rest[written.expect("it is taken")..],
                Poll::Pending => {
                    drop(look(&mut socket));
                    // Otherwise nothing more is done in this turn of the task.
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    let (mut bytes, mut buffer, mut read_none) = (0, vec![0; PIPE_BYTES], false);
    loop {
        drop(look(&mut socket));
        let mut read = ReadBuf::new(&mut buffer);
        match Pin::new(&mut answers).poll_read(&mut context(), &mut read) {
            Poll::Ready(done) => {
                read_none = false;
                done.expect("it can be read");
            }
            Poll::Pending if read_none => break,
            Poll::Pending => read_none = true,
        }
        tokio::task::yield_now().await;
        bytes += read.filled().len();
    }
    let most = MESSAGE_BYTES + FRAME_MAX as usize + PONGS_BYTES + 2 * PIPE_BYTES;
    assert!(bytes > PONGS_BYTES && bytes < most, "{bytes}");
}

#[tokio::test(start_paused = true)]
async fn memory_can_be_given_back_between_any_two_bytes() {
    let (mut socket, mut client) = pair().await;
    let data = |first: u8, payload: &[u8]| {
        [&[first, 0x80 | payload.len() as u8, 0, 0, 0, 0], payload].concat()
    };
    // A message with a ping in its middle, one in one frame, and an answer.
    let said =
        [(0x02, "AMQP"), (0x89, "hi"), (0x80, "0091"), (0x82, "more"), (0x8a, ""), (0x89, "")];
    let said = said.map(|(first, payload)| data(first, payload.as_bytes())).concat();
    let (mut received, mut given_back) = (Vec::new(), 0);
    for byte in said {
        client.write_all(&[byte]).await.expect("room");
        let mut room = [0; 16];
        let mut read = ReadBuf::new(&mut room);
        let _ = Pin::new(&mut socket).poll_read(&mut context(), &mut read);
        received.extend_from_slice(read.filled());
        given_back += usize::from(socket.protocol.release_memory(&mut context()));
    }
    assert_eq!(String::from_utf8_lossy(&received), "AMQP0091more");
    assert!(given_back > 10, "{given_back}");
    let mut answers = [0; 6];
    client.read_exact(&mut answers).await.expect("both");
    assert_eq!(answers, [0x8a, 2, b'h', b'i', 0x8a, 0]);
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_a_client_is_not_given_back() {
    let (mut socket, mut client) = pair().await;
    let (frame, mut sent) = (frame(), 0);
    while Pin::new(&mut socket).poll_write(&mut context(), &frame).is_ready() {
        sent += 1;
        socket.release_memory(&mut context());
    }
    assert!(sent > 1 && !socket.protocol.release_memory(&mut context()));
    for _ in 0..sent {
        let mut message = [0; 1004];
        let reading = client.read_exact(&mut message);
        let flushing = std::future::poll_fn(|cx| Pin::new(&mut socket).poll_flush(cx));
        let (read, flushed) = tokio::join!(reading, flushing);
        flushed.expect("it is taken");
        read.expect("all of it");
        assert_eq!(message[..4], [0x82, 126, 3, 0xe8]);
        assert_eq!(message[4..], frame);
    }
    socket.release_memory(&mut context());
    assert_eq!(socket.keeps(), socket.protocol.stream().stream.keeps());
}
