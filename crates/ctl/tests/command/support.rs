//! A server that stands in for a broker, and commands that are sent to it.

use clap::{Args as _, Command, FromArgMatches as _};
use courser_ctl::{Ctl, Failure};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a server answers to a method and a path: the status, the content type and the body. With [`LOST`] for a status, the
/// connection is closed instead.
type Answers = fn(&str, &str) -> (u16, &'static str, &'static str);

/// No answer.
pub const LOST: u16 = 0;

/// A server, and what it was asked.
pub struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let noted = Arc::clone(&noted);
                thread::spawn(move || while serve(&stream, answers, &noted).is_some() {});
            }
        });
        Server { address, asked }
    }

    /// The requests so far, with methods and paths.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Runs a command against it.
    pub fn ctl(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.ctl_aloud(&[&["-q"], arguments].concat())
    }

    /// The same without `-q`.
    pub fn ctl_aloud(&self, arguments: &[&str]) -> Result<(), Failure> {
        let folder = tempfile::tempdir().expect("a folder");
        let password = folder.path().join("password");
        std::fs::write(&password, "guest\n").expect("a file");
        let url = format!("http://{}", self.address);
        let password = password.to_str().expect("text");
        let login = ["--url", &url, "--user", "guest", "--password-file", password];
        ctl(&[&login, arguments].concat())
    }
}

fn serve(stream: &TcpStream, answers: Answers, asked: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|read| *read > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let mut words = first.split_whitespace();
    let (method, path) = (words.next()?, words.next()?);
    asked.lock().expect("no panic").push(format!("{method} {path}"));
    let (status, content_type, body) = answers(method, path);
    if status == LOST {
        return None;
    }
    let size = body.len();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {size}");
    let mut writer = stream;
    write!(writer, "{head}\r\n\r\n{body}").ok()
}

/// Runs a command.
pub fn ctl(arguments: &[&str]) -> Result<(), Failure> {
    let command = Ctl::augment_args(Command::new("ctl"));
    let words = std::iter::once(&"ctl").chain(arguments);
    let matches = command.try_get_matches_from(words).expect("arguments that there are");
    Ctl::from_arg_matches(&matches).expect("a command").attempt(None)
}
