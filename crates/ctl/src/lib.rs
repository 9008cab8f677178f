//! The command line for operators of a broker: `courser ctl` and `courser top`.
//!
//! Everything is asked over the broker's HTTP API, at its socket on the same machine or over the
//! network; `consume` speaks AMQP there, over a WebSocket. A table says what commands there are
//! (`commands`), what each of them asks, and what it shows; completions, the manual and the help are
//! made from it. Names, columns, texts and exit codes are those of RabbitMQ's `rabbitmqctl`, so that
//! scripts for that work.
#![forbid(unsafe_code)]

mod amqp;
mod answer;
mod cli;
mod client;
mod commands;
mod context_command;
mod contexts;
mod failure;
mod format;
mod input;
mod node_name;
mod pairs;
pub mod rabbitmq_conf;
mod redact;
mod session;
mod spec;
mod target;
mod tls;
mod top;

pub use failure::{Failure, USAGE};
pub use format::{rfc3339, steers};
pub use top::Top;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use client::Client;
use format::{Format, Style};
use input::Input;
use node_name::NodeName;
use session::Session;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use target::{Login, Wanted};

/// What stands behind `courser ctl`.
#[derive(Clone, Debug)]
pub struct Ctl(ArgMatches);

impl clap::FromArgMatches for Ctl {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Ctl(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl clap::Args for Ctl {
    fn augment_args(command: Command) -> Command {
        cli::augment(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        cli::augment(command)
    }
}

impl Ctl {
    /// Does what the command line says, for the broker of this data folder if nothing else is named.
    /// Returns what the program is to end with.
    pub fn run(&self, data_dir: Option<PathBuf>) -> u8 {
        match self.attempt(data_dir) {
            Ok(()) => 0,
            Err(failure) => {
                failure::say_error(&failure);
                failure.code
            }
        }
    }

    /// As [`Ctl::run`], with the failure itself.
    ///
    /// # Errors
    /// If the command fails, with what is to be said and the code.
    pub fn attempt(&self, data_dir: Option<PathBuf>) -> Result<(), Failure> {
        let Some((name, matches)) = self.0.subcommand() else { return Ok(()) };
        let style = style(matches);
        let wanted = wanted(matches, data_dir)?;
        let mut out = io::stdout().lock();
        let node = NodeName::of(matches);
        let asks_no_broker = || Failure::usage(format!("{name} asks no broker: leave out --node"));
        if name == "context" {
            if node.is_some() {
                return Err(asks_no_broker());
            }
            return style.write(context_command::run(matches, wanted)?, &mut out);
        }
        let spec = commands::find(name)
            .ok_or_else(|| Failure::usage(format!("unknown command {name}")))?;
        let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or_default();
        let mut input = Input::new(spec, matches);
        let wanted = of_limits(spec.name, wanted, &mut input);
        let warning = wanted.warning();
        // What asks no broker needs none.
        let is_here = !matches!(spec.action, spec::Action::NotHere(_));
        let asks = is_here
            && !matches!(spec.name, "version" | "hash_password" | "plugins")
            && !is_recovery(spec.name, &input);
        if is_here && !asks && node.is_some() {
            return Err(asks_no_broker());
        }
        let target = match asks {
            true => wanted.resolve()?,
            false => target::Target::Local(PathBuf::new()),
        };
        if let (target::Target::Local(_), true, Some(warning)) =
            (&target, asks && !style.is_quiet && !style.is_silent, warning)
        {
            failure::say_error(&warning);
        }
        drop(out);
        let client = Client::new(target, timeout)?;
        let shown = Session { client, style, node }.run(spec, &input)?;
        out = io::stdout().lock();
        style.write(shown, &mut out)
    }
}

/// `cluster recover` is no command of a node that runs: where it is has to be said without one.
fn is_recovery(command: &str, input: &Input) -> bool {
    command == "cluster" && input.text("action") == "recover"
}

/// `list_user_limits --user alice`, as RabbitMQ has it, is about alice where no login is needed.
fn of_limits(command: &str, wanted: Wanted, input: &mut Input) -> Wanted {
    let names_user = wanted.options.user.is_some();
    if command != "list_user_limits" || !names_user || input.find("user").is_some() {
        return wanted;
    }
    let options = Login { user: None, ..wanted.options.clone() };
    let other = Wanted { options, ..wanted.clone() };
    match (other.clone().resolve(), &wanted.options.user) {
        (Ok(target::Target::Local(_)), Some(user)) => {
            input.set("user", user);
            other
        }
        _ => wanted,
    }
}

fn style(matches: &ArgMatches) -> Style {
    Style {
        format: matches.get_one::<Format>("formatter").copied().unwrap_or_default(),
        is_quiet: matches.get_flag("quiet"),
        is_silent: matches.get_flag("silent"),
        without_headers: matches.get_flag("no-table-headers"),
    }
}

/// What the command line says of the broker, and the environment where that says nothing.
///
/// # Errors
/// If the options name more than one.
fn wanted(matches: &ArgMatches, data_dir: Option<PathBuf>) -> Result<Wanted, Failure> {
    let text =
        |name: &str| matches.get_one::<String>(name).filter(|text| !text.is_empty()).cloned();
    let path = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    let is_option = |name: &str| matches.value_source(name) == Some(ValueSource::CommandLine);
    let named = [is_option("url"), is_option("context"), data_dir.is_some()];
    let named = named.into_iter().filter(|is_named| *is_named).count();
    if named > 1 {
        return Err(Failure::usage(
            "each of --url, --context and --data-dir names a broker: give one of them",
        ));
    }
    // What is named on the command line is what is meant, whatever the environment says.
    let broker = |name: &str| text(name).filter(|_| named == 0 || is_option(name));
    let options = Login {
        user: text("login").filter(|_| is_option("login")),
        password: None,
        password_file: path("password-file"),
        ca: path("ca").filter(|_| is_option("ca")),
    };
    let environment = Login {
        user: text("login").filter(|_| !is_option("login")),
        password: std::env::var("COURSER_CTL_PASSWORD").ok().filter(|text| !text.is_empty()),
        password_file: None,
        ca: path("ca").filter(|_| !is_option("ca")),
    };
    Ok(Wanted {
        url: broker("url"),
        options,
        environment,
        context: broker("context"),
        is_context_option: is_option("context"),
        data_dir,
    })
}
