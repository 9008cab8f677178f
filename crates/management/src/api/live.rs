//! Server-sent events: what comes goes to a client for as long as it listens and may, and the broker serves.

use crate::call::{Call, Outcome};
use crate::caller::Caller;
use crate::http::connection::stopped;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::shares::Share;
use bytes::Bytes;
use courser_broker::admin::Held;
use hyper::StatusCode;
use hyper::header::HeaderName;
use std::io;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{Notify, mpsc, watch};
use tokio::time::Instant;

/// What events are sent as.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// How often something is sent, so that both sides see that the other one is there.
const PULSE: Duration = Duration::from_secs(15);
/// How long a client may take nothing.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells a proxy not to hold anything back.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Where events come from.
pub(super) trait Source: Send + 'static {
    /// What is there, as text of server-sent events; nothing if that is nothing. `None` at the end. It
    /// has `waker` woken when there is more. When it is given up before it is done, it is not asked again.
    fn take(&mut self, waker: &Waker) -> impl Future<Output = Option<String>> + Send;

    /// Whether the caller may still hear it.
    fn lets_in(&self, caller: &Caller) -> bool;
}

/// Answers with events until `seconds` are over, if the query says so.
pub(super) fn serve(call: &Call, greeting: &str, source: impl Source) -> Outcome {
    let (user, caller) = (call.user(), call.caller()?);
    let more = || match caller.is_administrator() {
        true => call.api.more_followers.try_take(user, 1),
        false => None,
    };
    let Some(place) = call.api.followers.try_take(user, 1).or_else(more) else {
        let reason = "as many follow what happens as may, or as many of this user";
        return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason));
    };
    let seconds = call.query("seconds").map(str::parse::<u32>).transpose();
    let seconds = seconds.map_err(|_| Refusal::bad_request("seconds is no whole number"))?;
    let (sender, receiver) = mpsc::channel(1);
    let live = Live {
        source,
        caller: caller.unlimited(),
        now_ms: Arc::clone(&call.api.settings.now_ms),
        stopping: call.stopping.clone(),
        until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds.into())),
        held: call.admin().hold(0),
        _place: place,
    };
    Handle::current().spawn(live.run(format!(": {greeting}\n\n"), sender));
    Ok(Reply::live(receiver, EVENT_STREAM).with_header(UNBUFFERED, "no"))
}

/// A stream of events to one client.
struct Live<S> {
    source: S,
    caller: Caller,
    now_ms: Arc<dyn Fn() -> u64 + Send + Sync>,
    /// Says when the broker stops, which it holds together until then.
    stopping: watch::Receiver<bool>,
    /// When to end by itself.
    until: Option<Instant>,
    /// Counts what waits for the client.
    held: Held,
    _place: Share,
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
            // It may be on its way still when the next one is made.
            self.held.set(2 * text.len());
            let piece = Ok(Bytes::from(std::mem::take(&mut text)));
            tokio::select! {
                sent = sender.send_timeout(piece, SEND_TIMEOUT) => if sent.is_err() { return },
                () = stopped(&mut self.stopping) => return,
            }
            let pulse = Instant::now() + PULSE;
            while text.is_empty() {
                let Ok(caller) = self.caller.asked_again((self.now_ms)()).await else { return };
                self.caller = caller;
                if !self.source.lets_in(&self.caller) {
                    return;
                }
                let taken = tokio::select! {
                    taken = self.source.take(&waker) => taken,
                    () = sender.closed() => return,
                    () = end(self.until) => return,
                };
                let Some(taken) = taken else { return };
                text = taken;
                if !text.is_empty() {
                    break;
                }
                tokio::select! {
                    () = more.0.notified() => {}
                    () = tokio::time::sleep_until(pulse) => text.push_str(": nothing new\n\n"),
                    () = sender.closed() => return,
                    () = end(self.until) => return,
                    () = stopped(&mut self.stopping) => return,
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
