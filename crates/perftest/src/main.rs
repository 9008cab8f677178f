//! The `perftest` command.

use std::process::ExitCode;

use courser_perftest::{Options, html, run, text};
use tokio::sync::mpsc;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> ExitCode {
    let options = match Options::parse_from_args(std::env::args_os()) {
        Ok(options) => options,
        Err(error) => error.exit(),
    };
    let (json, html) = (options.json.clone(), options.html.clone());
    let is_quiet = options.flags.quiet;
    let line = move |line: &str| {
        if !is_quiet {
            println!("{line}");
        }
    };
    let report = match run(options, line, interrupts()).await {
        Ok(report) => report,
        Err(error) => {
            eprintln!("perftest: {error}");
            return ExitCode::FAILURE;
        }
    };
    print!("{}", text::render(&report));
    let mut is_good = report.is_good();
    if let Some(path) = json {
        is_good &= write(&path, serde_json::to_string_pretty(&report));
    }
    if let Some(path) = html {
        is_good &= write(&path, html::render(&report));
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Every Ctrl-C: the first ends the run, the second also the wait for messages under way, the third everything.
fn interrupts() -> mpsc::Receiver<()> {
    let (sender, receiver) = mpsc::channel(4);
    tokio::spawn(async move {
        for what in ["stopping; Ctrl-C again not to wait for messages under way", "not waiting"] {
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            eprintln!("{what}");
            // The run may be over already.
            let _ = sender.send(()).await;
        }
        let _ = tokio::signal::ctrl_c().await;
        std::process::exit(130);
    });
    receiver
}

/// Writes a file; says so if that fails.
fn write(path: &std::path::Path, content: serde_json::Result<String>) -> bool {
    let written =
        content.map_err(std::io::Error::from).and_then(|content| std::fs::write(path, content));
    if let Err(error) = &written {
        eprintln!("perftest: cannot write {}: {error}", path.display());
    }
    written.is_ok()
}
