//! Rights that are given and taken away while they are in use.

use crate::permissions::{give, text, world};
use crate::support::{Heard, Message};

#[test]
fn a_change_holds_at_once_for_a_route_that_was_taken_just_before() {
    let world = world();
    give(&world, &[("write", "", "x-dir"), ("read", "", "q")]);
    let mut client = world.connect_user("u");
    world.connect().bind("q", "x-dir", "k");
    for _ in 0..3 {
        client.publish("x-dir", "k", "in");
    }
    give(&world, &[("read", "", "q")]);
    let refused = client.refused_publish(Message::new("x-dir", "k", "out"));
    assert_eq!(refused, text(&("write", "exchange 'x-dir'", "x-dir")));
    assert_eq!(world.counts("q").0, 3);
    give(&world, &[("write", "", "x-dir"), ("read", "", "q")]);
    client.publish("x-dir", "k", "in");
    assert_eq!(world.counts("q").0, 4);
}

#[test]
fn a_right_that_is_taken_away_before_the_commit_refuses_the_commit() {
    let world = world();
    give(&world, &[("write", "", "amq\\.default")]);
    let mut client = world.connect_user("u");
    client.tx_select();
    client.publish("", "q", "one");
    give(&world, &[]);
    let heard = client.call(courser_codec::tx::Commit {});
    let Heard::ChannelClosed(refused) = heard else { panic!("not refused: {heard:?}") };
    assert_eq!(refused, text(&("write", "exchange 'amq.default'", "")));
    assert_eq!(world.counts("q").0, 0);
}

#[test]
fn an_impersonator_is_one_as_long_as_it_has_the_tag() {
    let world = world();
    let admin = world.broker.admin();
    give(&world, &[("write", "", "x-dir")]);
    let mut client = world.connect_user("u");
    let message = || Message::new("x-dir", "k", "").user_id("other");
    let refused = client.refused_publish(message());
    let text = "406 PRECONDITION_FAILED - user_id property set to 'other' but authenticated user \
                was 'u'";
    assert_eq!(refused, text);
    let tag = |tags: &str| {
        let tags = courser_auth::Tags::parse(tags).expect("tags");
        admin.change_user("u", |user| {
            user.tags = tags;
            Ok(())
        })
    };
    tag("impersonator").expect("changed");
    client.send(message());
    assert_eq!(client.heard(), []);
    tag("").expect("changed");
    assert_eq!(client.refused_publish(message()), text);
}
