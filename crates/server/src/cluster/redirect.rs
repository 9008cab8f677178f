//! Clients where vhosts are in several groups: the leader of home logs them in, and the leader of the group that the vhost is
//! in serves them. So a login is checked by both, and neither has to trust the node that a client comes to.

use super::front::{Front, NO_DESCRIPTOR, RETRY_INTERVAL, SERVED_TIMEOUT, Serves};
use super::group::Group;
use super::opening::Opening;
use super::other_nodes::Tunnel;
use super::replayed::Replayed;
use super::tunnel::Note;
use super::watched::{Decision, Redirected, Watched};
use crate::driver::{self, ClientStream, Shared};
use crate::peer::Peer;
use crate::places::{Going, Place};
use crate::service::Service;
use courser_cluster::{GroupNumber, NodeId};
use courser_codec::{ShortStr, connection, reply_code};
use courser_connection::reply_text;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

/// How long a client waits for who serves its vhost: less than home waits for the end of its handshake, so that the log says
/// what it has waited for.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long one that is refused may take to go.
const FAREWELL: Duration = Duration::from_secs(1);
/// How often to look who that is, where it takes longer.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A client that is to be served, and the name that operators see its connection by.
pub(crate) struct Newcomer {
    pub peer: Peer,
    pub place: Place,
    pub name: String,
}

/// Where a client goes that does not stay with home.
pub(super) enum Elsewhere {
    /// To who leads the group of its vhost, which is this node.
    Here(Arc<Service>),
    /// To who leads that group, which is another node.
    There(Arc<Group>, NodeId, Tunnel, Going),
    /// Nowhere: connections have all descriptors.
    NoDescriptor,
    /// Nowhere: no node leads the group of this vhost, or it does not have it yet.
    Nowhere(String, GroupNumber),
}

impl Front {
    /// Serves a client that the broker of home, which is here, logs in.
    pub(crate) async fn serve_at_home(
        self: Arc<Self>,
        stream: Box<dyn ClientStream>,
        client: Newcomer,
        (shared, stopping_home): (Arc<Shared>, watch::Receiver<bool>),
        stopping: watch::Receiver<bool>,
    ) {
        let Newcomer { peer, place, name } = client;
        let (watched, redirected) = Watched::new(stream, self.decides(&peer, &name));
        let serving =
            driver::serve(watched, peer.clone(), place, name.clone(), shared, stopping_home);
        let place = serving.await;
        if let Ok(redirected) = redirected.await {
            self.serve_redirected(redirected, Newcomer { peer, place, name }, stopping).await;
        }
    }

    /// Serves a client that the broker of home, at another node, logs in.
    pub(super) async fn serve_by_home(
        self: Arc<Self>,
        stream: Box<dyn ClientStream>,
        mut client: Newcomer,
        (node, mut tunnel): (NodeId, Tunnel),
        mut stopping: watch::Receiver<bool>,
    ) {
        let decides = self.decides(&client.peer, &client.name);
        let (mut watched, mut redirected) = Watched::new(stream, decides);
        let home = (&**self.groups.home(), node);
        let opening = Opening::of_amqp();
        let carrying =
            self.carry(&mut watched, &mut tunnel, home, &mut client, opening, &mut stopping);
        let redirected = tokio::select! {
            biased;
            Ok(client) = &mut redirected => client,
            // Home may see the end of the stream, and end as well, before this node looks where the client has gone.
            () = carrying => match redirected.try_recv() {
                Ok(client) => client,
                Err(_) => return,
            },
        };
        drop((watched, tunnel));
        self.serve_redirected(redirected, client, stopping).await;
    }

