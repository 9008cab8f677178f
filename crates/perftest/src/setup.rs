//! The connection for everything but messages: makes the topology before the run, looks at it and deletes it behind it.

use courser_client::{Channel, Connection, DeleteQueueOptions, Error};

use crate::context::Context;
use crate::declare::declare;
use crate::outcome::ENDING_TIMEOUT;

/// The connection for everything but messages.
pub struct Setup {
    connection: Connection,
    channel: Channel,
    /// What the broker calls itself.
    pub broker: String,
}

impl Setup {
    /// Makes what is missing.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn prepare(context: &Context) -> Result<Self, Error> {
        let setup = Self::connect(context).await?;
        match declare(context, &setup.connection).await {
            Ok(()) => Ok(setup),
            Err(error) => {
                let _ = tokio::time::timeout(ENDING_TIMEOUT, setup.clean_up(context)).await;
                Err(error)
            }
        }
    }

    async fn connect(context: &Context) -> Result<Self, Error> {
        let connection = context.endpoints.connect(0, "setup").await?;
        let channel = connection.open_channel().await?;
        let properties = connection.server_properties();
        let said = |name| properties.get(name).and_then(|value| value.as_str()).unwrap_or("?");
        let broker = format!("{} {}", said("product"), said("version"));
        Ok(Self { connection, channel, broker })
    }

    /// Connects again if its connection has ended and the run may.
    pub async fn renew(&mut self, context: &Context) {
        if self.connection.is_open() || !context.options.reconnect {
            return;
        }
        if let Ok(connected) = Self::connect(context).await {
            *self = connected;
        }
    }

    /// How many messages are ready in these queues. Nothing if the broker does not say.
    pub async fn ready(&self, queues: impl Iterator<Item = &str>) -> Option<u64> {
        let mut ready = 0;
        for queue in queues {
            ready += u64::from(self.channel.queue_info(queue).await.ok()?.message_count);
        }
        Some(ready)
    }

    /// Deletes what was made, unless it is to stay, and closes the connection.
    pub async fn clean_up(self, context: &Context) {
        let keeps = context.options.flags.keep || context.options.consumers == 0;
        if !keeps {
            let (queues, exchange) = {
                let declared = context.declared.lock();
                (declared.queues.clone(), declared.exchange)
            };
            for queue in &queues {
                // A broker that has gone has taken the queue along, or keeps it; nothing can be done here.
                let _ = self.channel.queue_delete(queue, DeleteQueueOptions::default()).await;
            }
            if exchange {
                let _ = self.channel.exchange_delete(&context.options.exchange, false).await;
            }
        }
        let _ = self.connection.close().await;
    }
}
