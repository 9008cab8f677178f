//! Exports of definitions, each of which has all of them in memory.

use crate::direct::{Asked, Direct};
use crate::policy_turns::{send, status, until};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// Exports of one user at the same time.
const OF_USER: usize = 2;

/// Holds the threads of handlers as long as it is shut, by the clock that they look at.
struct Barrier {
    is_shut: AtomicBool,
    held: AtomicUsize,
    opened: Mutex<mpsc::Receiver<()>>,
}

impl Barrier {
    /// One that lets those go that it holds when what is returned is dropped.
    fn shut(direct: &Direct) -> (Arc<Self>, mpsc::Sender<()>) {
        let (open, opened) = mpsc::channel();
        let (is_shut, held, opened) = (true.into(), AtomicUsize::new(0), Mutex::new(opened));
        let barrier = Arc::new(Barrier { is_shut, held, opened });
        // All tasks are on the test's thread.
        let (of_test, before) = (thread::current().id(), Arc::clone(&barrier));
        let clock = move || {
            if thread::current().id() != of_test && before.is_shut.load(Ordering::Relaxed) {
                before.held.fetch_add(1, Ordering::Relaxed);
                _ = before.opened.lock().map(|opened| opened.recv());
            }
            1_000_000
        };
        assert!(direct.clock.set(Box::new(clock)).is_ok(), "it is set once");
        (barrier, open)
    }
}

fn asked<'a>((method, path): (&'a str, &'a str), user: &'a str) -> Asked<'a> {
    let headers = &[("content-type", "application/json")];
    Asked { headers, body: "{}", ..Asked::new(method, path).by(user) }
}

#[tokio::test]
async fn exports_of_a_user_wait_for_those_before_them_and_keep_no_other_request() {
    const EXPORTS: [(&str, &str); 5] = [
        ("GET", "/api/definitions"),
        ("GET", "/api/all-configuration"),
        ("GET", "/api/definitions/%2F"),
        ("POST", "/api/definitions?dry_run=true"),
        ("POST", "/api/definitions/%2F?dry_run=true"),
    ];
    let direct = Direct::new();
    for user in ["root", "other"] {
        direct.add_user(user, "administrator");
    }
    let (barrier, open) = Barrier::shut(&direct);
    let mut waiting = Vec::new();
    for export in EXPORTS {
        waiting.push(send(&direct, asked(export, "root")).await);
    }
    until(|| barrier.held.load(Ordering::Relaxed) >= OF_USER).await;
    barrier.is_shut.store(false, Ordering::Relaxed);
    for export in EXPORTS.into_iter().cycle().take(20) {
        assert_eq!(direct.ask(asked(export, "other")).await.status, 200, "{export:?}");
        let asked = Asked::new("GET", "/api/whoami").by("root");
        assert_eq!(direct.ask(asked).await.status, 200);
    }
    assert_eq!(barrier.held.load(Ordering::Relaxed), OF_USER);
    for stream in &mut waiting {
        let answer = tokio::time::timeout(Duration::ZERO, stream.read_u8()).await;
        assert!(answer.is_err(), "it has an answer");
    }
    drop(open);
    for stream in waiting {
        assert_eq!(status(stream).await, 200);
    }
}

#[tokio::test]
async fn definitions_that_would_take_very_much_memory_are_refused_before_they_are_read() {
    let direct = Direct::new();
    direct.add_user("root", "administrator");
    let rows = |row: &str, count: usize| format!("{{\"queues\":[{}]}}", vec![row; count].join(","));
    let import = async |body: &str, path: &str| {
        direct.ask(Asked { body, ..asked(("POST", path), "root") }).await
    };
    let costly = rows(r#"{"":0}"#, 500_000);
    for path in ["/api/definitions", "/api/definitions?dry_run=true", "/api/definitions/%2F"] {
        let refused = import(&costly, path).await;
        assert_eq!(refused.status, 400, "{path}");
        let (_, reason) = refused.refusal();
        assert!(reason.as_str().is_some_and(|why| why.contains("256 MiB")), "{reason}");
    }
}
