//! Connections that producers, or consumers, have in common.

use courser_client::{Connection, Error};
use tokio::sync::Mutex;

use crate::endpoints::Endpoints;

/// The connections of all producers, or of all consumers.
pub struct Links {
    /// What is at their end.
    role: &'static str,
    /// How many share one.
    channels: usize,
    connections: Vec<Mutex<Option<Connection>>>,
}

impl Links {
    /// For `count` of them, `channels` on each connection.
    #[must_use]
    pub fn new(role: &'static str, count: u16, channels: u16) -> Self {
        let connections = (0..count.div_ceil(channels)).map(|_| Mutex::default()).collect();
        Self { role, channels: channels.into(), connections }
    }

    /// The connection of the one with this index, opened if it is not there or has ended.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn connection(
        &self,
        endpoints: &Endpoints,
        index: usize,
    ) -> Result<Connection, Error> {
        let number = index / self.channels;
        let mut link = self.connections[number].lock().await;
        if let Some(connection) = link.as_ref().filter(|connection| connection.is_open()) {
            return Ok(connection.clone());
        }
        let connection =
            endpoints.connect(number, &format!("{} {}", self.role, number + 1)).await?;
        *link = Some(connection.clone());
        Ok(connection)
    }

    /// Closes all connections.
    pub async fn close(&self) {
        for link in &self.connections {
            if let Some(connection) = link.lock().await.take() {
                // What has failed was told before.
                let _ = connection.close().await;
            }
        }
    }
}
