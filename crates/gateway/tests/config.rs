//! Settings that work, and those that are refused.

use courser_gateway::{
    Account, CurveClient, EndpointConfig, Login, PlainUser, Security, SocketKind, endpoints,
};
use serde_json::{Value, json};

fn read(endpoint: Value) -> Result<EndpointConfig, String> {
    let mut list = endpoints(json!([endpoint])).map_err(|error| error.to_string())?;
    Ok(list.remove(0))
}

#[test]
fn what_is_not_said_has_a_default() {
    let endpoint = read(json!({"socket": "pull", "bind": "tcp://127.0.0.1:5555", "queue": "q"}));
    let mut expected = EndpointConfig::new(SocketKind::Pull, "tcp://127.0.0.1:5555");
    expected.queue = Some("q".into());
    assert_eq!(endpoint, Ok(expected));
}

#[test]
fn a_key_that_does_not_exist_is_refused_with_the_nearest() {
    let wrong = read(json!({"socket": "pull", "bind": "tcp://127.0.0.1:1", "que": "q"}));
    assert_eq!(wrong, Err("endpoint 1: unknown key 'que'; did you mean 'queue'?".into()));
}

#[test]
fn security_decides_who_may_reach_an_endpoint_of_other_machines() {
    let open = json!({"socket": "push", "bind": "tcp://*:5555", "queue": "q"});
    assert!(read(open.clone()).is_err_and(|why| why.contains("allow_null")));
    let with = |key: &str, value: Value| {
        let mut endpoint = open.clone();
        endpoint[key] = value;
        read(endpoint)
    };
    assert!(with("allow_null", json!(true)).is_ok());
    let plain = with("security", json!({"mechanism": "plain", "users": {"a": "b"}}));
    let user = PlainUser { secret: "b".into(), account: Account::default() };
    let users = [("a".to_owned(), user)].into();
    let right = Security::Plain { users, username: None, password: None };
    assert_eq!(plain.map(|endpoint| endpoint.security), Ok(right));
    assert!(with("security", json!({"mechanism": "plain", "users": {}})).is_err());
    let curve =
        json!({"mechanism": "curve", "public_key": "short", "secret_key": "", "clients": ["x"]});
    assert!(with("security", curve).is_err_and(|why| why.contains("CURVE key")));
}

