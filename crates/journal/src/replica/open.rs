//! Making a copy, and opening it.

use super::{
    Events, Identity, Replica, ReplicaError, Shared, Vote,
    cut::cut_files,
    install::read_mark,
    recover::Copy,
    state::{State, StateError, StateFile},
};
use crate::{
    Disk, OpenError, Options,
    format::VERSION,
    names,
    recovery::{lock as lock_folder, open_copy},
};
use std::{
    any::Any,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A lock that keeps other processes out of a folder.
type Lock = Box<dyn Any + Send + Sync>;

impl Replica {
    /// Makes an empty copy in `dir`, for the first members of a group. What is there already stays as it
    /// is.
    ///
    /// # Errors
    /// When it can't be made, or the folder has a journal that is none.
    pub fn create(dir: &Path, identity: Identity, disk: &dyn Disk) -> Result<(), OpenError> {
        disk.create_dir(dir).map_err(|error| io_error("create", dir, error))?;
        let _lock = lock_folder(disk, dir)?;
        let files = disk.list(dir).map_err(|error| io_error("list", dir, error))?;
        if files.iter().any(|file| file.name == names::REPLICA) {
            return Ok(());
        }
        if let Some(file) = files.iter().find(|file| names::parse(&file.name).is_some()) {
            let exists = io::Error::new(io::ErrorKind::AlreadyExists, "there is a journal here");
            return Err(io_error("make a copy beside", &dir.join(&file.name), exists));
        }
        let state = State::new(identity, Vote::default());
        StateFile::create(disk, dir, &state)
            .map_err(|error| io_error("write to", &dir.join(names::REPLICA), error))
    }

    /// Opens the copy in `dir` and finds out which entries it has. `options.segment_bytes` is the
    /// group's.
    ///
    /// # Errors
    /// See [`ReplicaError`].
    pub fn open(
        dir: &Path,
        options: Options,
        disk: Arc<dyn Disk>,
        events: Arc<dyn Events>,
    ) -> Result<Self, ReplicaError> {
        disk.create_dir(dir).map_err(|error| io_error("create", dir, error))?;
        let lock = lock_folder(&*disk, dir)?;
        let mut file = open_state(&*disk, dir)?;
        let vote = file.state.vote.clone();
        let marker = dir.join(names::BEING_INSTALLED);
        if exists(&*disk, dir, names::BEING_INSTALLED)
            .map_err(|error| io_error("list", &marker, error))?
        {
            let last = read_mark(&*disk, &marker);
            return Err(ReplicaError::HalfInstalled { dir: dir.to_owned(), vote, last });
        }
        finish_cut(&*disk, dir, &mut file)?;
        let opened = open_log(dir, options, disk, events, lock, file);
        opened.map_err(|error| ReplicaError::of_log(error, &vote))
    }
}

/// Opens the log beside a state.
fn open_log(
    dir: &Path,
    mut options: Options,
    disk: Arc<dyn Disk>,
    events: Arc<dyn Events>,
    lock: Lock,
    mut file: StateFile,
) -> Result<Replica, OpenError> {
    let state = file.state.clone();
    options.segment_bytes = state.identity.segment_bytes;
    let copy = Copy::from(&state);
    let mut recovery = open_copy(dir, options.clone(), Arc::clone(&disk), lock, &copy)?;
    let (mut tail, mut entries) = recovery.walk_entries(&copy)?;
    if recovery.ends_in_an_empty_segment(entries.end) {
        // Which segment the next entry goes to follows from the entries alone.
        file.write(State { cut: Some(entries.end), ..file.state.clone() })
            .map_err(|error| io_error("write to", &dir.join(names::REPLICA), error))?;
        finish_cut(&*disk, dir, &mut file)?;
        drop(recovery);
        recovery = open_copy(dir, options, Arc::clone(&disk), lock_folder(&*disk, dir)?, &copy)?;
        (tail, entries) = recovery.walk_entries(&copy)?;
    }
    let end = tail.replayed.end;
    // From the first append on it is not true any more that it was closed.
    let state = State { clean: false, ..state };
    let written = file.write(state.clone());
    written.map_err(|error| io_error("write to", &dir.join(names::REPLICA), error))?;
    let shared = Shared::new(state.identity, events, entries, file);
    let journal = recovery.start_copy(tail, shared)?;
    let replica = Replica { journal };
    let core = &replica.journal.core;
    let begun =
        core.save_state(|state| (state.begun, state.synced) = (true, state.synced.max(end)));
    begun.map_err(|failure| {
        io_error("write to", &failure.path, io::Error::other(failure.error.to_string()))
    })?;
    Ok(replica)
}

/// Reads what is beside the log.
pub fn open_state(disk: &dyn Disk, dir: &Path) -> Result<StateFile, ReplicaError> {
    StateFile::open(disk, dir).map_err(|error| read_error(dir, error))
}

/// What it means that the file beside the log in `dir` can't be read.
pub fn read_error(dir: &Path, error: StateError) -> ReplicaError {
    let path = dir.join(names::REPLICA);
    match error {
        StateError::Missing => ReplicaError::Missing(dir.to_owned()),
        StateError::Lost => ReplicaError::VoteLost(path),
        StateError::Version(found) => {
            ReplicaError::Open(OpenError::UnknownVersion { path, found, known: VERSION })
        }
        StateError::Io(error) => ReplicaError::Open(io_error("read", &path, error)),
    }
}

/// Makes a cut that was begun.
fn finish_cut(disk: &dyn Disk, dir: &Path, file: &mut StateFile) -> Result<(), OpenError> {
    let Some(at) = file.state.cut else { return Ok(()) };
    cut_files(disk, dir, at, None).map_err(|(action, path, error)| OpenError::Io {
        action,
        path,
        error,
    })?;
    let state = State { cut: None, ..file.state.clone() };
    file.write(state).map_err(|error| io_error("write to", &dir.join(names::REPLICA), error))
}

pub fn exists(disk: &dyn Disk, dir: &Path, name: &str) -> io::Result<bool> {
    Ok(disk.list(dir)?.iter().any(|file| file.name == name))
}

fn io_error(action: &'static str, path: &Path, error: io::Error) -> OpenError {
    OpenError::Io { action, path: PathBuf::from(path), error }
}
