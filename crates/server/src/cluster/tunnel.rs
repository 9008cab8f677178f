//! What goes with a client's connection that is passed on to the node that leads.

use crate::peer::Peer;
use courser_cluster::GroupNumber;
use courser_management::ClientTls;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Said by the node that leads before anything of the client: it serves it. One that does not lead any more ends the
/// connection without it.
pub(super) const SERVED: u8 = 1;

/// Whose connection it is, and what for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Note {
    pub what: What,
    /// The group whose leader it is for.
    #[serde(default)]
    pub group: GroupNumber,
    /// The vhost that the client opens, if the leader of home has logged it in already: then what the client has said comes
    /// once more, and the answers that it has had are not for it.
    #[serde(default)]
    pub vhost: Option<String>,
    /// Where the client is.
    pub peer: SocketAddr,
    /// The address that it has come to, if that is not in the name.
    pub local: Option<SocketAddr>,
    /// What the operator sees the connection by.
    pub name: String,
    /// What the TLS handshake with the client said, if there was one.
    pub tls: Option<TlsNote>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Amqp,
    Http,
    /// The HTTP API, for the operator of the machine: the other node has looked who it is.
    Operator,
    /// A vhost, which goes to the group of the node that asks for it.
    Vhost,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TlsNote {
    pub session: String,
    /// The user that the certificate names, if it does.
    pub user: Option<String>,
}

impl TlsNote {
    fn of(tls: &ClientTls) -> Self {
        TlsNote { session: tls.session.clone(), user: tls.user.clone().ok() }
    }
}

impl Note {
    pub fn amqp(peer: &Peer, name: &str) -> Self {
        let tls = peer.tls.as_deref().map(TlsNote::of);
        let (what, group, vhost) = (What::Amqp, GroupNumber::HOME, None);
        Note { what, group, vhost, peer: peer.address, local: None, name: name.to_owned(), tls }
    }

    pub fn http(what: What, peer: SocketAddr, local: SocketAddr, tls: Option<&ClientTls>) -> Self {
        let (local, tls) = (Some(local), tls.map(TlsNote::of));
        Note { what, group: GroupNumber::HOME, vhost: None, peer, local, name: String::new(), tls }
    }

    /// For a vhost that a node takes in.
    pub fn vhost(vhost: &str, group: GroupNumber, node: &str) -> Self {
        let peer = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (vhost, name) = (Some(vhost.to_owned()), node.to_owned());
        Note { what: What::Vhost, group, vhost, peer, local: None, name, tls: None }
    }

    /// The client, as the broker knows it.
    pub fn peer(&self) -> Peer {
        let tls = self.tls.as_ref().map(|tls| {
            let user = tls.user.clone();
            Arc::new(ClientTls {
                session: tls.session.clone(),
                user: user.ok_or("the client presented no TLS certificate that names a user"),
            })
        });
        Peer::new(self.peer, tls)
    }
}
