//! Events of other groups: what happens in all of them, as one stream, and what one tells of a vhost. Home asks the
//! authority of who listens again, as long as that goes on.

use super::answer::{ask_all, relayed};
use super::link::Question;
use crate::api::live::EVENT_STREAM;
use crate::call::Call;
use crate::caller::Caller;
use crate::http::body::Outgoing;
use crate::listener::Listener;
use crate::refusal::Refusal;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Response, StatusCode};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Bytes of events that wait for the end of the last of them.
const BYTES_MAX: usize = 16 << 20;
/// How long a client may take nothing.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// Answers with the events of all groups. When one of them is lost the stream ends, so that what is left is not taken for all:
/// the client connects again.
pub(super) async fn answered(call: Call) -> Result<Response<Outgoing>, Refusal> {
    let call = Arc::new(call);
    let mut streams = Vec::new();
    for (group, answered) in ask_all(&call, Question::of_part(&call)).await {
        let answered = answered?;
        if answered.status() != StatusCode::OK {
            return Ok(relayed(answered));
        }
        streams.push((group, answered));
    }
    let (sender, receiver) = mpsc::channel(1);
    let ends = Arc::new(watch::Sender::new(false));
    let mut head = None;
    for (group, stream) in streams {
        let (parts, body) = stream.into_parts();
        let is_first = head.is_none();
        head.get_or_insert(parts);
        let listener = Listener::of(&call, Caller::is_monitor)?;
        let sender = sender.clone();
        let following = Following { group, listener, greets: is_first, body, sender };
        tokio::spawn(following.run(Arc::clone(&ends)));
    }
    let mut head = head.ok_or_else(Refusal::not_found)?;
    head.headers.remove(CONTENT_LENGTH);
    Ok(Response::from_parts(head, Outgoing::pieces(receiver)))
}

/// Passes on what a group tells bit by bit, for as long as the listener may hear it. What it may do in the vhost, the group
/// itself asks again.
pub(super) fn passed_on(
    mut listener: Listener,
    answered: Response<Incoming>,
) -> Response<Outgoing> {
    // A list that ends early is not to be taken for all of it.
    let is_list = answered.headers().get(CONTENT_TYPE).is_none_or(|what| what != EVENT_STREAM);
    let (head, mut body) = relayed(answered).into_parts();
    let (sender, receiver) = mpsc::channel(1);
    let client = sender.clone();
    let passing = async move {
        loop {
            let piece = match body.frame().await.map(|frame| frame.map(Frame::into_data)) {
                // An empty piece is the end.
                Some(Ok(Ok(data))) if data.is_empty() => continue,
                Some(Ok(Ok(data))) => Ok(data),
                Some(Ok(Err(_))) => continue,
                Some(Err(error)) => Err(error),
                None if is_list => Ok(Bytes::new()),
                None => return,
            };
            if !listener.may_listen().await {
                if is_list {
                    let refused = Err(io::ErrorKind::PermissionDenied.into());
                    let _ = sender.send_timeout(refused, SEND_TIMEOUT).await;
                }
                return;
            }
            let is_last = piece.as_ref().map_or(true, Bytes::is_empty);
            if sender.send_timeout(piece, SEND_TIMEOUT).await.is_err() || is_last {
                return;
            }
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = passing => {}
            () = client.closed() => {}
        }
    });
    let sent = if is_list { Outgoing::list } else { Outgoing::pieces };
    Response::from_parts(head, sent(receiver))
}

async fn until_one_ends(ended: &mut watch::Receiver<bool>) {
    // The task that waits holds the sender.
    drop(ended.wait_for(|ended| *ended).await);
}

/// The events of a group.
struct Following {
    group: u16,
    listener: Listener,
    /// Only one says that it listens.
    greets: bool,
    body: Incoming,
    sender: mpsc::Sender<io::Result<Bytes>>,
}

impl Following {
    /// Passes them on. When one group ends, all do.
    async fn run(mut self, ends: Arc<watch::Sender<bool>>) {
        let (mut ended, client) = (ends.subscribe(), self.sender.clone());
        tokio::select! {
            passed = self.pass_on() => if let Err(error) = passed {
                let group = self.group;
                tracing::debug!(group, %error, "the events of all groups were cut off");
                drop(self.sender.send_timeout(Err(error), SEND_TIMEOUT).await);
            },
            () = client.closed() => {}
            () = until_one_ends(&mut ended) => {}
        }
        ends.send_replace(true);
    }

    /// Passes on events that are whole until there are no more.
    async fn pass_on(&mut self) -> io::Result<()> {
        let mut read: Vec<u8> = Vec::new();
        while let Some(frame) = self.body.frame().await {
            let Ok(data) = frame.map_err(io::Error::other)?.into_data() else { continue };
            if read.len() + data.len() > BYTES_MAX {
                return Err(io::Error::other("an event is too long"));
            }
            read.extend_from_slice(&data);
            let Some(end) = read.windows(2).rposition(|two| two == b"\n\n") else { continue };
            let mut events: Vec<u8> = read.drain(..end + 2).collect();
            if !std::mem::replace(&mut self.greets, true) {
                let greeting = events.windows(2).position(|two| two == b"\n\n");
                events.drain(..greeting.map_or(0, |at| at + 2));
            }
            if !self.listener.may_listen().await {
                return Ok(());
            }
            if !events.is_empty()
                && self.sender.send_timeout(Ok(events.into()), SEND_TIMEOUT).await.is_err()
            {
                return Ok(());
            }
        }
        Ok(())
    }
}
