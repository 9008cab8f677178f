//! A broker in a process of its own, for examples that measure it.

use anyhow::{Context, bail};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// A broker in a process of its own, which is killed when it is dropped.
pub struct Broker {
    process: Child,
    /// Kept open, so that the broker can write what it likes.
    _output: BufReader<ChildStdout>,
    pub address: SocketAddr,
}

impl Broker {
    /// Starts this program, or else the broker built together with the example, with its data in
    /// `folder`.
    pub fn start(program: Option<&Path>, folder: &Path) -> anyhow::Result<Self> {
        let program = match program {
            Some(program) => program.to_owned(),
            None => beside()?,
        };
        let mut process = Command::new(&program)
            .args(["--listen", "127.0.0.1:0", "--data-dir"])
            .arg(folder)
            // Its usual address may be another broker's.
            .env("COURSER_MANAGEMENT_LISTEN", "none")
            .env("COURSER_METRICS_LISTEN", "none")
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("can't start {}", program.display()))?;
        let mut output = BufReader::new(process.stdout.take().context("no output")?);
        let mut line = String::new();
        while output.read_line(&mut line)? > 0 {
            if let Some((_, address)) = line.split_once("amqp://") {
                let address = address.trim().parse()?;
                return Ok(Broker { process, _output: output, address });
            }
            line.clear();
        }
        bail!("{} did not start", program.display())
    }

    fn proc_file(&self, name: &str) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(format!("/proc/{}/{name}", self.process.id()))?)
    }

    /// Memory that the process has in use.
    pub fn resident_bytes(&self) -> anyhow::Result<u64> {
        let status = self.proc_file("status")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|rest| rest.split_whitespace().next()).context("no VmRSS")?;
        Ok(kib.parse::<u64>()? * 1024)
    }

    /// What all threads of the process have used, user and system, to a hundredth of a second.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        let stat = self.proc_file("stat")?;
        let (_, fields) = stat.rsplit_once(')').context("no fields")?;
        // utime and stime are fields 14 and 15; the first after the name is 3.
        let ticks: u64 = fields
            .split_whitespace()
            .skip(11)
            .take(2)
            .map(str::parse::<u64>)
            .sum::<Result<_, _>>()?;
        Ok(Duration::from_millis(ticks * 10))
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // What can't be cleaned up is left; no one is there to tell.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The broker built with the same profile as this example.
fn beside() -> anyhow::Result<PathBuf> {
    let this = std::env::current_exe()?;
    let folder = this.parent().and_then(|examples| examples.parent()).context("no folder")?;
    Ok(folder.join("courser"))
}
