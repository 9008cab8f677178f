//! Sessions of browsers whose token is over: they go on with a new one.

use crate::oauth_login::{ADMINISTRATOR, Page, issued};
use crate::support::{Answers, Issuer, Signer, now_s, wait_until};
use serde_json::json;
use std::time::Duration;

/// The cookie of a session whose token is over.
async fn session_whose_token_is_over(page: &Page, issuer: &Issuer, signer: &Signer) -> String {
    loop {
        let (_, state, cookies) = page.begin().await;
        let until_s = now_s() + 2;
        let claims = json!({ "scope": ADMINISTRATOR, "exp": until_s });
        issuer.grant(200, &issued(issuer, signer, &claims));
        let session = page.finish(&state, &cookies).await;
        // It may be over before the broker answers.
        if session.status() == 200 {
            wait_until("it is over", async || now_s() > until_s).await;
            return session.cookies();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_renewed_though_the_client_that_waits_for_it_leaves() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    let page = Page::start(&issuer, |_| {}).await;
    let cookie = session_whose_token_is_over(&page, &issuer, &signer).await;
    let headers = [("cookie", &*cookie)];
    // The only time that the refresh token is taken.
    issuer.grant(200, &issued(&issuer, &signer, &json!({ "scope": ADMINISTRATOR })));
    issuer.answers(Answers::Later);
    let leaving = page.ask("GET", "/api/whoami", &headers, "");
    let is_asked = async || issuer.brought().contains("grant_type=refresh_token");
    tokio::select! {
        _ = leaving => panic!("the issuer has not answered"),
        () = wait_until("the token is renewed", is_asked) => {}
    }
    // It is noticed that the client is gone.
    tokio::time::sleep(Duration::from_millis(200)).await;
    issuer.answers(Answers::Well);
    let who = page.ask("GET", "/api/whoami", &headers, "").await;
    assert_eq!(who.status(), 200, "{}", who.body);
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_outlives_a_moment_in_which_the_keys_of_its_provider_can_not_be_had() {
    let (signer, next) = (Signer::new("one"), Signer::new("two"));
    let issuer = Issuer::start(&[&signer]).await;
    let page = Page::start(&issuer, |_| {}).await;
    let cookie = session_whose_token_is_over(&page, &issuer, &signer).await;
    let headers = [("cookie", &*cookie)];
    issuer.rotate(&[&next]);
    issuer.answers(Answers::WithoutKeys);
    issuer.grant(200, &issued(&issuer, &next, &json!({ "scope": ADMINISTRATOR })));
    let refused = page.ask("GET", "/api/whoami", &headers, "").await;
    assert_ne!(refused.status(), 200, "{}", refused.body);
    issuer.answers(Answers::Well);
    issuer.grant(200, &issued(&issuer, &next, &json!({ "scope": ADMINISTRATOR })));
    wait_until("the token is renewed", async || {
        page.ask("GET", "/api/whoami", &headers, "").await.status() == 200
    })
    .await;
    page.server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_a_session_that_wait_for_a_silent_provider_wait_for_one_question() {
    let signer = Signer::new("one");
    let issuer = Issuer::start(&[&signer]).await;
    // Longer than the pause between two questions.
    let page = Page::start(&issuer, |config| config.oauth.timeout_ms = 7_000).await;
    let cookie = session_whose_token_is_over(&page, &issuer, &signer).await;
    let headers = [("cookie", &*cookie)];
    issuer.answers(Answers::Never);
    let ask = || page.ask("GET", "/api/whoami", &headers, "");
    let (one, two, three) = tokio::join!(ask(), ask(), ask());
    for answer in [one, two, three] {
        assert_eq!(answer.status(), 503, "{}", answer.body);
    }
    assert_eq!(issuer.asked_to_renew(), 1);
    page.server.stop().await;
}
