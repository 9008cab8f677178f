//! The `perftest` command.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use courser_perftest::churn::{self, ChurnOptions};
use courser_perftest::cli::{Arguments, Command, CompareOptions};
use courser_perftest::compare::{self, Comparison};
use courser_perftest::{Options, RunError, html, run, text};
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for options that make no sense, as clap has it.
const BAD_OPTIONS: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::parse_from_args(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => error.exit(),
    };
    match arguments.command {
        None => load(arguments.options).await,
        Some(Command::Churn(options)) => churning(options).await,
        Some(Command::Compare(options)) => comparing(&options),
        Some(Command::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "perftest", &mut script);
            exit_code(std::io::stdout().write_all(&script).is_ok())
        }
    }
}

/// A run.
async fn load(options: Options) -> ExitCode {
    let (json, html) = (options.json.clone(), options.html.clone());
    let Some(made) = make([&json, &html]) else { return ExitCode::from(BAD_OPTIONS) };
    let (stop, interrupts) = interrupts();
    let line = move |line: &str| {
        // When the reader of stdout is gone, as behind `| head`, the run ends as by Ctrl-C.
        if writeln!(std::io::stdout(), "{line}").is_err() {
            let _ = stop.try_send(());
        }
    };
    let report = match run(options, line, interrupts).await {
        Ok(report) => report,
        Err(error) => return did_not_begin(&error, &made),
    };
    let printed = write!(std::io::stdout(), "{}", text::render(&report));
    let mut is_good = report.is_good() && printed.is_ok();
    if let Some(path) = json {
        is_good &= write(&path, serde_json::to_string_pretty(&report));
    }
    if let Some(path) = html {
        is_good &= write(&path, html::render(&report));
    }
    exit_code(is_good)
}

async fn churning(options: ChurnOptions) -> ExitCode {
    let json = options.json.clone();
    let Some(made) = make([&json]) else { return ExitCode::from(BAD_OPTIONS) };
    let (_stop, interrupts) = interrupts();
    let report = match churn::run(options, interrupts).await {
        Ok(report) => report,
        Err(error) => return did_not_begin(&error, &made),
    };
    let printed = write!(std::io::stdout(), "{}", report.render());
    let mut is_good = report.failures.is_empty() && printed.is_ok();
    if let Some(path) = json {
        is_good &= write(&path, serde_json::to_string_pretty(&report));
    }
    exit_code(is_good)
}

fn comparing(options: &CompareOptions) -> ExitCode {
    let reports = compare::read(&options.before)
        .and_then(|before| compare::read(&options.after).map(|after| (before, after)));
    let (before, after) = match reports {
        Ok(reports) => reports,
        Err(error) => {
            eprintln!("perftest: {error}");
            return ExitCode::from(BAD_OPTIONS);
        }
    };
    let comparison = Comparison::new(&before, &after);
    let worse = options.fail_above.map_or(Vec::new(), |percent| comparison.worse_by(percent));
    let mut out = comparison.render();
    worse.iter().for_each(|worse| out += &format!("FAILED: {worse}\n"));
    let printed = write!(std::io::stdout(), "{out}");
    exit_code(worse.is_empty() && printed.is_ok())
}

fn exit_code(is_good: bool) -> ExitCode {
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Makes the files of reports, better now than after an hour of measuring; gives those that were not there before.
fn make<const N: usize>(paths: [&Option<PathBuf>; N]) -> Option<Vec<PathBuf>> {
    let mut made = Vec::new();
    for path in paths.into_iter().flatten() {
        if !path.exists() {
            made.push(path.clone());
        }
        let opened = OpenOptions::new().append(true).create(true).open(path);
        if !is_fine(path, opened.map(drop)) {
            return None;
        }
    }
    Some(made)
}

/// Says why there was no run, and removes the files that were made for its report.
fn did_not_begin(error: &RunError, made: &[PathBuf]) -> ExitCode {
    eprintln!("perftest: {error}");
    made.iter().for_each(|path| drop(std::fs::remove_file(path)));
    if error.is_of_options() { ExitCode::from(BAD_OPTIONS) } else { ExitCode::FAILURE }
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
