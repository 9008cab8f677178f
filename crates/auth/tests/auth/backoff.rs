//! Waiting after refused logins.

use courser_auth::Backoff;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MINUTE_MS: u64 = 60_000;

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

#[test]
fn waits_double_up_to_a_minute() {
    let mut backoff = Backoff::default();
    let mut waits = Vec::new();
    for _ in 0..13 {
        backoff.failed(address(1), b"a", 0);
        waits.push(backoff.wait_ms(address(1), b"a", 0));
    }
    let wanted = [0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000];
    assert_eq!(waits, wanted);
    assert_eq!(backoff.wait_ms(address(1), b"a", 59_999), 1);
    assert_eq!(backoff.wait_ms(address(1), b"a", 60_000), 0);
}

#[test]
fn a_good_login_ends_it_and_so_does_time() {
    let mut backoff = Backoff::default();
    for _ in 0..9 {
        backoff.failed(address(1), b"a", 0);
        backoff.failed(address(2), b"a", 0);
    }
    backoff.succeeded(address(1), b"a");
    backoff.failed(address(1), b"a", 0);
    assert_eq!(backoff.wait_ms(address(1), b"a", 0), 0);
    backoff.failed(address(2), b"a", 700_000);
    assert_eq!(backoff.wait_ms(address(2), b"a", 700_000), 0);
}

#[test]
fn one_user_does_not_wait_for_anothers_failures_nor_for_those_elsewhere() {
    let mut backoff = Backoff::default();
    for _ in 0..9 {
        backoff.failed(address(1), b"a", 0);
    }
    assert!(backoff.wait_ms(address(1), b"a", 0) > 0);
    assert_eq!(backoff.wait_ms(address(1), b"b", 0), 0);
    assert_eq!(backoff.wait_ms(address(2), b"a", 0), 0);
}

#[test]
fn guessing_names_makes_an_address_wait_too() {
    let mut backoff = Backoff::default();
    for number in 0..60 {
        backoff.failed(address(1), format!("user{number}").as_bytes(), 0);
    }
    assert!(backoff.wait_ms(address(1), b"another", 0) > 0);
    assert_eq!(backoff.wait_ms(address(2), b"another", 0), 0);
}

#[test]
fn names_that_are_guessed_again_and_again_make_an_address_wait_each_time() {
    let mut backoff = Backoff::default();
    for minute in 0..100 {
        for number in 0..12 {
            backoff.failed(address(1), format!("user{number}").as_bytes(), minute * MINUTE_MS);
        }
    }
    assert_eq!(backoff.wait_ms(address(1), b"another", 99 * MINUTE_MS), MINUTE_MS);
}

#[test]
fn a_client_that_fails_for_ever_makes_no_other_user_of_its_address_wait() {
    let mut backoff = Backoff::default();
    for minute in 0..1_000 {
        let now_ms = minute * MINUTE_MS;
        backoff.failed(address(1), b"old", now_ms);
        // Others make mistakes now and then.
        backoff.failed(address(1), format!("user{minute}").as_bytes(), now_ms);
        assert_eq!(backoff.wait_ms(address(1), b"another", now_ms), 0, "after {minute} minutes");
    }
    assert_eq!(backoff.wait_ms(address(1), b"old", 999 * MINUTE_MS), MINUTE_MS);
}

#[test]
fn good_logins_of_a_user_end_what_its_failures_count_at_its_address() {
    let mut backoff = Backoff::default();
    for second in 0..1_000 {
        backoff.failed(address(1), b"a", second * 1_000);
        backoff.succeeded(address(1), b"a");
        assert_eq!(backoff.wait_ms(address(1), b"another", second * 1_000), 0, "{second}");
    }
}

#[test]
fn a_client_with_many_addresses_is_one_client() {
    let mut backoff = Backoff::default();
    for last in 0..9 {
        let from = Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 0, 0, 0, last);
        backoff.failed(IpAddr::V6(from), b"a", 0);
    }
    let next = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 9, 9, 9, 9));
    assert!(backoff.wait_ms(next, b"a", 0) > 0);
    let neighbour = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 2, 9, 9, 9, 9));
    assert_eq!(backoff.wait_ms(neighbour, b"a", 0), 0);
}

#[test]
fn a_clock_that_is_set_back_does_not_make_anyone_wait_longer() {
    let mut backoff = Backoff::default();
    for _ in 0..9 {
        backoff.failed(address(1), b"a", 1_000_000);
    }
    assert_eq!(backoff.wait_ms(address(1), b"a", 500_000), 0);
    for number in 0..60 {
        backoff.failed(address(1), format!("user{number}").as_bytes(), 500_000);
    }
    assert_eq!(backoff.wait_ms(address(1), b"another", 500_000), MINUTE_MS);
}

#[test]
fn what_is_remembered_is_bounded_and_the_newest_stays() {
    let mut backoff = Backoff::default();
    for number in 0..40_000_u32 {
        let from = IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + number));
        backoff.failed(from, b"a", u64::from(number));
    }
    for _ in 0..9 {
        backoff.failed(address(1), b"a", 40_000);
    }
    assert!(backoff.wait_ms(address(1), b"a", 40_000) > 0);
}

proptest! {
    #[test]
    fn this_machine_never_waits(failures in 0_usize..300, last in any::<u8>(), at in any::<u64>()) {
        let mut backoff = Backoff::default();
        let here = IpAddr::V4(Ipv4Addr::new(127, 0, 0, last));
        for _ in 0..failures {
            backoff.failed(here, b"admin", at);
            backoff.failed(address(last), b"admin", at);
        }
        prop_assert_eq!(backoff.wait_ms(here, b"admin", at), 0);
        prop_assert_eq!(backoff.wait_ms(IpAddr::V6(Ipv6Addr::LOCALHOST), b"admin", at), 0);
    }

    #[test]
    fn no_wait_is_longer_than_a_minute(
        events in proptest::collection::vec((0_u8..4, 0_u64..1_000_000), 0..200),
    ) {
        let mut backoff = Backoff::default();
        for (who, at) in &events {
            backoff.failed(address(*who), b"a", *at);
        }
        for (who, at) in events {
            prop_assert!(backoff.wait_ms(address(who), b"a", at) <= 60_000);
        }
    }
}
