//! Whose rights a command has that changes the data folder of a broker that is stopped.

use anyhow::Context;
use rustix::process::geteuid;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Has this process, run as root, go on as the user that the folder belongs to: what it makes there can be opened by the broker,
/// and a link that this user has put there leads to nothing that is not the user's. Has to come before there are threads.
pub(crate) fn act_as_owner(folder: &Path) -> anyhow::Result<()> {
    // The command itself says what is wrong with a folder that is not there.
    let Ok(found) = fs::metadata(folder) else { return Ok(()) };
    let (user, group) = (found.uid(), found.gid());
    if !geteuid().is_root() || user == 0 {
        return Ok(());
    }
    let acting = become_user(user, group).and_then(|()| fs::read_dir(folder).map(drop));
    acting.with_context(|| {
        let folder = folder.display();
        format!("data folder {folder} belongs to user {user}, as which it has to be changed")
    })
}

#[cfg(target_os = "linux")]
fn become_user(user: u32, group: u32) -> std::io::Result<()> {
    use rustix::process::{Gid, Uid};
    use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
    let group = Gid::from_raw(group);
    set_thread_groups(&[group])?;
    set_thread_gid(group)?;
    Ok(set_thread_uid(Uid::from_raw(user))?)
}

#[cfg(not(target_os = "linux"))]
fn become_user(_user: u32, _group: u32) -> std::io::Result<()> {
    Err(std::io::Error::other("run the command as that user, with sudo -u"))
}
