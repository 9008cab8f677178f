//! The `courser` command, in a process of its own.

use super::PATIENCE;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Instant;
use tempfile::TempDir;

/// A broker that runs until it is told to stop, at the latest when this is dropped.
pub struct Process {
    child: Child,
    pub address: SocketAddr,
    pub banner: String,
}

impl Process {
    /// The command, with nothing of this process's environment that concerns it.
    pub fn command() -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_courser"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("COURSER_") {
                command.env_remove(name);
            }
        }
        // Many run at once; what is tested of it names an address.
        command.env("COURSER_MANAGEMENT_LISTEN", "none").env("COURSER_METRICS_LISTEN", "none");
        command.stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub fn run(arguments: &[&str]) -> Output {
        Self::command().args(arguments).output().expect("the command runs")
    }

    /// Starts a broker on a free port, with data in `folder`.
    pub fn start(folder: &TempDir) -> Self {
        let mut command = Self::command();
        command.env("COURSER_LOG_LEVEL", "error");
        command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
        Self::start_with(command)
    }

    /// Starts a broker by a command, and waits until it listens.
    pub fn start_with(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the command runs");
        let mut banner = String::new();
        let mut output = BufReader::new(child.stdout.take().expect("an output"));
        while !banner.contains("Stop  ") {
            if output.read_line(&mut banner).expect("a readable output") == 0 {
                let status = child.wait().expect("an end");
                panic!("the broker did not start: {status}\n{banner}");
            }
        }
        // Whatever follows is read, so that the broker never waits for it.
        std::thread::spawn(move || output.read_to_end(&mut Vec::new()));
        let address = banner
            .split_whitespace()
            .find_map(|word| word.strip_prefix("amqp://")?.parse().ok())
            .unwrap_or_else(|| panic!("no address in {banner}"));
        Process { child, address, banner }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let mut kill = Command::new("kill");
        kill.arg(format!("-{name}")).arg(self.id().to_string());
        assert!(kill.status().expect("kill runs").success());
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a process of ours") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "the broker does not end");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a process of ours").is_some()
    }

    /// Bytes of memory that the process has, as the system counts them.
    pub fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(Path::new(&path)).expect("a running process");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line VmRSS");
        let kib: u64 = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("KiB");
        kib * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
