//! What a start has to match: the names of all that is durable in a vhost, with the patterns of its policies. Clients may make no
//! more of it than a start can take its time for.
//!
//! A thread has had a microsecond of a processor here for each step that it has counted ([`steps`]).

mod adopting;
mod beside;

use crate::support::{World, WorldOnDisk, declare_with, on_a_thread, processor_time};
use courser_broker::admin::NewQueue;
use courser_broker::{
    ApplyTo, ExchangeKind, ExchangeSettings, Limits, Policy, PolicyKind, VhostSettings, steps,
};
use courser_codec::FieldTable;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What all names of a vhost may take: those of the seven exchanges that each has, and with all costly policies those of five
/// queues.
const MOST: Duration = Duration::from_millis(250);
/// As costly as a pattern may be. All of them together take a name some 20 milliseconds of this clock.
const LARGEST: &str = "^(?:a*b?){1400}[^a-z]";
const COSTLY: usize = 20;

type Event = Box<dyn FnOnce()>;

thread_local! {
    /// Happens while this thread measures something for the next time.
    static MEANWHILE: RefCell<Option<Event>> = const { RefCell::new(None) };
    static US_PER_STEP: Cell<u64> = const { Cell::new(1) };
}

fn thread_time() -> Duration {
    if let Some(event) = MEANWHILE.take() {
        event();
    }
    Duration::from_micros(steps() * US_PER_STEP.get())
}

fn limits(policy_matching_max: Duration) -> Limits {
    Limits { policy_matching_max, thread_time, ..Limits::default() }
}

fn policy(name: &str, pattern: &str, priority: i64) -> Policy {
    let (name, pattern) = (name.to_owned(), pattern.to_owned());
    let definition = FieldTable::new().with("expires", 1_000_000);
    Policy { name, pattern, apply_to: ApplyTo::All, priority, definition }
}

/// A name that none of the costly patterns matches.
fn name(nth: usize) -> String {
    format!("{nth:b}").replace('0', "a").replace('1', "b")
}

impl World {
    fn set_matched(&self, policy: Policy) -> Result<(), String> {
        let set = self.broker.set_policy("/", PolicyKind::User, policy);
        set.map(drop).map_err(|error| error.to_string())
    }

    fn clear_matched(&self, name: &str) -> Result<(), String> {
        let cleared = self.broker.clear_policy("/", PolicyKind::User, name);
        cleared.map(|there| assert!(there, "{name}")).map_err(|error| error.to_string())
    }

    fn set_all_costly(&self) {
        for nth in 0..COSTLY {
            self.set_matched(policy(&format!("costly-{nth}"), LARGEST, 0)).expect("there is room");
        }
    }

    fn declare_matched(&self, name: &str, durable: bool) -> Result<(), String> {
        let queue = NewQueue { durable, ..NewQueue::default() };
        let declared = self.broker.admin().declare_queue("/", name, queue);
        declared.map_err(|fault| format!("{} {}", fault.code, fault.explanation))
    }

    fn declare_exchange_matched(&self, name: &str) -> Result<(), String> {
        let settings = ExchangeSettings {
            kind: ExchangeKind::Direct,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: FieldTable::new(),
        };
        let declared = self.broker.admin().declare_exchange("/", name, &settings);
        declared.map_err(|fault| fault.explanation)
    }

    fn delete_matched(&self, name: &str) {
        self.broker.admin().delete_queue("/", name.as_bytes(), false, false).expect("it is there");
    }

    /// Declares queues until one is refused. Returns how many there are, and why it was.
    fn fill(&self) -> (usize, String) {
        let mut declared = 0..50;
        let refused =
            declared.find_map(|nth| Some((nth, self.declare_matched(&name(nth), true).err()?)));
        refused.expect("they are too many")
    }
}

