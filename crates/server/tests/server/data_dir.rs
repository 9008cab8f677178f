//! The data folder: who may look into it.

use crate::support::Process;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// Permissions of a folder and of everything in it: of folders, and of files.
fn modes(path: &Path, folders: &mut Vec<String>, files: &mut Vec<String>) {
    let mode = |path: &Path| {
        let mode = path.metadata().expect("it is there").permissions().mode();
        format!("{:o}", mode & 0o777)
    };
    folders.push(mode(path));
    for entry in path.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => modes(&path, folders, files),
            false => files.push(mode(&path)),
        }
    }
}

/// The permissions that a broker gives to what it makes, where the shell would let everybody read it.
fn made_with(group: &str) -> (Vec<String>, Vec<String>, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "umask 022 && exec \"$0\" --listen 127.0.0.1:0 --data-dir data"]);
    command.arg(Process::command().get_program()).current_dir(folder.path());
    command.env("COURSER_MANAGEMENT_LISTEN", "none").env("COURSER_METRICS_LISTEN", "none");
    command.env("COURSER_DATA_DIR_GROUP", group).env("COURSER_LOG_LEVEL", "error");
    let mut broker = Process::start_with(command);
    broker.signal("TERM");
    assert!(broker.wait().success(), "with its last checkpoint");
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    modes(&folder.path().join("data"), &mut folders, &mut files);
    (folders, files, folder)
}

#[test]
fn only_the_owner_gets_into_a_data_folder() {
    let (folders, files, _folder) = made_with("false");
    assert!(folders.len() > 1 && folders.iter().all(|mode| mode == "700"), "{folders:?}");
    assert!(files.len() > 3 && files.iter().all(|mode| mode == "600"), "{files:?}");
}

#[test]
fn the_group_may_read_a_data_folder_where_the_settings_say_so() {
    let (folders, files, _folder) = made_with("true");
    assert!(folders.len() > 1 && folders.iter().all(|mode| mode == "750"), "{folders:?}");
    assert!(files.len() > 3 && files.iter().all(|mode| mode == "640"), "{files:?}");
}

#[test]
fn a_folder_that_is_there_already_keeps_its_permissions() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("mine");
    drop(Process::start(&folder));
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    modes(&data, &mut folders, &mut files);
    assert_eq!(folders.remove(0), "755");
    assert!(folders.iter().all(|mode| mode == "700"), "{folders:?}");
    assert!(files.iter().all(|mode| mode == "600"), "{files:?}");
}
