//! WebSockets of clients that have come to a node which does not lead: they are carried like other AMQP connections, in
//! places of the same kind, and go when those do.

use super::front::{Front, NO_DESCRIPTOR, Serves};
use super::opening::Opening;
use super::redirect::Newcomer;
use crate::driver::OfHttp;
use crate::peer::Peer;
use crate::places::Admission;
use courser_management::{ClientTls, Upgraded};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Where there are none.
pub(super) const NO_SOCKETS: fn(Upgraded, Upgraded) = |_, _| {};

impl Front {
    /// Carries what the client at `peer` and the node that leads say to each other, once their requests have become
    /// a socket.
    pub(super) fn carries_sockets(
        self: &Arc<Self>,
        peer: SocketAddr,
        local: SocketAddr,
        tls: Option<Arc<ClientTls>>,
        stopping: watch::Receiver<bool>,
    ) -> impl Fn(Upgraded, Upgraded) + Clone + Send + 'static {
        let front = Arc::clone(self);
        move |client, other| {
            let (carrier, stopping) = (Arc::clone(&front), stopping.clone());
            let client = OfHttp::new(client, tls.clone());
            let other = OfHttp::new(other, None);
            let admission = front.places.admit(|place| {
                // The node that leads has it by the same name.
                let name = format!("{peer} -> {local}");
                let newcomer = Newcomer { peer: Peer::new(peer, None), place, name };
                tokio::spawn(carrier.carry_socket(client, other, newcomer, stopping)).abort_handle()
            });
            if admission == Admission::Refused
                && let Some(suppressed) = front.throttles.connections.allow(Instant::now().into())
            {
                tracing::warn!(%peer, suppressed, "WebSocket refused: too many connections");
            }
        }
    }

    async fn carry_socket(
        self: Arc<Self>,
        mut client: OfHttp,
        mut other: OfHttp,
        mut newcomer: Newcomer,
        mut stopping: watch::Receiver<bool>,
    ) {
        let home = Arc::clone(self.groups.home());
        // The other end has gone already if it does not lead any more.
        let Serves::There(node) = home.serves() else { return };
        if !newcomer.place.pass_on() {
            return self.say_refused(&newcomer.peer, NO_DESCRIPTOR);
        }
        let (to, opening) = ((&*home, node), Opening::of_web_socket());
        self.carry(&mut client, &mut other, to, &mut newcomer, opening, &mut stopping).await;
    }
}
