//! Files under the names of others.

use crate::{
    Disk, OpenMode,
    checkpoint::CheckpointReader,
    disk::{aside, free, read_up_to},
    format::{SEGMENT_HEADER_USED, SegmentHeader},
    names::{self, Named},
    recovery::vote,
};
use std::{io, path::Path};

/// Gives segments and checkpoints that are under another one's name their own again, and says which.
/// Each says in itself which it is. Where its own name is taken by what belongs there, it is a copy,
/// and set aside.
pub fn put_back(disk: &dyn Disk, dir: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for file in disk.list(dir)? {
        // A repair that was cut short leaves some as they were moved out of the way.
        let name = file.name.trim_end_matches(".moved");
        if let Some(Named::Segment(_) | Named::Checkpoint(_)) = names::parse(name)
            && let Some((id, own)) = identify(disk, &dir.join(&file.name))?
        {
            found.push((file.name, id, own));
        }
    }
    let Some(id) = vote(None, found.iter().map(|(_, id, _)| *id)) else { return Ok(Vec::new()) };
    found.retain(|(name, of, own)| *of == id && name != own);
    let mut all_moved = Vec::new();
    for (name, ..) in &found {
        let moved = free(disk, &dir.join(name), |nth| ".moved".repeat(nth))?;
        disk.rename(&dir.join(name), &moved)?;
        all_moved.push(moved);
    }
    let mut done = Vec::new();
    for ((name, _, own), moved) in found.iter().zip(&all_moved) {
        let own_path = dir.join(own);
        let owner = match disk.open(&own_path, OpenMode::Read) {
            Ok(_) => identify(disk, &own_path)?.filter(|(of, is)| *of == id && is == own),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if owner.is_some() {
            disk.rename(moved, &aside(disk, &dir.join(name))?)?;
            done.push(format!("{name}: set aside, as it is a copy of {own}"));
        } else {
            if disk.open(&own_path, OpenMode::Read).is_ok() {
                disk.rename(&own_path, &aside(disk, &own_path)?)?;
            }
            disk.rename(moved, &own_path)?;
            done.push(format!("{name}: is {own}, and has that name again"));
        }
    }
    if !done.is_empty() {
        disk.sync_dir(dir)?;
    }
    Ok(done)
}

/// The number of the journal, and the name that the file should have; none if it is not whole.
fn identify(disk: &dyn Disk, path: &Path) -> io::Result<Option<(u64, String)>> {
    let file = disk.open(path, OpenMode::Read)?;
    let mut header = [0; SEGMENT_HEADER_USED];
    if read_up_to(&*file, &mut header, 0)? == header.len()
        && let Ok(header) = SegmentHeader::decode(&header)
    {
        return Ok(Some((header.id, names::segment(header.start))));
    }
    let Ok((reader, _)) = CheckpointReader::open(file) else { return Ok(None) };
    let header = reader.header();
    let whole = reader.check().is_ok();
    Ok(whole.then(|| (header.id, names::checkpoint(header.number))))
}
