//! `courser config from-rabbitmq`: what becomes of another broker's settings.

use crate::support::Process;
use courser::{Config, HttpListen};

/// The settings that a file becomes, what is said of its lines, and whether all of them could be read.
fn translated(text: &str) -> (Config, String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("rabbitmq.conf");
    std::fs::write(&file, text).expect("written");
    let output = Process::run(&["config", "from-rabbitmq", file.to_str().expect("text")]);
    let said = String::from_utf8(output.stderr).expect("text");
    let ours = folder.path().join("courser.yaml");
    std::fs::write(&ours, &output.stdout).expect("written");
    let config = Config::load(Some(&ours), Vec::new());
    (config.unwrap_or_else(|error| panic!("{error}")), said, output.status.success())
}

#[test]
fn what_is_here_is_taken_over() {
    let text = "# ours\n\
                listeners.tcp.default = 5673\n\
                listeners.tcp.other = 127.0.0.1:5674\n\
                listeners.ssl.1 = 5671\n\
                ssl_options.certfile = /etc/cert.pem # the chain\n\
                ssl_options.keyfile = '/etc/key.pem'\n\
                ssl_options.cacertfile = /etc/ca.pem\n\
                ssl_options.verify = verify_peer\n\
                ssl_options.fail_if_no_peer_cert = true\n\
                ssl_cert_login_from = common_name\n\
                default_user = ops\n\
                default_pass = s3'cret\n\
                loopback_users = none\n\
                heartbeat = 30\n\
                max_message_size = 1000000\n\
                channel_max = 100\n\
                vm_memory_high_watermark.absolute = 2GiB\n\
                management.tcp.port = 8080\n\
                management.tcp.ip = 127.0.0.1\n\
                log.console.level = warning\n\
                definitions.skip_if_unchanged = true\n\
                proxy_protocol = true\n\
                default_vhost = orders\n";
    let (config, said, is_good) = translated(text);
    assert!(is_good, "{said}");
    let addresses: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(addresses, ["0.0.0.0:5673", "127.0.0.1:5674"]);
    assert_eq!(config.tls.listen[0].to_string(), "0.0.0.0:5671");
    assert_eq!(config.tls.certificate.to_str(), Some("/etc/cert.pem"));
    assert_eq!(config.tls.client_certificates, courser::ClientCertificates::Required);
    assert_eq!((&*config.auth.user, &*config.auth.password), ("ops", "s3'cret"));
    assert!(!config.auth.loopback_only && config.auth.loopback_users.is_empty());
    assert_eq!((config.amqp.heartbeat_s, config.amqp.channel_max), (30, 100));
    assert_eq!(config.limits.memory_high_bytes, 2 << 30);
    let http = HttpListen::At(vec!["127.0.0.1:8080".parse().expect("an address")]);
    assert_eq!(config.management.listen, http);
    assert!(config.management.skip_if_unchanged);
    assert_eq!((&*config.log.level, &*config.vhosts[0].name), ("warn", "orders"));
    let everywhere: Vec<String> =
        config.tls.proxy_protocol_from.iter().map(ToString::to_string).collect();
    assert_eq!(everywhere, ["0.0.0.0/0", "::/0"]);
    assert_eq!(config.amqp.proxy_protocol_from, config.tls.proxy_protocol_from);
    assert!(said.lines().all(|line| line.contains(": becomes ")), "{said}");
    assert!(said.contains("rabbitmq.conf:14: heartbeat: becomes amqp.heartbeat_s"), "{said}");
}

#[test]
fn a_user_of_another_name_than_guest_may_come_from_everywhere_as_before() {
    let (config, said, _) = translated("default_user = admin\ndefault_pass = secret\n");
    assert!(!config.auth.loopback_only, "{said}");
    assert_eq!(config.auth.loopback_users, ["guest"], "guest itself is limited as before");
    assert!(said.contains(":1: default_user: becomes auth.user, with auth.loopback_only: false"));
    for (text, is_limited, users) in [
        ("default_user = guest\ndefault_pass = x\n", true, vec!["guest"]),
        ("default_pass = x\n", true, vec!["guest"]),
        ("default_user = admin\nloopback_users.admin = true\n", true, vec!["admin"]),
        (
            "loopback_users.admin = true\nloopback_users.guest = false\ndefault_user = admin\n",
            true,
            vec!["admin"],
        ),
        ("default_user = admin\nloopback_users.guest = true\n", false, vec!["guest"]),
        ("loopback_users.guest = false\n", false, vec![]),
    ] {
        let auth = translated(text).0.auth;
        assert_eq!(
            (auth.loopback_only, auth.loopback_users),
            (is_limited, users.iter().map(|one| (*one).to_owned()).collect()),
            "{text}"
        );
    }
}

