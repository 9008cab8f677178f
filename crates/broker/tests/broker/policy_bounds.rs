//! How large policies may be, and what becomes of larger ones that an earlier version has kept.

use crate::support::{World, WorldOnDisk, declare_with};
use courser_broker::admin::VhostSettings;
use courser_broker::{ApplyTo, Policy, PolicyKind};
use courser_codec::{FieldTable, FieldValue};
use courser_store::Record;

fn policy(name: &str, pattern: &str, definition: FieldTable) -> Policy {
    let (name, pattern) = (name.to_owned(), pattern.to_owned());
    Policy { name, pattern, apply_to: ApplyTo::All, priority: 0, definition }
}

fn with(key: &str, value: impl Into<FieldValue>) -> FieldTable {
    FieldTable::new().with(key, value)
}

impl World {
    fn set_bounded(&self, policy: Policy) -> Result<bool, String> {
        let set = self.broker.set_policy("/", PolicyKind::User, policy);
        set.map_err(|error| error.to_string())
    }
}

#[test]
fn a_long_pattern_is_refused_before_it_is_compiled() {
    let world = World::new();
    let sized = |bytes: usize| policy("p", &"a".repeat(bytes), with("expires", 1000));
    world.set_bounded(sized(4096)).expect("it may be that long");
    let refused = world.set_bounded(sized(4097)).expect_err("too long");
    assert_eq!(refused, "pattern has 4097 bytes, and may have 4096");
    let preview = world.broker.admin().preview_policy("/", PolicyKind::User, sized(4097));
    assert_eq!(preview.expect_err("too long").to_string(), refused);
    let large = policy("p", "^([a-z]{100}){100}$", with("expires", 1000));
    let refused = world.set_bounded(large).expect_err("too large");
    assert!(refused.starts_with("pattern should be regular expression"), "{refused}");
}

#[test]
fn a_long_text_of_a_definition_is_refused() {
    let world = World::new();
    for key in [
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "queue-master-locator",
        "alternate-exchange",
        "max-age",
    ] {
        let text = |bytes: usize| match key {
            "max-age" => format!("{}1D", "0".repeat(bytes - 2)),
            _ => "x".repeat(bytes),
        };
        world.set_bounded(policy("p", "q", with(key, text(255).as_str()))).expect("short enough");
        let refused = world.set_bounded(policy("p", "q", with(key, text(256).as_str())));
        let said = format!("definition.{key} has more than 255 bytes");
        assert_eq!(refused.expect_err("too long"), said);
    }
}

#[test]
fn a_large_definition_is_refused() {
    let mut definition = FieldTable::new();
    for nth in 0..400 {
        let key = format!("key-{nth}");
        definition = definition.with(&key, "x".repeat(200).as_str());
    }
    let refused = World::new().set_bounded(policy("p", "q", definition)).expect_err("too large");
    assert_eq!(refused, "definition has more than 65536 bytes");
}

#[test]
fn the_policies_of_a_vhost_have_a_bound_together() {
    let world = World::new();
    let pattern = format!("[{}]", "a".repeat(4000));
    let set =
        |nth: usize| world.set_bounded(policy(&nth.to_string(), &pattern, with("expires", 1)));
    let (last, refused) = (0..1000)
        .find_map(|nth| set(nth).err().map(|refused| (nth, refused)))
        .expect("there is a bound");
    assert_eq!(refused, "the policies of a vhost have at most 1048576 bytes together");
    set(last - 1).expect("another one takes the place of one that is there");
    world.broker.clear_policy("/", PolicyKind::User, "0").expect("it is there");
    set(last).expect("there is room again");
}

/// A policy as a log has it that was written when policies had fewer bounds.
fn kept_policy(pattern: &str) -> Vec<u8> {
    let mut value = 0_i64.to_le_bytes().to_vec();
    value.push(ApplyTo::All as u8);
    value.extend_from_slice(&(pattern.len() as u32).to_le_bytes());
    value.extend_from_slice(pattern.as_bytes());
    let definition = with("expires", 1000);
    let definition = definition.with("dead-letter-exchange", "x".repeat(300).as_str());
    value.extend_from_slice(&definition.to_entries());
    value
}

/// The engine that backtracks takes all of these, and each matches `qqqqqqqq`.
const REFUSED: [&str; 5] = [
    "^(?#a queue(?=q))q",
    "^(q)?(?(1)q|c)",
    r"^(?<part>q+?)(?P>part)$",
    r"^((q)\2)\1",
    r"^(q)\1\1\1\1\1\1\1$",
];
const REFUSED_NAME: &str = "qqqqqqqq";

#[test]
fn a_policy_that_is_refused_now_stays_after_a_restart_and_matches_nothing() {
    for pattern in REFUSED {
        let value = kept_policy(pattern);
        let kept = Record::Defined { key: b"p\x01\x00/old", value: &value };
        let mut world = WorldOnDisk::of(&[kept]);
        for _ in 0..2 {
            let mut client = world.connect();
            declare_with(&mut client, REFUSED_NAME, true, &FieldTable::new());
            let queue = world.vhost().queue(REFUSED_NAME.as_bytes()).expect("the queue");
            assert!(queue.traits().is_none(), "{pattern}");
            assert_eq!(world.vhost().policies(PolicyKind::User)[0].pattern, pattern);
            let mut told = Vec::new();
            world.broker.for_each_refused_policy(&mut |vhost, name, why| {
                assert!(why.contains("at byte"), "{why}");
                told.push([vhost.to_owned(), name.to_owned()]);
            });
            assert_eq!(told, [["/", "old"]], "{pattern}");
            drop((client, queue));
            world.restart_from_checkpoint();
        }
        world.set_bounded(policy("old", "^q", with("expires", 1000))).expect("it can be changed");
        world.broker.for_each_refused_policy(&mut |_, _, why| panic!("{why}"));
    }
}

