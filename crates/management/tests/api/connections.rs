//! Connections, as they are listed.

use crate::direct::{Asked, Direct};
use courser_auth::Permission;
use courser_broker::admin::{ConnectionDetails, PeerCertificate, TlsSession};
use courser_broker::{Identity, Session};
use courser_codec::ShortString;
use serde_json::{Value, json};
use std::sync::Arc;

const USER: &str = "user";

fn open(direct: &Direct, name: &str, tls: Option<TlsSession>) -> Session {
    let admission = direct.broker.admit(USER, "/").expect("let in");
    let user = ShortString::try_from(USER).expect("short");
    let identity = Identity { user, cancel_notify: true, impersonator: false };
    let (name, tls) = (name.to_owned(), tls.map(Arc::new));
    let details = ConnectionDetails { name, tls, ..ConnectionDetails::default() };
    direct.broker.open_connection(admission, identity, 128 << 10, details)
}

#[tokio::test]
async fn what_tls_has_agreed_on_has_rabbitmqs_names() {
    let direct = Direct::new();
    direct.add_user(USER, "monitoring");
    direct.broker.admin().set_permission(USER, "/", Permission::all()).expect("let in");
    let certificate = PeerCertificate {
        subject: "CN=client,O=Acme".to_owned(),
        issuer: "CN=authority".to_owned(),
        validity: "2026-01-01T00:00:00Z - 2027-01-01T00:00:00Z".to_owned(),
        serial: "1E".to_owned(),
    };
    let session = "TLSv1_2, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384".to_owned();
    let shown = TlsSession { session: session.clone(), certificate: Some(certificate) };
    let _kept = [
        open(&direct, "shown", Some(shown)),
        open(&direct, "silent", Some(TlsSession { session, certificate: None })),
        open(&direct, "plain", None),
    ];
    let list = direct.ask(Asked::new("GET", "/api/connections").by(USER)).await.json();
    let of = |name: &str, members: &[&str]| -> Vec<Value> {
        let mut rows = list.as_array().expect("a list").iter();
        let row = rows.find(|row| row["name"] == name).expect("the connection");
        members.iter().map(|member| row.get(*member).expect("the member").clone()).collect()
    };
    let session = ["ssl", "ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"];
    let agreed = json!([true, "tlsv1.2", "ecdhe_rsa", "aes_256_gcm", "aead"]);
    assert_eq!(Value::from(of("shown", &session)), agreed);
    assert_eq!(Value::from(of("silent", &session)), agreed);
    assert_eq!(Value::from(of("plain", &session)), json!([false, null, null, null, null]));
    let certificate =
        ["peer_cert_subject", "peer_cert_issuer", "peer_cert_validity", "peer_cert_serial_number"];
    let validity = "2026-01-01T00:00:00Z - 2027-01-01T00:00:00Z";
    let said = json!(["CN=client,O=Acme", "CN=authority", validity, "1E"]);
    assert_eq!(Value::from(of("shown", &certificate)), said);
    for name in ["silent", "plain"] {
        assert_eq!(Value::from(of(name, &certificate)), json!([null, null, null, null]), "{name}");
    }
}

#[tokio::test]
async fn who_may_not_enter_a_vhost_is_not_told_whether_there_is_one() {
    let direct = Direct::new();
    direct.add_user(USER, "management");
    direct.broker.admin().set_permission(USER, "/", Permission::all()).expect("let in");
    direct.broker.admin().change_vhost("hidden", |_| ()).expect("a vhost");
    for path in ["/api/connections", "/api/channels"] {
        for (vhost, status) in [("/", 200), ("hidden", 404), ("none", 404)] {
            let headers = [("x-vhost", vhost)];
            let asked = Asked { headers: &headers, ..Asked::new("GET", path).by(USER) };
            assert_eq!(direct.ask(asked).await.status, status, "{path} {vhost}");
        }
    }
    // Who monitors sees all vhosts.
    direct.add_user("monitor", "monitoring");
    for (user, is_told) in [(USER, false), ("monitor", true)] {
        let mut told = Vec::new();
        for vhost in ["hidden", "none"] {
            let body = json!({ "vhost": vhost, "right": "read", "resource": "queue", "name": "q" });
            let body = body.to_string();
            let asked = Asked { body: &body, ..Asked::new("POST", "/api/access/check").by(user) };
            let answer = direct.ask(asked).await.json();
            assert_eq!(answer["allowed"], false, "{answer}");
            told.push(answer["because"].as_str().expect("a text").replace(vhost, "V"));
        }
        assert_eq!(told[0] != told[1], is_told, "{user}: {told:?}");
        assert_eq!(told[1] == "vhost V not found", is_told, "{user}: {told:?}");
    }
}
