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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal as Sent, kill_process};
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};
    use std::sync::{Arc, Barrier, mpsc};

    const THREADS: usize = 2;
    /// Says that this process is the child of the test.
    const CHILD: &str = "COURSER_TEST_STOPS";
    const NAME: &str =
        "stops::tests::the_second_signal_ends_a_process_all_of_whose_threads_are_held";
    /// Longer than anything takes, also on a busy machine, and much less than threads are held.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Whatever comes of the test, nothing is left of it.
    struct Killed(Child);

    impl Drop for Killed {
        fn drop(&mut self) {
            // It may have ended.
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn held() {
        thread::sleep(Duration::from_secs(3600));
    }

    /// Hears signals while every thread of the runtime is held, as by a disk that stands still.
    fn be_held() {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(THREADS).max_blocking_threads(THREADS).enable_all();
        let runtime = builder.build().expect("a runtime");
        runtime.block_on(async {
            let mut stops = Stops::listen().expect("signals");
            let all_held = Arc::new(Barrier::new(2 * THREADS + 1));
            for _ in 0..THREADS {
                let [one, other] = [(); 2].map(|()| Arc::clone(&all_held));
                tokio::spawn(async move {
                    one.wait();
                    held();
                });
                tokio::task::spawn_blocking(move || {
                    other.wait();
                    held();
                });
            }
            all_held.wait();
            eprintln!("held");
            eprintln!("heard {}", stops.first().await);
            held();
        });
    }

    #[test]
    fn the_second_signal_ends_a_process_all_of_whose_threads_are_held() {
        if std::env::var_os(CHILD).is_some() {
            return be_held();
        }
        let this = std::env::current_exe().expect("a path");
        let mut command = Command::new(this);
        command.args([NAME, "--exact", "--nocapture"]).env(CHILD, "1");
        let mut child = Killed(command.stderr(Stdio::piped()).spawn().expect("a process"));
        let (said, lines) = mpsc::channel();
        let stderr = BufReader::new(child.0.stderr.take().expect("it is there"));
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).all(|line| said.send(line).is_ok())
        });
        let signal = || {
            let pid = Pid::from_raw(i32::try_from(child.0.id()).expect("a number"));
            kill_process(pid.expect("not 0"), Sent::TERM).expect("it is there");
        };
        let wait_for = |wanted: &str| {
            while lines.recv_timeout(PATIENCE).expect("it says so") != wanted {}
        };
        wait_for("held");
        signal();
        wait_for("heard SIGTERM");
        signal();
        // Its end is that of what it says.
        let ends = loop {
            match lines.recv_timeout(PATIENCE) {
                Ok(_) => {}
                Err(error) => break error == mpsc::RecvTimeoutError::Disconnected,
            }
        };
        assert!(ends, "it goes on");
        let status = child.0.wait().expect("it has ended");
        assert!(status.success(), "{status}");
    }
}
