//! A small broker made of the connection machine: queues in memory, and faults as a test wants them.

mod link;
mod state;

use std::sync::{Arc, Mutex};

use courser_codec::basic;
use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use link::Link;
pub use state::Seen;
use state::{Message, State};

/// Makes another body of one.
pub type Remake = fn(&[u8]) -> Vec<u8>;

/// What goes wrong, counted over all publishes from 1.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    /// This publish is confirmed and goes nowhere.
    pub loses: Option<u64>,
    /// This publish arrives twice.
    pub doubles: Option<u64>,
    /// This publish is refused.
    pub refuses: Option<u64>,
    /// From this publish on nothing is confirmed, nor committed.
    pub forgets_from: Option<u64>,
    /// With this publish its connection breaks.
    pub breaks_at: Option<u64>,
    /// With this publish its connection is closed with an error.
    pub closes_at: Option<u64>,
    /// With this publish all connections break, and queues that are not durable go, as at a restart.
    pub restarts_at: Option<u64>,
    /// Every publish has its channel closed with this code.
    pub rejects: Option<u16>,
    /// All that is mandatory comes back, with this made of its body.
    pub returns: Option<Remake>,
    /// Nothing is answered that declares a queue.
    pub declares_nothing: bool,
    /// Consumers get a message every few milliseconds.
    pub drips: bool,
}

/// Where it listens, and what it holds.
pub struct Broker {
    pub uri: String,
    state: Arc<Mutex<State>>,
}

impl Broker {
    pub async fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("amqp://{}/", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State { faults, ..State::default() }));
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(Link::new(shared.clone()).serve(stream));
            }
        });
        Self { uri, state }
    }

    /// One that speaks TLS, as `localhost`.
    pub async fn start_tls(config: ServerConfig) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("amqps://localhost:{}/", listener.local_addr().unwrap().port());
        let state = Arc::new(Mutex::new(State::default()));
        let shared = state.clone();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, link) = (acceptor.clone(), Link::new(shared.clone()));
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        link.serve(stream).await;
                    }
                });
            }
        });
        Self { uri, state }
    }

    /// Puts a message into a queue, as if another program had left it there.
    pub fn leave(&self, queue: &str, body: &[u8]) {
        let message = Message { body: body.into(), redelivered: false, offset: None };
        self.state.lock().unwrap().queues.entry(queue.into()).or_default().push(message);
    }

    /// Names of the queues that there are.
    pub fn queues(&self) -> Vec<String> {
        self.state.lock().unwrap().queues.keys().cloned().collect()
    }

    /// All acknowledgements that have come.
    pub fn acknowledgements(&self) -> Vec<basic::Ack> {
        self.state.lock().unwrap().acknowledgements.clone()
    }

    /// What clients have asked for.
    pub fn seen(&self) -> Seen {
        self.state.lock().unwrap().seen.clone()
    }
}
