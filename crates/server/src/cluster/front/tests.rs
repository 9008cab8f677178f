//! The way to a node that leads next, while the one that led does not answer.

use super::super::simulated::SimulatedFront;
use super::*;
use courser_cluster::transport::DialError;
use courser_management::Later;
use std::future::pending;
use tokio::io::AsyncWriteExt;
use tokio::time::sleep;

const GONE: NodeId = NodeId(1);
const NEXT: NodeId = NodeId(2);
/// How long it takes to see that a node is gone.
const DIAL_TIMEOUT: Duration = Duration::from_secs(3);
const ELECTION: Duration = Duration::from_millis(500);

/// Two nodes, of which one has vanished.
struct Two;

impl OtherNodes for Two {
    fn dial(&self, node: NodeId, _: &str) -> Later<io::Result<Tunnel>> {
        Box::pin(async move {
            if node == GONE {
                sleep(DIAL_TIMEOUT).await;
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (own, mut other) = tokio::io::duplex(PIPE_BYTES);
            other.write_u8(SERVED).await?;
            // It says nothing more, and stays.
            tokio::spawn(async move {
                pending::<()>().await;
                drop(other);
            });
            Ok(Box::new(own) as _)
        })
    }

    fn ask(&self, _: NodeId, _: String) -> Later<Result<String, DialError>> {
        Box::pin(pending())
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_goes_to_the_next_leader_while_the_last_one_is_dialled() {
    let places = Arc::new(Places::new(1));
    let node = SimulatedFront::new(1, &places, None, Box::new(Two));
    node.set_serves(0, Serves::There(GONE));
    let began = Instant::now();
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let connecting = node.front.connect(Note::http(What::Http, here, here, None));
    let electing = async {
        sleep(ELECTION).await;
        node.set_serves(0, Serves::There(NEXT));
    };
    let (connected, ()) = tokio::join!(connecting, electing);
    if let Err(error) = connected {
        panic!("{error} after {:?}", began.elapsed());
    }
    assert_eq!(began.elapsed(), ELECTION);
}
