//! Publishing for an endpoint that consumes as well.
//!
//! It has a connection of its own: in an alarm the broker reads nothing more from one that publishes, and what the
//! endpoint acknowledges may be what the end of the alarm waits for.

use crate::link::{Link, LinkError};
use bytes::Bytes;
use courser_client::{Channel, Confirm, Connection, Error, Outgoing, OwnedProperties};
use std::pin::Pin;

/// A message for a queue.
pub(crate) struct Parcel {
    /// Says which it is once it is handed over.
    pub number: u64,
    pub queue: String,
    pub body: Bytes,
    pub properties: OwnedProperties,
    pub is_mandatory: bool,
}

type Publishing = Pin<Box<dyn Future<Output = Result<Confirm, Error>> + Send>>;

pub(crate) struct Publisher {
    pub connection: Connection,
    pub channel: Channel,
    /// A message that waits for room on its way to the broker.
    under_way: Option<(u64, Publishing)>,
}

impl Publisher {
    pub async fn open(link: &Link) -> Result<Self, LinkError> {
        let (connection, channel) = link.connect().await?;
        Ok(Publisher { connection, channel, under_way: None })
    }

    /// Whether a message is under way, so that no other can be.
    pub fn is_busy(&self) -> bool {
        self.under_way.is_some()
    }

    pub fn begin(&mut self, parcel: Parcel) {
        debug_assert!(!self.is_busy());
        let channel = self.channel.clone();
        let Parcel { number, queue, body, properties, is_mandatory } = parcel;
        let publishing = async move {
            let outgoing = Outgoing::new(&body).properties(properties);
            let outgoing = if is_mandatory { outgoing.mandatory() } else { outgoing };
            channel.publish("", &queue, outgoing).await
        };
        self.under_way = Some((number, Box::pin(publishing)));
    }

    /// Waits until the message that is under way is handed over; gives its number. Loses nothing when it is dropped.
    pub async fn done(&mut self) -> (u64, Result<Confirm, Error>) {
        let Some((number, publishing)) = &mut self.under_way else {
            return std::future::pending().await;
        };
        let done = (*number, publishing.await);
        self.under_way = None;
        done
    }
}
