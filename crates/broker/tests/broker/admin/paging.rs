//! Pages of long lists.

use crate::support::{World, processor_time};
use courser_broker::admin::{PAGE_MAX, Page, PageRequest, QueueView, Start};
use std::time::Duration;

fn names(page: &Page<QueueView>) -> Vec<String> {
    page.items.iter().map(|queue| queue.name.to_string()).collect()
}

fn world_with(queues: usize) -> World {
    let world = World::new();
    let mut client = world.connect();
    for nth in 0..queues {
        client.declare(&format!("q{nth:06}"));
    }
    world
}

#[test]
fn pages_follow_each_other_by_rank_and_by_name() {
    let world = world_with(7);
    let listing = world.broker.admin().queues(None).expect("all vhosts");
    let by_rank = listing.page(&PageRequest { start: Start::Rank(3), limit: 3, filter: None });
    assert_eq!(names(&by_rank), ["q000003", "q000004", "q000005"]);
    assert_eq!((by_rank.total, by_rank.filtered), (7, 7));
    let start = by_rank.next.expect("one more");
    let last = listing.page(&PageRequest { start, limit: 3, filter: None });
    assert_eq!((names(&last), last.next), (vec!["q000006".to_owned()], None));
}

#[test]
fn a_page_behind_the_end_is_empty() {
    let world = world_with(3);
    let listing = world.broker.admin().queues(Some("/")).expect("the vhost");
    let page = listing.page(&PageRequest { start: Start::Rank(100), limit: 10, filter: None });
    assert_eq!((page.items.len(), page.total, page.next), (0, 3, None));
}

#[test]
fn a_filter_holds_for_all_names_and_not_for_one_page() {
    let world = world_with(100);
    let filter = |name: &str| name.ends_with('7');
    let listing = world.broker.admin().queues(None).expect("all vhosts");
    let ask = |start| listing.page(&PageRequest { start, limit: 4, filter: Some(&filter) });
    let first = ask(Start::Rank(0));
    assert_eq!(names(&first), ["q000007", "q000017", "q000027", "q000037"]);
    assert_eq!((first.total, first.filtered), (100, 10));
    assert_eq!(names(&ask(Start::Rank(8))), ["q000087", "q000097"]);
    let second = ask(first.next.expect("more"));
    assert_eq!(names(&second), ["q000047", "q000057", "q000067", "q000077"]);
}

#[test]
fn a_page_is_never_longer_than_the_most_there_may_be() {
    let world = world_with(PAGE_MAX + 100);
    let listing = world.broker.admin().queues(None).expect("all vhosts");
    let page = listing.page(&PageRequest::first(usize::MAX));
    assert_eq!(page.items.len(), PAGE_MAX);
}

#[test]
fn a_list_of_all_vhosts_goes_by_vhost_and_name() {
    let world = World::new();
    for vhost in ["b", "a"] {
        let vhost = world.broker.define_vhost(vhost, Default::default()).expect("a vhost");
        let mut client = world.connect_to(vhost);
        client.declare("y");
        client.declare("x");
    }
    let listing = world.broker.admin().queues(None).expect("all vhosts");
    let mut start = Start::Rank(0);
    let mut seen = Vec::new();
    loop {
        let page = listing.page(&PageRequest { start, limit: 1, filter: None });
        seen.extend(page.items.iter().map(|queue| format!("{}/{}", queue.vhost, queue.name)));
        match page.next {
            Some(next) => start = next,
            None => break,
        }
    }
    assert_eq!(seen, ["a/x", "a/y", "b/x", "b/y"]);
}

#[test]
fn the_last_page_of_many_queues_costs_what_the_first_one_costs() {
    let world = world_with(20_000);
    let admin = world.broker.admin();
    let time_of = |rank| {
        // The best of many: other work on the machine makes any one of them slow.
        let best = (0..50).map(|_| {
            let started = processor_time();
            let page = admin.queues(Some("/")).expect("the vhost").page(&PageRequest {
                start: Start::Rank(rank),
                limit: 100,
                filter: None,
            });
            assert_eq!(page.items.len(), 100);
            processor_time() - started
        });
        best.min().unwrap_or_default()
    };
    let (first, last) = (time_of(0), time_of(19_900));
    assert!(
        last < first * 3 + Duration::from_micros(500),
        "first page {first:?}, last page {last:?}"
    );
}

/// A list is written row by row, and each row is looked up by its rank.
#[test]
fn a_row_of_the_last_of_many_vhosts_costs_what_one_of_the_first_costs() {
    const VHOSTS: usize = 1000;
    let world = World::new();
    let admin = world.broker.admin();
    for nth in 1..VHOSTS {
        world.broker.define_vhost(&format!("v{nth:03}"), Default::default()).expect("a vhost");
    }
    let listing = admin.exchanges(None).expect("all vhosts");
    let of_each = listing.len() / VHOSTS;
    let vhost_at = |rank: usize| listing.nth(rank).map(|exchange| exchange.vhost);
    assert_eq!(vhost_at(of_each - 1).as_deref(), Some("/"));
    assert_eq!(vhost_at(of_each).as_deref(), Some("v001"));
    assert_eq!(vhost_at(listing.len() - 1).as_deref(), Some("v999"));
    assert_eq!(vhost_at(listing.len()), None);
    let time_of = |first: usize| {
        // The best of many: other work on the machine makes any one of them slow.
        let best = (0..50).map(|_| {
            let started = processor_time();
            let rows = (first..first + 100).filter_map(|rank| listing.nth(rank)).count();
            assert_eq!(rows, 100);
            processor_time() - started
        });
        best.min().unwrap_or_default()
    };
    let (first, last) = (time_of(0), time_of(listing.len() - 100));
    assert!(
        last < first * 3 + Duration::from_micros(200),
        "first rows {first:?}, last rows {last:?}"
    );
}

#[test]
fn a_list_can_be_cut_down_to_vhosts() {
    let world = world_with(3);
    let admin = world.broker.admin();
    admin.change_vhost("other", |_| {}).expect("a vhost");
    admin.declare_queue("other", "only", Default::default()).expect("a queue");
    let listing = admin.queues(None).expect("all vhosts").within(|vhost| vhost == "other");
    assert_eq!(names(&listing.page(&PageRequest::first(10))), ["only"]);
    assert_eq!(listing.len(), 1);
    assert!(admin.queues(None).expect("all vhosts").within(|_| false).is_empty());
}