#[test]
fn a_start_matches_no_more_names_than_clients_were_allowed_to_make() {
    let mut world = WorldOnDisk::with(limits(MOST));
    world.set_all_costly();
    let (queues, refused) = world.fill();
    assert_eq!(queues, 5);
    let expected = format!(
        "406 cannot declare queue '{}' in vhost '/': each start of the broker would take more than 250ms of a processor to match \
         all durable queues and exchanges of vhost '/' with the patterns of its policies, of which those of 'costly-0', \
         'costly-1', 'costly-10' take longest: make these simpler, or delete queues",
        name(5)
    );
    assert_eq!(refused, expected.replace("         ", ""));
    let exchange = world.declare_exchange_matched(&name(6)).expect_err("it takes as long");
    assert!(exchange.contains("each start of the broker would take more than"), "{exchange}");
    // No start finds these again.
    world.declare_matched(&name(7), false).expect("a transient queue");
    world.declare_matched(&name(0), true).expect("it is there");
    let before = steps();
    world.restart();
    let taken = steps() - before;
    assert!(taken < 300_000, "{taken} steps for a start");
    assert_eq!(world.vhost().queues().len(), queues);
    let (same, _) = world.fill();
    assert_eq!(same, queues, "what is there counts after a restart");
}

#[test]
fn what_is_deleted_gives_its_time_back() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    for _ in 0..3 {
        let (queues, _) = world.fill();
        assert_eq!(queues, 5);
        world.delete_matched(&name(2));
        world.declare_exchange_matched(&name(20)).expect("there is room for one");
        world.declare_matched(&name(2), true).expect_err("there is room for no other one");
        world.broker.admin().delete_exchange("/", name(20).as_bytes(), false).expect("it is there");
        world.declare_matched(&name(2), true).expect("there is room again");
    }
    for nth in 0..COSTLY / 2 {
        world.clear_matched(&format!("costly-{nth}")).expect("it takes less without");
    }
    assert_eq!(world.fill().0, 17, "half the policies take half the time");
}

#[test]
fn no_change_of_policies_has_a_start_match_longer() {
    let mut world = WorldOnDisk::with(limits(MOST));
    for nth in 0..10 {
        world.declare_matched(&name(nth), true).expect("there are no policies");
    }
    let set =
        |world: &World, nth: usize| world.set_matched(policy(&format!("costly-{nth}"), LARGEST, 0));
    let refused = (0..COSTLY).find_map(|nth| Some((nth, set(&world, nth).err()?)));
    let (policies, why) = refused.expect("they take too long");
    assert_eq!(policies, 14, "{why}");
    assert!(
        why.contains("of which those of 'costly-0', 'costly-1', 'costly-10' take longest"),
        "{why}"
    );
    // One that counts for all names hides the others, until it goes.
    world.set_matched(policy("all", ".*", 1)).expect("it takes no time");
    for nth in policies..COSTLY - 1 {
        set(&world, nth).expect("it is not looked for");
    }
    let refused = world.clear_matched("all").expect_err("all of them would be looked for");
    assert!(refused.contains("each start of the broker"), "{refused}");
    let in_place = world.set_matched(policy("all", "^never$", 1)).expect_err("likewise");
    assert!(in_place.contains("each start of the broker"), "{in_place}");
    world.restart();
    assert_eq!(world.vhost().policies(PolicyKind::User).len(), COSTLY);
    for nth in policies..COSTLY - 1 {
        world.clear_matched(&format!("costly-{nth}")).expect("it is not looked for");
    }
    world.clear_matched("all").expect("the others take no longer than they may");
}

#[test]
fn what_an_earlier_version_has_let_in_stays_and_may_change() {
    let mut world = WorldOnDisk::with(limits(Duration::MAX));
    world.set_all_costly();
    for nth in 0..10 {
        world.declare_matched(&name(nth), true).expect("there is no bound");
    }
    world.restart_within(limits(MOST));
    assert_eq!(world.vhost().queues().len(), 10);
    let (more, _) = world.fill();
    assert_eq!(more, 12, "an eighth may come besides");
    world.delete_matched(&name(10));
    let other = Policy {
        definition: FieldTable::new().with("expires", 7),
        ..policy("costly-3", LARGEST, 0)
    };
    world.set_matched(other).expect("it takes as long");
    world.clear_matched("costly-4").expect("it takes less without");
    world.set_matched(policy("costly-4", "^[ab]+x", 0)).expect("it takes less");
    world.restart();
    world.set_matched(policy("simple", "^orders", 1)).expect("an eighth may come besides");
}

