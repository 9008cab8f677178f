//! Definitions that the configuration names: made at each start, before anybody is served.

use crate::server::StartError;
use courser_broker::admin::Admin;
use std::io;
use std::path::{Path, PathBuf};

/// Makes what a file describes, or what all files of a folder do, by name.
///
/// # Errors
/// The first file that can't be read or made; what came before it stays.
pub(crate) fn load(admin: &Admin, path: &Path) -> Result<(), StartError> {
    if path.as_os_str().is_empty() {
        return Ok(());
    }
    let wrong = |path: &Path, why: &dyn std::fmt::Display| StartError::Definitions {
        path: path.to_owned(),
        why: why.to_string(),
    };
    for file in files(path).map_err(|error| wrong(path, &error))? {
        let text = std::fs::read(&file).map_err(|error| wrong(&file, &error))?;
        let done = courser_management::import(admin, &text, None);
        let done = done.map_err(|error| wrong(&file, &error))?;
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
