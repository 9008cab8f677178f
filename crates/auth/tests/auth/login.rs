//! Logins.

use super::accounts::{change, put};
use super::passwords::foreign;
use courser_auth::{
    Accounts, Directory, Hashing, Login, LoginRefused, PasswordHash, Settings, Step, User, Verified,
};
use rustix::time::{ClockId, clock_gettime};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));

fn accounts(hashing: Hashing) -> Arc<Accounts> {
    let loopback_users = ["guest".to_owned()].into();
    let settings = Settings { loopback_users, hashing };
    Accounts::new(Directory::default(), settings)
}

fn with_user(name: &str, password: &str, hashing: Hashing) -> Arc<Accounts> {
    let accounts = accounts(Hashing::Argon2id);
    let hash = PasswordHash::new(password.as_bytes(), hashing).expect("a hash");
    put(&accounts, User::new(name, hash));
    accounts
}

fn log_in(
    accounts: &Accounts,
    name: &str,
    password: &str,
    from: IpAddr,
    now_ms: u64,
) -> Result<Login, LoginRefused> {
    match accounts.login(name.as_bytes(), password.as_bytes(), from, now_ms) {
        Step::Done(done) => done,
        Step::Verify(attempt) => accounts.finish(attempt.verify(), now_ms),
    }
}

#[test]
fn the_right_password_lets_in_and_no_other() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    log_in(&accounts, "a", "secret", THERE, 0).expect("let in");
    for (name, password) in [("a", "Secret"), ("b", "secret"), ("A", "secret"), ("a", "secret ")] {
        let refused = log_in(&accounts, name, password, THERE, 0).expect_err("refused");
        assert_eq!(refused.to_string(), format!("user '{name}' - invalid credentials"));
    }
    let blank = log_in(&accounts, "a", "", THERE, 0).expect_err("refused");
    assert_eq!(
        blank.to_string(),
        "user 'a' attempted to log in with a blank password, which is not permitted"
    );
}

#[test]
fn a_user_of_this_machine_only_is_let_in_from_here_only() {
    let accounts = with_user("guest", "guest", Hashing::Argon2id);
    log_in(&accounts, "guest", "guest", HERE, 0).expect("let in");
    let mapped: IpAddr = "::ffff:127.0.0.1".parse().expect("an address");
    log_in(&accounts, "guest", "guest", mapped, 0).expect("let in");
    let refused = log_in(&accounts, "guest", "guest", THERE, 0).expect_err("refused");
    assert_eq!(refused.to_string(), "user 'guest' can only connect via localhost");
    let wrong = log_in(&accounts, "guest", "wrong", THERE, 0).expect_err("refused");
    assert_eq!(wrong, LoginRefused::InvalidCredentials("guest".into()));
}

#[test]
fn a_password_that_was_right_just_now_costs_nothing() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    log_in(&accounts, "a", "secret", THERE, 1_000).expect("let in");
    let again = accounts.login(b"a", b"secret", THERE, 2_000);
    assert!(matches!(again, Step::Done(Ok(_))));
    let wrong = accounts.login(b"a", b"secreT", THERE, 2_000);
    assert!(matches!(wrong, Step::Verify(_)));
    let late = accounts.login(b"a", b"secret", THERE, 100_000);
    assert!(matches!(late, Step::Verify(_)));
}

#[test]
fn a_changed_password_is_no_longer_remembered() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    log_in(&accounts, "a", "secret", THERE, 0).expect("let in");
    let hash = PasswordHash::new(b"other", Hashing::Argon2id).expect("a hash");
    put(&accounts, User::new("a", hash));
    assert!(log_in(&accounts, "a", "secret", THERE, 1).is_err());
    log_in(&accounts, "a", "other", THERE, 1).expect("let in");
    change(&accounts, |all| all.delete_user("a")).expect("deleted");
    assert!(log_in(&accounts, "a", "other", THERE, 1).is_err());
}

