//! Server-sent events: what comes goes to a client for as long as it listens and may.

use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::refusal::Refusal;
use crate::reply::Reply;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderName;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;

/// How often something is sent, so that both sides see that the other one is there.
const PULSE: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells a proxy not to hold anything back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Where events come from.
pub(super) trait Source: Send + 'static {
    /// What is there, as text of server-sent events; nothing if that is nothing. `None` at the end. It
    /// has `waker` woken when there is more.
    fn take(&mut self, waker: &Waker) -> impl Future<Output = Option<String>> + Send;

    /// Whether somebody may hear it still.
    fn lets_in(&self, caller: &Caller) -> bool;
}

/// Answers with events until `seconds` are over, if the query says so.
pub(super) fn serve(call: &Call, greeting: &str, source: impl Source) -> Outcome {
    let Ok(place) = Arc::clone(&call.api.followers).try_acquire_owned() else {
        let reason = "as many follow what happens as may";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason));
    };
    let seconds = call.query("seconds").map(str::parse::<u32>).transpose();
    let seconds = seconds.map_err(|_| Refusal::bad_request("seconds is no whole number"))?;
    let (sender, receiver) = mpsc::channel(1);
    let live = Live {
        source,
        caller: call.caller()?.clone(),
        now_ms: Arc::clone(&call.api.settings.now_ms),
        until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into())),
        _place: place,
    };
    Handle::current().spawn(live.run(format!(": {greeting}\n\n"), sender));
    Ok(Reply::live(receiver, "text/event-stream").with_header(UNBUFFERED, "no"))
}

/// Somebody who listens.
struct Live<S> {
    source: S,
    caller: Caller,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// When to end by itself.
    until: Option<Instant>,
    _place: OwnedSemaphorePermit,
}

/// Remembers that there is more.
#[derive(Default)]
struct More(Notify);

impl Wake for More {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

impl<S: Source> Live<S> {
    /// Sends `text`, so that the client knows that it is heard, and what comes.
    async fn run(mut self, mut text: String, sender: mpsc::Sender<io::Result<Bytes>>) {
        let more = Arc::new(More::default());
        let waker = Waker::from(Arc::clone(&more));
        loop {
            let piece = Ok(Bytes::from(std::mem::take(&mut text)));
            if sender.send_timeout(piece, SEND_TIMEOUT).await.is_err() {
                return;
            }
            let pulse = Instant::now() + PULSE;
            while text.is_empty() {
                let is_still_there = self.caller.is_still_there((self.now_ms)());
                if !is_still_there || !self.source.lets_in(&self.caller) {
                    return;
                }
                let Some(taken) = self.source.take(&waker).await else { return };
                text = taken;
                if !text.is_empty() {
                    break;
                }
                tokio::select! {
                    () = more.0.notified() => {}
                    () = tokio::time::sleep_until(pulse) => text.push_str(": nothing new\n\n"),
                    () = sender.closed() => return,
                    () = end(self.until) => return,
                }
            }
        }
    }
}

async fn end(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
