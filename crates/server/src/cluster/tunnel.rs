//! Clients that have come to another node: what goes with their connections, and how they are served.

use super::carrying::give;
use super::front::{Front, Serves};
use super::redirect::{Newcomer, serve_replayed};
use crate::driver::{self, ClientStream};
use crate::peer::Peer;
use crate::places::Admission;
use crate::service::Service;
use courser_broker::admin::PeerCertificate;
use courser_cluster::GroupNumber;
use courser_cluster::transport::ByteStream;
use courser_management::ClientTls;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;
use zeroize::Zeroizing;

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
    /// The number of the move, for a vhost; 0 if a version asks that has none.
    #[serde(default)]
    pub number: u64,
    /// Where the client is.
    pub peer: SocketAddr,
    /// The address that it has come to, if that is not in the name.
    pub local: Option<SocketAddr>,
    /// What the operator sees the connection by.
    pub name: String,
    /// What the TLS handshake with the client said, if there was one.
    pub tls: Option<TlsNote>,
    /// It is the operator of the machine that it has come to.
    #[serde(default)]
    pub is_operator: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Amqp,
    Http,
    /// The HTTP API, for the operator of the machine: the other node has looked who it is.
    Operator,
    /// The HTTP API, for that of home, which says with each request who asks.
    Inside,
    /// A vhost, which goes to the group of the node that asks for it.
    Vhost,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TlsNote {
    pub session: String,
    /// The user that the certificate names, if it does.
    pub user: Option<String>,
    /// Whose the certificate is, who signed it, how long it is good, and its serial number, if there is one.
    #[serde(default)]
    pub certificate: Option<[String; 4]>,
}

impl TlsNote {
    fn of(tls: &ClientTls) -> Self {
        let certificate = tls.certificate.clone().map(|one| {
            let PeerCertificate { subject, issuer, validity, serial } = one;
            [subject, issuer, validity, serial]
        });
        TlsNote { session: tls.session.clone(), user: tls.user.clone().ok(), certificate }
    }
}

impl Note {
    pub fn amqp(peer: &Peer, name: &str) -> Self {
        let tls = peer.tls.as_deref().map(TlsNote::of);
        let (what, group, vhost) = (What::Amqp, GroupNumber::HOME, None);
        let (peer, name, is_operator) = (peer.address, name.to_owned(), peer.is_operator);
        Note { what, group, vhost, number: 0, peer, local: None, name, tls, is_operator }
    }

    pub fn http(what: What, peer: SocketAddr, local: SocketAddr, tls: Option<&ClientTls>) -> Self {
        let (local, tls) = (Some(local), tls.map(TlsNote::of));
        let (group, name) = (GroupNumber::HOME, String::new());
        let is_operator = what == What::Operator;
        Note { what, group, vhost: None, number: 0, peer, local, name, tls, is_operator }
    }

    /// The note of a connection from the API of home to that of another group.
    pub fn inside(group: GroupNumber) -> Self {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Note { group, ..Note::http(What::Inside, here, here, None) }
    }

    /// For a vhost that a node takes in.
    pub fn vhost((vhost, number): (&str, u64), group: GroupNumber, node: &str) -> Self {
        let peer = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let (vhost, name) = (Some(vhost.to_owned()), node.to_owned());
        let (what, local, tls, is_operator) = (What::Vhost, None, None, false);
        Note { what, group, vhost, number, peer, local, name, tls, is_operator }
    }

    /// The client, as the broker knows it.
    pub fn peer(&self) -> Peer {
        let tls = self.tls.as_ref().map(|tls| {
            let user = tls.user.clone();
            let certificate = tls.certificate.clone().map(|[subject, issuer, validity, serial]| {
                PeerCertificate { subject, issuer, validity, serial }
            });
            Arc::new(ClientTls {
                session: tls.session.clone(),
                certificate,
                user: user.ok_or("the client presented no TLS certificate that names a user"),
                taken: Arc::default(),
            })
        });
        Peer { is_operator: self.is_operator, ..Peer::new(self.peer, tls) }
    }
}

