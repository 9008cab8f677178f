//! Writes the journal that is kept of a format, when there is a new one: `tests/fixtures.rs` reads it ever after.
//!
//! `cargo run -p courser-journal --example write_fixture FOLDER`

#[path = "../tests/fixtures/journal.rs"]
mod journal;

use std::{env, fs, io, path::Path};

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1) else {
        eprintln!("usage: write_fixture FOLDER, such as crates/journal/tests/fixtures/v3");
        std::process::exit(2);
    };
    let folder = Path::new(&folder);
    let dir = tempfile::tempdir()?;
    journal::write(dir.path());
    fs::create_dir_all(folder)?;
    for file in fs::read_dir(dir.path())? {
        let path = file?.path();
        // The rest is spare segments and the lock.
        if path.extension().is_some_and(|kind| kind == "log" || kind == "checkpoint")
            && let Some(name) = path.file_name()
        {
            fs::copy(&path, folder.join(name))?;
        }
    }
    println!("written to {}", folder.display());
    Ok(())
}
