use super::*;
use crate::transport::Secret;
use tokio::io::AsyncReadExt;

/// A node, and the connections that come to it.
struct Coming {
    listener: TcpListener,
    endpoint: Arc<Endpoint>,
    handshakes: Handshakes,
}

impl Coming {
    async fn start() -> Self {
        let about = About {
            cluster: "prod".into(),
            node: NodeId(1),
            process: None,
            name: "a".into(),
            address: "a:5680".into(),
            version: "1".into(),
            segment_bytes: 1 << 20,
            seed: 1,
            formation: None,
            has_data: false,
            known: Vec::new(),
        };
        let secret = Secret::new(b"what all of these nodes know").expect("long enough");
        Coming {
            listener: TcpListener::bind("127.0.0.1:0").await.expect("a free port"),
            endpoint: Endpoint::new(about, secret, None),
            handshakes: Handshakes::default(),
        }
    }

    /// One that says nothing, and comes at this time.
    async fn come(&mut self, now: Instant) -> TcpStream {
        let address = self.listener.local_addr().expect("an address");
        let stream = TcpStream::connect(address).await.expect("a connection");
        let accepted = self.listener.accept().await.expect("a connection");
        self.handshakes.begin(now, accepted, &self.endpoint);
        stream
    }
}

#[tokio::test]
async fn a_handshake_makes_room_for_a_newcomer_only_once_it_has_had_its_time() {
    let (mut node, begun) = (Coming::start().await, Instant::now());
    let mut silent = Vec::new();
    for _ in 0..HANDSHAKES_MAX {
        silent.push(node.come(begun).await);
    }
    let first = node.handshakes.order[0].1.clone();
    let mut refused = node.come(begun + PLACE_TIME - Duration::from_millis(1)).await;
    assert_eq!(node.handshakes.order[0].1.id(), first.id());
    // A reset is an end as well.
    let _ = refused.read_to_end(&mut Vec::new()).await;
    assert!(!first.is_finished());
    let _taken = node.come(begun + PLACE_TIME).await;
    assert_eq!(node.handshakes.order.len(), HANDSHAKES_MAX);
    assert_ne!(node.handshakes.order[0].1.id(), first.id());
    while !first.is_finished() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn those_who_are_not_let_in_do_not_fill_the_log() {
    let (mut strangers, begun) = (Strangers::default(), Instant::now());
    let mut written = Vec::new();
    for second in 0..25 {
        for _ in 0..100 {
            match strangers.allow(begun + Duration::from_secs(second)) {
                Some(suppressed) => written.push(suppressed),
                None => strangers.suppressed += 1,
            }
        }
    }
    // In each interval some, the first of which tells how many there were else.
    let left = 1000 - u64::from(LINES_MAX);
    let mut expected = vec![None; 3 * LINES_MAX as usize];
    (expected[LINES_MAX as usize], expected[2 * LINES_MAX as usize]) = (Some(left), Some(left));
    assert_eq!(written, expected);
}
