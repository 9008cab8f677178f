//! Everything that the broker is made of, in one document.

use crate::client::{Answer, body, good, segment};
use crate::failure::{CANT_CREATE, DATA, Failure, UNAVAILABLE, say_error};
use crate::format::plain;
use crate::input::Input;
use crate::session::Session;
use crate::spec::{Action, Output, Spec, flag, optional, required};
use bytes::Bytes;
use hyper::Method;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Bytes of definitions that the broker takes.
const IMPORT_BYTES_MAX: u64 = 10_000_000;

pub(super) const COMMANDS: &[Spec] = &[
    Spec {
        name: "export_definitions",
        about: "Write users, vhosts, permissions, policies, exchanges, queues and bindings to a file (or -)",
        arguments: &[
            required("file", "The file; - is standard output"),
            flag(
                "for-rabbitmq",
                "Leave out password hashes that RabbitMQ can't read, and say whose they are",
            ),
        ],
        examples: &[
            "export_definitions definitions.json",
            "export_definitions definitions.json --for-rabbitmq",
            "export_definitions - -p orders | jq .queues",
        ],
        intent: "",
        action: Action::Run(export),
    },
    Spec {
        name: "import_definitions",
        about: "Create what a definitions file describes; existing objects stay",
        arguments: &[
            optional("file", "The file; standard input if left out"),
            flag(
                "dry-run",
                "Only show what would be refused, skipped, taken without some keys, changed, kept as it is or created",
            ),
            flag(
                "skip-if-unchanged",
                "Do nothing if this is what was imported with this option the last time",
            ),
        ],
        examples: &[
            "import_definitions definitions.json",
            "import_definitions definitions.json --dry-run",
            "import_definitions definitions.json --skip-if-unchanged",
            "import_definitions -p orders < orders.json",
        ],
        intent: "",
        action: Action::Run(import),
    },
];

/// The definitions of the broker, or of the vhost that is named.
fn path(input: &Input) -> String {
    match &input.vhost {
        Some(vhost) => format!("/api/definitions/{}", segment(vhost)),
        None => "/api/definitions".to_owned(),
    }
}

fn export(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    let file = input.text("file");
    let is_shown = STANDARD_OUTPUT.contains(&file);
    if !is_shown {
        session.style.say(&format!("Exporting definitions in JSON to a file at \"{file}\" ..."))?;
    }
    let mut path = path(input);
    if input.has("for-rabbitmq") {
        path += "?for_rabbitmq=true";
    }
    let answer = good(session.client.call(Method::GET, &path, Bytes::new())?)?;
    // Any export may lack what no import would take back.
    let is_told = warn(&answer)?;
    if input.has("for-rabbitmq") && !is_told {
        let why = "this broker can't leave out the hashes that RabbitMQ can't read: it is of an earlier version";
        return Err(Failure::error(UNAVAILABLE, why));
    }
    let document = answer.body;
    if is_shown {
        return Ok(Output::Raw(document.to_vec()));
    }
    let written = write_secret(Path::new(file), &document);
    written.map_err(|error| Failure::error(CANT_CREATE, format!("can't write {file}: {error}")))?;
    Ok(Output::Nothing)
}

/// Names of standard output. Opened anew by one of them, a file would be written from an offset of its own, over which goes
/// what others write; and a socket can't be opened.
const STANDARD_OUTPUT: [&str; 4] = ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];

/// Names of what the process has open.
const DESCRIPTORS: [&str; 4] = ["/dev/stdout", "/dev/stderr", "/dev/fd", "/proc/self/fd"];

/// Writes a file that only its owner can read, as hashes of passwords are in it. What was there before stays
/// until all of it is written, and lends it nothing of who may read it.
fn write_secret(file: &Path, document: &[u8]) -> io::Result<()> {
    if DESCRIPTORS.iter().any(|one| file.starts_with(one)) {
        // What leads there may be a file, to which others write too.
        return OpenOptions::new().append(true).open(file)?.write_all(document);
    }
    // A link stays, and leads to the new file.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    if file.metadata().is_ok_and(|there| !there.is_file()) {
        // A device or a pipe.
        return OpenOptions::new().write(true).open(&file)?.write_all(document);
    }
    let name = file.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let new = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        opened.write_all(document)?;
        opened.sync_all()?;
        std::fs::rename(&new, &file)
    })();
    if written.is_err() {
        // What can't be removed is said by the first error.
        drop(std::fs::remove_file(&new));
    }
    written
}

/// What the broker remembers of the definitions that were imported with the option to skip them. Those that its settings name
/// have a hash of their own: were it replaced, they would be imported once more.
const IMPORTED_HASH: &str = "/api/global-parameters/imported_by_command_hash_value";

