//! What becomes of the lines of a `rabbitmq.conf`.

use courser_ctl::rabbitmq_conf::{Fate, translate};
use serde_json::json;

/// What is said of the lines that have nothing here in their place.
fn not_there(text: &str) -> Vec<(usize, String)> {
    let told = translate(text).told.into_iter();
    told.filter_map(|told| match told.fate {
        Fate::NotThere(why) => Some((told.line, why)),
        _ => None,
    })
    .collect()
}

#[test]
fn addresses_of_ipv6_are_read_as_rabbitmq_writes_them() {
    for (text, address) in [
        ("5672", "0.0.0.0:5672"),
        ("127.0.0.1:5672", "127.0.0.1:5672"),
        ("localhost:5672", "127.0.0.1:5672"),
        ("::1:5672", "[::1]:5672"),
        (":::5672", "[::]:5672"),
        ("fe80::8:5672", "[fe80::8]:5672"),
        ("[::1]:5672", "[::1]:5672"),
    ] {
        let settings = translate(&format!("listeners.tcp.1 = {text}\n")).settings;
        assert_eq!(settings["listen"], json!([address]), "{text}");
    }
    let settings = translate("management.tcp.ip = ::1\n").settings;
    assert_eq!(settings["management"]["listen"], json!(["[::1]:15672"]));
}

#[test]
fn a_broker_that_is_limited_to_some_addresses_is_not_opened_to_all() {
    for text in ["nonsense", "host.example:5672", "$(ADDRESS):5672", "::1", "1:2:5672", "[::1:5672"]
    {
        let settings = translate(&format!("listeners.tcp.1 = {text}\n")).settings;
        assert_eq!(settings.get("listen"), None, "{text}");
    }
    let text = "listeners.tcp.1 = nonsense\nlisteners.tcp.2 = 127.0.0.1:5672\n";
    assert_eq!(translate(text).settings["listen"], json!(["127.0.0.1:5672"]));
    assert_eq!(translate("listeners.tcp = none\n").settings["listen"], json!([]));
    let settings = translate("heartbeat = 10\n").settings;
    assert_eq!(settings["listen"], json!(["0.0.0.0:5672"]), "RabbitMQ listens everywhere");
}

#[test]
fn passwords_that_a_file_keeps_out_are_told_of() {
    let told = not_there("auth_mechanisms.1 = EXTERNAL\n");
    assert!(
        matches!(&told[..], [(1, why)] if why.contains("may log in with passwords")),
        "{told:?}"
    );
    let both = "auth_mechanisms.1 = EXTERNAL\nauth_mechanisms.2 = AMQPLAIN\n";
    assert_eq!(not_there(both), []);
    // A later line takes the password away.
    let told = not_there("auth_mechanisms.1 = PLAIN\nauth_mechanisms.1 = EXTERNAL\n");
    assert!(matches!(&told[..], [(2, _)]), "{told:?}");
}

#[test]
fn clients_without_credentials_are_let_in_only_where_the_file_does() {
    for (text, user) in [
        ("anonymous_login_user = guest\nauth_mechanisms.1 = PLAIN\n", None),
        ("anonymous_login_user = none\nauth_mechanisms.1 = ANONYMOUS\n", None),
        ("auth_mechanisms.1 = ANONYMOUS\n", None),
        ("anonymous_login_user = guest\n", Some("guest")),
        ("auth_mechanisms.1 = ANONYMOUS\nanonymous_login_user = web\n", Some("web")),
    ] {
        let settings = translate(text).settings;
        let set = settings.pointer("/auth/anonymous_user").and_then(|user| user.as_str());
        assert_eq!(set, user, "{text}");
    }
    let told = not_there("auth_mechanisms.1 = ANONYMOUS\n");
    assert!(matches!(&told[..], [(1, why)] if why.contains("auth.anonymous_user")), "{told:?}");
    assert_eq!(not_there("anonymous_login_user = web\nauth_mechanisms.1 = ANONYMOUS\n"), []);
}

#[test]
fn users_of_its_own_that_a_file_keeps_out_are_told_of() {
    for keeps_out in [
        "auth_backends.1 = http",
        "auth_backends.1 = rabbit_auth_backend_oauth2",
        "auth_backends.1 = cache\nauth_cache.cached_backend = http",
        "auth_backends.1 = internal\nauth_backends.1 = http",
    ] {
        let told = not_there(keeps_out);
        let [(_, why)] = &told[..] else { panic!("{keeps_out}: {told:?}") };
        assert!(why.contains("the broker's own users") && why.contains("are let in too"), "{why}");
    }
    for lets_in in [
        "auth_backends.1 = http\nauth_backends.2 = internal",
        "auth_backends.1 = rabbit_auth_backend_internal\nauth_backends.2 = oauth2",
        "auth_backends.1 = cache",
        "auth_backends.1 = cache\nauth_cache.cached_backend = internal",
        "auth_backends.1.authn = internal\nauth_backends.1.authz = internal",
    ] {
        assert_eq!(not_there(lets_in), [], "{lets_in}");
    }
}

