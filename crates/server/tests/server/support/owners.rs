//! Whose the files of a folder are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

/// A user that is not root. It need not have a name.
pub const ANOTHER_USER: u32 = 12_345;

/// Gives a folder to another user, with all that is in it. Only root can.
pub fn give_away(folder: &Path) {
    for path in all(folder) {
        chown(path, Some(ANOTHER_USER), Some(ANOTHER_USER)).expect("given away");
    }
}

/// Whom a folder belongs to, and all that is in it.
pub fn owners(folder: &Path) -> BTreeSet<u32> {
    all(folder).into_iter().map(|path| path.metadata().expect("it is there").uid()).collect()
}

fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![folder.to_owned()];
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() { found.extend(all(&path)) } else { found.push(path) }
    }
    found
}
