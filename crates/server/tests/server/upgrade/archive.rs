//! Data folders in one small file each.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::path::Path;

/// Packs what a broker has left in `data`; not its sockets, which no archive can hold.
pub fn pack(data: &Path, archive: &Path) {
    let file = File::create(archive).expect("a new file");
    let mut tar = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    add(&mut tar, data, Path::new("data"));
    let gzip = tar.into_inner().expect("written");
    gzip.finish().expect("written");
}

fn add(tar: &mut tar::Builder<GzEncoder<File>>, from: &Path, to: &Path) {
    let mut entries: Vec<_> = fs::read_dir(from).expect("a folder").map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            add(tar, &path, &name);
        } else if kind.is_file() {
            let bytes = fs::read(&path).expect("readable");
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            // Who has made it does not matter.
            header.set_mode(0o600);
            tar.append_data(&mut header, &name, &bytes[..]).expect("written");
        }
    }
}

/// Unpacks an archive into `folder`, where it is the folder `data`.
pub fn unpack(archive: &Path, folder: &Path) {
    let file = File::open(archive).expect("a fixture");
    let mut tar = tar::Archive::new(GzDecoder::new(file));
    // When the files were made must not matter.
    tar.set_preserve_mtime(false);
    tar.unpack(folder).expect("a whole archive");
}
