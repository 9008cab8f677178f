//! `courser ctl context`: brokers get names, and lose them.

use crate::contexts::{Context, Contexts};
use crate::failure::{Failure, SOFTWARE};
use crate::spec::Output;
use crate::target::{SOCKET, Wanted, parse, password_of};
use clap::ArgMatches;
use std::path::{Path, PathBuf};

/// Does what the rest of the command line says. `url` and the others say what a new context is.
pub(crate) fn run(matches: &ArgMatches, wanted: Wanted) -> Result<Output, Failure> {
    let mut contexts = Contexts::load()?;
    let name =
        |matches: &ArgMatches| matches.get_one::<String>("name").cloned().unwrap_or_default();
    match matches.subcommand() {
        Some(("add", matches)) => {
            let name = name(matches);
            if !matches.get_flag("replace") && contexts.named(&name).is_ok() {
                return Err(Failure::error(
                    SOFTWARE,
                    format!(
                        "there is a context {name} already; --replace puts this one in its place, with nothing of the \
                         old one"
                    ),
                ));
            }
            let was_default = contexts.current.as_deref() == Some(&*name);
            contexts.put(made(name.clone(), wanted, matches.get_flag("keep-password"))?);
            contexts.save()?;
            let is_default = contexts.current.as_deref() == Some(&*name);
            let hint = match (was_default, is_default) {
                (true, _) => String::new(),
                (false, true) => ", which is the default now".to_owned(),
                (false, false) => {
                    format!("; 'courser ctl context use {name}' makes it the default")
                }
            };
            Ok(Output::Text(format!("Added context {name}{hint}")))
        }
        Some(("use", matches)) => {
            let name = name(matches);
            contexts.named(&name)?;
            contexts.current = Some(name.clone());
            contexts.save()?;
            Ok(Output::Text(format!("{name} is now the default context")))
        }
        Some(("remove", matches)) => {
            let name = name(matches);
            contexts.remove(&name)?;
            contexts.save()?;
            Ok(Output::Text(format!("Removed context {name}")))
        }
        _ => Ok(listed(&contexts)),
    }
}

fn made(name: String, wanted: Wanted, keeps_password: bool) -> Result<Context, Failure> {
    if name.is_empty() {
        return Err(Failure::usage("a context needs a name"));
    }
    let mut context = Context { name, ..Context::default() };
    let Some(url) = wanted.url else {
        let folder = wanted.data_dir.ok_or_else(|| {
            Failure::usage("give --url and --user, or --data-dir for a broker on this machine")
        })?;
        context.socket = Some(whole(&folder.join(SOCKET))?);
        return Ok(context);
    };
    parse(&url)?;
    context.url = url;
    let Wanted { options, environment, .. } = wanted;
    context.user = options.user.or(environment.user);
    context.ca = options.ca.or(environment.ca).as_deref().map(whole).transpose()?;
    match (keeps_password, options.password_file, environment.password) {
        (true, Some(file), _) => context.password = Some(password_of(&file)?),
        (true, None, Some(password)) => context.password = Some(password),
        (true, None, None) => {
            return Err(Failure::usage(
                "--keep-password needs --password-file or COURSER_CTL_PASSWORD",
            ));
        }
        (false, Some(file), _) => context.password_file = Some(whole(&file)?),
        (false, None, _) => {}
    }
    Ok(context)
}

/// A path that means the same wherever the program is started.
fn whole(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
}

fn listed(contexts: &Contexts) -> Output {
    let row = |context: &Context| {
        let broker = match &context.socket {
            Some(socket) => socket.display().to_string(),
            None => context.url.clone(),
        };
        let is_current = contexts.current.as_deref() == Some(&*context.name);
        vec![
            context.name.clone().into(),
            broker.into(),
            context.user.clone().unwrap_or_default().into(),
            is_current.into(),
        ]
    };
    Output::Rows {
        columns: ["name", "broker", "user", "current"].map(str::to_owned).to_vec(),
        rows: contexts.contexts.iter().map(row).collect(),
    }
}
