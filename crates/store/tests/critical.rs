//! What a thread may do while others wait for it.

use courser_store::critical::{self, Section, Work};
use std::panic::{AssertUnwindSafe, catch_unwind};

const ALL: [Work; 8] = [
    Work::Gate,
    Work::Socket,
    Work::File,
    Work::Sync,
    Work::Message,
    Work::Room,
    Work::Lock,
    Work::Confirm,
];

/// What the thread may do now.
fn allowed() -> Vec<Work> {
    let may = |work: &Work| catch_unwind(|| critical::check(*work)).is_ok();
    ALL.into_iter().filter(may).collect()
}

#[test]
fn a_thread_may_do_anything_outside() {
    assert_eq!(allowed(), ALL);
    critical::assert_outside("a permission is asked for");
}

#[test]
fn each_section_allows_what_it_lists() {
    let lists: [(Section, &[Work]); 4] = [
        (Section::Gate, &[Work::Gate, Work::Message, Work::Room, Work::Lock]),
        (Section::LogThread, &[Work::File, Work::Sync, Work::Confirm]),
        (Section::GroupThread, &[Work::Socket, Work::Room, Work::Confirm]),
        (Section::Outbox, &[Work::Message]),
    ];
    for (section, list) in lists {
        let within = critical::enter(section);
        assert_eq!(allowed(), list, "{section:?}");
        let asking = || critical::assert_outside("a permission is asked for");
        assert!(catch_unwind(asking).is_err(), "{section:?}");
        drop(within);
        assert_eq!(allowed(), ALL, "behind {section:?}");
    }
}

#[test]
fn what_is_allowed_brings_its_parts_along_and_no_more() {
    let gate = critical::enter(Section::Gate);
    let reading = critical::begin(Work::Message);
    assert_eq!(allowed(), [Work::Gate, Work::File, Work::Message, Work::Room, Work::Lock]);
    drop(reading);
    assert!(!allowed().contains(&Work::File));
    // No file is read in one that allows only what is at hand.
    let outbox = critical::enter(Section::Outbox);
    let reading = critical::begin(Work::Message);
    assert_eq!(allowed(), [Work::Message]);
    drop((reading, outbox, gate));
    let thread = critical::enter(Section::LogThread);
    let confirm = critical::begin(Work::Confirm);
    // Neither a disk nor a gate, though the log itself needs its disk.
    assert_eq!(allowed(), [Work::Socket]);
    drop((confirm, thread));
    assert_eq!(allowed(), ALL);
}

#[test]
fn of_two_sections_both_have_to_allow_it() {
    let log = critical::enter(Section::LogThread);
    let passing = AssertUnwindSafe(|| drop(critical::enter(Section::Gate)));
    assert!(catch_unwind(passing).is_err(), "the thread of a log passes a gate");
    drop(log);
    let first = critical::enter(Section::Gate);
    let other = critical::enter(Section::Gate);
    drop(other);
    assert_eq!(
        allowed(),
        [Work::Gate, Work::Message, Work::Room, Work::Lock],
        "of the one that is left"
    );
    drop(first);
}
