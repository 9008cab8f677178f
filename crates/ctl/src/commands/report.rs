//! A support bundle: what the broker is and how it is, without secrets.

use crate::client::good;
use crate::failure::{CANT_CREATE, DATA, Failure};
use crate::input::Input;
use crate::redact::{redacted, redacted_text};
use crate::session::Session;
use crate::spec::{Action, Output, Spec, option, optional};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions, ReadDir};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes of the log that are taken.
const LOG_BYTES_MAX: u64 = 1 << 20;
/// Files of the journal that are named.
const FILES_MAX: usize = 10_000;
/// The folder in the bundle.
const FOLDER: &str = "courser-report";

/// What is asked, and the file that it goes to.
const PARTS: &[(&str, &str)] = &[
    ("overview.json", "/api/overview"),
    ("nodes.json", "/api/nodes"),
    ("settings.json", "/api/config/effective"),
    ("alarms.json", ALARMS),
];

/// Answered with [`ALARM`] where there is one.
const ALARMS: &str = "/api/health/checks/local-alarms";
const ALARM: u16 = 503;

/// Lists, and how each is asked. They may be very long where a broker is in trouble: only the first page of each is in the
/// bundle.
const LISTS: &[(&str, &str)] = &[
    ("vhosts", ""),
    ("vhost-limits", ""),
    ("queues", "&sort=messages&sort_reverse=true"),
    ("exchanges", ""),
    ("connections", ""),
    ("channels", ""),
    ("consumers", ""),
    ("bindings", "&columns=source,vhost,destination,destination_type,routing_key"),
    ("users", "&columns=name,tags,limits"),
    ("permissions", ""),
    ("policies", ""),
    ("operator-policies", ""),
    // Their values may hold secrets.
    ("parameters", "&columns=component,vhost,name"),
    ("global-parameters", "&columns=name"),
];

pub(super) const COMMANDS: &[Spec] = &[Spec {
    name: "report",
    about: "Write a support bundle: version, settings, lists, alarms, journal and log, without secrets",
    arguments: &[
        optional("file", "The bundle, a .tar.gz [default: courser-report-SECONDS.tar.gz]"),
        option("log", "A log file of the broker, whose last mebibyte is included"),
    ],
    examples: &["report", "report /tmp/broker.tar.gz --log /var/log/courser.log"],
    intent: "Collecting a report ...",
    action: Action::Run(report),
}];

fn report(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let usual = format!("courser-report-{now}.tar.gz");
    let file = input.find("file").unwrap_or(&usual);
    let log = input.find("log").map(tail).transpose()?;
    // Before the file is made: a broker that can't be reached leaves none behind.
    let facts = super::status::facts(session)?;
    let cant =
        |error: io::Error| Failure::error(CANT_CREATE, format!("{file} can't be written: {error}"));
    let opened =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(cant)?;
    let mut bundle =
        Bundle { archive: tar::Builder::new(GzEncoder::new(opened, Compression::default())), now };
    let lists = LISTS.iter().map(|(name, query)| {
        (format!("{name}.json"), format!("/api/{name}?page=1&page_size=500{query}"))
    });
    let parts = PARTS.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned()));
    let (mut count, mut missing) = (0, Vec::new());
    for (name, path) in parts.chain(lists) {
        // What one part is not answered for is no reason to go without the others.
        match part(session, &path) {
            Ok(found) => {
                bundle.add(&name, pretty(redacted(found)).as_bytes()).map_err(cant)?;
                count += 1;
            }
            Err(why) => missing.push(format!("{path}: {why}\n")),
        }
    }
    bundle.add("status.json", pretty(redacted(facts.clone())).as_bytes()).map_err(cant)?;
    let about = format!(
        "courser ctl {}\nasked {}\n{}",
        env!("CARGO_PKG_VERSION"),
        session.client.target(),
        redacted_text(&missing.concat())
    );
    bundle.add("about.txt", about.as_bytes()).map_err(cant)?;
    bundle.add("journal.txt", survey(&facts["data_directory"]).as_bytes()).map_err(cant)?;
    if let Some(log) = log {
        bundle.add("log.txt", redacted_text(&log).as_bytes()).map_err(cant)?;
    }
    bundle.finish().map_err(cant)?;
    let log = match input.find("log") {
        Some(_) => ", and the end of the log",
        None => "; --log FILE adds the log",
    };
    let missing = missed(missing.len());
    Ok(Output::Text(format!(
        "Wrote {file}: {count} lists, status and journal{log}.{missing} It contains names of queues, users and clients, \
         but no passwords, hashes or messages."
    )))
}