#[test]
fn what_a_socket_has_no_use_for_is_refused() {
    let at = "tcp://127.0.0.1:1";
    for wrong in [
        json!({"socket": "pull", "bind": at}),
        json!({"socket": "pull", "bind": at, "queue": "q", "prefetch": 65}),
        json!({"socket": "pull", "bind": at, "queue": "q", "timeout_ms": 1}),
        json!({"socket": "push", "bind": at, "queue": "q", "persistent": false}),
        json!({"socket": "xpub", "bind": at, "exchange": "e", "timeout_ms": 1}),
        json!({"socket": "pull", "bind": at, "connect": at, "queue": "q"}),
        json!({"socket": "pull", "queue": "q"}),
        json!({"socket": "pull", "bind": at, "queue": "q", "exchange": "e"}),
        json!({"socket": "pull", "bind": at, "queue": "q", "routing_key": "k"}),
        json!({"socket": "push", "bind": at, "queue": "q", "exchange": "e"}),
        json!({"socket": "router", "bind": at}),
        json!({"socket": "xpub", "bind": at, "queue": "q"}),
        json!({"socket": "xpub", "bind": at, "exchange": "e", "subscribe": ["a"]}),
        json!({"socket": "pub", "bind": at, "exchange": "e"}),
        json!({"socket": "pull", "bind": "nowhere", "queue": "q"}),
        json!({"socket": "push", "bind": at, "queue": "q", "prefetch": 0}),
        json!({"socket": "pull", "bind": at, "queue": "q", "high_water_bytes": 1}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_name_that_nothing_can_have_is_refused_at_the_start() {
    let (at, long) = ("tcp://127.0.0.1:1", "x".repeat(256));
    let plain = |name: &str, secret: &str| json!({"mechanism": "plain", "users": {name: secret}});
    for (wrong, why) in [
        (json!({"socket": "pull", "bind": at, "queue": ""}), "queue is empty"),
        (json!({"socket": "pull", "bind": at, "queue": long}), "queue has 256 bytes"),
        (json!({"socket": "sub", "bind": at, "exchange": long}), "exchange has 256 bytes"),
        (json!({"socket": "xpub", "bind": at, "exchange": ""}), "exchange is empty"),
        (json!({"socket": "sub", "bind": at, "exchange": ""}), "exchange is empty"),
        (
            json!({"socket": "sub", "bind": at, "exchange": "e", "subscribe": []}),
            "subscribe is empty",
        ),
        (
            json!({"socket": "pull", "bind": at, "exchange": "e", "routing_key": long}),
            "routing_key has 256 bytes",
        ),
        (json!({"socket": "pull", "bind": at, "queue": "q", "vhost": long}), "vhost has 256 bytes"),
        (
            json!({"socket": "pull", "bind": at, "queue": "q", "security": plain(&long, "")}),
            "PLAIN",
        ),
        (
            json!({"socket": "pull", "bind": at, "queue": "q", "security": plain("a", &long)}),
            "PLAIN",
        ),
    ] {
        let refused = read(wrong.clone());
        assert!(refused.clone().is_err_and(|error| error.contains(why)), "{wrong}: {refused:?}");
    }
}

#[test]
fn an_endpoint_that_connects_needs_a_host_and_a_port() {
    for wrong in ["tcp://127.0.0.1:*", "tcp://127.0.0.1:0", "tcp://*:5555"] {
        let refused =
            read(json!({"socket": "pull", "connect": wrong, "queue": "q", "allow_null": true}));
        assert!(
            refused.is_err_and(|error| error.contains("a host and a port are needed")),
            "{wrong}"
        );
    }
    assert!(read(json!({"socket": "pull", "bind": "tcp://127.0.0.1:*", "queue": "q"})).is_ok());
}

#[test]
fn users_beside_the_mechanism_null_are_refused_and_yamls_null_is_the_mechanism() {
    let with = |security: Value| {
        read(json!({"socket": "pull", "bind": "tcp://127.0.0.1:1", "queue": "q", "security": security}))
            .map(|endpoint| endpoint.security)
    };
    assert_eq!(with(json!({"mechanism": null})), Ok(Security::Null));
    assert_eq!(with(json!({"mechanism": "null"})), Ok(Security::Null));
    for mechanism in [Value::Null, json!("null")] {
        let refused = with(json!({"mechanism": mechanism, "users": {"a": "b"}}));
        assert!(
            refused
                .is_err_and(|error| error.contains("security.users is not for the mechanism null"))
        );
    }
    assert!(with(json!("plain")).is_err_and(|error| error.contains("a mapping with 'mechanism'")));
}

/// The keys of ZeroMQ's documentation.
const PUBLIC: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const CLIENT: &str = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID";

/// An endpoint that binds or connects with this security.
fn with_security(way: &str, security: &Value) -> Result<EndpointConfig, String> {
    read(json!({"socket": "pull", way: "tcp://192.0.2.1:1", "queue": "q", "security": security}))
}

#[test]
fn what_an_endpoint_shows_where_it_connects_is_complete_or_the_missing_key_is_named() {
    let plain = json!({"mechanism": "plain", "username": "a", "password": "b"});
    let curve = json!({"mechanism": "curve", "public_key": PUBLIC, "secret_key": SECRET, "server_key": CLIENT});
    for right in [&plain, &curve] {
        assert!(with_security("connect", right).is_ok());
        for key in right.as_object().expect("a mapping").keys().filter(|key| *key != "mechanism") {
            let mut wrong = right.clone();
            wrong.as_object_mut().expect("a mapping").remove(key);
            let refused = with_security("connect", &wrong).err().unwrap_or_default();
            assert!(refused.contains(key) && refused.contains("missing"), "{key}: {refused}");
        }
    }
}

#[test]
fn what_is_for_the_other_side_of_a_connection_is_refused_by_name() {
    let curve = |key: &str, value: Value| json!({"mechanism": "curve", "public_key": PUBLIC, "secret_key": SECRET, key: value});
    for (way, key, security) in [
        ("bind", "username", json!({"mechanism": "plain", "users": {"a": "b"}, "username": "c"})),
        ("bind", "password", json!({"mechanism": "plain", "users": {"a": "b"}, "password": "c"})),
        ("connect", "users", json!({"mechanism": "plain", "users": {"a": "b"}})),
        ("bind", "server_key", curve("server_key", json!(CLIENT))),
        ("connect", "clients", curve("clients", json!([CLIENT]))),
        ("bind", "users", json!({"mechanism": "plain"})),
        ("bind", "clients", curve("clients", json!([]))),
        ("bind", "serverkey", curve("serverkey", json!(CLIENT))),
    ] {
        let refused = with_security(way, &security).err().unwrap_or_default();
        assert!(refused.contains(key), "{key}: {refused}");
    }
}

#[test]
fn keys_that_are_none_or_do_not_belong_together_are_refused() {
    let with = |key: &str, value: &str| {
        let mut security = json!({"mechanism": "curve", "public_key": PUBLIC, "secret_key": SECRET, "server_key": CLIENT});
        security[key] = json!(value);
        with_security("connect", &security).err().unwrap_or_default()
    };
    for key in ["public_key", "secret_key", "server_key"] {
        assert!(with(key, "short").contains(&format!("security.{key}")), "{key}");
    }
    assert!(with("public_key", CLIENT).contains("does not belong to"));
    let twice = json!({"mechanism": "curve", "public_key": PUBLIC, "secret_key": SECRET, "clients": [CLIENT, CLIENT]});
    assert!(with_security("bind", &twice).is_err_and(|why| why.contains("twice")));
}

#[test]
fn peers_may_work_as_other_users_and_in_other_vhosts() {
    let users = json!({"a": "secret", "b": {"secret": "s", "vhost": "tenant"},
                       "c": {"secret": "s", "user": "bob", "password": "p"}, "d": {"secret": "t", "vhost": "tenant"}});
    let endpoint = with_security("bind", &json!({"mechanism": "plain", "users": users}));
    let login = |user: &str, password: &str, vhost: &str| Login {
        user: user.into(),
        password: password.into(),
        vhost: vhost.into(),
    };
    let own = login("guest", "guest", "/");
    assert_eq!(
        endpoint.map(|endpoint| endpoint.logins()),
        Ok(vec![own, login("guest", "guest", "tenant"), login("bob", "p", "/")])
    );
    let clients = json!([{"key": CLIENT, "user": "alice", "vhost": "tenant"}]);
    let security = json!({"mechanism": "curve", "public_key": PUBLIC, "secret_key": SECRET, "clients": clients});
    let endpoint = with_security("bind", &security).expect("it is right");
    let account =
        Account { user: Some("alice".into()), password: None, vhost: Some("tenant".into()) };
    let client = CurveClient { key: CLIENT.into(), account };
    assert_eq!(serde_json::to_value(&client).expect("it has a form"), clients[0]);
    let Security::Curve { clients, .. } = &endpoint.security else { panic!("{endpoint:?}") };
    assert_eq!(clients, &[client]);
    assert_eq!(endpoint.logins(), [login("alice", "guest", "tenant")]);
}

#[test]
fn a_peer_that_is_written_wrongly_is_refused_by_the_name_of_what_is_wrong() {
    for (user, name) in [
        (json!({"secret": "s", "vhst": "tenant"}), "vhst"),
        (json!({"vhost": "tenant"}), "secret"),
        (json!({"secret": 1}), "secret"),
        (json!(7), "secret"),
    ] {
        let security = json!({"mechanism": "plain", "users": {"a": user}});
        let refused = with_security("bind", &security).err().unwrap_or_default();
        assert!(refused.contains(name), "{name}: {refused}");
    }
}

#[test]
fn peers_of_a_socket_that_gives_to_any_of_them_have_no_accounts_of_their_own() {
    let users = json!({"a": {"secret": "s", "vhost": "tenant"}});
    for (socket, target) in [("push", "queue"), ("dealer", "queue"), ("xpub", "exchange")] {
        let endpoint = |users: &Value| {
            read(json!({"socket": socket, "bind": "tcp://127.0.0.1:1", target: "x",
                        "security": {"mechanism": "plain", "users": users}}))
        };
        assert!(endpoint(&users).is_err_and(|why| why.contains("another endpoint")), "{socket}");
        assert!(endpoint(&json!({"a": "s"})).is_ok(), "{socket}");
    }
}
