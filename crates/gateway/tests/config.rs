//! Settings that work, and those that are refused.

use courser_gateway::{EndpointConfig, Security, SocketKind, endpoints};
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
    let users = [("a".to_owned(), "b".to_owned())].into();
    assert_eq!(plain.map(|endpoint| endpoint.security), Ok(Security::Plain { users }));
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
        json!({"socket": "pull", "bind": at, "queue": "q", "prefetch": 0}),
        json!({"socket": "pull", "bind": at, "queue": "q", "high_water_bytes": 1}),
        json!({"socket": "pull", "connect": at, "queue": "q",
               "security": {"mechanism": "plain", "users": {"a": "b"}}}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}
