//! On what a client comes.

use super::chance::Chance;
use super::socket::Network;

/// On what a client comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub is_web_socket: bool,
    /// Another node passes it on.
    pub is_relayed: bool,
    /// Another broker serves it than the one that logs it in.
    pub is_redirected: bool,
}

impl Route {
    pub fn any(chance: &Chance) -> Self {
        let (is_web_socket, is_relayed) = (chance.one_in(2), chance.one_in(2));
        // The node that leads home redirects a WebSocket, as a client that has come to it.
        let is_redirected = chance.one_in(3) && !(is_web_socket && is_relayed);
        Route { is_web_socket, is_relayed, is_redirected }
    }

    /// Bytes that wait between the broker and a client, at most: those in the windows, of a relay, and of a message of a
    /// WebSocket, which is not taken in part.
    pub fn bytes_on_its_way(self, network: &Network) -> usize {
        let windows = network.window * if self.is_relayed { 2 } else { 1 };
        let of_relay = if self.is_relayed { 64 << 10 } else { 0 };
        windows + of_relay + if self.is_web_socket { 80 << 10 } else { 0 }
    }
}
