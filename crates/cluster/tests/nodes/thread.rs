//! The thread of a node's group.

use crate::support::PATIENCE;
use courser_cluster::GroupThread;
use std::sync::{Arc, mpsc};

/// Says when it goes.
struct Told(#[allow(dead_code, reason = "it is dropped")] mpsc::Sender<()>);

#[test]
fn what_runs_on_a_thread_ends_with_it() {
    let thread = GroupThread::start().expect("a thread");
    let (sender, gone) = mpsc::channel();
    let told = Told(sender);
    drop(thread.handle().spawn(async move {
        let _told = told;
        std::future::pending::<()>().await;
    }));
    drop(thread);
    // The end waited for.
    assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected));
}

#[test]
fn a_task_that_has_a_thread_last_ends_it() {
    let thread = Arc::new(GroupThread::start().expect("a thread"));
    let (sender, gone) = mpsc::channel();
    let (go, went) = tokio::sync::oneshot::channel::<()>();
    let (held, told) = (Arc::clone(&thread), Told(sender));
    drop(thread.handle().spawn(async move {
        let _told = told;
        went.await.expect("a word");
        drop(held);
        std::future::pending::<()>().await;
    }));
    drop(thread);
    go.send(()).expect("a task");
    assert_eq!(gone.recv_timeout(PATIENCE), Err(mpsc::RecvTimeoutError::Disconnected));
}