/// What is said of parts that were not answered, lists or others.
fn missed(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => " 1 part is missing: about.txt in it says why.".to_owned(),
        _ => format!(" {count} parts are missing: about.txt in it says why."),
    }
}

/// What is at a path, which has the time of a command of its own; or why that can't be had, in a line.
fn part(session: &mut Session, path: &str) -> Result<Value, String> {
    session.client.restart_clock();
    let asked = session.client.call(hyper::Method::GET, path, bytes::Bytes::new());
    let read = asked.and_then(|answer| match (path, answer.status) {
        (ALARMS, ALARM) => answer.json(),
        _ => good(answer)?.json(),
    });
    read.map_err(|failure| failure.text.replace('\n', " "))
}

struct Bundle {
    archive: tar::Builder<GzEncoder<File>>,
    now: u64,
}

impl Bundle {
    fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.now);
        header.set_cksum();
        self.archive.append_data(&mut header, format!("{FOLDER}/{name}"), content)
    }

    fn finish(self) -> io::Result<()> {
        let mut file = self.archive.into_inner()?.finish()?;
        file.flush()?;
        file.sync_all()
    }
}

fn pretty(value: Value) -> String {
    // A value that came as JSON can be written as such.
    serde_json::to_string_pretty(&value).unwrap_or_default() + "\n"
}

/// The last part of a log. It begins with a whole line: in the rest of one, a secret has no name before it.
fn tail(path: &str) -> Result<String, Failure> {
    let read = || {
        let mut file = File::open(path)?;
        let start = file.metadata()?.len().saturating_sub(LOG_BYTES_MAX);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        if start > 0 {
            let rest =
                bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |at| at + 1);
            bytes.drain(..rest);
        }
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().map_err(|error| Failure::error(DATA, format!("can't read the log {path}: {error}")))
}

/// Names and sizes of what is in the data folder, where that can be looked into from here.
fn survey(folder: &Value) -> String {
    let Some(folder) = folder.as_str() else {
        return "the broker names no data folder\n".to_owned();
    };
    let mut text = format!("{folder}\n");
    let mut lines = Vec::new();
    let listed =
        std::fs::read_dir(folder).and_then(|entries| list(Path::new(folder), entries, &mut lines));
    match listed {
        Ok(()) => {
            lines.sort();
            text.push_str(&lines.join("\n"));
            text.push('\n');
        }
        Err(error) => {
            // Writing to a String does not fail.
            let _ = writeln!(text, "can't be looked into from here: {error}");
        }
    }
    text
}

fn list(root: &Path, entries: ReadDir, lines: &mut Vec<String>) -> io::Result<()> {
    for entry in entries {
        if lines.len() >= FILES_MAX {
            return Ok(());
        }
        match note(root, &entry?.path(), lines) {
            // A broker that runs removes files of its journal at any time.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            noted => noted?,
        }
    }
    Ok(())
}

/// Notes a file, or all that is in a folder.
fn note(root: &Path, path: &Path, lines: &mut Vec<String>) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if found.is_dir() {
        return list(root, std::fs::read_dir(path)?, lines);
    }
    let name = path.strip_prefix(root).unwrap_or(path).display();
    lines.push(format!("{name}\t{} bytes", found.len()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_that_is_missing_is_said_to_be_one() {
        let said = [0, 1, 2].map(missed);
        let expected = [
            "",
            " 1 part is missing: about.txt in it says why.",
            " 2 parts are missing: about.txt in it says why.",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_file_that_is_removed_while_files_are_listed_is_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        let removed = ["1.seg", "2.seg", "3.seg"];
        for name in removed {
            std::fs::write(root.join(name), "records").expect("a file");
        }
        let mut entries = std::fs::read_dir(root).expect("a folder");
        // The names of so few files are read at once.
        entries.next().expect("three files").expect("a name");
        for name in removed {
            std::fs::remove_file(root.join(name)).expect("it is there");
        }
        let mut lines = Vec::new();
        list(root, entries, &mut lines).expect("nothing is wrong with the others");
        assert_eq!(lines, [""; 0]);
    }

    #[test]
    fn the_last_part_of_a_log_begins_with_a_whole_line() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("text");
        std::fs::write(path, "password=PLANTED\nlast\n").expect("a log");
        assert_eq!(tail(path).expect("read"), "password=PLANTED\nlast\n");
        // What is taken begins within the value, behind its name.
        let rest = "x".repeat(LOG_BYTES_MAX as usize - "TED\n\n".len());
        std::fs::write(path, format!("password=PLANTED\n{rest}\n")).expect("a log");
        assert_eq!(tail(path).expect("read").trim_end(), rest);
    }
}
