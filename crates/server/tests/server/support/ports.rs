//! Addresses for nodes that are about to listen, and stay theirs while they are down.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below those that the system gives to whoever connects, or listens at any port.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// Addresses of the loopback at which nobody listens.
pub(crate) fn free_addresses(count: usize) -> Vec<SocketAddr> {
    // Processes that run side by side begin at different ones.
    let begin = std::process::id().wrapping_mul(7919);
    let addresses = (0..COUNT).map(|_| {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = FIRST + (begin.wrapping_add(step) % u32::from(COUNT)) as u16;
        SocketAddr::from(([127, 0, 0, 1], port))
    });
    let free: Vec<_> =
        addresses.filter(|address| TcpListener::bind(address).is_ok()).take(count).collect();
    assert_eq!(free.len(), count, "free ports from {FIRST} on");
    free
}
