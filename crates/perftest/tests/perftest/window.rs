//! The window of outstanding confirms.

use courser_perftest::window::Window;

fn closed(window: &Window, first: u64, last: u64) -> Vec<u64> {
    let mut times = Vec::new();
    window.close(first, last, |sent_ns| times.push(sent_ns));
    times
}

#[test]
fn no_more_than_the_limit_are_outstanding() {
    let window = Window::new(3);
    assert_eq!(window.room(1), 3);
    (1..=3).for_each(|seq| window.open(seq, seq * 10));
    assert_eq!((window.room(4), window.outstanding()), (0, 3));
    assert_eq!(closed(&window, 1, 2), [10, 20]);
    assert_eq!(window.room(4), 2);
}

#[test]
fn a_late_confirm_keeps_its_place() {
    let window = Window::new(3);
    (1..=3).for_each(|seq| window.open(seq, 1));
    assert_eq!(closed(&window, 2, 3), [1, 1]);
    // Number 4 would take the place of number 1.
    assert_eq!((window.room(4), window.outstanding()), (0, 1));
    assert_eq!(closed(&window, 1, 1), [1]);
    assert_eq!(window.room(4), 3);
}

#[test]
fn a_second_confirm_counts_for_nothing() {
    let window = Window::new(2);
    window.open(1, 5);
    assert_eq!(closed(&window, 1, 1), [5]);
    assert!(closed(&window, 1, 1).is_empty());
    assert_eq!(window.outstanding(), 0);
}

#[test]
fn what_was_not_sent_is_not_outstanding() {
    let window = Window::new(4);
    (1..=4).for_each(|seq| window.open(seq, 1));
    window.withdraw(3, 2);
    assert_eq!((window.outstanding(), window.room(3)), (2, 2));
}

#[test]
fn unanswered_publishes_are_known_by_number() {
    let window = Window::new(4);
    (1..=4).for_each(|seq| window.open(seq, 1));
    closed(&window, 1, 1);
    window.open(5, 1);
    closed(&window, 3, 3);
    assert_eq!(window.unanswered(6), [2, 4, 5]);
}
