//! Packs the files of the web page (`page/`, which `web/build` makes) and lists them for `src/page.rs`.

use flate2::write::GzEncoder;
use flate2::{Compression, Crc};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> io::Result<()> {
    println!("cargo:rerun-if-changed=page");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let root = fs::canonicalize("page")?;
    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    let mut table = String::from("&[\n");
    for (nth, file) in files.iter().enumerate() {
        let bytes = fs::read(file)?;
        let packed = out.join(format!("page-{nth}.gz"));
        fs::write(&packed, gzip(&bytes)?)?;
        let name = file.strip_prefix(&root).map_err(io::Error::other)?.display().to_string();
        let is_immutable = name.starts_with("assets/");
        let path = if name == "index.html" { "/".to_owned() } else { format!("/{name}") };
        let (content_type, etag) = (content_type(&name), etag(&bytes));
        let line = writeln!(
            table,
            "File {{ path: {path:?}, content_type: {content_type:?}, etag: {etag:?}, \
             is_immutable: {is_immutable}, bytes: include_bytes!({file:?}), \
             gzip: include_bytes!({packed:?}) }},"
        );
        line.map_err(io::Error::other)?;
    }
    table.push(']');
    fs::write(out.join("page.rs"), table)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn etag(bytes: &[u8]) -> String {
    let mut crc = Crc::new();
    crc.update(bytes);
    format!("\"{:08x}-{:x}\"", crc.sum(), bytes.len())
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "text/plain; charset=utf-8",
    }
}
