//! What keys do, and what the screen shows, with answers as a broker gives them.

use super::app::{App, Step};
use super::detail::{Detail, Subject, Table};
use super::draw;
use super::look::{Ask, Look};
use super::view::View;
use crate::failure::{Failure, UNAVAILABLE};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value, json};
use std::time::Duration;

fn app() -> App {
    App::new("http://broker:15672".to_owned(), View::Queues, None, Duration::from_secs(2))
}

fn queue(name: &str, ready: u64) -> Value {
    json!({
        "name": name, "vhost": "/", "type": "classic", "messages_ready": ready,
        "messages_unacknowledged": 3, "consumers": 2,
        "message_stats": { "publish_details": { "rate": 120.4 }, "ack_details": { "rate": 0.0 } },
    })
}

fn look(ask: &Ask, pages: u64) -> Look {
    Look {
        ask: ask.clone(),
        overview: json!({
            "product_name": "Courser", "product_version": "1.2.3", "node": "courser@a",
            "queue_totals": { "messages_ready": 1_234_567, "messages_unacknowledged": 3 },
            "object_totals": { "queues": 40, "connections": 7 },
            "message_stats": { "publish_details": { "rate": 385.2 } },
        }),
        node: json!({ "mem_used": 1_048_576, "mem_limit": 2_097_152, "mem_alarm": false, "uptime": 90_061_000 }),
        attention: vec!["the disk is nearly full".to_owned()],
        rows: (0..20).map(|at| queue(&format!("orders.{at}"), 100 - at)).collect(),
        pages,
        count: pages * 20,
        detail: None,
    }
}

