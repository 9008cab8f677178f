//! Listing and closing connections, and listing what is on them.

use super::channels::{self, ChannelView, ConsumerView};
use super::page::{Listing, View};
use super::{Admin, ChannelCounts, Churn, ConnectionState, Follower, TlsSession};
use crate::fault::Fault;
use crate::outbox::Outbox;
use crate::queue::ConnectionId;
use courser_codec::{FieldTable, ShortString, Table};
use std::net::SocketAddr;
use std::sync::Arc;

/// What a client is told whose connection an operator closes without saying why.
pub const DEFAULT_CLOSE_REASON: &str = "Closed via management plugin";

/// Reply code of `CONNECTION_FORCED`.
const CONNECTION_FORCED: u16 = 320;

/// A connection as an operator sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionView {
    /// Its own among all connections that there ever were.
    pub id: ConnectionId,
    /// Its own among those that are open.
    pub name: String,
    /// The user who logged in.
    pub user: ShortString,
    /// The vhost it is in.
    pub vhost: String,
    /// Where the client is, if it came through a socket.
    pub peer: Option<SocketAddr>,
    /// Where the broker took it in, if it came through a socket.
    pub local: Option<SocketAddr>,
    /// How the user has logged in.
    pub mechanism: &'static str,
    /// With TLS: what its handshake has agreed on.
    pub tls: Option<Arc<TlsSession>>,
    /// What the client says of itself.
    pub client_properties: FieldTable,
    /// When it was opened, in milliseconds since 1970.
    pub since_ms: u64,
    /// What it is doing.
    pub state: ConnectionState,
    /// The largest frame, as agreed.
    pub frame_max: usize,
    /// Channels that it may have.
    pub channel_max: u16,
    /// Agreed interval of heartbeats in seconds, 0 for none.
    pub heartbeat_s: u16,
    /// Channels that are open.
    pub channels: usize,
    /// Bytes that came from the client.
    pub received_bytes: u64,
    /// Reads that brought some.
    pub receives: u64,
    /// Bytes that were sent to the client.
    pub sent_bytes: u64,
    /// Writes that took some.
    pub sends: u64,
    /// Bytes that wait to be sent.
    pub pending_bytes: usize,
    /// What has happened on its channels, those that are closed included.
    pub counts: ChannelCounts,
}

