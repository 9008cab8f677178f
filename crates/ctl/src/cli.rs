//! The command line that is made from the table.

use crate::commands::{GROUPS, Group};
use crate::format::Format;
use crate::spec::{Action, Argument, Kind, Spec};
use clap::builder::NonEmptyStringValueParser;
use clap::{Arg, ArgAction, Command, value_parser};
use std::fmt::Write as _;
use std::path::PathBuf;

const ABOUT: &str = "Operate a running broker: inspect, change and check it";

const WHICH: &str = "The broker is the one at --url, a saved context, or the one on this machine, with its data in --data-dir, \
                     ./courser-data or /var/lib/courser. Its socket there needs no password; only root and the user \
                     that the broker runs as may use it.";

const EXAMPLES: &str = "Examples:\n  courser ctl status\n  courser ctl list_queues -p orders name messages consumers\n  \
                        courser ctl add_user alice < password.txt\n  courser ctl set_permissions alice '.*' '.*' '.*'\n  \
                        courser ctl --url https://broker:15671 --user ops --password-file pw list_connections\n  \
                        courser ctl context add prod --url https://broker:15671 --user ops --password-file pw\n  \
                        courser ctl --context prod check_alarms";

const CODES: &str = "Exit codes: 64 usage error, 65 invalid value or no such object, 67 no such user, 69 unavailable or \
                     refused, 70 already exists, 73 a file can't be written, 75 timeout, 77 not permitted, 78 invalid \
                     contexts file.";

/// Adds all commands and options to a command.
pub(crate) fn augment(command: Command) -> Command {
    let command = command
        .about(ABOUT)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .args(connection())
        .args(style())
        .help_template(
            "{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}",
        )
        .after_help(format!("{}\n{WHICH}\n\n{CODES}\n\n{EXAMPLES}", summary()))
        .subcommand(context());
    GROUPS
        .iter()
        .flat_map(|group| group.commands)
        .fold(command, |command, spec| command.subcommand(subcommand(spec)))
}

/// The options that say which broker is meant.
pub(crate) fn connection() -> [Arg; 6] {
    let path = || value_parser!(PathBuf);
    [
        Arg::new("url")
            .long("url")
            .value_name("URL")
            .env("COURSER_CTL_URL")
            .global(true)
            .help("The broker's HTTP API, such as https://broker:15671"),
        Arg::new("login")
            .long("user")
            .value_name("USER")
            .env("COURSER_CTL_USER")
            .global(true)
            .help("The user to log in as"),
        Arg::new("password-file")
            .long("password-file")
            .value_name("FILE")
            .value_parser(path())
            .global(true)
            .help("A file whose first line is the password; or set COURSER_CTL_PASSWORD"),
        Arg::new("ca")
            .long("ca")
            .value_name("FILE")
            .value_parser(path())
            .env("COURSER_CTL_CA")
            .global(true)
            .help("CA certificates to trust, in PEM format [default: the system's]"),
        Arg::new("context")
            .long("context")
            .value_name("NAME")
            .env("COURSER_CTL_CONTEXT")
            .global(true)
            .help("A broker saved with 'context add'; as an option, its login counts before the environment's"),
        Arg::new("timeout")
            .short('t')
            .long("timeout")
            .value_name("SECONDS")
            .global(true)
            .value_parser(parse_seconds)
            .default_value("60")
            .help("Time limit for the whole command, or for each of many things that it does"),
    ]
}

fn parse_seconds(text: &str) -> Result<std::time::Duration, String> {
    if text == "infinity" {
        return Ok(std::time::Duration::from_secs(u64::from(u32::MAX)));
    }
    let seconds =
        text.parse::<f64>().ok().filter(|seconds| (0.0..=f64::from(u32::MAX)).contains(seconds));
    seconds
        .map(std::time::Duration::from_secs_f64)
        .ok_or_else(|| "expected a number of seconds, or infinity".to_owned())
}

