//! A program that knows users whom the broker does not.

use super::TestServer;
use courser::Config;
use parking_lot::Mutex;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A program that knows `alice` and `bob`, who have the password `s3cret` and may do everything with what begins with `own`, and
/// `boss`, an administrator. It notes what it is asked.
#[derive(Clone)]
pub struct AuthProgram {
    pub address: SocketAddr,
    pub asked: Arc<Mutex<Vec<String>>>,
    /// It hears questions, and answers none.
    pub is_silent: Arc<AtomicBool>,
    /// Its answers to questions with this text wait as long as it is set.
    pub holds: Arc<Mutex<Option<&'static str>>>,
    /// What it says of `boss`.
    pub word_on_boss: Arc<Mutex<&'static str>>,
}

impl AuthProgram {
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let program = AuthProgram {
            address: listener.local_addr().expect("an address"),
            asked: Arc::default(),
            is_silent: Arc::default(),
            holds: Arc::default(),
            word_on_boss: Arc::new(Mutex::new("allow administrator")),
        };
        let serving = program.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let program = serving.clone();
                std::thread::spawn(move || program.answer_all(stream));
            }
        });
        program
    }

    pub async fn broker(&self, change: impl FnOnce(&mut Config)) -> TestServer {
        TestServer::start_with(|config| {
            config.auth_http.user_path = self.path("user");
            config.auth_http.vhost_path = self.path("vhost");
            config.auth_http.resource_path = self.path("resource");
            config.auth_http.topic_path = self.path("topic");
            change(config);
        })
        .await
    }

    /// Where it is asked for this.
    pub fn path(&self, name: &str) -> String {
        format!("http://{}/auth/{name}", self.address)
    }

    pub fn asked_for(&self, what: &str) -> usize {
        self.asked.lock().iter().filter(|one| one.contains(what)).count()
    }

    /// Answers the requests of a connection.
    fn answer_all(&self, mut stream: TcpStream) {
        let mut read = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            if let Some(question) = question(&read) {
                read.clear();
                let Some(said) = self.answer(question) else {
                    return stay_silent(&mut stream, &self.is_silent);
                };
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}", said.len());
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
                continue;
            }
            match stream.read(&mut buffer) {
                Ok(count @ 1..) => read.extend_from_slice(&buffer[..count]),
                _ => return,
            }
        }
    }

    fn answer(&self, question: String) -> Option<&'static str> {
        let said = match verdict(&question) {
            "allow administrator" => *self.word_on_boss.lock(),
            said => said,
        };
        self.asked.lock().push(question.clone());
        if self.is_silent.load(Ordering::Relaxed) {
            return None;
        }
        while self.holds.lock().is_some_and(|held| question.contains(held)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(said)
    }
}

/// A whole request, if there is one.
fn question(read: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(read);
    let (head, body) = text.split_once("\r\n\r\n")?;
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1).map_or(0, |rest| {
        rest.split("\r\n").next().and_then(|one| one.parse().ok()).expect("a length")
    });
    let line = head.lines().next().expect("a line");
    (body.len() >= length).then(|| format!("{line} {body}"))
}

/// Says nothing as long as that is wanted, and then ends the connection.
fn stay_silent(stream: &mut TcpStream, silent: &AtomicBool) {
    stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a limit");
    while silent.load(Ordering::Relaxed) {
        match stream.read(&mut [0; 64]) {
            Ok(1..) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => return,
        }
    }
}

fn verdict(question: &str) -> &'static str {
    let has = |part: &str| question.contains(part);
    if has("/auth/user") {
        return match () {
            () if has("username=alice&password=s3cret") => "allow management",
            () if has("username=bob&password=s3cret") => "allow management",
            () if has("username=boss&password=b%26ss") => "allow administrator",
            () if has("username=odd") => "perhaps",
            () => "deny no user of that name",
        };
    }
    let is_own = has("name=own") || has("name=amq.default") || has("/auth/vhost");
    if is_own && has("vhost=%2F") && !has("routing_key=secret") { "allow" } else { "deny" }
}
