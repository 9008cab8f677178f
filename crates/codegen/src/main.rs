//! Writes the generated sources: `courser-codegen [--check] [LANGUAGE]...`, all languages when none
//! is named.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::{env, fs, io};

use courser_codegen::{TARGETS, load, repository_root};

fn main() -> ExitCode {
    let mut languages: Vec<String> = env::args().skip(1).collect();
    let check_only = languages.iter().any(|argument| argument == "--check");
    languages.retain(|argument| argument != "--check");
    if let Some(unknown) =
        languages.iter().find(|name| TARGETS.iter().all(|target| target.name != *name))
    {
        let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("no writer for {unknown:?}; there are: {}", known.join(", "));
        return ExitCode::from(2);
    }
    match run(&languages, check_only) {
        Ok(stale) if check_only && stale > 0 => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Brings the files up to date, or only names those that are not; returns their number.
fn run(languages: &[String], check_only: bool) -> io::Result<usize> {
    let root = repository_root();
    let protocol = load(&root)?;
    let mut stale = 0;
    for target in TARGETS
        .iter()
        .filter(|t| languages.is_empty() || languages.iter().any(|name| name == t.name))
    {
        for file in (target.render)(&protocol)? {
            let path = root.join(&file.path);
            if fs::read_to_string(&path).is_ok_and(|present| present == file.text) {
                continue;
            }
            stale += 1;
            if check_only {
                println!("stale: {}", file.path.display());
            } else {
                fs::create_dir_all(path.parent().unwrap_or(&root))?;
                fs::write(&path, file.text)?;
                println!("wrote {}", file.path.display());
            }
        }
    }
    Ok(stale)
}
