//! Messages of the broker's own for more durable queues than one record of the log can name.

use crate::delayed::{START_MS, declare_as, delayed_type, persistent, run_until};
use crate::frame_costs::large;
use crate::support::{Client, Heard, Message, Step, declare_with, short};
use courser_codec::{FieldTable, Method, basic, queue};

/// Queues that a record can name.
const QUEUES: usize = 65_535;

fn declare_and_bind(client: &mut Client, count: usize) {
    let names: Vec<String> = (0..count).map(|nth| format!("q{nth}")).collect();
    for names in names.chunks(1000) {
        let methods = names.iter().flat_map(|name| {
            let (queue, exchange) = (short(name), short("x"));
            let declare =
                queue::Declare { queue, durable: true, nowait: true, ..Default::default() };
            let bind = queue::Bind { queue, exchange, nowait: true, ..Default::default() };
            [Method::from(declare), Method::from(bind)]
        });
        let steps: Vec<_> = methods.map(|method| Step::Call(1, method)).collect();
        client.read(&steps);
    }
}

#[test]
fn a_message_of_its_own_for_too_many_durable_queues_goes_to_as_many_as_it_can() {
    let world = large();
    world.broker.set_time(START_MS);
    let mut client = world.connect();
    declare_as(&mut client, delayed_type("fanout"), true);
    let letters = FieldTable::new().with("x-dead-letter-exchange", "x");
    declare_with(&mut client, "from", true, &letters);
    declare_and_bind(&mut client, QUEUES + 2);
    let waiting = |nth: usize| world.counts(&format!("q{nth}")).0;

    let delay = FieldTable::new().with("x-delay", 1000);
    client.send(persistent(Message::new("x", "", "delayed")).headers(delay));
    assert_eq!(waiting(0), 0);
    run_until(&world, START_MS + 1000);
    let all = [0, QUEUES - 1, QUEUES, QUEUES + 1].map(waiting);
    assert_eq!(all, [1, 1, 0, 0], "those that were declared first have it");

    client.send(persistent(Message::new("", "from", "letter")));
    let tag = client.get("from").expect("it waits").tag;
    client.tell(basic::Reject { delivery_tag: tag, requeue: false });
    assert_eq!([0, QUEUES - 1, QUEUES, QUEUES + 1].map(waiting), [2, 2, 0, 0]);

    client.send(persistent(Message::new("x", "", "published")));
    let heard = client.heard();
    let is_refused =
        matches!(&heard[..], [Heard::ConnectionClosed(why)] if why.starts_with("506 "));
    assert!(is_refused, "{heard:?}");
}
