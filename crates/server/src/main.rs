//! The `courser` command.

mod arguments;
mod folder_owner;
mod generate;
mod logging;
mod running;
mod stops;

use anyhow::Context;
use arguments::{Arguments, ClusterCommand, Command, ConfigCommand, JournalCommand};
use clap::{CommandFactory, Parser};
use courser::{Config, Gather, Inherited, Reloaded, Workers, raise_open_file_limit};
use courser_broker::{names_in_log, shards_in_log};
use courser_cluster::forming::{Folder, FolderError};
use courser_journal::tools;
use folder_owner::act_as_owner;
use logging::Log;
use running::Running;
use sd_notify::NotifyState;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stops::Stops;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How long the end of the process waits for what is still being done.
const LAST_WORK_TIMEOUT: Duration = Duration::from_secs(1);

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    keep_pages_small();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return refused(&error),
    };
    match run(arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("courser: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Says what is wrong with the command line, or what was asked for instead of a command.
fn refused(error: &clap::Error) -> ExitCode {
    let is_ctl = std::env::args_os().skip(1).any(|argument| argument == "ctl" || argument == "top");
    // Its reader may be gone.
    let _ = error.print();
    match error.exit_code() {
        0 => ExitCode::SUCCESS,
        // Scripts for RabbitMQ's tools expect its codes.
        _ if is_ctl => ExitCode::from(courser_ctl::USAGE),
        code => ExitCode::from(u8::try_from(code).unwrap_or(1)),
    }
}

/// Keeps the system from giving 2 MiB where a page was asked for: with huge pages the same load holds
/// three times as much memory and is not any faster (47 MiB against 13 MiB for persistent messages of
/// 1 KB). Without it, or where it is refused, everything works.
fn keep_pages_small() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.generate_config {
        return generate::config(path).map(|()| ExitCode::SUCCESS);
    }
    match &arguments.command {
        None | Some(Command::Cluster(_)) => {}
        Some(Command::Journal(_)) if !arguments.serves() => {}
        Some(Command::Journal(_)) => {
            anyhow::bail!(
                "--listen and the options of a cluster do not go with 'journal': that is for a broker not running"
            )
        }
        Some(Command::Ctl(ctl)) if !arguments.serves() && arguments.config.is_none() => {
            return Ok(ExitCode::from(ctl.run(arguments.data_dir)));
        }
        Some(Command::Top(top)) if !arguments.serves() && arguments.config.is_none() => {
            return Ok(ExitCode::from(top.run(arguments.data_dir)));
        }
        Some(Command::Ctl(_) | Command::Top(_)) => {
            anyhow::bail!(
                "--listen, --config and the options of a cluster do not go with 'ctl' and 'top': they ask a running broker"
            )
        }
        Some(Command::Config(ConfigCommand::FromRabbitmq { file })) => {
            return generate::from_rabbitmq(file);
        }
        Some(Command::Completions { shell }) => {
            return generate::completions(*shell, Arguments::command()).map(|()| ExitCode::SUCCESS);
        }
        Some(Command::Man { folder }) => {
            return generate::manual(folder, Arguments::command()).map(|()| ExitCode::SUCCESS);
        }
    }
    let config = arguments.settings()?;
    if let Some(Command::Journal(JournalCommand::Repair) | Command::Cluster(_)) = &arguments.command
    {
        act_as_owner(&config.data_dir)?;
    }
    let mut workers = Workers::new();
    let runtime = runtime(&config, &workers)?;
    survive_file_size_limit(&runtime)?;
    if let Some(Command::Journal(command)) = arguments.command {
        return look_into_journal(command, &config).map(|()| ExitCode::SUCCESS);
    }
    if let Some(Command::Cluster(ClusterCommand::Recover { from_this_copy, without_group })) =
        &arguments.command
    {
        let out = &mut io::stdout();
        runtime.block_on(courser::recover(&config, *from_this_copy, without_group, out))?;
        return Ok(ExitCode::SUCCESS);
    }
    let log = Log::start(&config.log.level)?;
    if let Err(error) = raise_open_file_limit() {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
    workers.start(runtime.handle())?;
    let served = runtime.block_on(serve(config, &arguments));
    drop(workers);
    // What has to be on the disk is there. What still waits for a disk, or for a file's other end, may do so for long.
    runtime.shutdown_timeout(LAST_WORK_TIMEOUT);
    Ok(served.map_or_else(|error| log.say_last(&error), |()| ExitCode::SUCCESS))
}

/// Threads that may block at a time, most for a connection each whose requests wait for the disk. Where all of them do, no
/// other connection is served.
const BLOCKING_THREADS: usize = 1024;

/// The threads that serve connections.
fn runtime(config: &Config, workers: &Workers) -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    if config.amqp.threads > 0 {
        builder.worker_threads(config.amqp.threads);
    }
    builder.max_blocking_threads(BLOCKING_THREADS);
    let pause = Duration::from_micros(config.amqp.gather_us);
    Arc::new(Gather::new(pause)).install(&mut builder);
    workers.install(&mut builder);
    builder.build()
}

/// Has a write beyond the limit of file sizes fail, as on a full disk, instead of ending the process.
fn survive_file_size_limit(runtime: &tokio::runtime::Runtime) -> io::Result<()> {
    let _context = runtime.enter();
    // The handler stays; how often it is called is of no interest.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Runs the broker until it is told to stop; a second signal stops it at once.
async fn serve(config: Config, arguments: &Arguments) -> anyhow::Result<()> {
    // From here on these wait until the broker has started; without a handler they would
    // end it.
    let hangups = signal(SignalKind::hangup())?;
    let user1s = signal(SignalKind::user_defined1())?;
    let inherited =
        Inherited::take().context("a socket that the system hands over (LISTEN_FDS)")?;
    let server = Running::start(config.clone(), inherited, arguments.config.as_deref()).await?;
    // The reader of the banner may send a signal at once.
    let mut stops = Stops::listen()?;
    // A broker whose banner can't be written serves all the same.
    let _ = writeln!(io::stdout(), "{}", server.banner(&config));
    tell_system(&[NotifyState::Ready]);
    let failed = tokio::select! {
        signal = stops.first() => {
            tracing::info!(signal, "stopping: telling clients");
            None
        }
        never = reload_on_hangup(hangups, &server, config, arguments) => match never {},
        never = count_on_usr1(user1s, &server) => match never {},
        reason = server.failed() => Some(reason),
    };
    if let Some(reason) = failed {
        // Its threads may wait for the disk for good: they are not waited for longer than all that is still done then.
        drop(tokio::task::spawn_blocking(move || drop(server)));
        anyhow::bail!(reason);
    }
    tell_system(&[NotifyState::Stopping]);
    Ok(server.stop().await?)
}

/// Tells the service manager, if one has started the broker, how far it is.
fn tell_system(state: &[NotifyState<'_>]) {
    // Without a manager there is nothing to tell, and one that does not listen waits in vain by itself.
    let _ = sd_notify::notify(state);
}

/// Reads the settings again whenever SIGHUP comes. `started` are those that the broker was started with.
async fn reload_on_hangup(
    mut hangups: Signal,
    server: &Running,
    started: Config,
    arguments: &Arguments,
) -> Infallible {
    loop {
        if hangups.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        let reload = async {
            let read = arguments.clone();
            // Elsewhere: a disk that hangs keeps no signal from being heard.
            let reading = tokio::task::spawn_blocking(move || read.settings());
            let config = reading.await??;
            server.reload(&config, arguments.config.as_deref()).await?;
            Ok::<_, anyhow::Error>(config)
        };
        match reload.await {
            Ok(config) => {
                let policies = config.policies.len() + config.operator_policies.len();
                tracing::info!(policies, vhosts = config.vhosts.len(), "configuration reloaded");
                let is_whole = config == started.with_reloaded(&config);
                if !is_whole {
                    tracing::warn!(
                        "settings other than vhosts, policies, log.level and limits.memory_high_bytes take effect after a restart"
                    );
                }
                server.note_reload(if is_whole { Reloaded::Whole } else { Reloaded::InPart });
            }
            Err(error) => {
                tracing::error!("configuration not reloaded: {error:#}");
                server.note_reload(Reloaded::NotAtAll);
            }
        }
    }
}

/// Writes to the log what the gateway has counted, whenever SIGUSR1 comes.
async fn count_on_usr1(mut user1s: Signal, server: &Running) -> Infallible {
    loop {
        if user1s.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
        server.log_gateway_counters();
    }
}

/// Whether the data folder is that of a node of a cluster.
fn is_members(config: &Config) -> bool {
    let refused = Folder::refuse(&config.data_dir, &*config.disk());
    matches!(refused, Err(FolderError::OfNode { .. }))
}

fn look_into_journal(command: JournalCommand, config: &Config) -> anyhow::Result<()> {
    let data_dir = &config.data_dir;
    let disk = config.disk();
    let meaning = tools::Meaning { names: &names_in_log, shards: &shards_in_log };
    let mut out = std::io::stdout().lock();
    let done = match command {
        JournalCommand::Inspect => tools::inspect_all(data_dir, disk, &mut out),
        JournalCommand::Repair => {
            let options = config.journal_options();
            match tools::repair_all(data_dir, &options, disk, meaning, &mut out) {
                Ok(repaired) if repaired.lost => anyhow::bail!(
                    "the broker starts again, without what is named above. What was taken out is in \
                     the files that end in .bad"
                ),
                done => done.map(|_| ()),
            }
        }
        JournalCommand::Verify => match tools::verify_all(data_dir, disk, meaning, &mut out) {
            Ok(true) => Ok(()),
            Ok(false) if is_members(config) => anyhow::bail!(
                "the data folder is damaged; a start of the node fetches from another member what is damaged here. Where \
                 there is none any more, see 'The worst day' in docs/cluster.md"
            ),
            Ok(false) => anyhow::bail!(
                "the data folder is damaged; 'courser journal repair' rebuilds what it can, and says \
                 what is lost. Copy the folder first."
            ),
            Err(error) => Err(error),
        },
    };
    match done {
        // The reader of the report has seen enough of it.
        Err(tools::ToolError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.with_context(|| data_dir.display().to_string()),
    }
}
