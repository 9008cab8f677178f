//! Definitions that the configuration names: made at each start, before any client is served, or when they have changed. In a
//! cluster, by the node that comes to lead.

use crate::config::Management;
use crate::server::StartError;
use courser_auth::Hashing;
use courser_broker::admin::Admin;
use courser_management::{IMPORTED_BY_NODES, IMPORTED_HASH, ImportError, LEFT_OUT, Rows};
use serde::de::IgnoredAny;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// What is wrong with a file of definitions.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionsError {
    /// It can't be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Something in it can't be made.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// It can't be noted what was made.
    #[error("what was imported can't be noted: {0}")]
    Note(String),
}

/// Refuses files that can't be read or are not JSON.
///
/// # Errors
/// The first of them.
pub(crate) fn check(settings: &Management) -> Result<(), StartError> {
    for (file, text) in texts(&settings.load_definitions)? {
        serde_json::from_slice::<IgnoredAny>(&text)
            .map_err(|error| wrong(&file, io::Error::from(error).into()))?;
    }
    Ok(())
}

/// What is not made once more.
#[derive(Clone, Copy)]
pub(crate) enum Skips<'a> {
    Nothing,
    /// What was made the last time.
    Last,
    /// Also what this node has had made the last time: where the files of nodes differ, each change of lead would undo what was
    /// changed since.
    LastOf(&'a str),
}

/// Makes what a file describes, or what all files of a folder do, by name, unless it is skipped. `before` runs first, unless all is
/// skipped. What is refused because of what is there is left out, and counts as made: it is told, and no reason to make the rest
/// anew.
///
/// # Errors
/// The first file that can't be read or made; what came before it stays.
pub(crate) fn load(
    admin: &Admin,
    path: &Path,
    skips: Skips<'_>,
    hashing: Hashing,
    groups: u16,
    before: impl FnOnce() -> Result<(), StartError>,
) -> Result<(), StartError> {
    let texts = texts(path)?;
    if texts.is_empty() {
        note_left_out(admin, &Rows::default());
        return Ok(());
    }
    let made = Made::read(admin, hash(texts.iter().map(|(_, text)| text)));
    if made.is_skipped(skips) {
        tracing::info!(path = %path.display(), "definitions are unchanged, and not imported again");
        return made.note_of(skips).map_err(|error| wrong(path, error));
    }
    before()?;
    let mut left_out = Rows::default();
    for (file, text) in texts {
        let done = courser_management::import(admin, &text, hashing, groups)
            .map_err(|error| wrong(&file, error.into()))?;
        tracing::info!(
            file = %file.display(),
            users = done.users,
            vhosts = done.vhosts,
            topology = done.topology,
            skipped = done.skipped,
            "definitions loaded"
        );
        left_out.append(done.refused);
    }
    note_left_out(admin, &left_out);
    made.note(skips).map_err(|error| wrong(path, error))
}

/// Has operators see what the last import has left out, until one leaves out nothing. What can't be noted has been in the log.
fn note_left_out(admin: &Admin, rows: &Rows) {
    let noted = admin.global_parameter(LEFT_OUT);
    let text = (!rows.is_empty()).then(|| Value::from(rows.named()).to_string());
    let changed = match text {
        Some(text) if noted.as_ref() != Some(&text) => admin.set_own_parameter(LEFT_OUT, &text),
        None if noted.is_some() => admin.clear_global_parameter(LEFT_OUT),
        _ => return,
    };
    if let Err(error) = changed {
        tracing::error!(%error, "what was left out of definitions can't be noted for operators");
    }
}

/// What is noted of definitions that were made, beside the hash of those that are to be.
struct Made<'a> {
    admin: &'a Admin,
    hash: String,
    last: Option<String>,
    by_node: BTreeMap<String, String>,
}

impl<'a> Made<'a> {
    fn read(admin: &'a Admin, hash: String) -> Self {
        let by_node = admin.global_parameter(IMPORTED_BY_NODES);
        let by_node = by_node.and_then(|text| serde_json::from_str(&text).ok());
        let last = admin.global_parameter(IMPORTED_HASH);
        Made { admin, hash, last, by_node: by_node.unwrap_or_default() }
    }

