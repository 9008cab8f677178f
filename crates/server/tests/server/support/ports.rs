//! Addresses for nodes that are about to listen, and stay theirs while they are down.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;

/// Below those that the system gives to clients that connect and to who listens at any port, and those of the tests with real
/// clients, which run beside these.
const PORTS: Range<u16> = 10_000..20_000;

/// Addresses of the loopback at which no program listens, and that were given to no other caller lately.
///
/// All test programs of a user share the port that was given last, so that one is given again only when all others have been.
pub(crate) fn free_addresses(count: usize) -> Vec<SocketAddr> {
    let name = format!("courser-test-port-{}-rust", rustix::process::getuid().as_raw());
    let mut options = File::options();
    let opened = options.read(true).write(true).create(true).truncate(false);
    let mut last = opened.open(std::env::temp_dir().join(name)).expect("a file of ports");
    last.lock().expect("a lock");
    let mut text = String::new();
    last.read_to_string(&mut text).expect("the last port");
    let start = text.trim().parse().ok().filter(|port| PORTS.contains(port));
    let start = start.map_or(PORTS.start, |port| port + 1);
    let addresses = (start..PORTS.end).chain(PORTS.start..start);
    let addresses = addresses.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    let is_free = |address: &SocketAddr| TcpListener::bind(address).is_ok();
    let free: Vec<_> = addresses.filter(is_free).take(count).collect();
    assert_eq!(free.len(), count, "free ports of {PORTS:?}");
    let given = free.last().map_or(start, SocketAddr::port);
    last.rewind().expect("its beginning");
    // All of these have five digits.
    write!(last, "{given}").expect("the port that is given");
    free
}
