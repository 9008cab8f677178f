//! What it costs to take in a vhost, counted in steps.

use super::{V, enter, import, persistent, pieces, settings, sync};
use crate::frame_costs::cost;
use crate::support::{WorldOnDisk, declare_with};
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
