//! The signals that stop the broker: the first one in order, the second one at once.
//!
//! They are heard on a thread of their own. All others may be waiting for a disk, or for another program.

use std::io;
use std::process;
use std::thread;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How long the last line of the log has to be written.
const LAST_LINE: Duration = Duration::from_millis(100);

/// Hears those signals.
pub struct Stops {
    first: oneshot::Receiver<&'static str>,
}

impl Stops {
    /// Begins to hear them. From the second one on, or from the first if no task waits for that, each ends the process at once.
    pub fn listen() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let mut signals = {
            let _context = runtime.enter();
            Signals {
                terminate: signal(SignalKind::terminate())?,
                interrupt: signal(SignalKind::interrupt())?,
            }
        };
        let (sender, first) = oneshot::channel();
        thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                let name = signals.next().await;
                if sender.send(name).is_ok() {
                    signals.next().await;
                }
            });
            end_at_once();
        })?;
        Ok(Stops { first })
    }

    /// The name of the first one.
    pub async fn first(&mut self) -> &'static str {
        match (&mut self.first).await {
            Ok(name) => name,
            // The thread ends with the process.
            Err(_) => std::future::pending().await,
        }
    }
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

/// Ends the process without waiting for anything that it does.
fn end_at_once() -> ! {
    tracing::warn!("stopping at once: what was not confirmed may be lost");
    thread::sleep(LAST_LINE);
    process::exit(0)
}
