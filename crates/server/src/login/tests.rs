use super::*;
use crate::config::{AuthHttp, OAuth, SigningKey};
use courser_auth::{AccountError, Directory, Hashing, PasswordHash, Settings, User};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::io::Write as _;
use std::task::{Context, Waker};
use std::time::SystemTime;

#[tokio::test]
async fn guesses_at_the_same_time_count_like_guesses_in_a_row() {
    let settings = Settings { hashing: Hashing::RabbitSha256, ..Settings::default() };
    let accounts = Accounts::new(Directory::default(), settings);
    let made = accounts.change(
        |all| Ok(vec![all.create_user(User::new("u", PasswordHash::quick(b"right")?))?]),
        |_| Ok::<(), AccountError>(()),
    );
    made.expect("a user");
    let logins = Arc::new(Logins::new(&accounts, Elsewhere::default(), Clock::system()));
    let guess = |password: &'static [u8]| {
        let logins = Arc::clone(&logins);
        let from = IpAddr::from([192, 0, 2, 1]);
        tokio::spawn(async move { logins.log_in(b"u", password, from).await })
    };
    let guesses: Vec<_> = (0..50).map(|_| guess(b"wrong")).collect();
    let mut checked = 0;
    for one in guesses {
        match one.await.expect("an answer") {
            Err(LoginRefused::InvalidCredentials(_)) => checked += 1,
            refused => assert!(matches!(refused, Err(LoginRefused::Wait { .. }))),
        }
    }
    // Each more needs a second on the clock, then two, and so on.
    assert!((5..10).contains(&checked), "{checked}");
}

#[tokio::test]
async fn a_guess_whose_client_leaves_before_it_is_checked_counts() {
    // One that can't be reached lets no user in.
    for program in [None, Some(silent_program())] {
        let settings = Settings { hashing: Hashing::RabbitSha256, ..Settings::default() };
        let accounts = Accounts::new(Directory::default(), settings);
        set_password(&accounts, b"right");
        let elsewhere = Elsewhere { program, ..Elsewhere::default() };
        let logins = Logins::new(&accounts, elsewhere, Clock::system());
        for _ in 0..5 {
            let mut guess = Box::pin(logins.log_in(b"u", b"wrong", AFAR));
            let mut context = Context::from_waker(Waker::noop());
            assert!(guess.as_mut().poll(&mut context).is_pending());
            drop(guess);
            // The check has ended when the user's next one may begin.
            drop(logins.checks.turns.take(AFAR, b"u").await.expect("a turn"));
        }
        let refused = logins.log_in(b"u", b"wrong", AFAR).await;
        assert!(matches!(refused, Err(LoginRefused::Wait { .. })), "{refused:?}");
    }
}

/// A program that can't be reached.
fn silent_program() -> Arc<HttpUsers> {
    let settings = AuthHttp { user_path: "http://127.0.0.1:1/".to_owned(), ..AuthHttp::default() };
    HttpUsers::new(&settings, 1).expect("a thread")
}

#[tokio::test]
async fn logins_that_a_program_does_not_answer_keep_no_own_user_out_and_guesses_at_own_users_count()
{
    let settings = Settings { hashing: Hashing::RabbitSha256, ..Settings::default() };
    let accounts = Accounts::new(Directory::default(), settings);
    set_password(&accounts, b"right");
    // One whose password the program knows.
    let passwordless =
        |all: &Directory| Ok(vec![all.create_user(User::new("named", PasswordHash::none()))?]);
    accounts.change(passwordless, |_| Ok::<(), AccountError>(())).expect("a user");
    let elsewhere = Elsewhere { program: Some(silent_program()), ..Elsewhere::default() };
    let logins = Logins::new(&accounts, elsewhere, Clock::of(|| 1_000_000));
    let unanswered = async |user: &[u8]| {
        let refused = logins.log_in(user, b"wrong", AFAR).await;
        assert!(matches!(refused, Err(LoginRefused::NotAnswered { .. })), "{refused:?}");
    };
    // More than an address may fail.
    for _ in 0..30 {
        unanswered(b"elsewhere").await;
        unanswered(b"named").await;
    }
    logins.log_in(b"u", b"right", AFAR).await.expect("let in");
    for _ in 0..5 {
        unanswered(b"u").await;
    }
    let refused = logins.log_in(b"u", b"right", AFAR).await;
    assert!(matches!(refused, Err(LoginRefused::Wait { .. })), "{refused:?}");
}

