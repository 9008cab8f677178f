//! `courser top`: a broker at work, in a terminal.
//!
//! A thread asks the HTTP API for what is on the screen and no more: the broker sorts, filters and
//! pages, so that 100,000 queues cost no more than twenty. `look` is what is asked, `app` what keys
//! change, `draw` what the screen shows.

mod app;
mod detail;
mod draw;
mod look;
mod once;
#[cfg(test)]
mod tests;
mod view;

use crate::client::Client;
use crate::failure::{Failure, UNAVAILABLE};
use crate::{cli, wanted};
use app::{App, Step};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use look::{Ask, Look};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;
use view::View;

/// How often keys and answers are looked for.
const TURN: Duration = Duration::from_millis(100);

const EXAMPLES: &str = "Keys: ? shows all of them. Enter opens a row, Esc goes back, 1 to 4 switch to another list, < and > \
                        sort by another column, / filters by name, q quits.\n\nExamples:\n  courser top\n  \
                        courser top connections --interval 5\n  courser top --context prod -p orders\n  \
                        courser top queues --once --rows 10";

/// What stands behind `courser top`.
#[derive(Clone, Debug)]
pub struct Top(ArgMatches);

impl clap::FromArgMatches for Top {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Top(matches.clone()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = matches.clone();
        Ok(())
    }
}

impl clap::Args for Top {
    fn augment_args(command: Command) -> Command {
        command
            .about("Watch a running broker: queues, exchanges, connections, channels")
            .after_help(EXAMPLES)
            .arg(
                Arg::new("view")
                    .value_name("LIST")
                    .value_parser(value_parser!(View))
                    .default_value("queues")
                    .help("The list to show first"),
            )
            .arg(
                Arg::new("interval")
                    .short('i')
                    .long("interval")
                    .value_name("SECONDS")
                    .value_parser(parse_interval)
                    .default_value("2")
                    .help("Refresh interval, 0.5 to 3600"),
            )
            .arg(
                Arg::new("vhost")
                    .short('p')
                    .long("vhost")
                    .value_name("VHOST")
                    .help("Only objects in this vhost [default: all]"),
            )
            .arg(
                Arg::new("once")
                    .long("once")
                    .action(ArgAction::SetTrue)
                    .help("Print the list once, after one interval, and exit; needs no terminal"),
            )
            .arg(
                Arg::new("rows")
                    .long("rows")
                    .value_name("N")
                    .value_parser(value_parser!(u16).range(1..=500))
                    .default_value("20")
                    .requires("once")
                    .help("Rows that --once prints"),
            )
            .args(cli::connection())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.5..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected 0.5 to 3600 seconds".to_owned())
}

impl Top {
    /// Shows the broker of this data folder if the command line names no other, until that is enough.
    /// Returns what the program is to end with.
    pub fn run(&self, data_dir: Option<PathBuf>) -> u8 {
        match self.show(data_dir) {
            Ok(()) => 0,
            Err(failure) => {
                crate::failure::say_error(&failure);
                failure.code
            }
        }
    }

    fn show(&self, data_dir: Option<PathBuf>) -> Result<(), Failure> {
        let matches = &self.0;
        let is_once = matches.get_flag("once");
        let has_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        if !is_once && !has_terminal {
            return Err(Failure::usage(
                "top needs a terminal; 'courser top --once' prints one look",
            ));
        }
        let view = matches.get_one::<View>("view").copied().unwrap_or(View::Queues);
        let interval =
            matches.get_one::<Duration>("interval").copied().unwrap_or(Duration::from_secs(2));
        let timeout = matches.get_one::<Duration>("timeout").copied().unwrap_or(interval);
        let target = wanted(matches, data_dir)?.resolve()?;
        let vhost = matches.get_one::<String>("vhost").cloned();
        let mut app = App::new(target.to_string(), view, vhost, interval);
        let mut client = Client::new(target, timeout)?;
        if is_once {
            app.fit(matches.get_one::<u16>("rows").copied().unwrap_or(20));
            return once::print(&mut client, app);
        }
        // What is wrong with the address or the password is said before the screen is taken.
        app.take(Ok(Look::take(&mut client, &app.ask)?));
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop)).map_err(failed)?;
        }
        let (asks, asked) = mpsc::channel();
        let (answers, answered) = mpsc::channel();
        let asking = std::thread::Builder::new().name("top".to_owned());
        asking.spawn(move || keep_asking(client, &asked, &answers)).map_err(failed)?;
        let mut terminal = ratatui::try_init().map_err(failed)?;
        let shown = turn(&mut terminal, &mut app, &asks, &answered, &stop);
        ratatui::restore();
        shown.map_err(failed)
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::error(UNAVAILABLE, error)
}

/// What is asked, and when again; not again while that is none.
type Question = (Ask, Option<Duration>);

fn keep_asking(
    mut client: Client,
    asks: &Receiver<Question>,
    answers: &Sender<Result<Look, Failure>>,
) {
    let Ok((mut ask, mut interval)) = asks.recv() else { return };
    loop {
        if answers.send(Look::take(&mut client, &ask)).is_err() {
            return;
        }
        let next = match interval {
            Some(interval) => asks.recv_timeout(interval),
            None => asks.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            // Of several keys that were pressed meanwhile the last one counts.
            Ok(next) => (ask, interval) = asks.try_iter().last().unwrap_or(next),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

fn turn(
    terminal: &mut DefaultTerminal,
    app: &mut App,
    asks: &Sender<Question>,
    answers: &Receiver<Result<Look, Failure>>,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut step = Step::Ask;
    while !stop.load(Ordering::Relaxed) {
        let size = terminal.size()?;
        if app.fit(draw::list_rows(size.height)) == Step::Ask {
            step = Step::Ask;
        }
        match step {
            Step::Quit => return Ok(()),
            // The thread that takes it ends only when this one does.
            Step::Ask => {
                drop(asks.send((app.ask.clone(), (!app.is_paused).then_some(app.interval))))
            }
            Step::Draw => {}
        }
        terminal.draw(|frame| draw::screen(frame, app))?;
        step = wait(app, answers)?;
    }
    Ok(())
}

/// Waits for a key or an answer.
fn wait(app: &mut App, answers: &Receiver<Result<Look, Failure>>) -> io::Result<Step> {
    loop {
        let mut has_news = false;
        for answer in answers.try_iter() {
            app.take(answer);
            has_news = true;
        }
        if has_news {
            return Ok(Step::Draw);
        }
        if !event::poll(TURN)? {
            // A signal may have come.
            return Ok(Step::Draw);
        }
        match event::read()? {
            Event::Key(key) if key.kind == KeyEventKind::Press => return Ok(app.press(key)),
            Event::Resize(..) => return Ok(Step::Draw),
            _ => {}
        }
    }
}
