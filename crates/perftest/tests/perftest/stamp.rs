//! Stamps in bodies.

use courser_perftest::stamp::{PRODUCERS_MAX, RUNS, STAMP_LEN, Stamp};
use proptest::prelude::*;

#[test]
fn a_body_without_room_has_no_stamp() {
    assert_eq!(Stamp::read(&[0; STAMP_LEN - 1]), None);
    assert_eq!(Stamp::read(&[]), None);
    assert!(Stamp::read(&[0; STAMP_LEN]).is_some());
}

proptest! {
    #[test]
    fn a_stamp_is_read_as_it_was_written(
        time_ns: u64,
        run in 0..RUNS,
        producer in 0..PRODUCERS_MAX,
        number in 0..1_u64 << 40,
        rest in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let stamp = Stamp { time_ns, run, producer, number };
        let body = [&stamp.to_bytes()[..], &rest].concat();
        prop_assert_eq!(Stamp::read(&body), Some(stamp));
    }
}
