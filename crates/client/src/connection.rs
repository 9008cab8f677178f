//! Connections.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use courser_codec::reply_code::REPLY_SUCCESS;
use courser_codec::{FieldTable, Method, connection};
use courser_connection::ClosedBy;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{oneshot, watch};

use crate::channel::Channel;
use crate::driver::drive;
use crate::error::Error;
use crate::options::Options;
use crate::shared::{CLOSED_BY_OWNER, Shared, closed_by_owner};
use crate::uri::Uri;

/// A connection to a server. Clones are the same connection.
///
/// It lives as long as this, a channel, or something made from a channel does; the last one that is dropped closes it,
/// without waiting. [`Connection::close`] waits.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

/// Keeps a connection open.
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        close(&self.0);
    }
}

/// Begins the end of a connection: what was handed over is sent, then `connection.close`.
fn close(shared: &Shared) {
    shared.change(|core| core.machine.close(REPLY_SUCCESS, CLOSED_BY_OWNER, Instant::now()));
    // Nothing comes any more, and what consumers hold must not keep the answer from being read.
    shared.end(Error::ConnectionClosed(Arc::new(closed_by_owner())));
    shared.wake();
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("is_open", &self.is_open()).finish_non_exhaustive()
    }
}

impl Connection {
    /// Connects to the server that a [`Uri`] names, and logs in.
    ///
    /// # Errors
    /// When the text is no URI, the server cannot be reached, or it does not let this client in: 403 for a wrong
    /// password, 530 for an unknown virtual host.
    ///
    /// # Panics
    /// Outside of a tokio runtime with I/O and time.
    pub async fn open(uri: &str) -> Result<Self, Error> {
        Self::open_uri(&uri.parse()?).await
    }

    /// The same for a URI that is parsed, and perhaps changed.
    ///
    /// # Errors
    /// As [`Connection::open`], and [`Error::TlsStreamNeeded`] for `amqps://`.
    ///
    /// # Panics
    /// As [`Connection::open`].
    pub async fn open_uri(uri: &Uri) -> Result<Self, Error> {
        if uri.is_tls {
            return Err(Error::TlsStreamNeeded);
        }
        Self::open_through(uri, |stream| std::future::ready(Ok(stream))).await
    }

    /// Connects to the server that a [`Uri`] names, makes another stream of the TCP stream, and logs in over it:
    /// `handshake` is that of TLS, for example. [`Options::connect_timeout`] is for connecting and the handshake
    /// together.
    ///
    /// # Errors
    /// As [`Connection::open`], and what `handshake` fails with, as [`Error::Connect`].
    ///
    /// # Panics
    /// As [`Connection::open`].
    pub async fn open_through<S, F>(
        uri: &Uri,
        handshake: impl FnOnce(TcpStream) -> F,
    ) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        F: Future<Output = io::Result<S>>,
    {
        let connecting = async {
            let stream = TcpStream::connect((uri.host.as_str(), uri.port)).await?;
            // Writes are gathered here; the kernel need not wait for more.
            stream.set_nodelay(true)?;
            handshake(stream).await
        };
        let connected = tokio::time::timeout(uri.options.connect_timeout, connecting).await;
        let stream = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(
            |source| Error::Connect { address: uri.address(), source: Arc::new(source) },
        )?;
        Self::open_on(stream, uri.options.clone()).await
    }