fn style() -> [Arg; 7] {
    let flag =
        |name: &'static str| Arg::new(name).long(name).action(ArgAction::SetTrue).global(true);
    [
        Arg::new("vhost")
            .short('p')
            .long("vhost")
            .value_name("VHOST")
            .global(true)
            .help("The virtual host [default: /]"),
        Arg::new("formatter")
            .long("formatter")
            .value_name("FORMAT")
            .value_parser(value_parser!(Format))
            .default_value("table")
            .global(true)
            .help("Output format"),
        flag("quiet").short('q').help("Print only the result"),
        flag("silent").short('s').help("Print only the result, without column names"),
        flag("no-table-headers").help("Leave out the column names"),
        Arg::new("node")
            .short('n')
            .long("node")
            .value_name("NODE")
            .value_parser(NonEmptyStringValueParser::new())
            .global(true)
            .help("Fail unless the broker's node has this name; which broker is asked, --url says"),
        flag("longnames")
            .short('l')
            .requires("node")
            .help("The host in the name of --node is written with its domain"),
    ]
}

/// The commands by what they are about, with a line for each.
fn summary() -> String {
    let mut text = String::new();
    for Group { title, commands } in GROUPS {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{title}:");
        for spec in *commands {
            let _ = writeln!(text, "  {:<36}{}", spec.name, spec.about);
        }
        text.push('\n');
    }
    let (name, about) = ("context", "Add, use, list and remove contexts");
    let _ = writeln!(text, "Saved brokers:\n  {name:<36}{about}");
    text
}

fn subcommand(spec: &'static Spec) -> Command {
    let mut command = Command::new(spec.name).about(spec.about);
    // RabbitMQ's options of what is not here are taken: the answer says why it is not.
    let is_here = !matches!(spec.action, Action::NotHere(_));
    for argument in spec.arguments {
        command = command.arg(arg(argument).allow_hyphen_values(!is_here));
    }
    let mut after = String::new();
    if let Action::List(list) = &spec.action
        && spec.arguments.iter().any(|argument| argument.name == "columns")
    {
        command = command.mut_arg("columns", |columns| {
            columns.help(format!("The columns to show [default: {}]", list.default.join(" ")))
        });
        let names: Vec<&str> = list.columns.iter().map(|(name, _)| *name).collect();
        after = format!("Columns: {}\n\n", names.join(", "));
    }
    if !spec.examples.is_empty() {
        after.push_str("Examples:");
        for example in spec.examples {
            let _ = write!(after, "\n  courser ctl {example}");
        }
    }
    if after.is_empty() { command } else { command.after_help(after) }
}

fn arg(argument: &Argument) -> Arg {
    let arg = Arg::new(argument.name).help(argument.help);
    let arg = match argument.short {
        Some(short) => arg.short(short),
        None => arg,
    };
    let arg = match argument.values {
        [] => arg,
        values => arg.value_parser(values.to_vec()),
    };
    match argument.kind {
        Kind::Required => arg.required(true),
        Kind::Optional => arg,
        Kind::Any => arg.num_args(0..),
        Kind::Option => arg.long(argument.name).value_name("VALUE"),
        Kind::Options => arg.long(argument.name).value_name("NAME=VALUE").action(ArgAction::Append),
        Kind::Flag => arg.long(argument.name).action(ArgAction::SetTrue),
    }
}

fn context() -> Command {
    let name = || Arg::new("name").required(true).help("The context's name");
    Command::new("context")
        .about("Named brokers, saved in ~/.config/courser/contexts.yaml")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .after_help(
            "Examples:\n  courser ctl context add prod --url https://broker:15671 --user ops --password-file ~/.prod\n  \
             courser ctl context use prod\n  courser ctl context list\n  courser ctl context remove prod",
        )
        .subcommand(
            Command::new("add")
                .about("Save --url, --user, --password-file and --ca, or --data-dir, under a name")
                .arg(name())
                .arg(
                    Arg::new("replace")
                        .long("replace")
                        .action(ArgAction::SetTrue)
                        .help("Put it in the place of one of the same name"),
                )
                .arg(
                    Arg::new("keep-password").long("keep-password").action(ArgAction::SetTrue).help(
                        "Save the password itself, from --password-file or COURSER_CTL_PASSWORD, instead of the file's path",
                    ),
                ),
        )
        .subcommand(Command::new("use").about("Make a context the default").arg(name()))
        .subcommand(Command::new("list").about("List contexts, without passwords"))
        .subcommand(Command::new("remove").about("Remove a context").arg(name()))
}