/// Lines that set how each backend is asked.
const BACKENDS: &str = "auth_http.user_path = http://127.0.0.1:8000/user\n\
                        auth_cache.cache_ttl = 5000\n\
                        auth_oauth2.resource_server_id = mq\n\
                        management.oauth_enabled = true\n\
                        management.oauth_client_id = page\n";

#[test]
fn a_backend_that_the_file_does_not_name_is_left_out() {
    for (names, http, oauth) in [
        ("", false, false),
        ("auth_backends.1 = internal\n", false, false),
        ("auth_backends.1 = internal\nauth_backends.2 = http\n", true, false),
        ("auth_backends.1 = rabbit_auth_backend_oauth2\n", false, true),
        ("auth_backends.1 = http\nauth_backends.1 = oauth2\n", false, true),
        ("auth_backends.1 = cache\n", false, false),
        ("auth_backends.1 = cache\nauth_cache.cached_backend = http\n", true, false),
        ("auth_backends.1.authn = http\nauth_backends.1.authz = http\n", true, false),
        ("auth_backends.1.authn = http\n", true, false),
    ] {
        let translated = translate(&format!("{names}{BACKENDS}"));
        let has = |section: &str| translated.settings.get(section).is_some();
        assert_eq!((has("auth_http"), has("oauth")), (http, oauth), "{names}");
        let said = translated.describe("rabbitmq.conf");
        let left_out = |backend| {
            let why = "not needed: left out, as auth_backends does not name";
            said.contains(&format!("{why} {backend}"))
        };
        assert_eq!((left_out("http"), left_out("oauth2")), (!http, !oauth), "{said}");
    }
}

#[test]
fn logins_and_permissions_that_are_asked_of_two_backends_are_told_of() {
    for (names, pair) in [
        (
            "auth_backends.1.authn = http\nauth_backends.1.authz = internal\n",
            "http for logins and internal for permissions",
        ),
        (
            "auth_backends.1.authn = internal\nauth_backends.1.authz = rabbit_auth_backend_http\n",
            "internal for logins and http for permissions",
        ),
        (
            "auth_backends.1 = cache\nauth_cache.cached_backend.authn = ldap\n\
             auth_cache.cached_backend.authz = http\n",
            "ldap for logins and http for permissions",
        ),
    ] {
        let translated = translate(&format!("{names}{BACKENDS}"));
        assert_eq!(translated.settings.get("auth_http"), None, "{names}");
        let said = translated.describe("rabbitmq.conf");
        assert!(said.contains(&format!("NOT SUPPORTED: {pair}")), "{said}");
        let why = "auth_http.user_path: NOT SUPPORTED: left out, as auth_backends names http for";
        assert!(said.contains(why), "{said}");
        let lets_own_in = said.contains("the broker's own users, whom the file keeps out");
        assert_eq!(lets_own_in, !pair.starts_with("internal"), "{said}");
    }
    let with_another =
        "auth_backends.1.authn = http\nauth_backends.1.authz = internal\nauth_backends.2 = http\n";
    let translated = translate(&format!("{with_another}{BACKENDS}"));
    assert!(translated.settings.get("auth_http").is_some(), "it is named for both, too");
}

#[test]
fn certificates_that_log_in_only_here_are_told_of() {
    let said = |text: &str| translate(text).describe("rabbitmq.conf");
    let asked = "ssl_options.verify = verify_peer\n";
    assert!(said(asked).contains("becomes tls.client_certificates (a client with a certificate"));
    let listed = said(&format!("{asked}auth_mechanisms.1 = EXTERNAL\nauth_mechanisms.2 = PLAIN\n"));
    assert!(
        listed.contains(":1: ssl_options.verify: becomes tls.client_certificates\n"),
        "{listed}"
    );
}

#[test]
fn a_line_that_is_none_shows_no_password() {
    let lines =
        ["default_pass s3cret", "default_pass = 's3cret", "a default_pass s3cret = x", "= s3cret"];
    for line in lines {
        let said = translate(line).describe("rabbitmq.conf");
        assert_eq!(said, "rabbitmq.conf:1: WRONG: expected key = value\n", "{line}");
    }
}