    /// What decides where a client goes.
    fn decides(
        self: &Arc<Self>,
        peer: &Peer,
        name: &str,
    ) -> impl FnOnce(String) -> Decision<Elsewhere> + Send + 'static {
        let (front, note) = (Arc::clone(self), Note::amqp(peer, name));
        move |vhost| Box::pin(async move { front.decide(vhost, note).await })
    }

    /// Says where a client goes that opens a vhost: nowhere else than home, if nothing is said.
    async fn decide(self: Arc<Self>, vhost: String, note: Note) -> Option<Elsewhere> {
        let until = Instant::now() + PATIENCE;
        let (mut last, mut pause) = (GroupNumber::HOME, RETRY_INTERVAL);
        loop {
            let asking = timeout_at(until, self.group_of(&vhost)).await;
            let asked = asking.unwrap_or_else(|_| Err("home has not said it in time".into()));
            let group = match asked {
                // Home says what is wrong with a vhost that no group has.
                Ok(None | Some(GroupNumber::HOME)) => return None,
                Ok(Some(number)) => {
                    last = number;
                    self.groups.get(number)
                }
                Err(error) => {
                    tracing::debug!(vhost, error, "no node says where a vhost is");
                    None
                }
            };
            let next = tokio::time::sleep(pause);
            match group {
                None => next.await,
                Some(group) => {
                    let mut serves = group.watch_serves();
                    let way = self.way_to(&group, &vhost, &note, until).await;
                    if way.is_some() {
                        return way;
                    }
                    tokio::select! {
                        biased;
                        () = next => {}
                        // The sender is in the group, which is still there.
                        _ = serves.changed() => {}
                    }
                }
            }
            if Instant::now() >= until {
                return Some(Elsewhere::Nowhere(vhost, last));
            }
            pause = PAUSE_MAX.min(2 * pause);
        }
    }

    /// Looks once for who serves a vhost of a group.
    async fn way_to(
        &self,
        group: &Arc<Group>,
        vhost: &str,
        note: &Note,
        until: Instant,
    ) -> Option<Elsewhere> {
        let way = match group.serves() {
            Serves::Unknown => return None,
            Serves::Here(service) => {
                let is_there = service.shared.broker.vhost(vhost).is_some();
                is_there.then_some(Elsewhere::Here(service))
            }
            Serves::There(node) => {
                let Ok(going) = timeout_at(until, self.places.go()).await else {
                    return Some(Elsewhere::NoDescriptor);
                };
                let vhost = Some(vhost.to_owned());
                let note = Note { group: group.number, vhost, ..note.clone() };
                let note = serde_json::to_string(&note).ok()?;
                let dialled = tokio::select! {
                    biased;
                    dialled = self.dial(node, &note) => dialled.ok(),
                    // It may be gone, and others wait for the descriptor.
                    () = group.serves_no_more(node) => None,
                };
                dialled.map(|tunnel| Elsewhere::There(Arc::clone(group), node, tunnel, going))
            }
        };
        if way.is_none() {
            tracing::debug!(vhost, group = %group.number, "who leads the group does not serve the vhost");
            // It may have moved.
            self.whereabouts.forget(vhost);
        }
        way
    }

    /// Serves a client that home has logged in, and whose vhost is in another group.
    async fn serve_redirected(
        self: Arc<Self>,
        redirected: Redirected<Elsewhere>,
        mut client: Newcomer,
        mut stopping: watch::Receiver<bool>,
    ) {
        let Redirected { mut stream, said, way } = redirected;
        match way {
            Elsewhere::Nowhere(vhost, group) => {
                let why = format!("no node serves its vhost, which is in group {group}");
                self.say_refused(&client.peer, &why);
                // It may be gone already.
                let _ = tokio::time::timeout(FAREWELL, refuse(&mut stream, &vhost, group)).await;
            }
            Elsewhere::NoDescriptor => self.say_refused(&client.peer, NO_DESCRIPTOR),
            Elsewhere::Here(service) => {
                client.place.pass_on_no_more();
                let (shared, stopping) = (Arc::clone(&service.shared), service.stopping());
                drop(service);
                serve_replayed(stream, said, client, shared, stopping).await;
            }
            Elsewhere::There(group, node, mut tunnel, going) => {
                // From now on the descriptor is that of its place.
                drop(going);
                if !client.place.pass_on() {
                    return self.say_refused(&client.peer, NO_DESCRIPTOR);
                }
                let saying = async {
                    tunnel.write_all(&said).await?;
                    tunnel.flush().await
                };
                if !matches!(tokio::time::timeout(SERVED_TIMEOUT, saying).await, Ok(Ok(()))) {
                    return tracing::debug!(%node, "the node that leads takes nothing");
                }
                drop(said);
                let (to, opening) = ((&*group, node), Opening::of_amqp());
                self.carry(&mut stream, &mut tunnel, to, &mut client, opening, &mut stopping).await;
            }
        }
    }
}

/// Tells a client that waits for its vhost to be opened that no node serves it, and hears it out.
async fn refuse(
    stream: &mut Box<dyn ClientStream>,
    vhost: &str,
    group: GroupNumber,
) -> io::Result<()> {
    let why = format!("vhost '{vhost}' is down: no node serves its group, which is {group}");
    let text = reply_text(reply_code::INTERNAL_ERROR, &why);
    let close = connection::Close {
        reply_code: reply_code::INTERNAL_ERROR,
        reply_text: ShortStr::cut(&text),
        class_id: connection::Open::CLASS_ID,
        method_id: connection::Open::METHOD_ID,
    };
    let mut frame = Vec::new();
    close.write_frame(0, &mut frame);
    stream.write_all(&frame).await?;
    stream.shutdown().await?;
    // What is not read when a socket is closed takes with it what the other end has not read.
    tokio::io::copy(stream, &mut tokio::io::sink()).await.map(drop)
}

/// Serves a client that home has logged in, and that has said so much already.
pub(super) async fn serve_replayed(
    stream: Box<dyn ClientStream>,
    said: Zeroizing<Vec<u8>>,
    client: Newcomer,
    shared: Arc<Shared>,
    stopping: watch::Receiver<bool>,
) {
    let Newcomer { peer, place, name } = client;
    let peer = Peer { is_counted: true, ..peer };
    driver::serve(Replayed::new(stream, said), peer, place, name, shared, stopping).await;
}

#[cfg(test)]
mod tests;
