//! The screen.

use super::app::{App, History, Mode};
use super::detail::Detail;
use super::look::Look;
use super::view::{View, number, rate_text, size, visible};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Cell, Clear, Paragraph, Row, Sparkline, Table, TableState, Wrap};
use serde_json::Value;
use std::collections::VecDeque;
use unicode_width::UnicodeWidthStr as _;

/// Lines above the list: the broker, its rates, what needs attention.
const HEAD: u16 = 6;
/// The tabs, the list's head, the line at the bottom.
const AROUND: u16 = 3;

const KEYS: &[(&str, &str)] = &[
    ("1 2 3 4  Tab", "queues, exchanges, connections, channels"),
    ("↑ ↓  j k", "next and previous row"),
    ("PgUp PgDn", "next and previous page"),
    ("g  Home", "first row"),
    ("Enter", "open the row"),
    ("Esc", "back; clear the filter"),
    ("< >", "sort by the column to the left, to the right"),
    ("r", "reverse the order"),
    ("/", "filter by name"),
    ("Space", "pause and resume"),
    ("+ -", "refresh less often, more often"),
    ("q  Ctrl-C", "quit"),
];

/// Rows of a list on a screen of this height.
pub(crate) const fn list_rows(height: u16) -> u16 {
    height.saturating_sub(HEAD + AROUND)
}

/// Draws everything.
pub(crate) fn screen(frame: &mut Frame<'_>, app: &App) {
    let lines = [
        Constraint::Length(HEAD),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [head, tabs, body, foot] = Layout::vertical(lines).areas(frame.area());
    if let Some(look) = &app.look {
        broker(frame, head, app, look);
    }
    frame.render_widget(tab_line(app), tabs);
    match (&app.ask.subject, &app.look) {
        (Some(subject), Some(look)) if look.ask.subject.as_ref() == Some(subject) => {
            match &look.detail {
                Some(known) => detail(frame, body, app, known),
                None => frame.render_widget("It no longer exists. Esc goes back.", body),
            }
        }
        (Some(_), _) => frame.render_widget("…", body),
        (None, _) => list(frame, body, app),
    }
    frame.render_widget(foot_line(app), foot);
    if app.mode == Mode::Help {
        help(frame);
    }
}

fn broker(frame: &mut Frame<'_>, area: Rect, app: &App, look: &Look) {
    let [texts, curves] =
        Layout::horizontal([Constraint::Fill(3), Constraint::Fill(2)]).spacing(1).areas(area);
    let [messages, objects] = totals(look);
    let mut lines =
        vec![name_line(app, look), messages, rates(look), objects, node_line(&look.node)];
    lines.push(match look.attention.split_first() {
        None => Line::raw("nothing needs attention").dim(),
        Some((first, rest)) => {
            let more =
                if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            Line::raw(format!("! {}{more}", visible(first))).yellow().bold()
        }
    });
    frame.render_widget(Paragraph::new(lines), texts);
    curve_pair(frame, curves, &app.history, ["published/s", "delivered/s"], rate_text);
}

fn name_line(app: &App, look: &Look) -> Line<'static> {
    let text = |name: &str| look.overview[name].as_str().map(visible).unwrap_or_default();
    let uptime = look.node["uptime"].as_u64().map(|ms| format!(", up {}", duration(ms / 1000)));
    Line::from(vec![
        Span::raw(format!("{} {}", text("product_name"), text("product_version"))).bold(),
        Span::raw(format!("  {}{}  ", text("node"), uptime.unwrap_or_default())),
        Span::raw(app.target.clone()).dim(),
    ])
}

fn totals(look: &Look) -> [Line<'static>; 2] {
    let of =
        |group: &str, name: &str| number(look.overview[group][name].as_u64().unwrap_or_default());
    let objects = ["queues", "exchanges", "connections", "channels", "consumers"];
    let objects = objects.map(|name| format!("{} {name}", of("object_totals", name))).join(", ");
    let ready = of("queue_totals", "messages_ready");
    let unacked = of("queue_totals", "messages_unacknowledged");
    [Line::raw(format!("{ready} messages ready, {unacked} unacknowledged")), Line::raw(objects)]
}