impl Front {
    /// Serves a client that has come to another node, if this one leads the group that it is for.
    pub(super) async fn serve_tunnel<S: ClientStream>(self: Arc<Self>, note: Note, mut stream: S) {
        let Some(Serves::Here(service)) = self.groups.get(note.group).map(|group| group.serves())
        else {
            return;
        };
        // A node that takes this one for the vhost's leader looks for it elsewhere.
        let lacks = |vhost: &String| service.shared.broker.vhost(vhost).is_none();
        if note.vhost.as_ref().is_some_and(lacks) {
            return;
        }
        if stream.write_all(&[SERVED]).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        if let (What::Vhost, Some(vhost)) = (note.what, &note.vhost) {
            let (admin, stopping) = (service.shared.broker.admin(), service.stopping());
            drop(service);
            return give(admin, (vhost.clone(), note.number), stream, stopping).await;
        }
        if note.what != What::Amqp {
            return serve_note_http(service, stream, note).await;
        }
        let (peer, address) = (note.peer(), note.peer);
        let (shared, stopping) = (Arc::clone(&service.shared), service.stopping());
        drop(service);
        let may_go_elsewhere = note.group == GroupNumber::HOME && self.has_several_groups();
        let front = Arc::clone(&self);
        let admission = self.places.admit(|place| {
            let client = Newcomer { peer, place, name: note.name };
            if note.vhost.is_some() {
                let (stream, said) = (Box::new(stream), Zeroizing::default());
                let serving = serve_replayed(stream, said, client, shared, stopping);
                return tokio::spawn(serving).abort_handle();
            }
            if may_go_elsewhere {
                // The other node may think that a vhost is in home that has moved.
                let home = (shared, stopping.clone());
                let serving = front.serve_at_home(Box::new(stream), client, home, stopping);
                return tokio::spawn(serving).abort_handle();
            }
            let Newcomer { peer, place, name } = client;
            let serving = driver::serve(stream, peer, place, name, shared, stopping);
            tokio::spawn(serving).abort_handle()
        });
        if admission == Admission::Refused
            && let Some(suppressed) = self.throttles.connections.allow(Instant::now().into())
        {
            tracing::warn!(peer = %address, suppressed, "refused: too many connections");
        }
    }
}

/// Answers requests of a client that has come to another node, or to this one when it did not lead.
pub(super) async fn serve_note_http<S: ByteStream + 'static>(
    service: Arc<Service>,
    stream: S,
    note: Note,
) {
    let (api, stopping) = (Arc::clone(&service.api), service.stopping());
    drop(service);
    match note.what {
        What::Operator => api.serve_operator(stream, stopping).await,
        What::Inside => api.serve_inside(stream, stopping).await,
        _ => {
            let local = note.local.unwrap_or(note.peer);
            api.serve_relayed(stream, note.peer, local, note.peer().tls, stopping).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tls_says_of_a_client_comes_along_and_may_be_missing() {
        let certificate = PeerCertificate {
            subject: "CN=a".to_owned(),
            issuer: "CN=b".to_owned(),
            validity: "from - to".to_owned(),
            serial: "1E".to_owned(),
        };
        let session = "TLSv1_3, TLS13_AES_256_GCM_SHA384".to_owned();
        let (certificate, user) = (Some(certificate), Ok("a".to_owned()));
        let taken = Arc::default();
        let tls = ClientTls { session, certificate: certificate.clone(), user, taken };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        let note = Note::amqp(&Peer::new(address, Some(Arc::new(tls))), "name");
        let mut sent = serde_json::to_value(&note).expect("it can be written");
        let read = |sent: &serde_json::Value| {
            let note: Note = serde_json::from_value(sent.clone()).expect("it can be read");
            note.peer().tls.expect("TLS").certificate.clone()
        };
        assert_eq!(read(&sent), certificate);
        // As a node of an earlier version sends it.
        sent["tls"].as_object_mut().expect("an object").remove("certificate");
        assert_eq!(read(&sent), None);
    }
}
