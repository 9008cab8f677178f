//! What is on the screen, and what a key changes of it.

use super::detail::Subject;
use super::look::{Ask, Look};
use super::view::View;
use crate::failure::Failure;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::collections::VecDeque;
use std::time::Duration;

/// Looks whose rates are kept for the curves.
const HISTORY: usize = 240;
/// Characters of a filter; longer than the longest name.
const FILTER_CHARS_MAX: usize = 300;

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Only the screen.
    Draw,
    /// The broker, anew.
    Ask,
    /// The end.
    Quit,
}

/// What keys mean at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Commands.
    Commands,
    /// Letters of the filter.
    Filter,
    /// Any key closes the help.
    Help,
}

/// Rates of the last looks, one for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// What came in.
    pub ins: VecDeque<u64>,
    /// What went out.
    pub outs: VecDeque<u64>,
}

impl History {
    fn push(&mut self, ins: f64, outs: f64) {
        for (values, value) in [(&mut self.ins, ins), (&mut self.outs, outs)] {
            if values.len() == HISTORY {
                values.pop_front();
            }
            values.push_back(value.max(0.0).round() as u64);
        }
    }
}

/// The state of the program.
pub(crate) struct App {
    /// The broker's address.
    pub target: String,
    /// What is asked next.
    pub ask: Ask,
    /// The last answer.
    pub look: Option<Look>,
    /// Why the last question got none.
    pub failure: Option<Failure>,
    /// The row of the page.
    pub selected: usize,
    /// Rows of the detail's table that are above the screen.
    pub scrolled: usize,
    /// What keys mean.
    pub mode: Mode,
    /// Whether nothing is asked.
    pub is_paused: bool,
    /// Between two looks.
    pub interval: Duration,
    /// Of the whole broker.
    pub history: History,
    /// Of the thing that is looked at.
    pub detail_history: History,
    /// The rest to go to the last row of the page that comes.
    goes_to_end: bool,
}

impl App {
    /// A screen that has nothing yet.
    pub fn new(target: String, view: View, vhost: Option<String>, interval: Duration) -> Self {
        let sort = view.first_sort();
        App {
            target,
            ask: Ask {
                view,
                vhost,
                sort,
                is_descending: view.columns()[sort].is_number(),
                filter: String::new(),
                page: 1,
                rows: 20,
                subject: None,
            },
            look: None,
            failure: None,
            selected: 0,
            scrolled: 0,
            mode: Mode::Commands,
            is_paused: false,
            interval,
            history: History::default(),
            detail_history: History::default(),
            goes_to_end: false,
        }
    }

    /// Takes what the broker answered.
    pub fn take(&mut self, answer: Result<Look, Failure>) {
        let look = match answer {
            Ok(look) => look,
            Err(failure) => return self.failure = Some(failure),
        };
        self.failure = None;
        let stats = &look.overview["message_stats"];
        let rate = |of: &str| stats[of]["rate"].as_f64().unwrap_or_default();
        self.history.push(rate("publish_details"), rate("deliver_get_details"));
        if look.ask.subject == self.ask.subject
            && let Some(detail) = &look.detail
        {
            self.detail_history.push(detail.rates.0, detail.rates.1);
        }
        if look.ask.page == self.ask.page {
            self.ask.page = self.ask.page.min(look.pages);
            if std::mem::take(&mut self.goes_to_end) {
                self.selected = look.rows.len();
            }
            self.selected = self.selected.min(look.rows.len().saturating_sub(1));
        }
        self.look = Some(look);
    }

    /// The answer to what is asked now, if there is one yet.
    pub fn rows(&self) -> &[serde_json::Value] {
        match &self.look {
            Some(look) if look.ask.view == self.ask.view => &look.rows,
            _ => &[],
        }
    }

    /// As many rows as the screen has.
    pub fn fit(&mut self, rows: u16) -> Step {
        let rows = rows.clamp(1, 500);
        if rows == self.ask.rows {
            return Step::Draw;
        }
        let first = (self.ask.page - 1) * u64::from(self.ask.rows);
        self.ask.rows = rows;
        self.ask.page = first / u64::from(rows) + 1;
        Step::Ask
    }