#[test]
fn a_user_deleted_while_its_password_is_checked_is_not_let_in() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    let Step::Verify(attempt) = accounts.login(b"a", b"secret", THERE, 0) else {
        panic!("decided at once");
    };
    let verified = attempt.verify();
    change(&accounts, |all| all.delete_user("a")).expect("deleted");
    assert!(accounts.finish(verified, 0).is_err());
}

#[test]
fn an_imported_hash_is_replaced_at_the_first_good_login() {
    let sha = PasswordHash::new(b"correct horse", Hashing::RabbitSha256).expect("a hash");
    for hash in [sha, foreign()] {
        replaced_at_the_first_good_login(hash);
    }
}

fn replaced_at_the_first_good_login(imported: PasswordHash) {
    let accounts = accounts(Hashing::Argon2id);
    put(&accounts, User::new("a", imported.clone()));
    assert!(log_in(&accounts, "a", "wrong", THERE, 0).is_err());
    let login = log_in(&accounts, "a", "correct horse", THERE, 0).expect("let in");
    let rehash = |all: &Directory| Ok(accounts.rehash(all, &login).into_iter().collect());
    assert_eq!(change(&accounts, rehash).expect("kept").len(), 1);
    let directory = accounts.directory();
    let hash = &directory.user("a").expect("a user").password;
    assert_eq!(hash.algorithm(), Some("argon2id"));
    assert_ne!(*hash, imported);
    assert!(hash.verify(b"correct horse"));
    // It is not done twice, nor over a password that was changed since.
    assert!(accounts.rehash(&directory, &login).is_none());
    let again = log_in(&accounts, "a", "correct horse", THERE, 1).expect("let in");
    assert!(again.rehashed.is_none());
}

/// A login whose password has been checked and on which nothing is decided.
fn verified(accounts: &Accounts, name: &str, password: &str) -> Verified {
    match accounts.login(name.as_bytes(), password.as_bytes(), THERE, 0) {
        Step::Verify(attempt) => attempt.verify(),
        Step::Done(done) => panic!("decided at once: {done:?}"),
    }
}

#[test]
fn a_login_whose_hash_another_login_replaces_meanwhile_is_let_in() {
    let accounts = with_user("a", "secret", Hashing::RabbitSha256);
    let (first, second) = (verified(&accounts, "a", "secret"), verified(&accounts, "a", "secret"));
    let wrong = verified(&accounts, "a", "wrong");
    let first = accounts.finish(first, 0).expect("let in");
    let rehash = |login: &Login| {
        change(&accounts, |all| Ok(accounts.rehash(all, login).into_iter().collect()))
    };
    assert_eq!(rehash(&first).expect("kept").len(), 1);
    let second = accounts.finish(second, 0).expect("let in");
    assert!(accounts.still_holds(&first) && accounts.still_holds(&second));
    assert_eq!(rehash(&second).expect("nothing to do").len(), 0, "it is done once");
    let refused = accounts.finish(wrong, 0).expect_err("refused");
    assert_eq!(refused, LoginRefused::InvalidCredentials("a".into()));
}

#[test]
fn a_password_set_while_one_is_checked_is_no_failed_login() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    for _ in 0..10 {
        let right = verified(&accounts, "a", "secret");
        let hash = PasswordHash::new(b"secret", Hashing::Argon2id).expect("a hash");
        put(&accounts, User::new("a", hash));
        let undecided = accounts.finish(right, 0).expect_err("it is not known");
        assert_eq!(undecided, LoginRefused::NotChecked("a".into()));
    }
    log_in(&accounts, "a", "secret", THERE, 0).expect("it need not wait");
}

#[test]
fn imported_hashes_stay_where_they_are_to_be_exported_again() {
    let accounts = accounts(Hashing::RabbitSha256);
    let hash = PasswordHash::new(b"secret", Hashing::RabbitSha256).expect("a hash");
    put(&accounts, User::new("a", hash));
    let login = log_in(&accounts, "a", "secret", THERE, 0).expect("let in");
    assert!(login.rehashed.is_none());
}

