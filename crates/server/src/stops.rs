//! The signals that stop the broker.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Those signals.
pub struct Stops {
    terminate: Signal,
    interrupt: Signal,
}

impl Stops {
    pub fn listen() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        Ok(Stops { terminate, interrupt: signal(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}
