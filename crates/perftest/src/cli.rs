//! The command line as a whole: a run, or one of the other commands.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, Parser, Subcommand};

use crate::churn::ChurnOptions;
use crate::options::{EXAMPLES, Options};

/// Load-test an AMQP 0-9-1 broker: throughput, latency and loss.
#[derive(Clone, Debug, Parser)]
#[command(name = "perftest", version, after_help = EXAMPLES, max_term_width = 110)]
#[command(args_conflicts_with_subcommands = true, subcommand_help_heading = "Other commands")]
pub struct Arguments {
    /// Something else than a run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// A run.
    #[command(flatten)]
    pub options: Options,
}

/// Commands beside the run.
#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Open and close connections, channels, queues, bindings or consumers as fast as the broker takes it
    Churn(ChurnOptions),
    /// Compare the JSON reports of two runs
    Compare(CompareOptions),
    /// Print a shell completion script
    #[command(
        after_help = "Example:\n  perftest completions bash > /etc/bash_completion.d/perftest"
    )]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Which reports to compare.
#[derive(Clone, Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 on success; 1 with --fail-above, if the second run is worse by more than that;
2 if a report can't be read."
)]
pub struct CompareOptions {
    /// The report to compare with, as --json has written it
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The report that may be better or worse
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// Fail if a rate is lower, or a median or 99th percentile higher, by more than so many percent
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<f64>,
}

/// Reads a command line, whose first argument is the name of the program. Long options may have a single dash.
///
/// # Errors
/// When it is none; also for `--help` and `--version`, which are no errors to the user: [`clap::Error::exit`]
/// tells them apart.
pub fn parse<T: Parser>(
    args: impl IntoIterator<Item = impl Into<OsString>>,
) -> Result<T, clap::Error> {
    let mut command = T::command();
    let all = std::iter::once(&command).chain(command.get_subcommands());
    let names: Vec<String> = all
        .flat_map(clap::Command::get_arguments)
        .filter_map(|arg| arg.get_long().map(str::to_owned))
        .collect();
    let args = args.into_iter().map(|arg| with_two_dashes(arg.into(), &names));
    T::from_arg_matches(&command.try_get_matches_from_mut(args)?)
}

impl Arguments {
    /// Reads a command line, and checks what it asks for.
    ///
    /// # Errors
    /// As [`parse`].
    pub fn parse_from_args(
        args: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<Self, clap::Error> {
        let arguments: Self = parse(args)?;
        if arguments.command.is_none() {
            arguments.options.checked(Self::command())?;
        }
        Ok(arguments)
    }
}

/// Turns `-producers` into `--producers`; leaves alone what is no long option's name.
fn with_two_dashes(arg: OsString, names: &[String]) -> OsString {
    let Some(text) = arg.to_str() else { return arg };
    let Some(name) = text.strip_prefix('-').filter(|name| !name.starts_with('-')) else {
        return arg;
    };
    let name = name.split_once('=').map_or(name, |(name, _)| name);
    // Also a misspelt one, so that the error speaks of the whole word and not of its first letter.
    let known = names.iter().any(|known| known == name);
    let meant = name.len() > 1
        && names.iter().any(|known| strsim::damerau_levenshtein(known, name) <= known.len() / 3);
    if known || meant || matches!(name, "help" | "version") {
        OsString::from(format!("-{text}"))
    } else {
        arg
    }
}
