//! The `courser` command.

mod generate;
mod logging;
mod running;
mod stops;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use courser::{Config, ConfigError, Gather, Inherited, Reloaded, Workers, raise_open_file_limit};
use courser_broker::{names_in_log, shards_in_log};
use courser_ctl::{Ctl, Top};
use courser_journal::tools;
use logging::Log;
use running::Running;
use sd_notify::NotifyState;
use std::convert::Infallible;
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use stops::Stops;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// An AMQP 0-9-1 broker. Without options it serves on 127.0.0.1:5672 for user guest, password
/// guest, from this machine only.
#[derive(Debug, Parser)]
#[command(
    name = "courser",
    version,
    after_help = "Examples:\n  courser\n  courser --listen 127.0.0.1:5673 --data-dir /var/lib/courser\n  \
                  courser --generate-config courser.yaml && courser --config courser.yaml\n  \
                  courser journal verify --data-dir /var/lib/courser\n\n\
                  Settings can also be given in the environment, as COURSER_<SECTION>_<KEY>:\n  \
                  COURSER_AMQP_HEARTBEAT_S=30 courser"
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// Take settings from this YAML file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Write a file with every setting, its default and what it means, and exit; - is standard output
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "data_dir", "listen"])]
    generate_config: Option<PathBuf>,

    /// The data folder of the broker [default: ./courser-data]
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,

    /// Listen here; may be given more than once [default: 127.0.0.1:5672]
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_address)]
    listen: Vec<SocketAddr>,

    /// The name of the cluster that this broker is a node of [default: courser]
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,

    /// The name of this node [default: the machine's]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,

    /// Be a node of a cluster, reached by the others at this address
    #[arg(long, value_name = "HOST:PORT")]
    cluster_listen: Option<String>,

    /// The nodes that form the cluster, or that this one joins; this one may be among them
    #[arg(long, value_name = "HOST:PORT,...", value_delimiter = ',')]
    join: Vec<String>,
}

impl Arguments {
    /// Whether there is an option that only a broker that serves has.
    fn serves(&self) -> bool {
        let cluster = [&self.cluster_name, &self.node_name, &self.cluster_listen];
        !self.listen.is_empty() || !self.join.is_empty() || cluster.iter().any(|one| one.is_some())
    }
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Inspect, verify or repair the journal of a stopped broker
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Operate a running broker: inspect, change and check it
    Ctl(Ctl),
    /// Watch a running broker: queues, exchanges, connections, channels
    Top(Top),
    /// Convert the settings of another broker
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a shell completion script
    #[command(
        after_help = "Examples:\n  courser completions bash > /etc/bash_completion.d/courser\n  \
                            courser completions fish > ~/.config/fish/completions/courser.fish"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages, courser.1 and one for each command, into a folder
    Man {
        /// The folder; it must exist
        folder: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum JournalCommand {
    /// Show what is in each file
    Inspect,
    /// Check every checksum; fails if anything is damaged
    Verify,
    /// Repair a damaged journal as far as possible and list what is lost; fails if anything is
    Repair,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum ConfigCommand {
    /// Convert a rabbitmq.conf to settings of this broker, and report on each of its lines
    #[command(
        after_help = "Example:\n  courser config from-rabbitmq /etc/rabbitmq/rabbitmq.conf > courser.yaml\n\n\
                      The report on each line goes to standard error. Exits with 1 if a line can't be read."
    )]
    FromRabbitmq {
        /// The file
        file: PathBuf,
    },
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let help = "expected an IP address and a port, such as 127.0.0.1:5672 or 0.0.0.0:5672";
    text.parse().map_err(|_| help.to_owned())
}

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
    // Nobody may be there to read it.
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
        None => {}
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
    let config = settings(&arguments)?;
    let mut workers = Workers::new();
    let runtime = runtime(&config, &workers)?;
    survive_file_size_limit(&runtime)?;
    if let Some(Command::Journal(command)) = arguments.command {
        return look_into_journal(command, &config).map(|()| ExitCode::SUCCESS);
    }
    let log = Log::start(&config.log.level)?;
    if let Err(error) = raise_open_file_limit() {
        tracing::warn!(%error, "the limit of open files can't be raised");
    }
    workers.start(runtime.handle())?;
    let served = runtime.block_on(serve(config, &arguments));
    drop(workers);
    drop(runtime);
    Ok(served.map_or_else(|error| log.say_last(&error), |()| ExitCode::SUCCESS))
}