/// The hash of definitions.
fn hash(document: &[u8]) -> String {
    let mut all = Sha256::new();
    all.update((document.len() as u64).to_be_bytes());
    all.update(document);
    all.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses options that rule each other out.
fn check_options(input: &Input) -> Result<(), Failure> {
    if !input.has("skip-if-unchanged") {
        return Ok(());
    }
    match (&input.vhost, input.has("dry-run")) {
        (Some(_), _) => Err(Failure::usage(
            "--skip-if-unchanged is for definitions of the whole broker: leave out -p",
        )),
        (None, true) => {
            Err(Failure::usage("--dry-run imports nothing: leave out --skip-if-unchanged"))
        }
        (None, false) => Ok(()),
    }
}

fn import(session: &mut Session, input: &Input) -> Result<Output, Failure> {
    check_options(input)?;
    let from = input.find("file").filter(|file| *file != "-");
    let document = read(from)?;
    // A mistake in the file is best said before anything is changed.
    serde_json::from_slice::<Value>(&document).map_err(|error| {
        Failure::error(
            DATA,
            format!("{} is not valid JSON: {error}", from.unwrap_or("standard input")),
        )
    })?;
    if input.has("dry-run") {
        let path = format!("{}?dry_run=true", path(input));
        let plan = good(session.client.call(Method::POST, &path, document.into())?)?.json()?;
        return Ok(planned(&plan));
    }
    let source = match from {
        Some(file) => format!("a file at \"{file}\""),
        None => "standard input".to_owned(),
    };
    session.style.say(&format!("Importing definitions in JSON from {source} ..."))?;
    let hash = input.has("skip-if-unchanged").then(|| hash(&document));
    if let Some(hash) = &hash
        && session.client.find(IMPORTED_HASH)?.is_some_and(|known| known["value"] == hash.as_str())
    {
        let text = "The definitions are those that were imported with --skip-if-unchanged the last time: nothing was imported.";
        return Ok(Output::Text(text.to_owned()));
    }
    let path = format!("{}?warnings=true", path(input));
    warn(&good(session.client.call(Method::POST, &path, document.into())?)?)?;
    if let Some(hash) = hash {
        let noted = body(&serde_json::json!({ "value": hash }));
        good(session.client.call(Method::PUT, IMPORTED_HASH, noted)?)?;
    }
    Ok(Output::Text("Successfully imported definitions.".to_owned()))
}

/// Says on standard error what was left out. Whether the broker has told: one of an earlier version does not.
fn warn(answer: &Answer) -> Result<bool, Failure> {
    if answer.body.is_empty() {
        return Ok(false);
    }
    let said = answer.json()?;
    let Some(warnings) = said["warnings"].as_array() else { return Ok(false) };
    for warning in warnings.iter().filter_map(Value::as_str) {
        say_error(&format_args!("Warning: {}", plain(warning)));
    }
    Ok(true)
}

/// What an import would do, what it would stop at first.
fn planned(plan: &Value) -> Output {
    let mut rows = Vec::new();
    for (action, detail) in [
        ("refuse", "because"),
        ("skip", "because"),
        ("strip", "because"),
        ("change", "after"),
        ("keep", "after"),
        ("create", ""),
    ] {
        for one in plan[action].as_array().into_iter().flatten() {
            rows.push(vec![
                action.into(),
                one["list"].clone(),
                one["row"].clone(),
                one.get(detail).cloned().unwrap_or_default(),
            ]);
        }
    }
    let columns = ["action", "list", "object", "detail"].map(str::to_owned).to_vec();
    Output::Rows { columns, rows }
}

fn read(from: Option<&str>) -> Result<Vec<u8>, Failure> {
    let fail = |error: std::io::Error| match from {
        Some(file) if error.kind() == std::io::ErrorKind::NotFound => Failure::new(
            DATA,
            format!("Error (argument validation): Bad argument: File {file} does not exist"),
        ),
        _ => Failure::error(
            DATA,
            format!("can't read {}: {error}", from.unwrap_or("standard input")),
        ),
    };
    let mut document = Vec::new();
    let read = match from {
        Some(file) => std::fs::File::open(file)
            .and_then(|file| file.take(IMPORT_BYTES_MAX + 1).read_to_end(&mut document)),
        None => std::io::stdin().lock().take(IMPORT_BYTES_MAX + 1).read_to_end(&mut document),
    };
    read.map_err(fail)?;
    match document.len() as u64 > IMPORT_BYTES_MAX {
        true => Err(Failure::error(
            DATA,
            format!(
                "the definitions exceed {IMPORT_BYTES_MAX} bytes: import them vhost by vhost, or when the broker \
                 starts (management.load_definitions)"
            ),
        )),
        false => Ok(document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn what_is_open_for_others_to_write_to_is_written_to_and_not_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("all.json");
        std::fs::write(&path, "before\n").expect("a file");
        let opened = OpenOptions::new().append(true).open(&path).expect("a file");
        let name = format!("/dev/fd/{}", opened.as_raw_fd());
        write_secret(Path::new(&name), b"{}\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "before\n{}\n");
        // By its own name it is replaced.
        write_secret(&path, b"{}\n").expect("written");
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "{}\n");
    }
}
