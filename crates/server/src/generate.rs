//! Files that come with the program: the configuration with every default, completions, the manual.

use anyhow::Context;
use courser::TEMPLATE;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Writes the configuration, to a file that is not there yet.
pub fn config(path: &Path) -> anyhow::Result<()> {
    let file = std::fs::File::create_new(path);
    let written = file.and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.with_context(|| format!("can't write {}", path.display()))?;
    println!("Wrote {0}. Edit it, then: courser --config {0}", path.display());
    Ok(())
}

/// Prints what a shell reads to complete the command's options.
pub fn completions(shell: clap_complete::Shell, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "courser", &mut script);
    match io::stdout().write_all(&script) {
        // Whoever reads it has seen enough of it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.context("can't write the completions"),
    }
}

/// Writes the manual's pages into a folder.
pub fn manual(folder: &Path, command: clap::Command) -> anyhow::Result<()> {
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("can't write the manual's pages to {}", folder.display()))
}
