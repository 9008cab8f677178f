//! Connections, channels and consumers, without sockets.

use crate::frame_costs::cost;
use crate::support::{Client, World, guest, owned, short, taken_bytes};
use courser_broker::admin::{ClientProperties, ConnectionDetails, Held, PageRequest};
use courser_broker::{Batch, Identity, Limits, steps};
use courser_codec::{FieldTable, Table, basic};
use std::sync::Weak;

fn connect(world: &World, name: &str, user: &str, properties: FieldTable) -> Client {
    let identity = Identity { user: owned(user), ..guest() };
    let details = ConnectionDetails {
        name: name.to_owned(),
        client_properties: said(&properties),
        ..ConnectionDetails::default()
    };
    let frame_max = 131_072;
    let session = world.broker.open_connection(world.vhost(), identity, frame_max, details);
    Client::new(session, frame_max, Weak::new())
}

fn said(properties: &FieldTable) -> ClientProperties {
    ClientProperties::of(Table::from_entries(&properties.to_entries()))
}

fn names(world: &World) -> Vec<String> {
    let listing = world.broker.admin().connections(None).expect("all vhosts");
    listing.iter().map(|connection| connection.name).collect()
}

#[test]
fn connections_are_listed_by_name_each_under_one_of_its_own() {
    let world = World::new();
    let mut first = connect(&world, "b", "guest", FieldTable::new());
    let second = connect(&world, "a", "guest", FieldTable::new());
    let third = connect(&world, "b", "guest", FieldTable::new());
    assert_eq!(names(&world), ["a", "b", "b #3"]);
    first.disconnect();
    assert_eq!(names(&world), ["a", "b #3"]);
    drop((second, third));
    assert!(names(&world).is_empty());
}

#[test]
fn the_connections_of_a_user_and_of_a_vhost_can_be_asked_for() {
    let world = World::new();
    let _one = connect(&world, "one", "anna", FieldTable::new());
    let _two = connect(&world, "two", "bert", FieldTable::new());
    let admin = world.broker.admin();
    let of_anna: Vec<String> =
        admin.connections_of_user("anna").iter().map(|connection| connection.name).collect();
    assert_eq!(of_anna, ["one"]);
    let page = admin.connections(Some("/")).expect("the vhost").page(&PageRequest::first(1));
    assert_eq!((page.items.len(), page.total), (1, 2));
    assert_eq!(admin.connections(Some("nope")).expect_err("there is none").code, 404);
}

#[test]
fn what_clients_say_of_themselves_counts_once_as_long_as_one_of_them_is_there() {
    let world = World::new();
    let said = |text: &str| FieldTable::new().with("product", text.repeat(2000).as_str());
    let used = || world.broker.memory_used_bytes();
    let plain = connect(&world, "plain", "guest", FieldTable::new());
    let before = used();
    let one = connect(&world, "one", "guest", said("x"));
    let each = used() - before;
    assert!(each > 2000, "{each}");
    let same = connect(&world, "same", "guest", said("x"));
    let other = connect(&world, "other", "guest", said("y"));
    assert!(used() < before + 3 * each - 1000, "{before}, {}", used());
    assert!(used() > before + 2 * each, "{before}, {}", used());
    drop((one, other));
    assert_eq!(used(), before + each);
    drop(same);
    assert_eq!(used(), before);
    drop(plain);
    assert!(used() < before);
}

#[test]
fn what_a_client_says_at_too_great_length_is_kept_in_part() {
    let world = World::new();
    let properties =
        FieldTable::new().with("product", "short").with("nonsense", "x".repeat(100_000).as_str());
    let _client = connect(&world, "one", "guest", properties);
    let connection = world.broker.admin().connection("one").expect("it is there");
    assert!(connection.client_properties.get("product").is_some());
    assert!(connection.client_properties.get("nonsense").is_none());
}

#[test]
fn of_what_a_client_says_at_too_great_length_the_shortest_entries_are_kept_in_their_order() {
    let text = |len: usize| "x".repeat(len);
    // Of a long one, the name and the type take eight bytes besides the text.
    let properties = FieldTable::new()
        .with("a", text(2000).as_str())
        .with("b", text(2100).as_str())
        .with("c", text(1000).as_str())
        .with("d", text(2000).as_str())
        .with("e", text(1075).as_str());
    let kept = said(&properties);
    let names = |kept: &ClientProperties| -> String {
        let table = Table::from_entries(kept.as_bytes()).to_owned().expect("well-formed");
        table.iter().map(|(name, _)| name.to_string()).collect()
    };
    assert_eq!((names(&kept).as_str(), kept.as_bytes().len()), ("ace", 4096));
    assert_eq!(names(&said(&properties.with("f", text(10).as_str()))), "cef");
    assert_eq!(names(&said(&FieldTable::new().with("a", text(5000).as_str()))), "");
    let fits = FieldTable::new().with("b", text(4000).as_str()).with("a", true);
    assert_eq!(said(&fits).as_bytes(), fits.to_entries());
}

