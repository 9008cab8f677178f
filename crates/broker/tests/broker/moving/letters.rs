//! Messages that are not in their places when their vhost goes: dead letters that have not arrived anywhere, what waits for
//! another try, and what is set aside.

use super::{START_MS, V, enter, import, persistent, pieces, settings, sync};
use crate::support::{Client, WorldOnDisk, declare_with, headers};
use courser_codec::{FieldTable, FieldValue, basic};

fn send(client: &mut Client, body: &str) {
    let headers = FieldTable::new().with("x-deduplication-header", "a");
    client.send(persistent("", "q", body).headers(headers));
}

#[test]
fn a_letter_that_is_carried_takes_only_itself_along() {
    let (here, there) = (WorldOnDisk::new(), WorldOnDisk::new());
    here.broker.set_time(START_MS);
    here.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let mut client = enter(&here);
    let arguments = FieldTable::new()
        .with("x-message-deduplication", true)
        .with("x-dead-letter-exchange", "")
        .with("x-dead-letter-routing-key", "nowhere yet")
        .with("x-dead-letter-strategy", "at-least-once")
        .with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &arguments);
    send(&mut client, "letter");
    let delivery_tag = client.get("q").expect("a message").tag;
    client.tell(basic::Reject { delivery_tag, requeue: false });
    send(&mut client, "1");
    client.disconnect();
    sync(&here);
    there.broker.set_time(START_MS);
    import(&there, &pieces(&here)).expect("taken in");
    there.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut client = enter(&there);
    assert_eq!(client.pop("q").as_deref(), Some("letter"));
    send(&mut client, "the same as 1");
    assert_eq!(client.pop_all("q"), ["1"]);
    client.disconnect();
}

#[test]
fn what_waits_for_another_try_is_in_its_place_where_it_arrives() {
    let (here, there) = (WorldOnDisk::new(), WorldOnDisk::new());
    here.broker.set_time(START_MS);
    here.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let mut client = enter(&here);
    let arguments = FieldTable::new()
        .with("x-queue-type", "quorum")
        .with("x-delayed-retry-type", "failed")
        .with("x-delayed-retry-min", 60_000);
    declare_with(&mut client, "q", true, &arguments);
    ["1", "2", "3"].iter().for_each(|body| client.send(persistent("", "q", body)));
    let gone = client.get("q").expect("a message").tag;
    let delivery_tag = client.get("q").expect("a message").tag;
    client.requeue(delivery_tag);
    let delivery_tag = client.get("q").expect("a message").tag;
    client.fail_on(delivery_tag);
    client.ack(gone);
    client.disconnect();
    sync(&here);
    there.broker.set_time(START_MS);
    import(&there, &pieces(&here)).expect("taken in");
    there.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut client = enter(&there);
    let delivery = client.get("q").expect("it is ready");
    let headers = headers(&delivery);
    let count = |name| headers.get(name).and_then(FieldValue::as_integer);
    let counts = (count("x-delivery-count"), count("x-acquired-count"));
    assert_eq!((delivery.text(), counts), ("2", (Some(1), Some(2))));
    assert_eq!(client.pop_all("q"), ["3"]);
    client.disconnect();
}

#[test]
fn much_that_is_set_aside_comes_along_in_its_places() {
    let (here, there) = (WorldOnDisk::new(), WorldOnDisk::new());
    here.broker.set_time(START_MS);
    here.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let vhost = here.broker.vhost(V).expect("it was just made");
    let (mut large, mut small) = (enter(&here), here.connect_small_to(vhost, 4096));
    declare_with(&mut large, "q", true, &FieldTable::new());
    small.consume("q");
    // More than return in one go when the consumer has gone.
    let bodies: Vec<String> = (0..1500).map(|n| n.to_string()).collect();
    for body in &bodies {
        let headers = FieldTable::new().with("h", FieldValue::LongStr(vec![b'y'; 5000]));
        large.send(persistent("", "q", body).headers(headers));
    }
    large.disconnect();
    here.broker.admin().stop_vhost(V, 0).expect("it is there");
    small.disconnect();
    sync(&here);
    there.broker.set_time(START_MS);
    import(&there, &pieces(&here)).expect("taken in");
    there.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut client = enter(&there);
    assert_eq!(client.pop_all("q"), bodies);
    client.disconnect();
}