impl Admin {
    /// The connections of a vhost, or all, by name.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn connections(&self, vhost: Option<&str>) -> Result<Listing<ConnectionView>, Fault> {
        let mut connections = self.broker.monitor.registry.snapshot();
        if let Some(vhost) = vhost {
            let vhost = self.known_vhost(vhost)?;
            connections = connections.only(|one| Arc::ptr_eq(&one.connection.vhost, &vhost.label));
        }
        Ok(Listing::new([(String::new(), (), connections)]))
    }

    /// The connections of a user, by name.
    pub fn connections_of_user(&self, user: &str) -> Listing<ConnectionView> {
        let connections = self.broker.monitor.registry.snapshot();
        let connections =
            connections.only(|one| one.connection.user().as_bytes() == user.as_bytes());
        Listing::new([(String::new(), (), connections)])
    }

    /// The connections of a vhost, or of all, and of a user, or of all, by name.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn connections_of(
        &self,
        vhost: Option<&str>,
        user: Option<&str>,
    ) -> Result<Listing<ConnectionView>, Fault> {
        let Some(user) = user else { return self.connections(vhost) };
        let vhost = vhost.map(|name| self.known_vhost(name)).transpose()?;
        let connections = self.broker.monitor.registry.snapshot().only(|one| {
            let connection = &one.connection;
            let is_there =
                vhost.as_ref().is_none_or(|vhost| Arc::ptr_eq(&connection.vhost, &vhost.label));
            is_there && connection.user().as_bytes() == user.as_bytes()
        });
        Ok(Listing::new([(String::new(), (), connections)]))
    }

    /// One connection.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn connection(&self, name: &str) -> Result<ConnectionView, Fault> {
        Ok(ConnectionView::view(&(), &self.known_connection(name)?))
    }

    /// The open connection that has this number.
    pub fn connection_of_id(&self, id: ConnectionId) -> Option<ConnectionView> {
        let connections = self.broker.monitor.registry.snapshot();
        let found = connections.starting_at(0).find(|one| one.connection.id == id);
        found.map(|one| ConnectionView::view(&(), one))
    }

    /// The channels of a connection, by number.
    ///
    /// # Errors
    /// When there is no connection of this name.
    pub fn channels_of(&self, connection: &str) -> Result<Vec<ChannelView>, Fault> {
        Ok(channels::of_connection(&*self.known_connection(connection)?))
    }

    /// Calls `each` with the channels of a vhost, or all, by connection and number; those of one
    /// connection at a time are in memory.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn for_each_channel(
        &self,
        vhost: Option<&str>,
        each: &mut dyn FnMut(ChannelView),
    ) -> Result<(), Fault> {
        let vhost = vhost.map(|name| self.known_vhost(name)).transpose()?;
        let is_wanted = |one: &Outbox| {
            vhost.as_ref().is_none_or(|vhost| Arc::ptr_eq(&one.connection.vhost, &vhost.label))
        };
        let connections = self.broker.monitor.registry.snapshot();
        for outbox in connections.starting_at(0).filter(|one| is_wanted(one)) {
            channels::of_connection(outbox).into_iter().for_each(&mut *each);
        }
        Ok(())
    }

    /// Calls `each` with the consumers of a queue, one after the other.
    ///
    /// # Errors
    /// When the queue is not there.
    pub fn for_each_consumer_of(
        &self,
        vhost: &str,
        queue: &[u8],
        each: &mut dyn FnMut(ConsumerView),
    ) -> Result<(), Fault> {
        let (_, queue) = self.known_queue(vhost, queue)?;
        channels::of_queue(&queue).for_each(each);
        Ok(())
    }

    /// Calls `each` with the consumers on a channel, one after the other.
    ///
    /// # Errors
    /// When there is no connection of this name.
    pub fn for_each_consumer_on(
        &self,
        connection: &str,
        channel: u16,
        each: &mut dyn FnMut(ConsumerView),
    ) -> Result<(), Fault> {
        channels::of_channel(&self.known_connection(connection)?, channel).for_each(each);
        Ok(())
    }

    /// Calls `each` with the consumers of a vhost, or all, by vhost and queue.
    ///
    /// # Errors
    /// When there is no such vhost.
    pub fn for_each_consumer(
        &self,
        vhost: Option<&str>,
        each: &mut dyn FnMut(ConsumerView),
    ) -> Result<(), Fault> {
        for vhost in self.chosen_vhosts(vhost)? {
            let queues = vhost.ordered_queues();
            for queue in queues.starting_at(0).filter(|queue| queue.consumer_count() > 0) {
                channels::of_queue(queue).for_each(&mut *each);
            }
        }
        Ok(())
    }

    /// Has a connection closed; its client is told 320 (`CONNECTION_FORCED`) and the reason.
    ///
    /// # Errors
    /// When there is no connection of this name.
    pub fn close_connection(&self, name: &str, reason: &str) -> Result<(), Fault> {
        self.known_connection(name)?.fail_connection(Fault::new(CONNECTION_FORCED, reason));
        Ok(())
    }

    /// Has all connections of a user closed, as [`Admin::close_connection`] does. Returns how many.
    pub fn close_connections_of_user(&self, user: &str, reason: &str) -> usize {
        let connections = self.broker.monitor.registry.snapshot();
        let of_user = connections
            .starting_at(0)
            .filter(|one| one.connection.user().as_bytes() == user.as_bytes());
        of_user.map(|one| one.fail_connection(Fault::new(CONNECTION_FORCED, reason))).count()
    }

    /// How much has come and gone since the broker's start.
    pub fn churn(&self) -> Churn {
        self.broker.monitor.churn.read()
    }

    /// Follows what happens from now on.
    pub fn follow(&self) -> Follower {
        self.broker.monitor.events.follow()
    }

    pub(super) fn known_connection(&self, name: &str) -> Result<Arc<Outbox>, Fault> {
        let found = self.broker.monitor.registry.get(name.as_bytes());
        found.ok_or_else(|| Fault::not_found(format_args!("no connection '{name}'")))
    }
}

impl View for ConnectionView {
    type Item = Outbox;
    type Group = ();

    fn view((): &(), outbox: &Arc<Outbox>) -> Self {
        let connection = &outbox.connection;
        let traffic = connection.traffic.read();
        let (peer, local) = connection.addresses();
        let mut state = outbox.lock();
        ConnectionView {
            id: connection.id,
            name: connection.name().to_owned(),
            user: connection.user().clone(),
            vhost: connection.vhost.name.clone(),
            peer,
            local,
            mechanism: connection.mechanism,
            tls: connection.tls.clone(),
            client_properties: Table::from_entries(connection.properties())
                .to_owned()
                .unwrap_or_default(),
            since_ms: connection.since_ms,
            state: connection.state(),
            frame_max: state.frame_max(),
            channel_max: connection.channel_max,
            heartbeat_s: connection.heartbeat_s,
            channels: state.channel_numbers().len(),
            received_bytes: traffic.received_bytes,
            receives: traffic.receives,
            sent_bytes: traffic.sent_bytes,
            sends: traffic.sends,
            pending_bytes: state.bytes(),
            counts: state.counted(),
        }
    }
}
