//! Noticing that the machine at the other end of a connection has vanished: nothing more comes, not even an end.

use socket2::{SockRef, TcpKeepalive};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long nothing may come before the system asks whether the other end is there.
const IDLE: Duration = Duration::from_secs(60);
/// How long it waits for each answer.
const INTERVAL: Duration = Duration::from_secs(10);
/// How often it asks before the connection ends.
const RETRIES: u32 = 3;

/// Has the system end a connection whose other end has vanished, some 90 s after nothing has come from it.
///
/// # Errors
/// When the system does not, as for a connection that has ended.
pub fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    let asking = TcpKeepalive::new().with_time(IDLE).with_interval(INTERVAL).with_retries(RETRIES);
    SockRef::from(stream).set_tcp_keepalive(&asking)
}
