//! AMQP at the address of the HTTP API: a WebSocket, whose messages are the connection's bytes.

use super::{Client, connect, good, late, read as read_whole, request};
use crate::amqp;
use crate::failure::{Failure, UNAVAILABLE};
use crate::target::{Remote, Target};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use courser_client::{Connection, Credentials, Options, ShortString};
use futures_core::Stream as _;
use futures_sink::Sink as _;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::pin::Pin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{Error, Message};

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

const PATH: &str = "/ws/amqp";
/// Bytes on their way between the socket and the AMQP client, each direction.
const PIPE_BYTES: usize = 64 * 1024;

impl Client {
    /// Works over an AMQP connection to the broker, in a vhost, as the same user. The time for everything is only that until
    /// it is open.
    ///
    /// # Errors
    /// If it can't be opened, and those of the work.
    pub fn amqp<T, F>(
        &mut self,
        vhost: &str,
        work: impl FnOnce(Connection) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let Client { runtime, target, timeout, deadline, .. } = self;
        let virtual_host = ShortString::new(vhost.as_bytes())
            .map_err(|_| Failure::usage("the name of a vhost has 255 bytes at most"))?;
        let credentials = match target {
            // The system tells the broker who connects.
            Target::Local(_) => Credentials::External,
            Target::Http(Remote { user, password, .. }) => Credentials::Plain {
                user: user.clone().into_bytes(),
                password: password.clone().into_bytes(),
            },
        };
        let options = Options { credentials, virtual_host, ..Options::default() };
        runtime.block_on(async {
            let open = async {
                let socket = open_socket(target).await?;
                let opened = Connection::open_on(socket, options.with_name("courser ctl")).await;
                opened.map_err(|error| amqp::failure(&error))
            };
            let opened = tokio::time::timeout_at(*deadline, open).await;
            work(opened.map_err(|_| late(target, *timeout))??).await
        })
    }
}

/// Opens a socket. What is written to the pipe goes to the broker.
async fn open_socket(target: &Target) -> Result<DuplexStream, Failure> {
    let mut nonce = [0; 16];
    getrandom::fill(&mut nonce).map_err(|error| Failure::error(UNAVAILABLE, error))?;
    let key = STANDARD.encode(nonce);
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-protocol", "amqp"),
        ("sec-websocket-key", &key),
    ];
    let asked = request(target, &Method::GET, PATH, &Bytes::new(), &headers)?;
    let mut sender = connect(target).await?;
    let answer = sender.send_request(asked).await.map_err(|error| super::lost(target, &error))?;
    let accepted = answer.headers().get("sec-websocket-accept");
    let is_socket = answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && accepted.is_some_and(|accepted| accepted == &derive_accept_key(key.as_bytes()));
    if !is_socket {
        return Err(refused(target, read_whole(target, answer).await?));
    }
    let upgraded = hyper::upgrade::on(answer).await.map_err(|error| super::lost(target, &error))?;
    let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await;
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(carry(socket, theirs));
    Ok(ours)
}

/// What is said of an answer that is no socket.
fn refused(target: &Target, answer: crate::answer::Answer) -> Failure {
    let why = match answer.status {
        // The page of the broker, or another server.
        100..=299 | 404 => "the HTTP API there takes no WebSocket".to_owned(),
        _ => match good(answer) {
            Err(failure) => failure.text.trim_start_matches("Error:\n").to_owned(),
            Ok(_) => String::new(),
        },
    };
    let text = format!(
        "can't open an AMQP connection at {target}: {why}. Consuming needs 'management.websocket' on, and a proxy in front of the \
         broker has to pass on the headers Upgrade and Connection"
    );
    Failure::error(UNAVAILABLE, text)
}

/// Carries bytes both ways, until one side ends.
async fn carry(mut socket: Socket, mut pipe: DuplexStream) {
    let mut buffer = vec![0; PIPE_BYTES];
    loop {
        tokio::select! {
            written = pipe.read(&mut buffer) => match written {
                Ok(count @ 1..) => {
                    let message = Message::binary(buffer[..count].to_vec());
                    if send(&mut socket, message).await.is_err() {
                        return;
                    }
                }
                _ => {
                    // The broker has said its last, or is gone.
                    let _ = send(&mut socket, Message::Close(None)).await;
                    return;
                }
            },
            message = poll_fn(|cx| Pin::new(&mut socket).poll_next(cx)) => match message {
                Some(Ok(Message::Binary(bytes))) => {
                    if pipe.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                // A ping has been answered where it was read.
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return,
            },
        }
    }
}

async fn send(socket: &mut Socket, message: Message) -> Result<(), Error> {
    poll_fn(|cx| Pin::new(&mut *socket).poll_ready(cx)).await?;
    Pin::new(&mut *socket).start_send(message)?;
    poll_fn(|cx| Pin::new(&mut *socket).poll_flush(cx)).await
}
