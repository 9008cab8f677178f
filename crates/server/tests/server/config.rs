//! Settings: defaults, a file over them, the environment over both, and what is said of mistakes.

use courser::{Config, ConfigError, TEMPLATE};
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

pub fn load(file: Option<&str>, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = file.map(|text| written(&folder, text));
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Config::load(path.as_deref(), environment.iter().map(owned))
}

fn written(folder: &TempDir, text: &str) -> PathBuf {
    let path = folder.path().join("courser.yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

pub fn loaded(file: &str) -> Config {
    load(Some(file), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said of a file.
pub fn refused(file: &str) -> String {
    let error = load(Some(file), &[]).expect_err("a mistake").to_string();
    assert!(error.contains("courser.yaml: "), "names the file: {error}");
    error
}

/// What is said of a variable.
pub fn refused_variable(name: &str, value: &str) -> String {
    let error = load(None, &[(name, value)]).expect_err("a mistake").to_string();
    assert!(error.starts_with(&format!("{name}: ")), "names the variable: {error}");
    error
}

/// All keys of a tree, as paths.
fn keys(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
    match value.as_object() {
        None => found.push(path.to_owned()),
        Some(section) => {
            for (key, value) in section {
                keys(value, &format!("{path}/{key}"), found);
            }
        }
    }
}

#[test]
fn the_template_has_every_key_with_its_default() {
    assert_eq!(loaded(TEMPLATE), Config::default());
    let written: serde_json::Value = serde_saphyr::from_str(TEMPLATE).expect("YAML");
    let defaults = serde_json::to_value(Config::default()).expect("JSON");
    let (mut documented, mut existing) = (Vec::new(), Vec::new());
    keys(&written, "", &mut documented);
    keys(&defaults, "", &mut existing);
    documented.sort();
    existing.sort();
    assert_eq!(documented, existing);
}

#[test]
fn without_a_file_everything_has_its_default() {
    assert_eq!(load(None, &[]).expect("fine"), Config::default());
    for nothing in ["", "# only a comment\n", "---\n", "null\n"] {
        assert_eq!(loaded(nothing), Config::default(), "{nothing:?}");
    }
}

#[test]
fn a_file_that_names_one_key_keeps_all_other_defaults() {
    let mut expected = Config::default();
    expected.amqp.heartbeat_s = 7;
    assert_eq!(loaded("amqp:\n  heartbeat_s: 7\n"), expected);
    let mut expected = Config::default();
    expected.log.level = "debug".to_owned();
    assert_eq!(loaded("log: {level: debug}\namqp:\n"), expected);
    let expected =
        Config { listen: vec!["[::1]:1234".parse().expect("an address")], ..Config::default() };
    assert_eq!(loaded("listen: ['[::1]:1234']"), expected);
}

#[test]
fn an_unknown_key_is_refused_and_the_nearest_one_named() {
    for (file, key, nearest) in [
        ("amqp:\n  hartbeat_s: 7\n", "amqp.hartbeat_s", "heartbeat_s"),
        ("amqp:\n  heartbeat: 7\n", "amqp.heartbeat", "heartbeat_s"),
        ("ampq:\n  heartbeat_s: 7\n", "ampq", "amqp"),
        ("data-dir: /tmp\n", "data-dir", "data_dir"),
        ("limits: {queue_max: 7}\n", "limits.queue_max", "queues_max"),
    ] {
        let error = refused(file);
        let expected = format!("unknown key '{key}'; did you mean '{nearest}'?");
        assert!(error.ends_with(&expected), "{error}");
    }
}

#[test]
fn a_key_like_no_other_is_refused_with_all_there_are() {
    let error = refused("auth:\n  zzzzzzzzzzzz: 1\n");
    assert!(
        error.ends_with("'auth.zzzzzzzzzzzz'; there are anonymous_user, loopback_only, loopback_users, password, password_hashing, user")
            || error.contains("'auth.zzzzzzzzzzzz'; there are user, password, loopback_only, "),
        "{error}"
    );
}

#[test]
fn a_bad_value_is_refused_with_its_file_and_key() {
    for (file, key) in [
        ("amqp: {channel_max: 70000}", "amqp.channel_max"),
        ("amqp: {heartbeat_s: often}", "amqp.heartbeat_s"),
        ("limits:\n  queues_max: -1\n", "limits.queues_max"),
        ("auth: {loopback_only: 7}", "auth.loopback_only"),
        ("listen: [nowhere]", "listen"),
        ("amqp: {frame_max: 4095}", "amqp.frame_max"),
        ("amqp: {frame_max: 16777217}", "amqp.frame_max"),
        ("amqp: {channel_max: 0}", "amqp.channel_max"),
        ("amqp: {max_message_bytes: 536870913}", "amqp.max_message_bytes"),
        ("amqp: {handshake_timeout_ms: 0}", "amqp.handshake_timeout_ms"),
        ("listen: []", "listen"),
        ("log: {level: loud}", "log.level names the level 'loud'"),
        ("log: {level: 'info,courser=verbose'}", "log.level names the level 'verbose'"),
        ("log: {level: ''}", "log.level"),
        ("auth: {user: ''}", "auth.user"),
        ("auth: {password_hashing: md5}", "auth.password_hashing"),
    ] {
        let error = refused(file);
        assert!(error.contains(key), "{file}: {error}");
    }
}

#[test]
fn a_file_that_is_no_mapping_or_no_yaml_or_not_there_is_refused() {
    assert!(refused("just text").contains("mapping"));
    refused("- a\n- list\n");
    refused("amqp: {heartbeat_s: 1\n");
    assert!(refused("amqp: 7").contains("'amqp' is a section"));
    assert!(refused("log:\n  level:\n    deep: 1\n").contains("log.level"));
    let error = Config::load(Some("/no/such/file.yaml".as_ref()), []).expect_err("a mistake");
    assert!(error.to_string().starts_with("/no/such/file.yaml: "), "{error}");
}

#[test]
fn the_environment_sets_every_key_without_a_file() {
    let config = load(
        None,
        &[
            ("COURSER_LISTEN", "127.0.0.1:1, [::1]:2"),
            ("COURSER_DATA_DIR", "/data"),
            ("COURSER_AUTH_USER", "me"),
            ("COURSER_AUTH_LOOPBACK_ONLY", "no"),
            ("COURSER_AMQP_CHANNEL_MAX", "3"),
            ("COURSER_AMQP_HANDSHAKE_TIMEOUT_MS", " 400 "),
            ("COURSER_LIMITS_MEMORY_HIGH_BYTES", "5000000000"),
            ("COURSER_LOG_LEVEL", "info,courser=debug"),
        ],
    )
    .expect("fine");
    let mut expected = Config::default();
    let addresses = ["127.0.0.1:1", "[::1]:2"];
    expected.listen = addresses.map(|one| one.parse::<SocketAddr>().expect("one")).into();
    expected.data_dir = "/data".into();
    expected.auth.user = "me".into();
    expected.auth.loopback_only = false;
    expected.amqp.channel_max = 3;
    expected.amqp.handshake_timeout_ms = 400;
    expected.limits.memory_high_bytes = 5_000_000_000;
    expected.log.level = "info,courser=debug".into();
    assert_eq!(config, expected);
}

#[test]
fn every_key_can_be_set_by_its_variable() {
    let defaults = serde_json::to_value(Config::default()).expect("JSON");
    let mut paths = Vec::new();
    keys(&defaults, "", &mut paths);
    for path in paths {
        let name = format!("COURSER{}", path.replace('/', "_").to_uppercase());
        // A value that is wrong in whatever it is for, but for those that take any text.
        let takes_text = [
            "/data_dir",
            "/auth/user",
            "/auth/password",
            "/auth/loopback_users",
            "/auth/anonymous_user",
            "/auth_http/ca",
            "/management/load_definitions",
            "/management/audit_log",
        ];
        // Without cluster.listen, which the command line may give, it is not known yet what they are for.
        let takes_no_text = ["/cluster/listen", "/cluster/groups"];
        let is_of_node = path.starts_with("/cluster/") && !takes_no_text.contains(&&*path);
        let loaded = load(None, &[(&name, "\u{1}")]);
        assert_eq!(loaded.is_ok(), is_of_node || takes_text.contains(&&*path), "{name}");
    }
}

#[test]
fn the_environment_goes_over_the_file() {
    let file = "amqp:\n  heartbeat_s: 7\n  channel_max: 9\n";
    let config = load(Some(file), &[("COURSER_AMQP_HEARTBEAT_S", "8")]).expect("fine");
    assert_eq!((config.amqp.heartbeat_s, config.amqp.channel_max), (8, 9));
}

#[test]
fn a_bad_variable_is_refused_by_its_name() {
    assert!(refused_variable("COURSER_AMQP_HEARTBEAT_S", "often").contains("often"));
    refused_variable("COURSER_AMQP_CHANNEL_MAX", "70000");
    refused_variable("COURSER_AMQP_CHANNEL_MAX", "0");
    refused_variable("COURSER_LISTEN", "nowhere");
    refused_variable("COURSER_AUTH_LOOPBACK_ONLY", "perhaps");
}

#[test]
fn a_list_of_sections_is_for_a_file_only() {
    for name in
        ["VHOSTS", "POLICIES", "OPERATOR_POLICIES", "GATEWAY_ENDPOINTS", "OAUTH_SIGNING_KEYS"]
    {
        for value in ["[{name: a}]", ""] {
            let error = refused_variable(&format!("COURSER_{name}"), value);
            assert!(error.contains("--config"), "{error}");
        }
    }
}

#[test]
fn a_log_that_could_hold_nothing_is_refused() {
    for bytes in [0, 3, 65_535] {
        let error = refused(&format!("journal: {{buffer_bytes: {bytes}}}"));
        assert!(error.contains("journal.buffer_bytes must be at least 65536"), "{error}");
    }
    loaded("journal: {buffer_bytes: 65536}");
}

#[test]
fn an_unknown_variable_is_refused_if_it_can_be_meant_for_the_broker() {
    let error = refused_variable("COURSER_AMQP_HARTBEAT_S", "7");
    assert!(error.ends_with("did you mean 'COURSER_AMQP_HEARTBEAT_S'?"), "{error}");
    let error = refused_variable("COURSER_LISTE", "127.0.0.1:1");
    assert!(error.ends_with("did you mean 'COURSER_LISTEN'?"), "{error}");
    let others = [("COURSER_FUZZ_SECONDS", "7"), ("COURSERS", "8"), ("HOME", "/root")];
    assert_eq!(load(None, &others).expect("none of ours"), Config::default());
}

#[test]
fn settings_that_belong_together_may_come_from_different_places() {
    let file = Some("tls: { listen: ['127.0.0.1:5671'] }");
    let variables = [
        ("COURSER_TLS_CERTIFICATE", "server.pem"),
        ("COURSER_TLS_KEY", "server.key"),
        ("COURSER_TLS_CLIENT_CERTIFICATES", "required"),
        ("COURSER_TLS_CLIENT_CA", "ca.pem"),
        ("COURSER_TLS_CRLS", "a.crl,b.crl"),
    ];
    let tls = load(file, &variables).expect("good settings").tls;
    assert_eq!(tls.certificate.to_str(), Some("server.pem"));
    assert_eq!(tls.crls.len(), 2);
    let said = load(file, &variables[..1]).expect_err("no key").to_string();
    assert_eq!(said, "configuration: tls.key is needed to listen with TLS");
    let said = refused_variable("COURSER_TLS_LISTEN", "127.0.0.1:5671");
    assert_eq!(said, "COURSER_TLS_LISTEN: tls.certificate is needed to listen with TLS");
}

#[test]
fn settings_for_tokens_that_would_do_nothing_are_refused() {
    let base = "oauth: { resource_server_id: mq, issuer: 'https://id.example'";
    loaded(&format!("{base} }}"));
    for (more, why) in [
        (
            ", jwks_uri: 'http://id.example/keys' }",
            "oauth.jwks_uri must be an address that begins with https://",
        ),
        (", leeway_seconds: 301 }", "oauth.leeway_seconds must be from 0 to 300"),
        (", keys_retry_seconds: 0 }", "oauth.keys_retry_seconds must be from 1 to 3600"),
        (
            ", client_scopes: x }",
            "oauth.client_scopes is for the web page's logins: set client_id too",
        ),
        (
            ", disable_basic_auth: true }",
            "oauth.disable_basic_auth is for the web page's logins: set client_id too",
        ),
        (
            ", client_id: page, token_endpoint: 'http://id.example/token' }",
            "oauth.token_endpoint must be an address that begins with https://",
        ),
        (
            ", client_id: page, authorization_params: [audience] }",
            "oauth.authorization_params must each be NAME=VALUE",
        ),
        (
            ", client_id: page, authorization_params: ['state=1'] }",
            "oauth.authorization_params must not have state: the broker sets it",
        ),
        (
            ", client_id: page, token_params: ['code=1'] }",
            "oauth.token_params must not have code: the broker sets it",
        ),
        (", algorithms: [] }", "HS256, HS384, HS512"),
        (", algorithms: [none] }", "HS256, HS384, HS512"),
        (", signing_keys: [{ id: a, file: '' }] }", "oauth.signing_keys must each name a file"),
        (
            ", signing_keys: [{ id: a, file: b }, { id: a, file: c }] }",
            "oauth.signing_keys must each have an id of its own",
        ),
        (
            ", signing_keys: [{ id: a, file: b, algorithm: HS256 }] }",
            "oauth.algorithms must name HS256 too, as a key in signing_keys does",
        ),
        (
            ", scope_aliases: [{ alias: a, scopes: [] }] }",
            "oauth.scope_aliases must each have an alias of its own, and scopes",
        ),
    ] {
        let said = refused(&format!("{base}{more}"));
        assert!(said.ends_with(why), "{said}");
    }
    let said = refused("oauth: { verify_aud: false }");
    assert!(said.contains("oauth.resource_server_id is needed"), "{said}");
    let said = refused("oauth: { resource_server_id: mq }");
    assert!(said.contains("oauth.issuer is needed, or jwks_uri, or signing_keys"), "{said}");
    let said =
        refused("oauth: { resource_server_id: mq, signing_keys: [{ id: a, file: b }], ca: c }");
    assert!(said.ends_with("oauth.ca is for issuer and jwks_uri: neither is set"), "{said}");
}

#[test]
fn settings_of_tls_that_would_do_nothing_are_refused() {
    let base = "tls: { listen: ['127.0.0.1:0'], certificate: a, key: b";
    for (more, why) in [
        (
            ", client_ca: c }",
            "tls.client_certificates must be optional or required where client_ca or crls is set",
        ),
        (
            ", client_certificates: required }",
            "tls.client_ca is needed to check the certificates of clients",
        ),
        (", handshake_timeout_ms: 0 }", "tls.handshake_timeout_ms must be at least 1"),
        (
            ", hosts: [{ names: [], certificate: a, key: b }] }",
            "tls.hosts[0].names needs at least one host name",
        ),
    ] {
        let said = refused(&format!("{base}{more}"));
        assert!(said.ends_with(why), "{said}");
    }
}

#[test]
fn settings_are_shown_without_their_secrets() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("courser.yaml");
    let text = "auth: { user: ops, password: PLANTED1, password_hashing: rabbitmq_sha256 }\n\
                gateway:\n  endpoints:\n    - socket: pull\n      bind: tcp://127.0.0.1:5555\n      queue: q\n      \
                password: PLANTED2\n      security: { mechanism: plain, users: { alice: PLANTED3 } }\n";
    std::fs::write(&path, text).expect("written");
    let config = Config::load(Some(&path), Vec::new()).expect("settings");
    let shown = config.without_secrets();
    assert!(!shown.to_string().contains("PLANTED"), "{shown}");
    assert_eq!(shown["auth"]["user"], "ops");
    assert_eq!(shown["auth"]["password"], "(removed)");
    assert_eq!(shown["auth"]["password_hashing"], "rabbitmq_sha256");
    assert_eq!(shown["gateway"]["endpoints"][0]["security"]["mechanism"], "plain");
    assert_eq!(shown["management"]["listen"], "default");
}

#[test]
fn a_node_that_other_machines_reach_needs_a_secret_or_certificates() {
    let node = |more: &str| format!("cluster:\n  listen: 10.0.0.1:5680\n{more}");
    assert!(refused(&node("")).contains("cluster.secret is needed"));
    assert!(refused(&node("  secret: short\n")).contains("at least 16 bytes"));
    assert!(loaded(&node("  secret: 0123456789abcdef\n")).cluster.is_on());
    assert!(refused(&node("  tls_key: k.pem\n")).contains("all three or none"));
    // No other machine reaches this one.
    assert!(loaded("cluster:\n  listen: 127.0.0.1:5680\n").cluster.is_on());
}

#[test]
fn addresses_of_nodes_are_hosts_with_ports() {
    for wrong in ["listen: here", "listen: 127.0.0.1:port", "listen: ':5680'"] {
        assert!(refused(&format!("cluster:\n  {wrong}\n")).contains("no host and port"), "{wrong}");
    }
    let listed = "cluster:\n  listen: localhost:5680\n  join: [localhost:5680, b]\n";
    assert!(refused(listed).contains("cluster.join 'b'"));
}

#[tokio::test]
async fn settings_of_a_node_without_its_address_are_no_broker_by_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = crate::support::config_in(&folder);
    config.cluster.join = vec!["127.0.0.1:5680".into()];
    let refused = courser::Server::start(config).await.map(drop).expect_err("a mistake");
    assert!(refused.to_string().contains("cluster.listen is needed"), "{refused}");
}
