//! Files that the program makes: the configuration with every default, another broker's as ours,
//! completions, the manual.

use anyhow::Context;
use courser::TEMPLATE;
use courser_ctl::rabbitmq_conf::{Fate, translate};
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

/// Writes the configuration, to a file that is not there yet or, as `-`, to standard output.
pub fn config(path: &Path) -> anyhow::Result<()> {
    if path == Path::new("-") {
        return print(TEMPLATE.as_bytes()).context("can't write the configuration");
    }
    let file = std::fs::File::create_new(path);
    let written = file.and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
    written.with_context(|| format!("can't write {}", path.display()))?;
    println!("Wrote {0}. Edit it, then: courser --config {0}", path.display());
    Ok(())
}

/// Prints the settings of another broker's file as ours, and on standard error what becomes of its lines.
pub fn from_rabbitmq(path: &Path) -> anyhow::Result<ExitCode> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).with_context(|| format!("can't read {name}"))?;
    let translated = translate(&text);
    eprint!("{}", translated.describe(&name));
    print!("{}", translated.yaml());
    let is_wrong = translated.told.iter().any(|told| matches!(told.fate, Fate::Wrong(_)));
    Ok(if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Prints what a shell reads to complete the command's options.
pub fn completions(shell: clap_complete::Shell, mut command: clap::Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "courser", &mut script);
    print(&script).context("can't write the completions")
}

fn print(content: &[u8]) -> io::Result<()> {
    match io::stdout().write_all(content) {
        // The reader has seen enough of it.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Writes the manual's pages into a folder.
pub fn manual(folder: &Path, command: clap::Command) -> anyhow::Result<()> {
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("can't write the manual's pages to {}", folder.display()))
}
