//! Queues, exchanges, bindings and their arguments: what they take is counted, bounded and given back.

use crate::memory_bounds::world_of;
use crate::support::{Client, Heard, World, WorldOnDisk, declare_with, owned, short};
use courser_broker::admin::{NewBinding, NewQueue};
use courser_codec::{FieldTable, Table, exchange, queue};

fn with_text(bytes: usize) -> FieldTable {
    FieldTable::new().with("text", "x".repeat(bytes).as_str())
}

fn bind_with(client: &mut Client, arguments: &FieldTable) -> queue::Bind<'static> {
    // The test is over before these bytes are missed.
    let entries: &'static [u8] = Box::leak(arguments.to_entries().into());
    client.declare("q");
    let arguments = Table::from_entries(entries);
    queue::Bind { queue: short("q"), exchange: short("amq.topic"), arguments, ..Default::default() }
}

#[test]
fn queues_exchanges_and_bindings_count_with_their_arguments_until_they_go() {
    let world = World::new();
    let mut client = world.connect();
    let before = world.broker.memory_used_bytes();
    let arguments = with_text(10_000);
    declare_with(&mut client, "large", false, &arguments);
    let after_queue = world.broker.memory_used_bytes();
    assert!(after_queue > before + 10_000);
    let entries = arguments.to_entries();
    let arguments_again = Table::from_entries(&entries);
    let (exchange, kind) = (short("x"), short("topic"));
    client.call(exchange::Declare {
        exchange,
        kind,
        arguments: arguments_again,
        ..Default::default()
    });
    let after_exchange = world.broker.memory_used_bytes();
    assert!(after_exchange > after_queue + 10_000);
    let bind = bind_with(&mut client, &arguments);
    client.call(bind);
    assert!(world.broker.memory_used_bytes() > after_exchange + 10_000);
    client.delete("q");
    assert_eq!(world.broker.memory_used_bytes(), after_exchange);
    client.call(exchange::Delete { exchange, ..Default::default() });
    client.delete("large");
    assert_eq!(world.broker.memory_used_bytes(), before);
}

#[test]
fn definitions_together_are_bounded_and_may_be_made_again_when_some_have_gone() {
    let world = world_of(8_000_000);
    let mut client = world.connect();
    let arguments = with_text(20_000);
    let entries = arguments.to_entries();
    let names: Vec<String> = (0..100).map(|nth| nth.to_string()).collect();
    let declare = |name| queue::Declare {
        queue: short(name),
        arguments: Table::from_entries(&entries),
        ..Default::default()
    };
    let mut made = 0;
    let text = loop {
        let answer = client.call(declare(&names[made]));
        match answer {
            Heard::ChannelClosed(text) => break text,
            _ => made += 1,
        }
    };
    assert!((80..95).contains(&made), "{made}");
    assert_eq!(
        text,
        "406 PRECONDITION_FAILED - memory limit (2000000 bytes) of queues, exchanges and bindings reached"
    );
    assert_eq!(world.broker.alarm(), None);
    client.open_channel(1);
    client.delete("0");
    client.tell(queue::Declare { nowait: true, ..declare(&names[made]) });
    let bind = bind_with(&mut client, &with_text(30_000));
    assert!(client.refused(bind).contains("of queues, exchanges and bindings reached"));
}

#[test]
fn a_memory_limit_however_small_leaves_room_for_definitions() {
    let world = world_of(1);
    let mut client = world.connect();
    for nth in 0..300 {
        client.declare(&format!("q{nth}"));
    }
    let arguments = with_text(30_000);
    let refused = (0..40).find_map(|nth| {
        let name = format!("large{nth}");
        let entries = arguments.to_entries();
        let declare = queue::Declare {
            queue: short(&name),
            arguments: Table::from_entries(&entries),
            ..Default::default()
        };
        match client.call(declare) {
            crate::support::Heard::ChannelClosed(text) => Some(text),
            _ => None,
        }
    });
    let text = refused.expect("a refusal");
    assert!(text.contains("memory limit (1048576 bytes) of queues"), "{text}");
}

#[test]
fn arguments_that_are_too_large_are_refused() {
    let world = World::new();
    let mut client = world.connect();
    let bind = bind_with(&mut client, &with_text(40_000));
    let text = client.refused(bind);
    assert!(text.starts_with("406 PRECONDITION_FAILED - arguments of 400"), "{text}");
    assert!(text.ends_with("are larger than the maximum of 32768"), "{text}");
}

#[test]
fn arguments_that_are_too_large_for_the_log_are_refused_of_an_operator_too() {
    let mut world = WorldOnDisk::new();
    let mut client = world.connect();
    declare_with(&mut client, "q", true, &FieldTable::new());
    client.disconnect();
    world.flush();
    let (admin, arguments) = (world.broker.admin(), with_text(70_000));
    let queue = NewQueue { durable: true, arguments: arguments.clone(), ..NewQueue::default() };
    let binding = NewBinding {
        source: owned("amq.direct"),
        destination: owned("q"),
        to_queue: true,
        routing_key: owned("k"),
        arguments,
    };
    let refused = [admin.bind("/", binding).err(), admin.declare_queue("/", "new", queue).err()];
    for fault in refused {
        let explanation = fault.expect("it is refused").explanation;
        assert!(explanation.ends_with("are larger than the maximum of 32768"), "{explanation}");
    }
    drop(admin);
    world.flush();
    world.lose_power();
    assert!(world.has_queue("q"));
}