#[test]
fn a_program_that_knows_users_is_asked_as_before() {
    let text = "auth_backends.1 = internal\n\
                auth_backends.2 = rabbit_auth_backend_http\n\
                auth_http.user_path = http://127.0.0.1:8000/auth/user\n\
                auth_http.vhost_path = http://127.0.0.1:8000/auth/vhost\n\
                auth_http.resource_path = http://127.0.0.1:8000/auth/resource\n\
                auth_http.topic_path = http://127.0.0.1:8000/auth/topic\n\
                auth_http.request_timeout = 20000\n\
                auth_cache.cache_ttl = 2500\n";
    let (config, said, is_good) = translated(text);
    assert!(is_good && !said.contains("NOT SUPPORTED"), "{said}");
    assert_eq!(config.auth_http.user_path, "http://127.0.0.1:8000/auth/user");
    assert_eq!(config.auth_http.method, courser::AuthHttpMethod::Get);
    assert_eq!((config.auth_http.timeout_ms, config.auth_http.cache_seconds), (20_000, 3));
}

#[test]
fn tokens_are_taken_as_before() {
    let text = "auth_backends.1 = rabbit_auth_backend_oauth2\n\
                auth_backends.2 = internal\n\
                auth_oauth2.resource_server_id = mq\n\
                auth_oauth2.issuer = https://id.example/realms/mq\n\
                auth_oauth2.https.cacertfile = /etc/ca.pem\n\
                auth_oauth2.https.verify = verify_peer\n\
                auth_oauth2.additional_scopes_key = realm_access.roles other\n\
                auth_oauth2.preferred_username_claims.1 = user_name\n\
                auth_oauth2.algorithms.1 = RS256\n\
                auth_oauth2.default_key = one\n\
                auth_oauth2.signing_keys.one = /etc/one.pem\n\
                auth_oauth2.verify_aud = false\n\
                auth_oauth2.scope_prefix = api://\n\
                auth_oauth2.scope_aliases.staff = mq.read:*/* mq.tag:management\n\
                auth_oauth2.scope_aliases.1.alias = boss.all\n\
                auth_oauth2.scope_aliases.1.scope = mq.tag:administrator\n";
    let (config, said, is_good) = translated(text);
    assert!(is_good && !said.contains("NOT SUPPORTED") && !said.contains("WRONG"), "{said}");
    let oauth = config.oauth;
    assert_eq!((&*oauth.resource_server_id, &*oauth.default_key), ("mq", "one"));
    assert_eq!(oauth.issuer, "https://id.example/realms/mq");
    assert_eq!(oauth.additional_scopes, ["realm_access.roles", "other"]);
    assert_eq!(
        (oauth.username_claims, oauth.algorithms),
        (vec!["user_name".into()], vec!["RS256".into()])
    );
    assert_eq!((&*oauth.signing_keys[0].id, oauth.ca.to_str()), ("one", Some("/etc/ca.pem")));
    assert_eq!(
        (oauth.verify_aud, oauth.require_exp),
        (false, false),
        "there, a token need not expire"
    );
    assert_eq!(oauth.scope_prefix.as_deref(), Some("api://"));
    let aliases = oauth.scope_aliases.iter().map(|one| (&*one.alias, one.scopes.len()));
    assert_eq!(aliases.collect::<Vec<_>>(), [("staff", 2), ("boss.all", 1)]);
    let text = "auth_backends.1 = oauth2\nauth_oauth2.resource_servers.1.id = a\nauth_oauth2.scope_aliases.1.alias = x\n";
    let (_, said, _) = translated(text);
    assert!(said.contains(":2: auth_oauth2.resource_servers.1.id: NOT SUPPORTED"), "{said}");
    assert!(said.contains("auth_oauth2.scope_aliases.1.scope is needed too"), "{said}");
}

#[test]
fn what_becomes_of_each_line_is_said_with_its_number() {
    let text = "heartbeat = 10\nheartbeat = 20\nhearbeat = 30\nnet_ticktime = 60\nmqtt.listeners.tcp.1 = 1883\n\
                default_pass = $(PASSWORD)\ncluster_formation.k8s.host = x\n";
    let (config, said, is_good) = translated(text);
    assert!(is_good, "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let wanted = [
        ":1: heartbeat: no effect: line 2",
        ":2: heartbeat: becomes",
        ":3: hearbeat: UNKNOWN: did you mean heartbeat?",
        ":4: net_ticktime: not needed",
        ":5: mqtt.listeners.tcp.1: NOT SUPPORTED",
        ":6: default_pass: NOT SUPPORTED: its value comes from elsewhere",
        ":7: cluster_formation.k8s.host: not needed",
    ];
    assert_eq!(lines.len(), wanted.len(), "{said}");
    for (line, wanted) in lines.iter().zip(wanted) {
        assert!(line.contains(wanted), "{line}: {wanted}");
    }
    assert_eq!(config.amqp.heartbeat_s, 20);
    assert_eq!(config.listen[0].to_string(), "0.0.0.0:5672", "RabbitMQ listens everywhere");
}