fn node_line(node: &Value) -> Line<'static> {
    let part = |title: &str, used: &str, limit: &str, alarm: &str| {
        let used = size(node[used].as_f64()?);
        let limit = node[limit].as_f64().filter(|limit| *limit > 0.0).map(size);
        let text = match limit {
            Some(limit) => format!("{title} {used} (limit {limit})  "),
            None => format!("{title} {used}  "),
        };
        let style = if node[alarm] == true { Style::new().red().bold() } else { Style::new() };
        Some(Span::styled(text, style))
    };
    let mut spans: Vec<_> =
        part("memory", "mem_used", "mem_limit", "mem_alarm").into_iter().collect();
    spans.extend(part("disk free", "disk_free", "disk_free_limit", "disk_free_alarm"));
    if let (Some(used), Some(total)) = (node["fd_used"].as_u64(), node["fd_total"].as_u64()) {
        spans.push(Span::raw(format!("files {} of {}", number(used), number(total))));
    }
    Line::from(spans)
}

fn rates(look: &Look) -> Line<'static> {
    let stats = &look.overview["message_stats"];
    let names = [
        ("publish", "in"),
        ("confirm", "confirmed"),
        ("deliver_get", "out"),
        ("ack", "acknowledged"),
        ("redeliver", "redelivered"),
    ];
    let part = |(name, title): (&str, &str)| {
        let rate = stats[format!("{name}_details")]["rate"].as_f64().unwrap_or_default();
        format!("{title} {}/s", rate_text(rate).replace('·', "0"))
    };
    Line::raw(names.map(part).join("  "))
}

/// What comes in above what goes out, the newest at the right.
fn curve_pair(
    frame: &mut Frame<'_>,
    area: Rect,
    history: &History,
    titles: [&str; 2],
    show: fn(f64) -> String,
) {
    let halves = Layout::vertical([Constraint::Fill(1), Constraint::Fill(1)]).areas::<2>(area);
    for ((values, half), title) in [&history.ins, &history.outs].into_iter().zip(halves).zip(titles)
    {
        let newest = values.back().copied().unwrap_or_default();
        let title = format!(" {title} {}", show(newest as f64).replace('·', "0"));
        let [curve, text] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(22)]).areas(half);
        let sparkline = Sparkline::default()
            .data(newest_of(values, curve.width))
            .max(values.iter().copied().max().unwrap_or(1).max(1));
        frame.render_widget(sparkline.cyan(), curve);
        frame.render_widget(Paragraph::new(title), text);
    }
}

fn newest_of(values: &VecDeque<u64>, width: u16) -> Vec<u64> {
    let width = usize::from(width);
    let missing = width.saturating_sub(values.len());
    let skipped = values.len().saturating_sub(width);
    std::iter::repeat_n(0, missing).chain(values.iter().skip(skipped).copied()).collect()
}

fn tab_line(app: &App) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, view) in View::ALL.into_iter().enumerate() {
        let style =
            if view == app.ask.view { Style::new().reversed().bold() } else { Style::new() };
        spans.push(Span::styled(format!(" {} {} ", at + 1, view.name()), style));
    }
    if let Some(vhost) = &app.ask.vhost {
        spans.push(Span::raw(format!("  in vhost {}", visible(vhost))));
    }
    if app.mode == Mode::Filter || !app.ask.filter.is_empty() {
        let cursor = if app.mode == Mode::Filter { "▏" } else { "" };
        spans.push(Span::raw(format!("  /{}{cursor}", visible(&app.ask.filter))).yellow());
    }
    Line::from(spans)
}

fn list(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let columns = app.ask.view.columns();
    let head = columns.iter().enumerate().map(|(at, column)| {
        let mark = match (at == app.ask.sort, app.ask.is_descending) {
            (false, _) => "",
            (true, true) => "▼",
            (true, false) => "▲",
        };
        Cell::from(
            Line::raw(format!("{}{mark}", column.title)).alignment(alignment(column.is_number())),
        )
    });
    let rows = app.rows().iter().map(|row| {
        Row::new(columns.iter().map(|column| {
            Cell::from(Line::raw(column.text(row)).alignment(alignment(column.is_number())))
        }))
    });
    let widths = columns.iter().map(|column| match column.width {
        Some(width) => Constraint::Length(width),
        None => Constraint::Fill(1),
    });
    let table = Table::new(rows, widths.collect::<Vec<_>>())
        .header(
            Row::new(head).style(Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)),
        )
        .row_highlight_style(Style::new().reversed());
    if app.look.is_some() && app.rows().is_empty() {
        let name = app.ask.view.name();
        let text = match app.ask.filter.is_empty() {
            true => format!("There are no {name}."),
            false => format!("No {name} match the filter. Esc clears it."),
        };
        frame.render_widget(Paragraph::new(text).dim(), area);
        return;
    }
    frame.render_stateful_widget(table, area, &mut TableState::new().with_selected(app.selected));
}