    /// Logs in over a stream that is connected: of TLS, a Unix socket, or a pipe in memory.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// # use courser_client::{Connection, Uri};
    /// let uri: Uri = "amqp://localhost/orders".parse()?;
    /// let stream = tokio::net::UnixStream::connect("/run/broker.sock").await?;
    /// let connection = Connection::open_on(stream, uri.options).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// When the server does not let this client in, or the stream breaks.
    ///
    /// # Panics
    /// Outside of a tokio runtime with time.
    pub async fn open_on<S>(stream: S, options: Options) -> Result<Self, Error>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (opening, opened) = oneshot::channel();
        let shared = Arc::new(Shared::new(options.into_config(), opening));
        let connection = Self { handle: Arc::new(Handle(shared.clone())) };
        tokio::spawn(drive(stream, shared.clone()));
        opened.await.map_err(|_| shared.inspect(|core| core.connection_error()))?;
        Ok(connection)
    }

    /// Opens a channel.
    ///
    /// # Errors
    /// When the connection has ended, or all its channels are in use.
    pub async fn open_channel(&self) -> Result<Channel, Error> {
        Channel::open(self.handle.clone()).await
    }

    /// Closes the connection and everything on it.
    ///
    /// What was published is sent, and confirms that are outstanding are waited for, together at most as long as
    /// [`Options::close_timeout`]; then the server has as long to answer. Consumers end: what they have is back in its
    /// queue, or can still be taken if it counts as acknowledged.
    ///
    /// # Errors
    /// Why the connection had ended before, if not by this function. [`Error::NotConfirmed`] or
    /// [`Error::CloseUnanswered`] when the connection is closed, and the server may not have all that was published.
    pub async fn close(&self) -> Result<(), Error> {
        let shared = self.shared();
        let settled = tokio::time::timeout(shared.close_timeout, self.wait_for_confirms()).await;
        let count = if settled.is_ok() { 0 } else { shared.inspect(|core| core.unconfirmed()) };
        close(shared);
        let mut finished = shared.finished.subscribe();
        // The sender is in `shared`, which is still there.
        let _ = finished.wait_for(|finished| *finished).await;
        match shared.inspect(|core| core.connection_error()) {
            Error::ConnectionClosed(reason)
                if reason.by == ClosedBy::Local && reason.code == REPLY_SUCCESS =>
            {
                match shared.inspect(|core| core.machine.is_close_answered()) {
                    false => Err(Error::CloseUnanswered),
                    true if count > 0 => Err(Error::NotConfirmed { count }),
                    true => Ok(()),
                }
            }
            error => Err(error),
        }
    }

    /// Waits until no channel has outstanding confirms.
    async fn wait_for_confirms(&self) {
        let shared = self.shared();
        while let Some(state) = shared.inspect(|core| core.unsettled_channel()) {
            let settled = state.settled.notified();
            if state.check_open().is_ok()
                && shared.inspect(|core| core.machine.unconfirmed(state.number)) > 0
            {
                settled.await;
            }
        }
    }

    /// Waits until the connection has ended, and tells why.
    pub async fn closed(&self) -> Error {
        let mut ended = self.shared().ended.subscribe();
        let error = ended.wait_for(Option::is_some).await.ok().and_then(|error| error.clone());
        error.unwrap_or_else(|| self.shared().inspect(|core| core.connection_error()))
    }

    /// Whether the connection can be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.shared().inspect(|core| core.ended.is_none() && core.machine.is_open())
    }

    /// Why the server does not take publishes at present, if it has said so (`connection.blocked`). Publishing then
    /// waits by itself as soon as the buffers are full; the receiver is for those who want to know before.
    #[must_use]
    pub fn blocked(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.shared().blocked.subscribe()
    }

    /// Whether the connection is not read at present, because consumers or returns hold more than the program has
    /// allowed ([`ConsumeOptions::buffer_bytes`](crate::ConsumeOptions::buffer_bytes)). Everything on the connection
    /// waits then, and a server ends a connection that takes nothing for long.
    #[must_use]
    pub fn stalled(&self) -> watch::Receiver<bool> {
        self.shared().stalled.subscribe()
    }

    /// What the server says of itself: product, version, capabilities.
    #[must_use]
    pub fn server_properties(&self) -> FieldTable {
        self.shared().inspect(|core| core.machine.server_properties().clone())
    }

    /// Gives the server a new secret in place of the one of the login, a token that is about to expire for example.
    ///
    /// # Errors
    /// When the connection ends before the server has answered.
    pub async fn update_secret(&self, secret: &[u8], reason: &str) -> Result<(), Error> {
        let reason = crate::names::short("a reason", reason)?;
        let method =
            Method::ConnectionUpdateSecret(connection::UpdateSecret { new_secret: secret, reason });
        let answer = self.shared().change(|core| {
            let error = core.connection_error();
            // The machine does not know of a stream that broke.
            if core.ended.is_some() {
                return Err(error);
            }
            core.machine.request(0, &method).map_err(|e| Error::from_request(&e, error))?;
            let (sender, answer) = oneshot::channel();
            core.secret.push(sender);
            Ok::<_, Error>(answer)
        })?;
        let answer = answer.await;
        answer.map(drop).map_err(|_| self.shared().inspect(|core| core.connection_error()))
    }

    fn shared(&self) -> &Arc<Shared> {
        self.handle.shared()
    }
}
