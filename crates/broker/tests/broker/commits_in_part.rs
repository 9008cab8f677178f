//! Commits of which a queue refuses a part, as it is full.

use crate::support::{Client, Heard, Message, World, WorldOnDisk, declare_with};
use courser_broker::Batch;
use courser_broker::wire::WireBuffer;
use courser_codec::{FieldTable, tx};
use courser_store::critical::{self, Section, Work};

#[test]
fn a_commit_says_when_a_queue_has_refused_some_of_it() {
    let world = World::new();
    let mut client = world.connect();
    client.declare("other");
    for overflow in ["reject-publish", "reject-publish-dlx"] {
        let dead = FieldTable::new()
            .with("x-dead-letter-exchange", "")
            .with("x-dead-letter-routing-key", "dead");
        let arguments = dead.with("x-max-length", 1_i64).with("x-overflow", overflow);
        declare_with(&mut client, "q", false, &arguments);
        client.tx_select();
        client.publish("", "q", "fits");
        client.commit();
        client.publish("", "q", "too many");
        client.publish("", "other", "elsewhere");
        let answer = client.refused(tx::Commit);
        assert_eq!(answer, "406 PRECONDITION_FAILED - partial tx completion");
        assert_eq!(client.pop_all("q"), ["fits"]);
        assert_eq!(client.pop_all("other"), ["elsewhere"], "the rest has taken effect");
        client.delete("q");
    }
}

/// A client that has yet to commit two messages, of which the queue refuses the second.
fn with_one_too_many() -> (WorldOnDisk, Client) {
    let world = WorldOnDisk::new();
    let mut client = world.connect();
    let one_at_most = FieldTable::new().with("x-max-length", 1_i64);
    let arguments = one_at_most.with("x-overflow", "reject-publish");
    declare_with(&mut client, "q", true, &arguments);
    world.sync();
    client.tx_select();
    for text in ["fits", "too many"] {
        client.send(
            Message::new("", "q", text)
                .with_properties(|properties| properties.delivery_mode = Some(2)),
        );
    }
    (world, client)
}

#[test]
fn a_connection_is_woken_for_a_commit_in_part_that_is_durable_at_once() {
    let (world, mut client) = with_one_too_many();
    // It has looked for channels to close in this turn, and the log thread is quick.
    world.flush_after_look();
    let commit = tx::Commit {}.into();
    client.session().request(&mut Batch::default(), 1, &commit).expect("taken");
    assert!(client.is_woken());
    // Its client has not waited for the answer, and the channel is still to be closed.
    client.session().request(&mut Batch::default(), 1, &commit).expect("without effect");
    let answer = Heard::ChannelClosed("406 PRECONDITION_FAILED - partial tx completion".to_owned());
    assert_eq!(client.heard(), [answer]);
}

#[test]
fn a_commit_in_part_is_answered_when_what_was_refused_cannot_come_back() {
    let (mut world, mut client) = with_one_too_many();
    client.tell(tx::Commit {});
    assert_eq!(client.heard(), [], "nothing says yet what was refused");
    world.sync();
    let answer = Heard::ChannelClosed("406 PRECONDITION_FAILED - partial tx completion".to_owned());
    assert_eq!(client.heard(), [answer]);
    world.crash(|| client.disconnect());
    assert_eq!(world.connect().pop_all("q"), ["fits"]);
}

#[test]
fn what_follows_a_commit_in_part_is_not_answered_in_its_place() {
    let (world, mut client) = with_one_too_many();
    client.tell(tx::Commit {});
    client.publish("", "q", "next");
    client.tell(tx::Commit {});
    client.tell(tx::Rollback {});
    world.sync();
    let answer = Heard::ChannelClosed("406 PRECONDITION_FAILED - partial tx completion".to_owned());
    assert_eq!(client.heard(), [answer]);
}

#[test]
fn the_thread_of_a_log_waits_for_no_lock_for_a_commit_in_part() {
    let (world, mut client) = with_one_too_many();
    client.session().request(&mut Batch::default(), 1, &tx::Commit {}.into()).expect("taken");
    world.sync();
    let thread = critical::enter(Section::LogThread);
    let sending = critical::begin(Work::Confirm);
    assert!(!client.session().try_confirm(&mut WireBuffer::default()), "it closes no channel");
    drop((sending, thread));
    let answer = Heard::ChannelClosed("406 PRECONDITION_FAILED - partial tx completion".to_owned());
    assert_eq!(client.heard(), [answer]);
}