/// What the engine that never backtracks compiles costs little, whatever is refused in a new policy.
#[test]
fn a_policy_that_is_refused_now_goes_on_matching_if_it_needs_no_look_around() {
    for pattern in
        ["(?i)^[!-\u{10ffff}]+$".to_owned(), format!("^{}q{}", "(".repeat(21), ")".repeat(21))]
    {
        let value = kept_policy(&pattern);
        let kept = Record::Defined { key: b"p\x01\x00/old", value: &value };
        let world = WorldOnDisk::of(&[kept]);
        world.set_bounded(policy("new", &pattern, with("expires", 1))).expect_err("refused");
        world.connect().declare("q");
        let queue = world.vhost().queue(b"q").expect("the queue");
        assert_eq!(queue.traits().expect("the policy holds").expires_ms, Some(1000));
        world.broker.for_each_refused_policy(&mut |_, _, why| panic!("{why}"));
    }
}

#[test]
fn a_vhost_with_a_policy_that_is_refused_now_is_not_taken_in_and_nothing_of_it_is_kept() {
    let value = kept_policy(REFUSED[0]);
    let kept = Record::Defined { key: b"p\x01\x00vold", value: &value };
    let source = WorldOnDisk::of(&[kept]);
    let from = source.broker.admin();
    assert_eq!(from.stop_vhost("v", 0), Ok(0), "a client is in it");
    let mut export = from.export_vhost("v").expect("nothing in it that can't be carried");
    let target = WorldOnDisk::new();
    let mut import =
        target.broker.admin().import_vhost("v", 0, &VhostSettings::default()).expect("it begins");
    let before = target.log_end();
    let piece = export.next_piece().expect("it can be read").expect("a piece");
    let refused = import.take(&piece).expect_err("refused").to_string();
    assert!(refused.contains("policy 'old' of vhost 'v' has to be changed"), "{refused}");
    assert_eq!(target.log_end(), before, "it is in the log");
}

#[test]
fn larger_policies_of_an_earlier_version_hold_after_a_restart() {
    let looks = "(?!.*x.{9}y)".repeat(100);
    for pattern in [format!("^q$|{}", "a".repeat(20_000)), format!("^{looks}q")] {
        let value = kept_policy(&pattern);
        let kept = Record::Defined { key: b"p\x01\x00/old", value: &value };
        let mut world = WorldOnDisk::of(&[kept]);
        for _ in 0..2 {
            let mut client = world.connect();
            declare_with(&mut client, "q", true, &FieldTable::new());
            let queue = world.vhost().queue(b"q").expect("the queue");
            assert_eq!(queue.traits().expect("the policy holds").expires_ms, Some(1000));
            drop((client, queue));
            world.restart_from_checkpoint();
        }
        world.set_bounded(policy("old", &pattern, with("expires", 1000))).expect_err("too large");
    }
}

/// Takes thousands of steps back for a name with 80 bytes before the hyphen.
const SLOW: &str = r"^(\w*)\w*-\1$";

#[test]
fn a_name_that_takes_a_pattern_more_than_a_thousand_steps_does_not_match() {
    let world = World::new();
    world.set_bounded(policy("slow", SLOW, with("expires", 1000))).expect("good");
    let mut client = world.connect();
    for (letters, matches) in [(4, true), (80, false)] {
        let name = format!("{}-a", "a".repeat(letters));
        client.declare(&name);
        let queue = world.vhost().queue(name.as_bytes()).expect("the queue");
        assert_eq!(queue.traits().is_some(), matches, "{name}");
    }
}

#[test]
fn of_policies_of_the_same_priority_the_first_by_name_counts() {
    let world = World::new();
    world.connect().declare("q");
    let configured = ("/".to_owned(), PolicyKind::User, policy("a", "q", with("expires", 1)));
    world.broker.configure_policies(vec![configured]).expect("good policies");
    let queue = || world.broker.admin().queue("/", b"q").expect("the queue");
    let counts = || queue().policy.expect("a policy");
    assert_eq!(counts(), "a");
    for (name, first) in [("d", "d"), ("c", "c"), ("e", "c"), ("b", "b")] {
        world.set_bounded(policy(name, "q", with("expires", 1000))).expect("good");
        assert_eq!(counts(), first, "after {name}");
    }
    world
        .set_bounded(Policy { priority: 1, ..policy("z", "q", with("expires", 9)) })
        .expect("good");
    assert_eq!(counts(), "z");
    let names = world.vhost().policies(PolicyKind::User);
    let names: Vec<&str> = names.iter().map(|policy| policy.name.as_str()).collect();
    assert_eq!(names, ["b", "c", "d", "e", "z", "a"]);
}

#[test]
fn queues_declared_while_policies_change_follow_the_last_one() {
    let world = World::new();
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let world = &world;
            scope.spawn(move || {
                let mut client = world.connect();
                (0..150).for_each(|nth| client.declare(&format!("q.{thread}.{nth}")));
            });
        }
        for kind in [PolicyKind::User, PolicyKind::Operator] {
            let world = &world;
            scope.spawn(move || {
                for ms in 1..=60 {
                    let next = policy("p", "^q", with("message-ttl", ms * 10));
                    world.broker.set_policy("/", kind, next).expect("a good policy");
                }
            });
        }
    });
    let queues = world.vhost().queues();
    assert_eq!(queues.len(), 300);
    for queue in queues {
        let ttl_ms = queue.traits().and_then(|traits| traits.message_ttl_ms);
        assert_eq!(ttl_ms, Some(600), "{}", queue.name);
    }
}