#[test]
fn the_user_of_a_file_is_let_in_at_no_cost() {
    let mut directory = Directory::default();
    let mut user = User::new("file", PasswordHash::quick(b"secret").expect("a hash"));
    user.loopback_only = true;
    directory.add_file_user(user).expect("a user");
    let accounts = Accounts::new(directory, Settings::default());
    assert!(matches!(accounts.login(b"file", b"secret", HERE, 0), Step::Done(Ok(_))));
    let outside = accounts.login(b"file", b"secret", THERE, 0);
    assert!(matches!(outside, Step::Done(Err(LoginRefused::LoopbackOnly(_)))));
    assert!(matches!(accounts.login(b"file", b"wrong", HERE, 0), Step::Verify(_)));
}

#[test]
fn who_fails_too_often_waits_and_others_do_not() {
    let accounts = with_user("a", "secret", Hashing::Argon2id);
    for _ in 0..5 {
        let refused = log_in(&accounts, "a", "wrong", THERE, 0).expect_err("refused");
        assert_eq!(refused, LoginRefused::InvalidCredentials("a".into()));
    }
    // The password is not even looked at.
    let refused = log_in(&accounts, "a", "secret", THERE, 0).expect_err("refused");
    assert_eq!(refused, LoginRefused::Wait { user: "a".into(), wait_ms: 1_000 });
    let elsewhere = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 10));
    log_in(&accounts, "a", "secret", elsewhere, 0).expect("let in");
    log_in(&accounts, "a", "secret", THERE, 1_000).expect("let in");
}

/// What this thread has had of a processor: the same however busy the machine is.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().expect("seconds"), time.tv_nsec.try_into().expect("less"))
}

/// Unknown users, imported hashes that cost less, users without a password and passwords that are too long all cost
/// one slow hash.
#[test]
fn every_refused_password_takes_the_same_time() {
    let accounts = with_user("argon", "secret", Hashing::Argon2id);
    let sha = PasswordHash::new(b"secret", Hashing::RabbitSha256).expect("a hash");
    put(&accounts, User::new("sha", sha));
    put(&accounts, User::new("none", PasswordHash::none()));
    put(&accounts, User::new("cheap", foreign()));
    let long = "x".repeat(2000);
    let cases = [
        ("argon", "wrong"),
        ("stranger", "wrong"),
        ("sha", "wrong"),
        ("none", "x"),
        ("cheap", "wrong"),
        ("argon", &long),
    ];
    let best = cases.map(|(name, password)| {
        let times = (0..5).map(|_| {
            let before = processor_time();
            assert!(log_in(&accounts, name, password, HERE, 0).is_err());
            processor_time() - before
        });
        times.min().unwrap_or(Duration::MAX)
    });
    let (least, most) = (best.iter().min(), best.iter().max());
    // Without a hash computed for nothing the least would be a thousandth of the most.
    assert!(
        least.expect("times").as_secs_f64() * 4.0 > most.expect("times").as_secs_f64(),
        "{best:?}"
    );
}

/// Such as the owner of a certificate: no password is asked for, all else holds.
#[test]
fn a_user_that_is_vouched_for_needs_no_password() {
    let accounts = with_user("a", "secret", Hashing::RabbitSha256);
    put(&accounts, User::new("none", PasswordHash::none()));
    for name in ["a", "none"] {
        let login = accounts.login_vouched(name, THERE).expect("let in");
        assert_eq!(login.user.name, name);
        // There was no password that a stronger hash could be made of.
        assert!(login.rehashed.is_none());
    }
    let refused = accounts.login_vouched("stranger", THERE).expect_err("there is none");
    assert_eq!(refused, LoginRefused::InvalidCredentials("stranger".into()));
}

#[test]
fn a_user_that_is_vouched_for_comes_from_where_it_may_come_from() {
    let accounts = with_user("guest", "guest", Hashing::RabbitSha256);
    accounts.login_vouched("guest", HERE).expect("let in");
    let refused = accounts.login_vouched("guest", THERE).expect_err("refused");
    assert_eq!(refused, LoginRefused::LoopbackOnly("guest".into()));
}
