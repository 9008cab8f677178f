//! Who may come in.

use crate::config::Auth;
use courser_connection::Credentials;
use std::net::SocketAddr;

/// The name of the user if the credentials are right and may be used from `peer`.
pub(crate) fn admit<'a>(
    auth: &'a Auth,
    credentials: &Credentials,
    peer: SocketAddr,
) -> Option<&'a str> {
    let (user, password) = match credentials {
        Credentials::Plain { user, password } | Credentials::AmqPlain { user, password } => {
            (user, password)
        }
        Credentials::External | Credentials::Anonymous => return None,
    };
    let known = same(user, auth.user.as_bytes()) & same(password, auth.password.as_bytes());
    let allowed = !auth.loopback_only || peer.ip().to_canonical().is_loopback();
    (known && allowed).then_some(auth.user.as_str())
}

/// Compares in a time that does not tell where the first difference is.
fn same(given: &[u8], wanted: &[u8]) -> bool {
    let differences = given.iter().zip(wanted).fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == wanted.len() && differences == 0
}