#[test]
fn what_may_come_besides_does_not_grow_by_reloads() {
    let mut world = WorldOnDisk::with(limits(Duration::MAX));
    world.set_all_costly();
    for nth in 0..10 {
        world.declare_matched(&name(nth), true).expect("there is no bound");
    }
    world.restart_within(limits(MOST));
    assert_eq!(world.fill().0, 12, "an eighth may come besides");
    let configured = |pattern: &str| {
        let policies = vec![("/".to_owned(), PolicyKind::Operator, policy("file", pattern, 0))];
        world.broker.configure_policies(policies).expect("good policies");
    };
    for pattern in ["^x", "^x", LARGEST, "^y", "^y", LARGEST, "^x"] {
        configured(pattern);
        assert_eq!(world.fill().0, 12, "none more with {pattern}");
        world.delete_matched(&name(11));
        configured(pattern);
        assert_eq!(world.fill().0, 12, "as many as before with {pattern}");
    }
    (0..12).for_each(|nth| world.delete_matched(&name(nth)));
    world.broker.configure_policies(Vec::new()).expect("there are none");
    assert_eq!(world.fill().0, 5, "as many as anywhere");
}

#[test]
fn what_a_start_has_matched_is_matched_again_only_where_the_configuration_says_something_else() {
    let mut world = WorldOnDisk::with(limits(MOST));
    world.set_all_costly();
    world.fill();
    world.restart();
    let configure = |policies: &[(String, PolicyKind, Policy)]| {
        let before = steps();
        world.broker.configure_policies(policies.to_vec()).expect("good policies");
        steps() - before
    };
    assert!(configure(&[]) < 1000);
    let from_file = [("/".to_owned(), PolicyKind::Operator, policy("file", "^x", 0))];
    assert!(configure(&from_file) > 100_000);
    assert!(configure(&from_file) < 1000);
    assert!(configure(&[]) > 100_000);
    assert_eq!(world.fill().0, 5, "what was matched counts");
}

#[test]
fn what_another_group_has_let_in_stays_and_may_change() {
    let (here, there) = (World::with(limits(Duration::MAX)), World::with(limits(MOST)));
    let admin = here.broker.admin();
    admin.change_vhost("v", |_| ()).expect("made");
    for nth in 0..COSTLY {
        let policy = policy(&format!("costly-{nth}"), LARGEST, 0);
        admin.set_policy("v", PolicyKind::User, policy).expect("there is room");
    }
    let declare = |world: &World, nth: usize| {
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        world.broker.admin().declare_queue("v", &name(nth), queue)
    };
    (0..20).for_each(|nth| declare(&here, nth).expect("there is no bound"));
    admin.stop_vhost("v", 0).expect("it is there");
    let mut export = admin.export_vhost("v").expect("all of it can be carried");
    let admin = there.broker.admin();
    let mut import = admin.import_vhost("v", 0, &VhostSettings::default()).expect("it begins");
    while let Some(piece) = export.next_piece().expect("it can be read") {
        import.take(&piece).expect("it is taken in");
    }
    import.finish().expect("it is whole");
    admin.accept_vhost("v", None).expect("it has arrived");
    let declared = (20..50).find(|nth| declare(&there, *nth).is_err());
    assert_eq!(declared, Some(23), "an eighth may come besides");
}

/// Definitions that are imported at each start set policies that there are.
#[test]
fn a_policy_that_is_matched_as_before_is_taken_however_long_that_takes_today() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    world.fill();
    US_PER_STEP.set(2);
    let again = policy("costly-3", LARGEST, 0);
    world.set_matched(again.clone()).expect("nothing changes");
    let definition = FieldTable::new().with("expires", 7);
    world.set_matched(Policy { definition, ..again.clone() }).expect("it says something else");
    let more = Policy { priority: 1, apply_to: ApplyTo::Queues, ..again };
    world.set_matched(more).expect_err("it is matched in another order, which may take longer");
}

