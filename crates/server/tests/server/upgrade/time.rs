//! What a fixture has to do in its time, which a clock that is set brings about.

use super::broker::Opened;
use super::contents::*;
use crate::support::wait_until;

/// Sees that everything happens when it is due, and nothing before.
pub async fn check(opened: &Opened) {
    // Half an hour goes to whatever the making and the checks have taken.
    let passes = |ms| opened.pass_ms(ms);
    passes(12 * HOUR_MS + HOUR_MS / 2);
    expect(opened, "a time to live is over", [("dead", 1), ("due", 0), ("aged", 0)]).await;
    passes(12 * HOUR_MS);
    expect(opened, "a delay is over", [("dead", 1), ("due", 1), ("aged", 0)]).await;
    passes(DAY_MS);
    expect(opened, "a queue's time to live is over", [("dead", 1), ("due", 1), ("aged", 1)]).await;
    for vhost in VHOSTS {
        opened.at().get(&format!("queues/{vhost}/leased")).await;
    }
    passes(DAY_MS);
    for vhost in VHOSTS {
        let path = format!("queues/{vhost}/leased");
        let is_gone = async || opened.at().ask("GET", &path, &().into()).await.0 == 404;
        wait_until("a lease is over", is_gone).await;
    }
    passes(NINE_YEARS_MS - 4 * DAY_MS);
    expect(opened, "nine years are not over", [("due", 1), ("policy.first", 1)]).await;
    assert!(opened.at().count(VHOSTS[0], "trimmed").await > 0);
    passes(DAY_MS);
    expect(opened, "a delay of nine years is over", [("due", 2), ("policy.first", 1)]).await;
    passes(365 * DAY_MS);
    expect(opened, "all of it is over", [("due", 2), ("policy.first", 0), ("trimmed", 0)]).await;
    expect(opened, "what has no time is there", [("stream", STREAMED), ("second", 1)]).await;
}

/// Waits until these queues have so many messages in each vhost. A number that is too great never falls.
async fn expect<const N: usize>(opened: &Opened, what: &str, counts: [(&str, u64); N]) {
    for vhost in VHOSTS {
        for (queue, count) in counts {
            let what = format!("{what}: {count} in {queue} of {vhost}");
            let is_so = async || opened.at().count(vhost, queue).await == count;
            wait_until(&what, is_so).await;
        }
    }
}