#[test]
fn lines_that_can_not_be_read_are_a_failure() {
    let (_, said, is_good) = translated("heartbeat = soon\nnonsense\nlisteners.tcp.1 = here\n");
    assert!(!is_good);
    assert_eq!(said.matches(": WRONG: ").count(), 3, "{said}");
}

#[test]
fn who_comes_without_credentials_is_whom_the_file_names() {
    let (config, said, _) = translated("anonymous_login_user = web\nanonymous_login_pass = x\n");
    assert_eq!(config.auth.anonymous_user, "web");
    assert!(said.contains("becomes auth.anonymous_user"), "{said}");
    let (config, _, _) = translated("anonymous_login_user = none\n");
    assert_eq!(config.auth.anonymous_user, "");
}

#[test]
fn a_page_that_logs_people_in_with_tokens_goes_on_to() {
    let text = "auth_backends.1 = internal\n\
                auth_backends.2 = oauth2\n\
                auth_oauth2.resource_server_id = mq\n\
                auth_oauth2.jwks_uri = https://id.example/keys\n\
                auth_oauth2.end_session_endpoint = https://id.example/out\n\
                management.oauth_enabled = true\n\
                management.oauth_client_id = page\n\
                management.oauth_client_secret = s3cret\n\
                management.oauth_scopes = openid mq.tag:management\n\
                management.oauth_provider_url = https://id.example/realms/mq\n\
                management.oauth_authorization_endpoint_params.resource = mq\n\
                management.oauth_token_endpoint_params.audience = mq\n\
                management.oauth_initiated_logon_type = sp_initiated\n";
    let (config, said, is_good) = translated(text);
    assert!(is_good && !said.contains("NOT SUPPORTED"), "{said}");
    let oauth = config.oauth;
    assert_eq!((&*oauth.client_id, &*oauth.client_secret), ("page", "s3cret"));
    assert_eq!(oauth.client_scopes, "openid mq.tag:management");
    assert_eq!(oauth.issuer, "https://id.example/realms/mq");
    assert_eq!(oauth.end_session_endpoint, "https://id.example/out");
    assert_eq!(oauth.authorization_params, ["resource=mq"]);
    assert_eq!(oauth.token_params, ["audience=mq"]);
    assert!(
        oauth.disable_basic_auth,
        "there, names and passwords are refused unless the file says no"
    );
    let (config, said, _) =
        translated(&format!("{text}management.oauth_disable_basic_auth = false\n"));
    assert!(!config.oauth.disable_basic_auth, "{said}");
    let text = text.replace("oauth_enabled = true", "oauth_enabled = false");
    let (config, said, _) = translated(&text);
    assert!(config.oauth.client_id.is_empty() && !config.oauth.disable_basic_auth, "{said}");
}

#[test]
fn what_is_done_otherwise_here_is_said_with_what_to_do() {
    let told = [
        (
            "consumer_timeout = 60000",
            "NOT SUPPORTED: quorum queues have 30 minutes",
            "consumer-timeout: 60000",
        ),
        ("default_queue_type = quorum", "NOT SUPPORTED", "--default-queue-type quorum"),
        (
            "default_queue_type = rabbit_stream_queue",
            "NOT SUPPORTED",
            "--default-queue-type stream",
        ),
        ("default_queue_type = classic", "not needed", "it is the default"),
        ("default_users.qa.vhost_pattern = qa.*", "NOT SUPPORTED", "courser ctl add_user"),
        ("default_policies.operator.ttl.vhost_pattern = .*", "NOT SUPPORTED", "operator_policies"),
        ("default_limits.vhosts.1.max_queues = 10", "NOT SUPPORTED", "set_vhost_limits"),
        (
            "credential_validator.min_length = 12",
            "NOT SUPPORTED",
            "check them where users are made",
        ),
        (
            "definitions.https.url = https://a.example/all",
            "NOT SUPPORTED",
            "set management.load_definitions",
        ),
        (
            "message_interceptors.incoming.set_header_timestamp.overwrite = true",
            "NOT SUPPORTED",
            "have publishers set timestamp",
        ),
        ("log.console.formatter = json", "NOT SUPPORTED: json: the log is text", "name=value"),
        ("log.file.formatter = plaintext", "not needed", "how the log is written"),
    ];
    let text: String = told.iter().map(|(line, ..)| format!("{line}\n")).collect();
    // Each in a file of its own: some set the same key.
    for (line, fate, what) in told {
        let (_, said, is_good) = translated(line);
        assert!(is_good && said.contains(fate) && said.contains(what), "{line}: {said}");
    }
    let (_, said, is_good) = translated(&text);
    assert!(is_good && !said.contains("UNKNOWN") && !said.contains("becomes"), "{said}");
    for line in ["consumer_timeout = soon", "default_queue_type = quick"] {
        let (_, said, is_good) = translated(line);
        assert!(!is_good && said.contains(": WRONG: "), "{line}: {said}");
    }
}
