//! Logging in.

use crate::direct::{Asked, Direct};
use crate::support::Broker;
use courser_auth::User;
use serde_json::json;

#[tokio::test]
async fn without_credentials_a_browser_is_asked_for_some() {
    let broker = Broker::start().await;
    let answer = broker.call("GET", "/api/whoami", None, "").await;
    assert_eq!((answer.status, answer.body.len()), (401, 0));
    assert_eq!(answer.headers["www-authenticate"], "Basic realm=\"RabbitMQ Management\"");
}

#[tokio::test]
async fn wrong_credentials_are_refused_without_a_challenge() {
    let broker = Broker::start().await;
    for login in ["guest:wrong", "stranger:guest", "guest:", ":"] {
        let answer = broker.call_with("GET", "/api/whoami", Some(login), &[], b"").await;
        assert_eq!(answer.status, 401, "{login}");
        let refusal = ("not_authorized".to_owned(), json!("Not_Authorized"));
        assert_eq!(answer.refusal(), refusal, "{login}");
        assert!(!answer.headers.contains_key("www-authenticate"));
    }
    for header in ["Bearer abc", "Basic !", "Basic"] {
        let headers = [("authorization", header)];
        let answer = broker.call_with("GET", "/api/whoami", None, &headers, b"").await;
        assert_eq!(answer.status, 401, "{header}");
    }
}

#[tokio::test]
async fn a_user_without_a_tag_may_not_use_the_api() {
    let broker = Broker::start().await;
    broker.add_user("plain", "", &["/"]);
    broker.add_user("impersonator", "impersonator", &["/"]);
    for user in ["plain", "impersonator"] {
        let answer = broker.call("GET", "/api/whoami", Some(user), "").await;
        assert_eq!(answer.status, 401);
        assert_eq!(answer.refusal(), ("not_authorised".to_owned(), json!("Not management user")));
    }
}

#[tokio::test]
async fn who_logs_in_is_told_who_it_is() {
    let broker = Broker::start().await;
    broker.add_user("two", "management, monitoring", &[]);
    let expected =
        json!({ "name": "two", "tags": ["management", "monitoring"], "is_internal_user": true });
    assert_eq!(broker.call("GET", "/api/whoami", Some("two"), "").await.json(), expected);
}

#[tokio::test]
async fn a_deleted_user_is_out_at_once() {
    let broker = Broker::start().await;
    broker.add_user("gone", "management", &[]);
    assert_eq!(broker.call("GET", "/api/whoami", Some("gone"), "").await.status, 200);
    broker.admin().delete_user("gone").expect("it is there");
    assert_eq!(broker.call("GET", "/api/whoami", Some("gone"), "").await.status, 401);
}

/// Deletes the user `gone`, and makes one of the same name with the same password hash.
fn make_anew(direct: &Direct) {
    let admin = direct.broker.admin();
    let user = admin.accounts().user("gone").map(|user| User::clone(user)).expect("it is there");
    admin.delete_user("gone").expect("it is there");
    admin.create_user(user).expect("it is deleted");
}

#[tokio::test]
async fn a_session_of_a_deleted_user_is_not_one_of_another_user_of_the_same_name_and_hash() {
    let direct = Direct::new();
    direct.add_user("gone", "management");
    let cookie = direct.log_in("gone").await;
    let headers = [("cookie", cookie.as_str())];
    let asked = Asked { headers: &headers, ..Asked::new("GET", "/api/whoami") };
    assert_eq!(direct.ask(asked).await.status, 200);
    let tagged = direct.broker.admin().change_user("gone", |user| {
        user.tags = courser_auth::Tags::administrator();
        Ok(())
    });
    tagged.expect("it is there");
    assert_eq!(direct.ask(asked).await.status, 200, "a change is no deletion");
    make_anew(&direct);
    assert_eq!(direct.ask(asked).await.status, 401);
    assert_eq!(direct.ask(Asked::new("GET", "/api/whoami").by("gone")).await.status, 200);
}

#[tokio::test]
async fn a_request_of_a_deleted_user_is_not_one_of_another_user_of_the_same_name_and_hash() {
    let direct = Direct::new();
    direct.add_user("gone", "administrator");
    let put = Asked { body: "{}", ..Asked::new("PUT", "/api/vhosts/v").by("gone") };
    let answer = direct.ask_slowly(put, || make_anew(&direct)).await;
    assert_eq!(answer.status, 401);
    assert!(direct.broker.admin().vhost("v").is_none());
}
