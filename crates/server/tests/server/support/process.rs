//! The `courser` command, in a process of its own.

use super::PATIENCE;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than a command or a start takes, also on a busy machine.
const COMMAND_PATIENCE: Duration = Duration::from_secs(300);

/// What comes of a command that comes to its end.
pub fn output(command: &mut Command) -> Output {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    ended(command.spawn().expect("the command runs"))
}

/// What comes of a process, which is killed if it goes on for too long.
pub fn ended(child: Child) -> Output {
    let id = child.id().to_string();
    let (end, ends) = mpsc::channel();
    std::thread::spawn(move || end.send(child.wait_with_output()));
    let Ok(output) = ends.recv_timeout(COMMAND_PATIENCE) else {
        let killed = Command::new("kill").args(["-KILL", &id]).status();
        panic!("it goes on, and was killed: {killed:?}");
    };
    output.expect("its output")
}

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
        output(Self::command().args(arguments))
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
        let mut process = Self::silent(command.stdout(Stdio::piped()));
        let output = BufReader::new(process.child.stdout.take().expect("an output"));
        let (line, lines) = mpsc::channel();
        // Whatever follows the banner is read, so that the broker never waits for it.
        std::thread::spawn(move || {
            output.split(b'\n').map_while(Result::ok).for_each(|read| drop(line.send(read)));
        });
        while !process.banner.contains("Stop  ") {
            match lines.recv_timeout(COMMAND_PATIENCE) {
                Ok(line) => process.banner += &(String::from_utf8_lossy(&line) + "\n"),
                Err(RecvTimeoutError::Timeout) => panic!("no banner, but {}", process.banner),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = process.wait();
                    panic!("the broker did not start: {status}\n{}", process.banner);
                }
            }
        }
        let mut words = process.banner.split_whitespace();
        let address = words.find_map(|word| word.strip_prefix("amqp://")?.parse().ok());
        process.address = address.unwrap_or_else(|| panic!("no address in {}", process.banner));
        process
    }

    /// Starts a broker by a command. What it says is not read, so that its address is not known.
    pub fn silent(command: &mut Command) -> Self {
        let child = command.spawn().expect("the command runs");
        Process { child, address: ([0, 0, 0, 0], 0).into(), banner: String::new() }
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
            std::thread::sleep(Duration::from_millis(10));
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
