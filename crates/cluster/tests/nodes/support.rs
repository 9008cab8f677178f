//! Ends of connections, and listeners that write down what comes.

use courser_cluster::transport::{
    About, Answer, Endpoint, Formation, Incoming, Secret, Stream, listen,
};
use courser_cluster::{GroupNumber, NodeId, Packet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

/// Longer than anything takes, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The groups that listeners have.
pub const LAST_GROUP: GroupNumber = GroupNumber(2);
/// An answer that no socket takes at once.
pub const LONG_ANSWER_BYTES: usize = 32 << 20;
pub const SECRET: &[u8] = b"what all of these nodes know";

pub fn about(number: u64, name: &str) -> About {
    About {
        cluster: "prod".into(),
        node: NodeId(number),
        process: None,
        name: name.into(),
        address: format!("{name}:5680"),
        version: "1".into(),
        segment_bytes: number << 20,
        seed: number,
        formation: None,
        has_data: false,
        known: Vec::new(),
    }
}

pub fn formation(founders: &[u64]) -> Formation {
    let founders = founders.iter().copied().map(NodeId).collect();
    Formation { group: 7, segment_bytes: 1 << 20, founders, recovery: None }
}

pub fn endpoint(about: About) -> Arc<Endpoint> {
    Endpoint::new(about, Secret::new(SECRET).expect("long enough"), None)
}

/// What comes to a listener.
#[derive(Debug)]
pub enum Heard {
    Packet(GroupNumber, NodeId, Packet),
    Met(About),
}

struct Ears {
    heard: UnboundedSender<Heard>,
    has_part: Arc<AtomicBool>,
}

impl Incoming for Ears {
    fn thread(&self, group: GroupNumber) -> Option<Handle> {
        (group <= LAST_GROUP).then(Handle::current)
    }

    fn takes_part(&self, group: GroupNumber) -> bool {
        group == GroupNumber::HOME && self.has_part.load(Relaxed)
    }

    fn packet(&self, group: GroupNumber, from: NodeId, packet: Packet) {
        let _ = self.heard.send(Heard::Packet(group, from, packet));
    }

    fn met(&self, other: &About) {
        let _ = self.heard.send(Heard::Met(other.clone()));
    }

    fn copy(&self, _group: GroupNumber, _from: About, _note: String, _stream: Stream) {}

    fn ask(&self, from: About, question: String) -> Answer {
        Box::pin(async move {
            match question.as_str() {
                "no" => Err("refused".into()),
                // What waits for it then does so by a clock that goes on at once.
                "never" => {
                    tokio::time::pause();
                    std::future::pending().await
                }
                "much" => {
                    tokio::time::pause();
                    Ok("x".repeat(LONG_ANSWER_BYTES))
                }
                _ => Ok(format!("{question} from {}", from.name)),
            }
        })
    }

    fn tunnel(&self, _from: About, note: String, mut stream: Stream) {
        tokio::spawn(async move {
            use tokio::io::AsyncWriteExt;
            stream.write_all(note.as_bytes()).await.expect("a dialler that listens");
        });
    }
}

/// A node that listens.
pub struct Listening {
    pub address: String,
    pub endpoint: Arc<Endpoint>,
    pub heard: UnboundedReceiver<Heard>,
    /// Whether it takes part in the home group.
    pub has_part: Arc<AtomicBool>,
    pub task: JoinHandle<()>,
}

impl Listening {
    pub async fn start(endpoint: &Arc<Endpoint>) -> Self {
        Self::start_at(endpoint, "127.0.0.1:0").await
    }

    pub async fn start_at(endpoint: &Arc<Endpoint>, address: &str) -> Self {
        let listener = TcpListener::bind(address).await.expect("a free port");
        let address = listener.local_addr().expect("an address").to_string();
        let (sender, heard) = unbounded_channel();
        let has_part = Arc::new(AtomicBool::new(true));
        let ears = Arc::new(Ears { heard: sender, has_part: Arc::clone(&has_part) });
        let task = tokio::spawn(listen(listener, Arc::clone(endpoint), ears));
        Listening { address, endpoint: Arc::clone(endpoint), heard, has_part, task }
    }

    /// The next packet, of the home group.
    pub async fn packet(&mut self) -> (NodeId, Packet) {
        let (group, from, packet) = self.packet_of_any().await;
        assert_eq!(group, GroupNumber::HOME);
        (from, packet)
    }

    /// The next packet, and its group.
    pub async fn packet_of_any(&mut self) -> (GroupNumber, NodeId, Packet) {
        let waiting = async {
            loop {
                match self.heard.recv().await.expect("a listener") {
                    Heard::Packet(group, from, packet) => return (group, from, packet),
                    Heard::Met(_) => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("a packet")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A packet with one entry, whose frame has so many bytes.
pub fn packet(from: u64, to: u64, frame_len: usize) -> Packet {
    let mut bytes = vec![1, 0];
    [to, from].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    (3..=8u64).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&0i64.to_le_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&1u32.to_le_bytes());
    bytes.push(1);
    (9..=10u64).for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&(frame_len as u32).to_le_bytes());
    bytes.extend((0..frame_len).map(|at| at as u8));
    Packet::decode(bytes.into()).expect("a packet")
}

/// A packet that says that a leader is there.
pub fn heartbeat(from: u64, to: u64) -> Packet {
    let mut bytes = vec![5, 0];
    [to, from].iter().for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
    bytes.extend_from_slice(&[0; 7 * 8 + 1 + 4]);
    Packet::decode(bytes.into()).expect("a packet")
}
