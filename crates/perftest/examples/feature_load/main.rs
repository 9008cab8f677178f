//! The load of `bench/features`: reads commands from stdin, a line of JSON each, does them side by side, and answers each
//! with a line of JSON on stdout. It keeps no figures of the broker; the caller takes them before and after.
//!
//! ```text
//! > {"id": 1, "op": "publish", "targets": [{"key": "q"}], "count": 1000, "size_bytes": 100}
//! < {"id": 1, "count": 1000, "seconds": 0.01}
//! ```
//!
//! A command that fails is answered with `error`. The end of stdin is the end of the program.
#![forbid(unsafe_code)]

mod command;
mod consume;
mod publish;
mod topology;

use std::io::Write;
use std::process::ExitCode;

use courser_client::Error;
use courser_perftest::latency::Summary;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, BufReader};

use command::{Command, Line};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What became of a command.
#[derive(Debug, Default, Serialize)]
pub struct Answer {
    /// Messages, or whatever there were.
    pub count: u64,
    /// Time from the first to the last of them.
    pub seconds: f64,
    /// Fewest and most messages that a consumer has got.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<(u64, u64)>,
    /// How long messages took, or how late they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Summary>,
    /// Messages that came before their time.
    #[serde(skip_serializing_if = "is_zero")]
    pub early: u64,
    /// Messages above the priority of the one before.
    #[serde(skip_serializing_if = "is_zero")]
    pub misplaced: u64,
}

#[derive(Serialize)]
struct Reply<'a> {
    id: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    answer: Option<Answer>,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl<'a> Reply<'a> {
    fn send(self) {
        let Ok(line) = serde_json::to_string(&self) else { return };
        // It fails if the reader of stdout is gone; then no answer is needed.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }

    fn event(id: u64, event: &'a str) -> Self {
        Self { id, answer: None, event: Some(event), error: None }
    }

    fn end(id: u64, result: Result<Answer, Error>) -> Self {
        match result {
            Ok(answer) => Self { id, answer: Some(answer), event: None, error: None },
            Err(error) => Self { id, answer: None, event: None, error: Some(error.to_string()) },
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, uri] = arguments.as_slice() else {
        eprintln!("usage: feature_load URI, then commands on stdin");
        return ExitCode::from(2);
    };
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        match serde_json::from_str(&line) {
            Ok(line) => drop(tokio::spawn(run(uri.clone(), line))),
            Err(error) => {
                eprintln!("feature_load: {error}");
                return ExitCode::from(2);
            }
        }
    }
    ExitCode::SUCCESS
}

async fn run(uri: String, Line { id, command }: Line) {
    let result = match command {
        Command::Declare(declare) => topology::declare(&uri, declare).await,
        Command::Delete(delete) => topology::delete(&uri, delete).await,
        Command::Depth(depth) => topology::wait_for_depth(&uri, depth).await,
        Command::Publish(publish) => publish::publish(&uri, publish).await,
        Command::Consume(consume) => {
            consume::consume(&uri, consume, || Reply::event(id, "ready").send()).await
        }
    };
    Reply::end(id, result).send();
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
