//! What does not come along with a vhost that moves, as no restart would keep it.

use super::contents::{assert_same, contents};
use super::{V, enter, export, found, import, persistent, pieces, sync};
use crate::support::{Message, WorldOnDisk};
use courser_broker::admin::LeftBehind;
use courser_codec::FieldTable;

#[test]
fn what_does_not_survive_a_restart_stays_and_is_counted() {
    let source = WorldOnDisk::new();
    found(&source);
    let mut client = enter(&source);
    client.send(persistent("", "plain", "comes"));
    let before = contents(&source);
    client.declare("passing");
    client.declare_exchange("passing", "fanout");
    client.bind("plain", "passing", "");
    client.send(persistent("", "passing", "in a queue that goes"));
    client.send(Message::new("", "plain", "transient"));
    client.send(Message::new("recent", "", "transient"));
    let headers = FieldTable::new().with("x-delay", 1000);
    client.send(Message::new("later", "a.b", "transient").headers(headers));
    client.disconnect();
    sync(&source);
    let mut export = export(&source);
    while export.next_piece().expect("it can be read").is_some() {}
    // One to "recent" is in its history and in a queue.
    let left_behind = LeftBehind { exchanges: 1, queues: 1, messages: 5, lost: 0 };
    assert_eq!(export.left_behind(), left_behind);
    assert_eq!(export.messages(), 1);
    let target = WorldOnDisk::new();
    target.broker.set_time(super::START_MS);
    import(&target, &pieces(&source)).expect("taken in");
    target.broker.admin().accept_vhost(V, None).expect("it has arrived");
    assert_same(&contents(&target), &before);
}
