//! AMQP URIs.

use std::time::Duration;

use courser_client::{Credentials, Uri, UriError};

fn parse(text: &str) -> Uri {
    text.parse().unwrap()
}

fn error(text: &str) -> UriError {
    text.parse::<Uri>().unwrap_err()
}

fn login(user: &str, password: &str) -> Credentials {
    Credentials::Plain { user: user.into(), password: password.into() }
}

#[test]
fn every_part_has_a_default() {
    for text in ["amqp://", "amqp:///", "AMQP://localhost", "amqp://localhost:/", "amqp://guest@"] {
        let uri = parse(text);
        assert_eq!((uri.host.as_str(), uri.port, uri.is_tls), ("localhost", 5672, false), "{text}");
        assert_eq!(uri.options.virtual_host, "/", "{text}");
        assert_eq!(uri.options.credentials, login("guest", "guest"), "{text}");
    }
    assert_eq!((parse("amqps://a").port, parse("amqps://a").is_tls), (5671, true));
}

#[test]
fn every_part_can_be_percent_encoded() {
    let uri = parse("amqp://us%61er:p%40ss%3a@h%6fst:10000/v%2fhost");
    assert_eq!(uri.options.credentials, login("usaer", "p@ss:"));
    assert_eq!((uri.host.as_str(), uri.port), ("host", 10000));
    assert_eq!(uri.options.virtual_host, "v/host");
    assert_eq!(parse("amqp://h/%2f").options.virtual_host, "/");
    assert_eq!(parse("amqp://h/%e2%82%ac").options.virtual_host, "€");
}

#[test]
fn an_empty_password_is_not_a_missing_one() {
    assert_eq!(parse("amqp://me:@h").options.credentials, login("me", ""));
    assert_eq!(parse("amqp://:@h").options.credentials, login("", ""));
    assert_eq!(parse("amqp://a:b:c@d@h").options.credentials, login("a", "b:c@d"));
}

#[test]
fn addresses_of_version_6_stand_in_brackets() {
    let uri = parse("amqp://[::1]:5673/x");
    assert_eq!((uri.host.as_str(), uri.port), ("::1", 5673));
    assert_eq!(uri.address(), "[::1]:5673");
    assert_eq!(parse("amqp://[fe80::2]").port, 5672);
    assert_eq!(error("amqp://[::1"), UriError::Brackets);
    assert_eq!(error("amqp://[::1]x"), UriError::Brackets);
    assert_eq!(error("amqp://::1"), UriError::Brackets);
}

#[test]
fn the_query_sets_limits() {
    let uri = parse(
        "amqp://h/v?heartbeat=7&channel_max=9&frame_max=8192&connection_timeout=1500&connection_name=a%20b",
    );
    let options = uri.options;
    assert_eq!((options.heartbeat_s, options.channel_max, options.frame_max), (7, 9, 8192));
    assert_eq!(options.connect_timeout, Duration::from_millis(1500));
    assert_eq!(options.connection_name.as_deref(), Some("a b"));
    assert_eq!(options.virtual_host, "v");
}

#[test]
fn the_query_chooses_the_login_mechanism() {
    assert_eq!(parse("amqp://?auth_mechanism=external").options.credentials, Credentials::External);
    let amqplain = Credentials::AmqPlain { user: b"a".into(), password: b"b".into() };
    assert_eq!(parse("amqp://a:b@h?auth_mechanism=amqplain").options.credentials, amqplain);
    assert!(matches!(
        error("amqp://?auth_mechanism=md5"),
        UriError::Value { name: "auth_mechanism", .. }
    ));
}

#[test]
fn an_unknown_parameter_names_the_nearest_known_one() {
    assert_eq!(
        error("amqp://h?hartbeat=3").to_string(),
        "unknown parameter \"hartbeat\"; did you mean \"heartbeat\"?"
    );
    assert_eq!(error("amqp://h?zzz=3").to_string(), "unknown parameter \"zzz\"");
    assert_eq!(error("amqps://h?cacertfile=x"), UriError::TlsParameter("cacertfile".into()));
}

#[test]
fn what_is_no_uri_says_why() {
    assert_eq!(error("localhost"), UriError::Scheme);
    assert_eq!(error("http://localhost"), UriError::Scheme);
    assert_eq!(error("amqp://h:70000"), UriError::Port);
    assert_eq!(error("amqp://h:x"), UriError::Port);
    assert_eq!(error("amqp://h/a/b"), UriError::Path);
    assert_eq!(error("amqp://h/%2"), UriError::Percent("%2".into()));
    assert_eq!(error("amqp://h/%zz"), UriError::Percent("%zz".into()));
    assert_eq!(error("amqp://h%ff"), UriError::NotText("h%ff".into()));
    assert_eq!(error(&format!("amqp://h/{}", "v".repeat(256))), UriError::VirtualHostTooLong(256));
    assert!(matches!(error("amqp://h?heartbeat=-1"), UriError::Value { name: "heartbeat", .. }));
}

#[test]
fn no_error_shows_a_part_of_a_password() {
    for text in [
        "amqp://app:se%cret@host",
        "amqp://app:se%cret:se/cret@host",
        "amqp://app:se/cret@host",
        "amqp://app:se?cret@host",
        "amqp://app:se?cret=se@host",
        "amqp://app:1?heartbeat=secret@host",
        "amqp://app:1?auth_mechanism=secret@host",
        "amqp://app:1?hartbeat%secret@host",
        "amqp://app:se#cret@host",
        "amqp://app:se%cret#se@host",
        "amqp://app:se%ff/cret@host:x",
        "amqp://se%ret@host",
        "amqp://app:secret@host:x",
        "amqp://app:secret@host/%2",
        "amqp://app:secret@host?hartbeat=3",
        // The host is left out.
        "amqp://app:secret",
        "amqp://app:1secret/",
    ] {
        let error = error(text);
        let shown = format!("{error} {error:?}");
        let shows = ["se%", "cret", "se/", "\"se\""].into_iter().find(|part| shown.contains(part));
        assert_eq!(shows, None, "{text}: {shown}");
    }
    assert_eq!(error("amqp://app:secret@host/%2"), UriError::Percent("%2".into()));
    assert_eq!(parse("amqp://h/at@home?connection_name=a@b").options.virtual_host, "at@home");
}

#[test]
fn a_printed_uri_hides_the_password() {
    let uri = parse("amqp://me:secret@[::1]:1234/a%2Fb?heartbeat=3");
    assert_eq!(uri.to_string(), "amqp://[::1]:1234/a%2Fb");
    assert!(!format!("{uri:?}").contains("secret"));
}