/// Sets a user's password, by a hash of its own.
fn set_password(accounts: &Accounts, password: &[u8]) {
    let hash = PasswordHash::new(password, Hashing::RabbitSha256).expect("a hash");
    let set = |user: &mut User| {
        user.password = hash;
        Ok(())
    };
    let changed =
        accounts.change(|all| Ok(vec![all.put_user("u", set)?]), |_| Ok::<(), AccountError>(()));
    changed.expect("a user");
}

// On one thread, so nothing is decided before the password is set.
#[tokio::test]
async fn a_password_that_is_set_while_it_is_checked_is_checked_again() {
    for (set, is_let_in) in [(b"right", true), (b"other", false)] {
        let accounts = Accounts::new(Directory::default(), Settings::default());
        set_password(&accounts, b"right");
        let logins = Logins::new(&accounts, Elsewhere::default(), Clock::system());
        let mut login = Box::pin(logins.log_in(b"u", b"right", AFAR));
        let mut context = Context::from_waker(Waker::noop());
        assert!(login.as_mut().poll(&mut context).is_pending());
        set_password(&accounts, set);
        let decided = login.await;
        assert_eq!(decided.is_ok(), is_let_in, "{decided:?}");
    }
}

const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const STRANGER: &[u8] = b"fedcba9876543210fedcba9876543210";

/// Lets clients in that bring a token that is signed with [`SECRET`].
fn with_tokens() -> Logins {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(SECRET).expect("a secret");
    let key = SigningKey {
        id: "k".to_owned(),
        file: file.path().to_owned(),
        algorithm: "HS256".to_owned(),
    };
    let settings = OAuth {
        resource_server_id: "mq".to_owned(),
        signing_keys: vec![key],
        algorithms: vec!["HS256".to_owned()],
        ..OAuth::default()
    };
    let tokens = Some(Tokens::new(&settings).expect("a good key"));
    let accounts = Accounts::new(Directory::default(), Settings::default());
    Logins::new(&accounts, Elsewhere { tokens, ..Elsewhere::default() }, Clock::system())
}

/// A token with this claim that ends in so many seconds.
fn token(secret: &[u8], nth: usize, seconds: i64) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    let expires = i64::try_from(now.as_secs()).expect("a time") + seconds;
    let claims: Value = json!({ "sub": "alice", "aud": "mq", "exp": expires, "nth": nth });
    let header = Header { kid: Some("k".to_owned()), ..Header::new(Algorithm::HS256) };
    encode(&header, &claims, &EncodingKey::from_secret(secret)).expect("a token").into_bytes()
}

const AFAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

#[tokio::test]
async fn bad_tokens_of_others_at_an_address_do_not_delay_a_good_one() {
    let logins = with_tokens();
    let good = token(SECRET, 0, 600);
    for nth in 0..20 {
        let refused = logins.log_in(b"", &token(STRANGER, nth, 600), AFAR).await;
        assert!(matches!(refused, Err(LoginRefused::Elsewhere { .. })), "{refused:?}");
        let refused = logins.log_in(b"", format!("no token {nth}").as_bytes(), AFAR).await;
        assert!(matches!(refused, Err(LoginRefused::InvalidCredentials(_))), "{refused:?}");
        logins.log_in(b"", &good, AFAR).await.expect("let in");
    }
}

#[tokio::test]
async fn a_token_that_is_tried_again_and_again_is_delayed_and_so_are_guesses_of_many() {
    let logins = with_tokens();
    let bad = token(STRANGER, 0, 600);
    for _ in 0..5 {
        logins.log_in(b"", &bad, AFAR).await.expect_err("refused");
    }
    let refused = logins.log_in(b"", &bad, AFAR).await;
    let Err(LoginRefused::Wait { user, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(user, "", "no log shows the token");
    for nth in 1..50 {
        logins.log_in(b"", &token(STRANGER, nth, 600), AFAR).await.expect_err("refused");
    }
    let refused = logins.log_in(b"", &token(STRANGER, 50, 600), AFAR).await;
    assert!(matches!(refused, Err(LoginRefused::Wait { .. })), "{refused:?}");
}

#[tokio::test]
async fn a_token_that_has_expired_is_no_guess() {
    let logins = with_tokens();
    let expired = token(SECRET, 0, -60);
    for _ in 0..60 {
        let refused = logins.log_in(b"", &expired, AFAR).await;
        assert!(matches!(refused, Err(LoginRefused::Elsewhere { .. })), "{refused:?}");
    }
    logins.log_in(b"", &token(SECRET, 0, 600), AFAR).await.expect("let in");
}