#[test]
fn however_many_things_a_client_says_of_itself_each_is_looked_at_twice() {
    for count in [8_000, 16_000, 100_000] {
        let entries = b"\0V".repeat(count);
        let before = taken_bytes();
        let taken = cost(|| {
            let kept = ClientProperties::of(Table::from_entries(&entries));
            assert_eq!(kept.as_bytes(), &entries[..4096]);
        });
        assert_eq!(taken, 2 * count as u64);
        let allocated = taken_bytes() - before;
        assert!(allocated < 150_000, "{allocated} bytes for {count} entries");
    }
}

#[test]
fn what_is_kept_for_newcomers_raises_no_memory_alarm_and_takes_no_room_from_others() {
    let world = World::with(Limits { memory_high_bytes: 1 << 20, ..Limits::default() });
    let admin = world.broker.admin();
    let used = || admin.memory_uses().newcomers;
    let mut client = connect(&world, "one", "guest", FieldTable::new());
    let mut is_alarmed = || {
        client.session().flush(&mut Batch::default()).expect("nothing to do");
        world.broker.alarm().is_some()
    };
    let mut newcomers: Vec<Held> = (0..3).map(|_| admin.hold_for_newcomer()).collect();
    newcomers.iter_mut().for_each(|newcomer| newcomer.set(1 << 19));
    assert_eq!(used(), 3 << 19);
    assert!(!is_alarmed(), "they may be anyone");
    // They count for what they may have, a sixteenth, beside what others have.
    let most = admin.newcomers_max_bytes();
    assert_eq!(most, 1 << 16);
    let rest = (1 << 20) - world.broker.admin().memory_uses().definitions as usize;
    let others = admin.hold(rest - most);
    assert!(is_alarmed());
    drop(others);
    let others = admin.hold(rest - 3 * most);
    assert!(!is_alarmed());
    drop(others);
    client.session().hold_incomplete(1 << 20).expect("room for a message in part");
    newcomers[0].set(100);
    newcomers.pop();
    assert_eq!(used(), 100 + (1 << 19));
    drop(newcomers);
    assert_eq!(used(), 0);
}

#[test]
fn clients_that_say_the_same_of_themselves_are_shown_so_however_many_come_and_go() {
    let world = World::new();
    let properties = || FieldTable::new().with("product", "the same");
    let first = connect(&world, "one", "guest", properties());
    let _second = connect(&world, "two", "guest", properties());
    let _other = connect(&world, "three", "guest", FieldTable::new().with("product", "other"));
    drop(first);
    let _third = connect(&world, "four", "guest", properties());
    for (name, product) in [("two", "the same"), ("three", "other"), ("four", "the same")] {
        let shown = world.broker.admin().connection(name).expect("it is there").client_properties;
        assert_eq!(shown.get("product").and_then(|value| value.as_str()), Some(product), "{name}");
    }
}

#[test]
fn a_forced_close_comes_to_the_connection_as_a_fault_of_channel_0() {
    let world = World::new();
    let mut client = connect(&world, "one", "guest", FieldTable::new());
    let admin = world.broker.admin();
    admin.close_connection("one", "because").expect("it is there");
    let faults = client.session().outbox().take_faults();
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].0, faults[0].1.code), (0, 320));
    assert_eq!(faults[0].1.explanation, "because");
    assert!(client.session().outbox().take_faults().is_empty());
}

#[test]
fn channels_are_listed_with_their_modes() {
    let world = World::new();
    let mut client = connect(&world, "one", "guest", FieldTable::new());
    client.open_channel(9);
    client.confirm_select();
    client.qos_global(11);
    let channels = world.broker.admin().channels_of("one").expect("it is there");
    assert_eq!(channels.iter().map(|channel| channel.number).collect::<Vec<_>>(), [1, 9]);
    assert!(channels[0].confirms && !channels[1].confirms);
    assert_eq!((channels[0].global_prefetch, channels[0].prefetch), (11, 0));
    client.close_channel(9);
    assert_eq!(world.broker.admin().channels_of("one").expect("it is there").len(), 1);
}