    /// Does what a key says.
    pub fn press(&mut self, key: KeyEvent) -> Step {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if matches!(key.code, KeyCode::Char('c' | 'd')) {
                Step::Quit
            } else {
                Step::Draw
            };
        }
        match self.mode {
            Mode::Help => self.mode = Mode::Commands,
            Mode::Filter => return self.type_filter(key.code),
            Mode::Commands => return self.command(key.code),
        }
        Step::Draw
    }

    fn command(&mut self, key: KeyCode) -> Step {
        match key {
            KeyCode::Char('q') => return Step::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.mode = Mode::Help,
            KeyCode::Char(' ' | 'p') => {
                self.is_paused = !self.is_paused;
                return Step::Ask;
            }
            KeyCode::Char('+') => {
                self.interval = (self.interval * 2).min(Duration::from_secs(64));
                return Step::Ask;
            }
            KeyCode::Char('-') => {
                self.interval = (self.interval / 2).max(Duration::from_millis(500));
                return Step::Ask;
            }
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left if self.ask.subject.is_some() => {
                return self.show(None);
            }
            _ if self.ask.subject.is_some() => self.scroll(key),
            key => return self.list_command(key),
        }
        Step::Draw
    }

    fn list_command(&mut self, key: KeyCode) -> Step {
        let last = self.rows().len().saturating_sub(1);
        match key {
            KeyCode::Char(digit @ '1'..='4') => {
                return self.turn_to(View::ALL[digit as usize - '1' as usize]);
            }
            KeyCode::Tab => return self.turn(1),
            KeyCode::BackTab => return self.turn(View::ALL.len() - 1),
            KeyCode::Down | KeyCode::Char('j') if self.selected < last => self.selected += 1,
            KeyCode::Down | KeyCode::Char('j') => return self.page(1, false),
            KeyCode::Up | KeyCode::Char('k') if self.selected > 0 => self.selected -= 1,
            KeyCode::Up | KeyCode::Char('k') => return self.page(-1, true),
            KeyCode::PageDown => return self.page(1, false),
            KeyCode::PageUp => return self.page(-1, false),
            KeyCode::Home | KeyCode::Char('g') => return self.first_page(),
            KeyCode::Enter | KeyCode::Right => {
                let row = self.rows().get(self.selected);
                let subject = row.and_then(|row| Subject::of(self.ask.view, row));
                return if subject.is_some() { self.show(subject) } else { Step::Draw };
            }
            KeyCode::Char('>' | 's') => return self.sort_by(1),
            KeyCode::Char('<' | 'S') => return self.sort_by(-1),
            KeyCode::Char('r') => {
                self.ask.is_descending = !self.ask.is_descending;
                return self.first_page();
            }
            KeyCode::Char('/') => self.mode = Mode::Filter,
            KeyCode::Esc if !self.ask.filter.is_empty() => {
                self.ask.filter.clear();
                return self.first_page();
            }
            _ => {}
        }
        Step::Draw
    }

    fn type_filter(&mut self, key: KeyCode) -> Step {
        match key {
            KeyCode::Enter => self.mode = Mode::Commands,
            KeyCode::Esc => {
                self.mode = Mode::Commands;
                self.ask.filter.clear();
                return self.first_page();
            }
            KeyCode::Backspace => {
                self.ask.filter.pop();
                return self.first_page();
            }
            KeyCode::Char(letter) if self.ask.filter.chars().count() < FILTER_CHARS_MAX => {
                self.ask.filter.push(letter);
                return self.first_page();
            }
            _ => {}
        }
        Step::Draw
    }

    fn scroll(&mut self, key: KeyCode) {
        let detail = self.look.as_ref().and_then(|look| look.detail.as_ref());
        let last = detail.map_or(0, |detail| detail.table.rows.len()).saturating_sub(1);
        let to = match key {
            KeyCode::Down | KeyCode::Char('j') => self.scrolled + 1,
            KeyCode::Up | KeyCode::Char('k') => self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled + 10,
            KeyCode::PageUp => self.scrolled.saturating_sub(10),
            KeyCode::Home | KeyCode::Char('g') => 0,
            _ => return,
        };
        self.scrolled = to.min(last);
    }

    fn show(&mut self, subject: Option<Subject>) -> Step {
        self.ask.subject = subject;
        self.scrolled = 0;
        self.detail_history = History::default();
        Step::Ask
    }

    fn turn(&mut self, by: usize) -> Step {
        let at = View::ALL.iter().position(|view| *view == self.ask.view).unwrap_or_default();
        self.turn_to(View::ALL[(at + by) % View::ALL.len()])
    }

    fn turn_to(&mut self, view: View) -> Step {
        self.ask.view = view;
        self.ask.sort = view.first_sort();
        self.ask.is_descending = view.columns()[self.ask.sort].is_number();
        self.ask.filter.clear();
        self.first_page()
    }

    fn sort_by(&mut self, by: isize) -> Step {
        let columns = self.ask.view.columns();
        self.ask.sort = self.ask.sort.saturating_add_signed(by).min(columns.len() - 1);
        self.ask.is_descending = columns[self.ask.sort].is_number();
        self.first_page()
    }

    fn first_page(&mut self) -> Step {
        self.ask.page = 1;
        self.selected = 0;
        Step::Ask
    }

    fn page(&mut self, by: i64, goes_to_end: bool) -> Step {
        let pages = self.look.as_ref().map_or(1, |look| look.pages);
        let page = self.ask.page.saturating_add_signed(by).clamp(1, pages);
        if page == self.ask.page {
            return Step::Draw;
        }
        self.ask.page = page;
        self.selected = 0;
        self.goes_to_end = goes_to_end;
        Step::Ask
    }
}