fn press(app: &mut App, code: KeyCode) -> Step {
    app.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn type_text(app: &mut App, text: &str) {
    for letter in text.chars() {
        press(app, KeyCode::Char(letter));
    }
}

fn screen(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a screen");
    terminal.draw(|frame| draw::screen(frame, app)).expect("drawn");
    terminal.backend().to_string()
}

#[test]
fn rows_are_walked_through_across_pages() {
    let mut app = app();
    app.take(Ok(look(&app.ask, 2)));
    for _ in 0..19 {
        assert_eq!(press(&mut app, KeyCode::Down), Step::Draw);
    }
    assert_eq!(app.selected, 19);
    assert_eq!(press(&mut app, KeyCode::Char('j')), Step::Ask);
    assert_eq!((app.ask.page, app.selected), (2, 0));
    app.take(Ok(look(&app.ask, 2)));
    assert_eq!(press(&mut app, KeyCode::PageDown), Step::Draw, "it is the last page");
    assert_eq!(press(&mut app, KeyCode::Up), Step::Ask);
    app.take(Ok(look(&app.ask, 2)));
    assert_eq!((app.ask.page, app.selected), (1, 19));
}

#[test]
fn another_interval_counts_at_once() {
    let mut app = app();
    assert_eq!(press(&mut app, KeyCode::Char('+')), Step::Ask);
    assert_eq!(app.interval, Duration::from_secs(4));
    assert_eq!(press(&mut app, KeyCode::Char('-')), Step::Ask);
    assert_eq!(app.interval, Duration::from_secs(2));
}

#[test]
fn a_page_that_is_gone_is_not_asked_for_again() {
    let mut app = app();
    app.ask.page = 5;
    app.take(Ok(look(&app.ask, 2)));
    assert_eq!(app.ask.page, 2);
}

#[test]
fn another_size_of_the_screen_keeps_the_place() {
    let mut app = app();
    app.ask.page = 3;
    assert_eq!(app.fit(10), Step::Ask);
    assert_eq!(app.ask.page, 5, "rows 41 to 60 began at row 41");
    assert_eq!(app.fit(10), Step::Draw);
    app.fit(0);
    assert_eq!(app.ask.rows, 1);
}

#[test]
fn letters_of_the_filter_are_no_commands() {
    let mut app = app();
    type_text(&mut app, "/quirk");
    assert_eq!(app.ask.filter, "quirk");
    press(&mut app, KeyCode::Enter);
    assert_eq!(press(&mut app, KeyCode::Char('q')), Step::Quit);
    assert_eq!(press(&mut app, KeyCode::Esc), Step::Ask);
    assert_eq!(app.ask.filter, "");
}

#[test]
fn control_c_ends_it_whatever_is_open() {
    let mut app = app();
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(app.press(interrupt), Step::Quit);
    press(&mut app, KeyCode::Char('/'));
    assert_eq!(app.press(interrupt), Step::Quit);
    press(&mut app, KeyCode::Esc);
    press(&mut app, KeyCode::Char('?'));
    assert_eq!(app.press(interrupt), Step::Quit);
}

#[test]
fn columns_are_sorted_by_from_the_end_that_matters() {
    let mut app = app();
    assert_eq!(app.ask.view.columns()[app.ask.sort].title, "ready");
    assert!(app.ask.is_descending);
    for _ in 0..9 {
        press(&mut app, KeyCode::Char('<'));
    }
    assert_eq!((app.ask.sort, app.ask.is_descending), (0, false), "names begin with a");
    press(&mut app, KeyCode::Char('r'));
    assert!(app.ask.is_descending);
    for _ in 0..20 {
        press(&mut app, KeyCode::Char('>'));
    }
    assert_eq!(app.ask.sort, View::Queues.columns().len() - 1);
}

#[test]
fn a_list_is_turned_to_by_its_number_and_by_tab() {
    let mut app = app();
    press(&mut app, KeyCode::Char('4'));
    assert_eq!(app.ask.view, View::Channels);
    press(&mut app, KeyCode::Tab);
    assert_eq!(app.ask.view, View::Queues);
    press(&mut app, KeyCode::BackTab);
    assert_eq!(app.ask.view, View::Channels);
}

#[test]
fn the_screen_shows_the_broker_and_its_largest_queues() {
    let mut app = app();
    app.take(Ok(look(&app.ask, 2)));
    let shown = screen(&app, 120, 20);
    for text in [
        "Courser 1.2.3",
        "courser@a, up 1 d 1 h",
        "1,234,567 messages ready",
        "memory 1.0 MiB (limit 2.0 MiB)",
    ] {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
    for text in
        ["! the disk is nearly full", "in 385/s", "ready▼", "orders.0", "page 1 of 2, 40 in all"]
    {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
}

#[test]
fn a_broker_that_is_gone_is_said_and_what_was_seen_stays() {
    let mut app = app();
    app.take(Ok(look(&app.ask, 1)));
    app.take(Err(Failure::error(UNAVAILABLE, "the broker at http://broker can't be reached")));
    let shown = screen(&app, 120, 20);
    assert!(shown.contains("the broker at http://broker can't be reached"), "{shown}");
    assert!(shown.contains("orders.0"), "{shown}");
    app.take(Ok(look(&app.ask, 1)));
    assert!(!screen(&app, 120, 20).contains("can't be reached"));
}

#[test]
fn a_row_is_looked_into_and_left() {
    let mut app = app();
    app.take(Ok(look(&app.ask, 1)));
    press(&mut app, KeyCode::Down);
    assert_eq!(press(&mut app, KeyCode::Enter), Step::Ask);
    assert_eq!(app.ask.subject, Some(Subject::Queue("/".to_owned(), "orders.1".to_owned())));
    let mut answer = look(&app.ask, 1);
    answer.detail = Some(Detail {
        title: "queue orders.1 in vhost /".to_owned(),
        facts: vec![("type", "classic".to_owned()), ("state", "running".to_owned())],
        findings: vec!["5711 messages wait without a consumer".to_owned()],
        table: Table {
            title: "consumers",
            head: &["channel", "tag"],
            rows: (0..3).map(|at| vec![format!("channel {at}"), "c".to_owned()]).collect(),
        },
        rates: (1.0, 2.0),
    });
    app.take(Ok(answer));
    let shown = screen(&app, 100, 24);
    for text in ["queue orders.1 in vhost /", "! 5711 messages wait", "consumers (3)", "channel 0"]
    {
        assert!(shown.contains(text), "{text} in\n{shown}");
    }
    for _ in 0..9 {
        press(&mut app, KeyCode::Down);
    }
    assert_eq!(app.scrolled, 2);
    assert!(!screen(&app, 100, 24).contains("channel 1"));
    assert_eq!(press(&mut app, KeyCode::Esc), Step::Ask);
    assert_eq!((app.ask.subject, app.selected), (None, 1));
}

#[test]
fn a_thing_that_is_gone_is_said() {
    let mut app = app();
    app.take(Ok(look(&app.ask, 1)));
    press(&mut app, KeyCode::Enter);
    app.take(Ok(look(&app.ask, 1)));
    assert!(screen(&app, 100, 24).contains("It no longer exists."));
}

#[test]
fn any_size_of_screen_can_be_drawn() {
    let mut app = app();
    for is_filled in [false, true] {
        if is_filled {
            app.take(Ok(look(&app.ask, 2)));
        }
        for key in ['x', '?', 'x', '/'] {
            press(&mut app, KeyCode::Char(key));
            for (width, height) in [(1, 1), (10, 3), (40, 7), (79, 24), (300, 100)] {
                app.fit(draw::list_rows(height));
                screen(&app, width, height);
            }
        }
        press(&mut app, KeyCode::Esc);
    }
}