#[test]
fn names_that_come_while_policies_change_count_for_them() {
    let world = World::with(limits(MOST));
    for nth in 0..4 {
        world.declare_matched(&name(nth), true).expect("there are no policies");
    }
    let broker = Arc::clone(&world.broker);
    for nth in 0..COSTLY - 1 {
        world.set_matched(policy(&format!("costly-{nth}"), LARGEST, 0)).expect("there is room");
    }
    world.set_matched(policy("all", ".*", 1)).expect("it takes no time");
    // Just when it is measured what takes how long without the policy that hides the others.
    MEANWHILE.set(Some(Box::new(move || {
        on_a_thread(|| {
            let queue = NewQueue { durable: true, ..NewQueue::default() };
            for nth in 4..8 {
                let declared = broker.admin().declare_queue("/", &name(nth), queue.clone());
                declared.expect("with the policies that there are it takes no time");
            }
        });
    })));
    let refused = world.clear_matched("all").expect_err("they are too many with those that came");
    assert!(refused.contains("each start of the broker"), "{refused}");
    assert!(world.clear_matched("all").is_err(), "they still are");
    (4..8).for_each(|nth| world.delete_matched(&name(nth)));
    world.clear_matched("all").expect("now they are not");
}

/// Has this happen when this thread looks at its time once more after so many times.
fn after_looks(looks: usize, event: Event) {
    MEANWHILE.set(Some(match looks {
        0 => event,
        _ => Box::new(move || after_looks(looks - 1, event)),
    }));
}

#[test]
fn no_name_counts_twice_while_policies_are_followed() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    for nth in 0..4 {
        world.declare_matched(&name(nth), true).expect("there is room");
    }
    let broker = Arc::clone(&world.broker);
    let declared = Rc::new(Cell::new(false));
    let is_declared = Rc::clone(&declared);
    // When it ends to measure the last queue: it looks twice for each.
    let event = move || {
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        let declare = || broker.admin().declare_queue("/", &name(4), queue);
        on_a_thread(declare).expect("there is room for it all the time");
        is_declared.set(true);
    };
    after_looks(7, Box::new(event));
    let definition = FieldTable::new().with("expires", 7);
    let other = Policy { definition, ..policy("costly-3", LARGEST, 0) };
    world.set_matched(other).expect("it takes as long");
    assert!(declared.get());
    assert_eq!(world.fill().0, 5, "it has been counted");
}

#[test]
fn a_declare_of_what_is_there_counts_nothing() {
    let world = World::with(limits(MOST));
    world.set_all_costly();
    for nth in 0..4 {
        world.declare_matched(&name(nth), true).expect("there is room");
    }
    let broker = Arc::clone(&world.broker);
    let declare = move |nth: usize| {
        let queue = NewQueue { durable: true, ..NewQueue::default() };
        broker.admin().declare_queue("/", &name(nth), queue).expect("there is room for it");
    };
    // While other policies are measured that take as long, what is there is declared, and something new meanwhile.
    MEANWHILE.set(Some(Box::new(move || {
        on_a_thread(|| {
            let also = declare.clone();
            after_looks(3, Box::new(move || on_a_thread(|| also(4))));
            (0..4).for_each(&declare);
        });
    })));
    let other = Policy { apply_to: ApplyTo::Queues, ..policy("costly-3", LARGEST, 1) };
    world.set_matched(other).expect("what was there has not come again");
    assert!(world.has_queue(&name(4)));
}

/// Once more with a real clock: what these may cost would be too much by far.
#[test]
fn patterns_that_may_cost_much_and_do_not_are_no_reason_to_refuse() {
    let world = World::with(Limits { thread_time: processor_time, ..Limits::default() });
    for nth in 0..5 {
        let look_around = policy(&format!("not-orders-{nth}"), r"^(?!orders\.).*", nth);
        world.set_matched(look_around).expect("a good policy");
    }
    let mut client = world.connect();
    for nth in 0..1_000 {
        declare_with(&mut client, &format!("orders.{nth}"), true, &FieldTable::new());
    }
    world.set_matched(policy("one more", r"^(?!orders\.)", 9)).expect("a good policy");
}
