//! A broker that `courser ctl` operates, and what its commands say.

use super::{Process, output};
use serde_json::Value;
use std::process::Command;
use tempfile::TempDir;

/// A broker, and a home for who operates it.
pub struct Operated {
    pub folder: TempDir,
    pub broker: Process,
}

/// What a command wrote, and what it ended with.
#[derive(Debug, PartialEq)]
pub struct Said {
    pub out: String,
    pub error: String,
    pub code: Option<i32>,
}

impl Operated {
    pub fn start() -> Self {
        Self::start_with(|_| {})
    }

    pub fn start_with(change: impl FnOnce(&mut Command)) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Process::command();
        command.env("COURSER_LOG_LEVEL", "info").env("COURSER_MANAGEMENT_LISTEN", "127.0.0.1:0");
        command.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(folder.path().join("data"));
        change(&mut command);
        let broker = Process::start_with(command);
        Operated { folder, broker }
    }

    pub fn command(&self) -> Command {
        let mut command = Process::command();
        command.env("HOME", self.folder.path()).env_remove("XDG_CONFIG_HOME");
        command.current_dir(self.folder.path()).arg("ctl");
        command
    }

    pub fn anywhere(&self, arguments: &[&str]) -> Said {
        said(self.command().args(arguments))
    }

    /// Over the socket in the data folder.
    pub fn ctl(&self, arguments: &[&str]) -> Said {
        said(self.command().arg("--data-dir").arg("data").args(arguments))
    }

    /// What a command writes that succeeds, without its line of intent.
    pub fn quiet(&self, arguments: &[&str]) -> String {
        let said = self.ctl(&[&["-q"], arguments].concat());
        assert_eq!((said.code, &*said.error), (Some(0), ""), "{arguments:?}: {said:?}");
        said.out
    }

    pub fn json(&self, arguments: &[&str]) -> Value {
        let out = self.quiet(&[&["--formatter", "json"], arguments].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// What a command says that ends with this code.
    pub fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let said = self.ctl(arguments);
        assert_eq!(said.code, Some(code), "{arguments:?}: {said:?}");
        said.error
    }

    pub fn url(&self) -> String {
        let address =
            self.broker.banner.split_whitespace().find(|word| word.starts_with("http://"));
        address.expect("an HTTP API").to_owned()
    }
}

pub fn said(command: &mut Command) -> Said {
    let output = output(command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Said { out: text(output.stdout), error: text(output.stderr), code: output.status.code() }
}
