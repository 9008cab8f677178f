//! Definitions that the configuration names: made at each start, before anybody is served, or when they have changed. In a
//! cluster, by the node that comes to lead.

use crate::config::Management;
use crate::server::StartError;
use courser_auth::Hashing;
use courser_broker::admin::Admin;
use courser_management::{IMPORTED_HASH, ImportError};
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
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

/// Makes what a file describes, or what all files of a folder do, by name; with `skips`, nothing if that is what was made the
/// last time.
///
/// # Errors
/// The first file that can't be read or made; what came before it stays.
pub(crate) fn load(
    admin: &Admin,
    path: &Path,
    skips: bool,
    hashing: Hashing,
    groups: u16,
) -> Result<(), StartError> {
    let texts = texts(path)?;
    if texts.is_empty() {
        return Ok(());
    }
    let hash = skips.then(|| hash(texts.iter().map(|(_, text)| text)));
    if hash.is_some() && admin.global_parameter(IMPORTED_HASH) == hash {
        tracing::info!(path = %path.display(), "definitions are unchanged, and not imported again");
        return Ok(());
    }
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
    }
    if let Some(hash) = hash {
        let noted = admin.set_global_parameter(IMPORTED_HASH, &hash);
        noted.map_err(|fault| wrong(path, DefinitionsError::Note(fault.to_string())))?;
    }
    Ok(())
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
