//! What it costs to take in a vhost, counted in steps.

use super::{V, enter, import, persistent, pieces, settings, sync};
use crate::frame_costs::cost;
use crate::support::{WorldOnDisk, declare_with, owned};
use courser_codec::FieldTable;

#[test]
fn a_message_that_came_back_to_many_queues_is_not_searched_for_each_of_them() {
    const QUEUES: usize = 500;
    let (here, there) = (WorldOnDisk::new(), WorldOnDisk::new());
    here.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let mut client = enter(&here);
    let names: Vec<String> = (0..QUEUES).map(|nth| format!("q{nth}")).collect();
    for name in &names {
        declare_with(&mut client, name, true, &FieldTable::new());
        client.bind(name, "amq.fanout", "");
    }
    client.send(persistent("amq.fanout", "", "x"));
    for name in &names {
        let tag = client.get(name).expect("a message").tag;
        client.requeue(tag);
    }
    client.disconnect();
    sync(&here);
    let pieces = pieces(&here);
    let taken = cost(|| import(&there, &pieces).expect("it is taken in"));
    assert!((QUEUES as u64..100 * QUEUES as u64).contains(&taken), "{taken}");
    there.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let mut client = enter(&there);
    let came_back = names.iter().filter(|name| client.get(name).is_some_and(|one| one.redelivered));
    assert_eq!(came_back.count(), QUEUES);
}

#[test]
fn queues_that_hold_no_two_do_not_read_all_headers_of_a_message_that_is_there() {
    const QUEUES: usize = 200;
    const HEADERS: usize = 5000;
    let (here, mut there) = (WorldOnDisk::new(), WorldOnDisk::new());
    here.broker.admin().change_vhost(V, |all| *all = settings()).expect("made");
    let mut client = enter(&here);
    for nth in 0..QUEUES {
        let name = format!("q{nth}");
        let arguments = FieldTable::new().with("x-message-deduplication", true);
        declare_with(&mut client, &name, true, &arguments);
        client.bind(&name, "amq.fanout", "");
    }
    let first = (owned("x-deduplication-header"), "the same".into());
    let others = (0..HEADERS).map(|nth| (owned(&format!("h{nth}")), (nth as i64).into()));
    let message = persistent("amq.fanout", "", "x");
    client.send(message.clone().headers([first].into_iter().chain(others).collect()));
    client.disconnect();
    sync(&here);
    let pieces = pieces(&here);
    let most = 50 * (QUEUES + HEADERS) as u64;
    let taken = cost(|| import(&there, &pieces).expect("it is taken in"));
    assert!((QUEUES as u64..most).contains(&taken), "{taken} to take it in");
    there.broker.admin().accept_vhost(V, None).expect("it has arrived");
    let taken = cost(|| there.restart());
    assert!((QUEUES as u64..most).contains(&taken), "{taken} to find it again");
    let mut client = enter(&there);
    let one_like_it = FieldTable::new().with("x-deduplication-header", "the same");
    client.send(message.headers(one_like_it));
    assert_eq!(client.pop_all("q0"), ["x"]);
}
