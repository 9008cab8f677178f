//! A socket in the data folder that serves the HTTP API to the operator of this machine, without
//! credentials: to the user whom the broker runs as, and to root. The system says who connects.

use crate::cluster::Front;
use crate::config::Config;
use crate::listener::RETRY_INTERVAL;
use crate::service::stopped;
use courser_management::Api;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

/// Its name in the data folder.
const NAME: &str = "ctl.sock";

/// The socket that is listened on; no command is served at it yet.
pub(crate) struct OperatorSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// The socket's file, which goes with the broker.
pub(crate) struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A file that stays does no harm: the next broker replaces it.
        let _ = fs::remove_file(&self.0);
    }
}

/// Who answers operators.
#[derive(Clone)]
pub(crate) enum Operators {
    Api(Arc<Api>),
    Node(Arc<Front>),
}

impl Operators {
    async fn serve(self, stream: UnixStream, stopping: watch::Receiver<bool>) {
        match self {
            Operators::Api(api) => api.serve_operator(stream, stopping).await,
            Operators::Node(front) => front.serve_operator(stream, stopping).await,
        }
    }
}

impl OperatorSocket {
    /// Listens in the data folder, which no other broker has. A broker without this socket can still be
    /// operated over HTTP, so that a folder that can't hold one stops nothing.
    pub fn bind(config: &Config) -> Option<Self> {
        if !config.management.local_socket {
            return None;
        }
        let path = config.data_dir.join(NAME);
        match listen(&path) {
            Ok(listener) => Some(OperatorSocket { listener, file: SocketFile(path) }),
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    %error,
                    "no socket for 'courser ctl': it needs an address (management.listen) and a password"
                );
                None
            }
        }
    }

    /// Begins to serve, until the broker stops.
    pub fn serve(self, api: Operators, stopping: watch::Receiver<bool>) -> SocketFile {
        tokio::spawn(accept(self.listener, api, stopping));
        self.file
    }
}

fn listen(path: &PathBuf) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        // What a broker left behind that was killed.
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}

async fn accept(listener: UnixListener, api: Operators, mut stopping: watch::Receiver<bool>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stopping) => return,
        };
        match accepted {
            Ok((stream, _)) if is_operator(&stream) => {
                tokio::spawn(api.clone().serve(stream, stopping.clone()));
            }
            Ok(_) => tracing::warn!(
                "connection to {NAME} closed: only root and the broker's user may use it"
            ),
            Err(error) => {
                tracing::debug!(%error, "a connection to {NAME} could not be accepted");
                tokio::time::sleep(RETRY_INTERVAL).await;
            }
        }
    }
}

/// Whether the process at the other end belongs to the user whom the broker runs as, or to root. The
/// permissions of the file say so, too, but not every system looks at them.
fn is_operator(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}
