//! Definitions that the configuration names: made at each start, before anybody is served.

use crate::server::StartError;
use courser_broker::admin::Admin;
use courser_management::ImportError;
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
}

/// Makes what a file describes, or what all files of a folder do, by name.
///
/// # Errors
/// The first file that can't be read or made; what came before it stays.
pub(crate) fn load(admin: &Admin, path: &Path) -> Result<(), StartError> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let wrong = |path: &Path, error| StartError::Definitions { path: path.to_owned(), error };
    for file in files(path).map_err(|error| wrong(path, error.into()))? {
        let text = std::fs::read(&file).map_err(|error| wrong(&file, error.into()))?;
        let done = courser_management::import(admin, &text, None)
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
    Ok(())
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
