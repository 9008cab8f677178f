//! `courser top` in a terminal, and without one.

use crate::support::{Client, PATIENCE, Process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A program in a terminal of its own.
struct Screen {
    child: Child,
    keys: File,
    shown: Arc<Mutex<vt100::Parser>>,
}

impl Screen {
    fn start(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it can be opened");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("a plain name").to_owned();
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let size = Winsize { ws_row: 24, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");
        let end = || slave.try_clone().expect("another handle");
        command.stdin(end()).stdout(end()).stderr(end()).env("TERM", "xterm-256color");
        let child = command.spawn().expect("the command runs");
        let mut output = File::from(master);
        let keys = output.try_clone().expect("another handle");
        let shown = Arc::new(Mutex::new(vt100::Parser::new(24, 120, 0)));
        let emulator = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The system says with an error that the other end is closed.
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                emulator.lock().expect("an emulator").process(&bytes[..count]);
            }
        });
        Screen { child, keys, shown }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// Waits until this can be seen.
    fn wait_for(&self, wanted: &str) {
        self.wait_until(wanted, |screen| screen.contents().contains(wanted));
    }

    /// Waits until the terminal is as it was before.
    fn wait_for_shell(&self) {
        self.wait_until("the shell", |screen| !screen.alternate_screen());
    }

    fn wait_until(&self, wanted: &str, is_there: impl Fn(&vt100::Screen) -> bool) {
        let start = Instant::now();
        loop {
            let shown = self.shown.lock().expect("an emulator");
            if is_there(shown.screen()) {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "no {wanted} in {}", shown.screen().contents());
            drop(shown);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(mut self) -> Option<i32> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                return status.code();
            }
            assert!(start.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

async fn broker(folder: &TempDir) -> Process {
    let broker = Process::start(folder);
    let mut client = Client::connect(broker.address).await;
    client.open_channel().await;
    for name in ["orders", "letters"] {
        client.declare(name).await;
    }
    client.publish("orders", b"hello").await;
    assert_eq!(client.count("orders").await, 1);
    broker
}

fn top(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Process::command();
    command.env("HOME", folder.path()).env_remove("XDG_CONFIG_HOME").arg("top");
    command.arg("--data-dir").arg(folder.path().join("data")).args(arguments);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_is_watched_in_a_terminal() {
    let folder = tempfile::tempdir().expect("a folder");
    let _broker = broker(&folder).await;
    let mut screen = Screen::start(top(&folder, &["--interval", "0.5"]));
    screen.wait_for("1 messages ready");
    screen.wait_for("orders");
    screen.press("\r");
    screen.wait_for("queue orders in vhost /");
    screen.wait_for("without a consumer");
    screen.press("\u{7f}/lett");
    screen.wait_for("1 in all");
    screen.press("\r?");
    screen.wait_for("Keys");
    screen.press("xq");
    screen.wait_for_shell();
    assert_eq!(screen.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_terminal_is_given_back_when_a_signal_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let _broker = broker(&folder).await;
    let screen = Screen::start(top(&folder, &[]));
    screen.wait_for("orders");
    let mut kill = Command::new("kill");
    assert!(kill.arg(screen.child.id().to_string()).status().expect("kill runs").success());
    screen.wait_for_shell();
    assert_eq!(screen.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_is_printed_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let _broker = broker(&folder).await;
    let once = ["--once", "--interval", "0.5", "--rows", "1"];
    let output = top(&folder, &once).output().expect("the command runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let rows: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..5], ["queue", "vhost", "type", "ready", "unacked"], "{output:?}");
    assert_eq!(rows[1][..5], ["orders", "/", "classic", "1", "0"]);
    assert_eq!((rows.len(), output.status.code()), (2, Some(0)));
}

#[test]
fn without_a_terminal_or_a_broker_it_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |arguments: &[&str], code: i32, text: &str| {
        let output = top(&folder, arguments).output().expect("the command runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(text), "{said}");
        assert_eq!(output.status.code(), Some(code));
    };
    refused(&[], 64, "'courser top --once' prints one look");
    refused(&["--once"], 69, "no broker runs at ");
    refused(&["--interval", "0"], 64, "0.5 to 3600 seconds");
}
