//! Settings that say where to listen.

use crate::config::{load, loaded, refused, refused_variable};
use courser::HttpListen;

#[test]
fn one_address_needs_no_list() {
    for text in [
        "listen: 127.0.0.1:1",
        "listen: '127.0.0.1:1'",
        "listen: ['127.0.0.1:1']",
        "listen: [' 127.0.0.1:1']",
    ] {
        assert_eq!(loaded(text).listen, ["127.0.0.1:1".parse().expect("an address")], "{text}");
    }
    let several = loaded("listen: '127.0.0.1:1, [::1]:2'").listen;
    assert_eq!(several.len(), 2);
    let http = loaded("management: {listen: '127.0.0.1:1'}").management.listen;
    assert_eq!(http, HttpListen::At(vec!["127.0.0.1:1".parse().expect("an address")]));
}

#[test]
fn what_is_no_address_is_named_with_what_to_say() {
    for key in ["listen", "tls.listen", "management.listen", "metrics.listen"] {
        let refused = |value: &str| match key.split_once('.') {
            Some((section, key)) => refused(&format!("{section}: {{{key}: {value}}}")),
            None => refused(&format!("{key}: {value}")),
        };
        for value in ["5000", "[5000]", "'5000'"] {
            let error = refused(value);
            let why = "'5000' is a port without an address: say 127.0.0.1:5000 for this machine alone, or 0.0.0.0:5000 for all";
            assert!(error.contains(key) && error.contains(why), "{value}: {error}");
        }
        for (value, shown) in [
            ("localhost:1", "'localhost:1'"),
            ("[a, b]", "'a'"),
            ("true", "'true'"),
            ("{a: 1}", r#"'{"a":1}'"#),
            ("'127.0.0.1:1,'", "''"),
            ("70000", "'70000'"),
        ] {
            let error = refused(value);
            let why = format!("{shown} is no IP address and port, such as 127.0.0.1:5672");
            assert!(error.contains(&why), "{value}: {error}");
        }
    }
}

#[test]
fn the_http_api_is_served_where_the_settings_say_or_nowhere() {
    let at = |texts: &[&str]| {
        HttpListen::At(texts.iter().map(|text| text.parse().expect("an address")).collect())
    };
    for (text, expected) in [
        ("default", HttpListen::Default),
        ("none", HttpListen::none()),
        ("", HttpListen::none()),
        ("127.0.0.1:0", at(&["127.0.0.1:0"])),
        ("127.0.0.1:1, [::1]:2", at(&["127.0.0.1:1", "[::1]:2"])),
    ] {
        let config = load(None, &[("COURSER_MANAGEMENT_LISTEN", text)]).expect("good settings");
        assert_eq!(config.management.listen, expected, "{text:?}");
    }
    let listed = loaded("management: {listen: ['127.0.0.1:1']}").management.listen;
    assert_eq!(listed, at(&["127.0.0.1:1"]));
    assert_eq!(loaded("management: {listen: []}").management.listen, HttpListen::none());
    let error = refused_variable("COURSER_MANAGEMENT_LISTEN", "15672");
    assert!(error.contains("management.listen: '15672' is a port without an address"), "{error}");
    assert!(error.ends_with("; or say default or none"), "{error}");
    let error = refused("management: {tls_listen: ['127.0.0.1:15671']}");
    assert!(error.contains("tls.certificate is needed"), "{error}");
    let twice = "management: {listen: ['127.0.0.1:1'], tls_listen: ['127.0.0.1:1']}\n\
                 tls: {certificate: a, key: b}";
    assert!(refused(twice).contains("management.tls_listen names 127.0.0.1:1"));
}

#[test]
fn metrics_are_served_where_the_settings_say_or_nowhere() {
    let config = load(None, &[("COURSER_METRICS_LISTEN", "none")]).expect("good settings");
    assert_eq!(config.metrics.listen, HttpListen::none());
    assert_eq!(config.management.listen, HttpListen::Default, "that is another one");
    let error = refused("metrics: {tls_listen: ['127.0.0.1:15691']}");
    assert!(error.contains("tls.certificate is needed"), "{error}");
    let twice = "metrics: {listen: ['127.0.0.1:1'], tls_listen: ['127.0.0.1:1']}\n\
                 tls: {certificate: a, key: b}";
    assert!(refused(twice).contains("metrics.tls_listen names 127.0.0.1:1"));
    // Another address than that of the API is the usual one.
    refused("metrics: {tls_listen: ['127.0.0.1:15692']}\ntls: {certificate: a, key: b}");
}

#[test]
fn a_variable_says_where_to_listen_in_whatever_form_the_file_does() {
    for listed in ["['127.0.0.1:1']", "127.0.0.1:1", "25673", "none", "[]"] {
        for (section, name) in
            [("management", "COURSER_MANAGEMENT_LISTEN"), ("metrics", "COURSER_METRICS_LISTEN")]
        {
            let file = format!("{section}: {{listen: {listed}}}");
            let listen = |text| {
                let config = load(Some(&file), &[(name, text)]);
                let config = config.unwrap_or_else(|error| panic!("{file}: {error}"));
                if section == "metrics" { config.metrics.listen } else { config.management.listen }
            };
            assert_eq!(listen("none"), HttpListen::none(), "{file}");
            assert_eq!(listen("default"), HttpListen::Default, "{file}");
            let one = HttpListen::At(vec!["127.0.0.1:2".parse().expect("an address")]);
            assert_eq!(listen("127.0.0.1:2"), one, "{file}");
        }
    }
    for listed in ["25673", "'127.0.0.1:1'", "{a: 1}"] {
        let config = load(Some(&format!("listen: {listed}")), &[("COURSER_LISTEN", "[::1]:2")]);
        assert_eq!(config.expect("good settings").listen.len(), 1, "{listed}");
    }
}

#[test]
fn settings_of_listeners_that_there_are_not_are_refused() {
    let alone = "tls.listen names no address, nor has HTTP a tls_listen: the other settings of tls would do nothing";
    for setting in [
        "certificate: a",
        "key: a",
        "min_version: 1.3",
        "client_certificates: required, client_ca: a",
        "hosts: [{ names: [a.example.com], certificate: a, key: b }]",
        "handshake_timeout_ms: 6000",
        "external_name: common_name",
    ] {
        let said = refused(&format!("tls: {{ {setting} }}"));
        assert!(said.ends_with(alone), "{setting}: {said}");
    }
    let http_alone = "management: { tls_listen: 127.0.0.1:15671 }\ntls: { certificate: a, key: b";
    loaded(&format!("{http_alone}, min_version: 1.3 }}"));
    for (file, key) in [
        (
            "listen: []\namqp: { PROXY }\ntls: { listen: 127.0.0.1:5671, certificate: a, key: b }"
                .to_owned(),
            "amqp",
        ),
        (format!("{http_alone}, PROXY }}"), "tls"),
        ("management: { listen: none, PROXY }".to_owned(), "management"),
        ("metrics: { listen: none, PROXY }".to_owned(), "metrics"),
    ] {
        let said = refused(&file.replace("PROXY", "proxy_protocol_from: [10.0.0.0/8]"));
        let why = "proxy_protocol_from names proxies, but there is no address where they could connect to";
        assert!(said.ends_with(&format!("{key}.{why}")), "{said}");
    }
}