/// The threads that serve connections.
fn runtime(config: &Config, workers: &Workers) -> io::Result<tokio::runtime::Runtime> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_all();
    if config.amqp.threads > 0 {
        builder.worker_threads(config.amqp.threads);
    }
    let pause = Duration::from_micros(config.amqp.gather_us);
    Arc::new(Gather::new(pause)).install(&mut builder);
    workers.install(&mut builder);
    builder.build()
}

/// Has a write beyond the limit of file sizes fail, as on a full disk, instead of ending the process.
fn survive_file_size_limit(runtime: &tokio::runtime::Runtime) -> io::Result<()> {
    let _context = runtime.enter();
    // The handler stays; nobody wants to know how often it is called.
    signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// What the file, the environment and the command line say.
fn settings(arguments: &Arguments) -> Result<Config, ConfigError> {
    let environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut config = Config::load(arguments.config.as_deref(), environment)?;
    if let Some(data_dir) = &arguments.data_dir {
        config.data_dir.clone_from(data_dir);
    }
    if !arguments.listen.is_empty() {
        config.listen.clone_from(&arguments.listen);
    }
    if let Some(name) = &arguments.cluster_name {
        config.cluster.name.clone_from(name);
    }
    if let Some(name) = &arguments.node_name {
        config.cluster.node_name.clone_from(name);
    }
    if let Some(address) = &arguments.cluster_listen {
        config.cluster.listen.clone_from(address);
    }
    if !arguments.join.is_empty() {
        config.cluster.join.clone_from(&arguments.join);
    }
    config.check()?;
    Ok(config)
}

/// Runs the broker until it is told to stop; a second signal stops it at once.
async fn serve(config: Config, arguments: &Arguments) -> anyhow::Result<()> {
    // From here on these wait until the broker has started; without anybody who listens they would
    // end it.
    let hangups = signal(SignalKind::hangup())?;
    let user1s = signal(SignalKind::user_defined1())?;
    let inherited =
        Inherited::take().context("a socket that the system hands over (LISTEN_FDS)")?;
    let server = Running::start(config.clone(), inherited, arguments.config.as_deref()).await?;
    // Whoever reads the banner may send a signal at once.
    let mut stops = Stops::listen()?;
    // A broker that nobody looks at serves all the same.
    let _ = writeln!(io::stdout(), "{}", server.banner(&config));
    tell_system(&[NotifyState::Ready]);
    tokio::select! {
        signal = stops.first() => tracing::info!(signal, "stopping: telling clients"),
        never = reload_on_hangup(hangups, &server, config, arguments) => match never {},
        never = count_on_usr1(user1s, &server) => match never {},
        reason = server.failed() => {
            anyhow::bail!(reason);
        }
    }
    tell_system(&[NotifyState::Stopping]);
    Ok(server.stop().await?)
}

/// Tells the service manager, if one has started the broker, how far it is.
fn tell_system(state: &[NotifyState<'_>]) {
    // Without a manager there is nobody to tell, and one that does not listen waits in vain by itself.
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
        let reloaded = settings(arguments).map_err(anyhow::Error::from).and_then(|config| {
            server.reload(&config, arguments.config.as_deref())?;
            Ok(config)
        });
        match reloaded {
            Ok(config) => {
                let policies = config.policies.len() + config.operator_policies.len();
                tracing::info!(policies, vhosts = config.vhosts.len(), "configuration reloaded");
                let is_whole = is_in_effect(&config, &started);
                if !is_whole {
                    tracing::warn!(
                        "settings other than vhosts and policies take effect after a restart"
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

/// Whether all of these settings that do not change while the broker runs are those that it was started with.
fn is_in_effect(config: &Config, started: &Config) -> bool {
    let mut fixed = Config {
        vhosts: started.vhosts.clone(),
        policies: started.policies.clone(),
        operator_policies: started.operator_policies.clone(),
        ..config.clone()
    };
    fixed.cluster.groups = started.cluster.groups;
    fixed == *started
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

fn look_into_journal(command: JournalCommand, config: &Config) -> anyhow::Result<()> {
    let data_dir = &config.data_dir;
    anyhow::ensure!(
        data_dir.join("journal").is_dir(),
        "there is no journal in {}; name the data folder with --data-dir",
        data_dir.display()
    );
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
            Ok(false) => anyhow::bail!(
                "the data folder is damaged; 'courser journal repair' rebuilds what it can, and says \
                 what is lost. Copy the folder first."
            ),
            Err(error) => Err(error),
        },
    };
    match done {
        // Whoever reads the report has seen enough of it.
        Err(tools::ToolError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.with_context(|| data_dir.display().to_string()),
    }
}
