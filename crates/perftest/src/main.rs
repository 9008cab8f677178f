//! The `perftest` command.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use courser_perftest::{Options, html, run, text};
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for options that make no sense, as clap has it.
const BAD_OPTIONS: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse_from_args(std::env::args_os()) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    let (json, html) = (options.json.clone(), options.html.clone());
    // Better now than after an hour of measuring.
    let mut made = Vec::new();
    for path in [&json, &html].into_iter().flatten() {
        if !path.exists() {
            made.push(path.clone());
        }
        let opened = OpenOptions::new().append(true).create(true).open(path);
        if !is_fine(path, opened.map(drop)) {
            return ExitCode::from(BAD_OPTIONS);
        }
    }
    let is_quiet = options.flags.quiet;
    let (stop, interrupts) = interrupts();
    let line = move |line: &str| {
        // When nobody reads any more, as behind `| head`, the run ends as by Ctrl-C.
        if !is_quiet && writeln!(std::io::stdout(), "{line}").is_err() {
            let _ = stop.try_send(());
        }
    };
    let report = match run(options, line, interrupts).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("perftest: {error}");
            // Nothing is in them, and nobody looks for them.
            made.iter().for_each(|path| drop(std::fs::remove_file(path)));
            let is_usage = error.is_of_options();
            return if is_usage { ExitCode::from(BAD_OPTIONS) } else { ExitCode::FAILURE };
        }
    };
    let printed = write!(std::io::stdout(), "{}", text::render(&report));
    let mut is_good = report.is_good() && printed.is_ok();
    if let Some(path) = json {
        is_good &= write(&path, serde_json::to_string_pretty(&report));
    }
    if let Some(path) = html {
        is_good &= write(&path, html::render(&report));
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every Ctrl-C and SIGTERM: the first ends the run, the second also the wait for messages under way, the third everything.
/// The sender ends the run likewise.
fn interrupts() -> (mpsc::Sender<()>, mpsc::Receiver<()>) {
    let (sender, receiver) = mpsc::channel(4);
    let stop = sender.clone();
    tokio::spawn(async move {
        for what in ["stopping; Ctrl-C again not to wait for messages under way", "not waiting"] {
            if asked_to_stop().await.is_err() {
                return;
            }
            eprintln!("{what}");
            // The run may be over already.
            let _ = sender.send(()).await;
        }
        let _ = asked_to_stop().await;
        std::process::exit(130);
    });
    (stop, receiver)
}

#[cfg(unix)]
async fn asked_to_stop() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn asked_to_stop() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}

/// Writes a file; says so if that fails.
fn write(path: &Path, content: serde_json::Result<String>) -> bool {
    let content = content.map_err(std::io::Error::from);
    is_fine(path, content.and_then(|content| std::fs::write(path, content)))
}

/// Says so if a file can't be written.
fn is_fine(path: &Path, written: std::io::Result<()>) -> bool {
    if let Err(error) = &written {
        eprintln!("perftest: cannot write {}: {error}", path.display());
    }
    written.is_ok()
}