#[test]
fn consumers_are_listed_by_queue_with_what_they_have_not_acknowledged() {
    let world = World::new();
    let mut client = connect(&world, "one", "guest", FieldTable::new());
    client.declare("b");
    client.declare("a");
    let tag_b = client.consume("b");
    let tag_a = client.consume_no_ack("a");
    client.fill("b", &["x", "y"]);
    let mut consumers = Vec::new();
    let admin = world.broker.admin();
    admin.for_each_consumer(Some("/"), &mut |one| consumers.push(one)).expect("the vhost");
    let shown: Vec<(String, String, bool, u32)> = consumers
        .iter()
        .map(|one| (one.queue.to_string(), one.tag.to_string(), one.ack_required, one.unacked))
        .collect();
    assert_eq!(shown, [("a".into(), tag_a, false, 0), ("b".into(), tag_b, true, 2)]);
}

#[test]
fn the_consumers_of_a_channel_are_found_without_a_look_at_those_of_others() {
    let world = World::new();
    let mut others = connect(&world, "others", "guest", FieldTable::new());
    others.declare("q");
    (0..500).for_each(|_| _ = others.consume("q"));
    let mut client = connect(&world, "one", "guest", FieldTable::new());
    client.declare("mine");
    client.open_channel(2);
    let gone = client.consume("mine");
    let mut expected = [client.consume("q"), client.consume_no_ack("mine")];
    client.consume_on(2, basic::Consume { queue: short("q"), ..Default::default() });
    client.cancel(&gone);
    let (admin, mut of_vhost, mut own) = (world.broker.admin(), Vec::new(), Vec::new());
    admin.for_each_consumer(Some("/"), &mut |one| of_vhost.push(one)).expect("the vhost");
    of_vhost.retain(|one| one.connection == "one" && one.channel == 1);
    let before = steps();
    admin.for_each_consumer_on("one", 1, &mut |one| own.push(one)).expect("it is there");
    let taken = steps() - before;
    own.sort_by_key(|one| one.queue.to_string());
    assert_eq!(own, of_vhost);
    let mut tags: Vec<String> = own.iter().map(|one| one.tag.to_string()).collect();
    tags.sort();
    expected.sort();
    assert_eq!(tags, expected);
    assert!(taken < 50, "{taken} steps beside 500 other consumers of its queue");
    let none = &mut |one| panic!("{one:?}");
    admin.for_each_consumer_on("one", 3, none).expect("the connection is there");
    assert_eq!(admin.for_each_consumer_on("two", 1, none).expect_err("none").code, 404);
}

#[test]
fn a_connection_is_found_by_its_number_without_a_view_of_others() {
    let world = World::new();
    let said = FieldTable::new().with("product", "x".repeat(200).as_str());
    let _others: Vec<_> =
        (0..300).map(|nth| connect(&world, &format!("a{nth}"), "guest", said.clone())).collect();
    let _wanted = connect(&world, "wanted", "guest", FieldTable::new());
    let admin = world.broker.admin();
    let wanted = admin.connection("wanted").expect("it is open");
    let before = taken_bytes();
    let found = admin.connection_of_id(wanted.id).expect("it is open");
    let taken = taken_bytes() - before;
    assert_eq!((found.name, found.id), (wanted.name, wanted.id));
    assert!(taken < 10_000, "{taken} bytes beside 300 others");
    assert_eq!(admin.connection_of_id(u64::MAX), None);
}

#[test]
fn the_connections_of_a_user_in_a_vhost_can_be_asked_for() {
    let world = World::new();
    let _one = connect(&world, "one", "anna", FieldTable::new());
    let _two = connect(&world, "two", "bert", FieldTable::new());
    let admin = world.broker.admin();
    admin.change_vhost("empty", |_| {}).expect("a vhost");
    let names = |vhost, user| -> Vec<String> {
        let listing = admin.connections_of(vhost, user).expect("the vhost");
        listing.iter().map(|connection| connection.name).collect()
    };
    assert_eq!(names(None, Some("anna")), ["one"]);
    assert_eq!(names(Some("/"), Some("bert")), ["two"]);
    assert_eq!(names(Some("/"), None), ["one", "two"]);
    assert!(names(Some("empty"), Some("anna")).is_empty());
    assert_eq!(admin.connections_of(Some("nope"), Some("anna")).expect_err("none").code, 404);
}