    fn is_skipped(&self, skips: Skips<'_>) -> bool {
        let is_last = self.last.as_ref() == Some(&self.hash);
        match skips {
            Skips::Nothing => false,
            Skips::Last => is_last,
            Skips::LastOf(node) => {
                is_last || self.last.is_some() && self.by_node.get(node) == Some(&self.hash)
            }
        }
    }

    /// Notes that they are made.
    fn note(self, skips: Skips<'_>) -> Result<(), DefinitionsError> {
        let is_wanted = match skips {
            // What was noted before must not say that something else was made last.
            Skips::Nothing => self.last.as_ref().is_some_and(|last| *last != self.hash),
            Skips::Last | Skips::LastOf(_) => true,
        };
        if is_wanted {
            self.set(IMPORTED_HASH, &self.hash)?;
        }
        self.note_of(skips)
    }

    /// Notes that they are those of this node.
    fn note_of(mut self, skips: Skips<'_>) -> Result<(), DefinitionsError> {
        let Skips::LastOf(node) = skips else { return Ok(()) };
        let before = self.by_node.insert(node.to_owned(), self.hash.clone());
        if before.as_ref() == Some(&self.hash) {
            return Ok(());
        }
        let all = serde_json::to_string(&self.by_node);
        self.set(IMPORTED_BY_NODES, &all.map_err(io::Error::from)?)
    }

    fn set(&self, name: &str, value: &str) -> Result<(), DefinitionsError> {
        let noted = self.admin.set_own_parameter(name, value);
        noted.map(drop).map_err(|fault| DefinitionsError::Note(fault.to_string()))
    }
}

fn wrong(path: &Path, error: DefinitionsError) -> StartError {
    StartError::Definitions { path: path.to_owned(), error }
}

/// What is in the file, or in the files of the folder; nothing if none is named.
fn texts(path: &Path) -> Result<Vec<(PathBuf, Vec<u8>)>, StartError> {
    if path.as_os_str().is_empty() {
        return Ok(Vec::new());
    }
    let mut texts = Vec::new();
    for file in files(path).map_err(|error| wrong(path, error.into()))? {
        let text = std::fs::read(&file).map_err(|error| wrong(&file, error.into()))?;
        texts.push((file, text));
    }
    Ok(texts)
}

/// The hash of these texts, as a string of JSON.
fn hash<'a>(texts: impl Iterator<Item = &'a Vec<u8>>) -> String {
    let mut all = Sha256::new();
    for text in texts {
        // Where one ends is part of what they say.
        all.update((text.len() as u64).to_be_bytes());
        all.update(text);
    }
    let mut json = String::from('"');
    for byte in all.finalize() {
        // Writing to a string can't fail.
        let _ = write!(json, "{byte:02x}");
    }
    json.push('"');
    json
}

fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "json") {
            files.push(file);
        }
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::start;
    use std::cell::Cell;

    #[tokio::test]
    async fn nodes_whose_files_differ_do_not_undo_what_was_changed_since() {
        let (server, folder) = start().await;
        let admin = server.admin();
        let lead = |node: &str, vhost: &str| {
            let file = folder.path().join(format!("{node}.json"));
            let text = format!(r#"{{"vhosts":[{{"name":"both"}},{{"name":"{vhost}"}}]}}"#);
            std::fs::write(&file, text).expect("a file");
            load(&admin, &file, Skips::LastOf(node), Hashing::RabbitSha256, 1, || Ok(()))
                .expect("definitions");
        };
        lead("a", "of-a");
        lead("b", "of-b");
        admin.delete_vhost("both").expect("deleted");
        lead("a", "of-a");
        lead("b", "of-b");
        assert!(admin.vhost("both").is_none(), "nothing has changed in a file");
        // What another node has made is the same wherever it is led.
        lead("c", "of-b");
        assert!(admin.vhost("both").is_none());
        lead("a", "new");
        assert!(admin.vhost("both").is_some() && admin.vhost("new").is_some());
        // Back to what it was before.
        admin.delete_vhost("both").expect("deleted");
        lead("a", "of-a");
        assert!(admin.vhost("both").is_some());
        server.stop().await.expect("a clean stop");
    }

    #[tokio::test]
    async fn a_row_that_is_refused_brings_back_nothing_that_was_deleted_since() {
        let (server, folder) = start().await;
        let admin = server.admin();
        let file = folder.path().join("definitions.json");
        let text = r#"{
            "users": [{"name": "late", "password_hash": "", "tags": ""}],
            "permissions": [{"user": "gone", "vhost": "/", "configure": "", "write": "", "read": ""}],
            "queues": [{"name": "q", "vhost": "/", "durable": true, "arguments": {}}]
        }"#;
        std::fs::write(&file, text).expect("a file");
        let noted = "\"in vhost '/': permission of user 'gone': user 'gone' does not exist\"";
        let lead = |node: &str| {
            load(&admin, &file, Skips::LastOf(node), Hashing::RabbitSha256, 1, || Ok(()))
                .expect("no reason to stop");
            assert_eq!(admin.global_parameter(LEFT_OUT).as_deref(), Some(noted), "{node}");
        };
        lead("a");
        admin.delete_user("late").expect("it was made");
        admin.delete_queue("/", b"q", false, false).expect("so was this");
        lead("b");
        lead("a");
        assert!(admin.accounts().user("late").is_none() && admin.queue("/", b"q").is_err());
        // As soon as nothing is left out, or nothing is to be imported at a start.
        let none = Path::new("");
        load(&admin, none, Skips::LastOf("a"), Hashing::RabbitSha256, 1, || Ok(()))
            .expect("nothing");
        assert_eq!(admin.global_parameter(LEFT_OUT), None);
        server.stop().await.expect("a clean stop");
    }

    #[tokio::test]
    async fn what_was_imported_in_between_without_skipping_is_not_what_was_imported_last() {
        let (server, folder) = start().await;
        let admin = server.admin();
        let import = |skips, text: &str| {
            let file = folder.path().join("definitions.json");
            std::fs::write(&file, text).expect("a file");
            load(&admin, &file, skips, Hashing::RabbitSha256, 1, || Ok(())).expect("definitions");
        };
        let (one, two) =
            (r#"{"vhosts":[{"name":"one"}]}"#, r#"{"vhosts":[{"name":"one"},{"name":"two"}]}"#);
        import(Skips::Nothing, one);
        assert_eq!(admin.global_parameter(IMPORTED_HASH), None, "it is of no use");
        import(Skips::Last, one);
        import(Skips::Nothing, two);
        admin.delete_vhost("one").expect("deleted");
        import(Skips::Last, two);
        assert!(admin.vhost("one").is_none(), "that was imported last");
        import(Skips::Nothing, two);
        admin.delete_vhost("one").expect("deleted");
        import(Skips::Last, one);
        assert!(admin.vhost("one").is_some());
        server.stop().await.expect("a clean stop");
    }

    #[tokio::test]
    async fn nothing_is_done_before_definitions_that_are_skipped() {
        let (server, folder) = start().await;
        let (admin, file, done) = (server.admin(), folder.path().join("d.json"), Cell::new(0));
        let load_once_more = || {
            let before = || {
                done.set(done.get() + 1);
                Ok(())
            };
            load(&admin, &file, Skips::Last, Hashing::RabbitSha256, 1, before).expect("good ones");
        };
        std::fs::write(&file, r#"{"vhosts":[{"name":"one"}]}"#).expect("a file");
        load_once_more();
        load_once_more();
        assert_eq!(done.get(), 1);
        std::fs::write(&file, r#"{"vhosts":[{"name":"two"}]}"#).expect("a file");
        load_once_more();
        assert_eq!(done.get(), 2);
    }
}