const fn alignment(is_number: bool) -> Alignment {
    if is_number { Alignment::Right } else { Alignment::Left }
}

fn detail(frame: &mut Frame<'_>, area: Rect, app: &App, known: &Detail) {
    let pairs = known.facts.len().div_ceil(2) as u16;
    let findings = known.findings.len().min(4) as u16;
    let lines = [
        Constraint::Length(1),
        Constraint::Length(pairs),
        Constraint::Length(findings),
        Constraint::Length(4),
        Constraint::Fill(1),
    ];
    let [title, facts, wrong, curves, table] = Layout::vertical(lines).areas(area);
    frame.render_widget(Line::raw(known.title.clone()).bold(), title);
    let columns = Layout::horizontal([Constraint::Fill(1), Constraint::Fill(1)]).areas::<2>(facts);
    for (half, column) in known.facts.chunks(usize::from(pairs).max(1)).zip(columns) {
        let line = |(name, value): &(&str, String)| {
            Line::from(vec![Span::raw(format!("{name:<16}")).dim(), Span::raw(value.clone())])
        };
        frame.render_widget(Paragraph::new(half.iter().map(line).collect::<Vec<_>>()), column);
    }
    let texts = known.findings.iter().take(4).map(|text| Line::raw(format!("! {text}")).yellow());
    frame.render_widget(Paragraph::new(texts.collect::<Vec<_>>()), wrong);
    let (titles, show): (_, fn(f64) -> String) = match app.ask.view {
        View::Connections => (["received/s", "sent/s"], size),
        _ => (["in/s", "out/s"], rate_text),
    };
    curve_pair(frame, curves, &app.detail_history, titles, show);
    belongings(frame, table, known, app.scrolled);
}

fn belongings(frame: &mut Frame<'_>, area: Rect, known: &Detail, scrolled: usize) {
    let [title, rows_area] =
        Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
    let table = &known.table;
    let count = table.rows.len();
    frame.render_widget(Line::raw(format!("{} ({count})", table.title)).bold(), title);
    let width = |at: usize| {
        let cells = table.rows.iter().map(|row| row[at].width()).max().unwrap_or_default();
        Constraint::Max(cells.max(table.head[at].width()).min(60) as u16)
    };
    let widths: Vec<_> = (0..table.head.len()).map(width).collect();
    let rows = table.rows.iter().skip(scrolled).map(|row| Row::new(row.iter().map(String::as_str)));
    let head =
        Row::new(table.head.iter().copied()).style(Style::new().add_modifier(Modifier::UNDERLINED));
    frame.render_widget(Table::new(rows, widths).header(head).column_spacing(2), rows_area);
}

fn foot_line(app: &App) -> Line<'static> {
    if let Some(failure) = &app.failure {
        let text = failure.text.replace("Error:\n", "").replace('\n', " ");
        return Line::raw(visible(&text)).red().bold();
    }
    let state = match app.is_paused {
        true => "paused".to_owned(),
        false => format!("every {} s", app.interval.as_secs_f64()),
    };
    let place = match (&app.ask.subject, &app.look) {
        (None, Some(look)) => {
            format!("page {} of {}, {} in all", app.ask.page, look.pages, number(look.count))
        }
        _ => String::new(),
    };
    let keys = match (app.mode, &app.ask.subject) {
        (Mode::Filter, _) => "Enter keep  Esc clear",
        (_, Some(_)) => "Esc back  ? keys  q quit",
        _ => "Enter open  < > sort  / filter  ? keys  q quit",
    };
    Line::raw(format!("{keys}  │  {state}  {place}")).dim()
}

fn help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let (width, height) = (64.min(area.width), (KEYS.len() as u16 + 2).min(area.height));
    let popup = Rect::new((area.width - width) / 2, (area.height - height) / 2, width, height);
    let line = |(keys, does): &(&str, &str)| {
        Line::from(vec![Span::raw(format!(" {keys:<14}")).bold(), Span::raw(format!(" {does}"))])
    };
    let text = Paragraph::new(KEYS.iter().map(line).collect::<Vec<_>>()).wrap(Wrap { trim: false });
    frame.render_widget(Clear, popup);
    frame.render_widget(text.block(Block::bordered().title(" Keys ")), popup);
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}
