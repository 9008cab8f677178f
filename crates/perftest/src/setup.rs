//! Queues and exchange of a run: made before it, looked at and deleted behind it.

use courser_client::{
    Channel, Connection, DeleteQueueOptions, Error, ExchangeKind, ExchangeOptions, FieldTable,
    QueueOptions,
};

use crate::arguments;
use crate::context::Context;
use crate::options::Options;

/// The connection for everything but messages, and what was made over it.
pub struct Setup {
    connection: Connection,
    channel: Channel,
    created_queues: Vec<String>,
    created_exchange: bool,
    /// What the broker calls itself.
    pub broker: String,
}

impl Setup {
    /// Makes what is missing. What is there already is used as it is.
    ///
    /// # Errors
    /// When the broker cannot be reached or refuses.
    pub async fn prepare(context: &Context) -> Result<Self, Error> {
        let connection = context.endpoints.connect(0, "setup").await?;
        let channel = connection.open_channel().await?;
        let properties = connection.server_properties();
        let said = |name| properties.get(name).and_then(|value| value.as_str()).unwrap_or("?");
        let broker = format!("{} {}", said("product"), said("version"));
        let mut setup = Self {
            connection,
            channel,
            created_queues: Vec::new(),
            created_exchange: false,
            broker,
        };
        setup.declare_exchange(context).await?;
        for queue in 0..context.topology.queues.len() {
            setup.declare_queue(context, queue).await?;
        }
        Ok(setup)
    }

    async fn declare_exchange(&mut self, context: &Context) -> Result<(), Error> {
        let options = &context.options;
        if options.exchange.is_empty() {
            return Ok(());
        }
        // A missing exchange costs the channel that asks for it.
        let asking = self.connection.open_channel().await?;
        let exists = is_there(asking.exchange_check(&options.exchange).await)?;
        if !exists {
            let exchange = ExchangeOptions {
                durable: options.is_durable(),
                arguments: arguments::table(&options.kind.exchange_args),
                ..ExchangeOptions::default()
            };
            let kind = ExchangeKind::from(options.exchange_type.as_str());
            self.channel.exchange_declare(&options.exchange, kind, exchange).await?;
            self.created_exchange = true;
        }
        Ok(())
    }

    async fn declare_queue(&mut self, context: &Context, queue: usize) -> Result<(), Error> {
        let options = &context.options;
        let name = &context.topology.queues[queue];
        let asking = self.connection.open_channel().await?;
        if !is_there(asking.queue_info(name).await)? {
            let queue = QueueOptions {
                durable: options.is_durable(),
                arguments: arguments::table(&arguments::of_queues(options)),
                ..QueueOptions::default()
            };
            self.channel.queue_declare(name, queue).await?;
            self.created_queues.push(name.clone());
        }
        if !options.exchange.is_empty() {
            for key in context.topology.binding_keys(queue) {
                let arguments = binding_arguments(options);
                self.channel.queue_bind(name, &options.exchange, &key, arguments).await?;
            }
        }
        Ok(())
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
            for queue in &self.created_queues {
                // A broker that has gone has taken the queue along, or keeps it; nothing can be done here.
                let _ = self.channel.queue_delete(queue, DeleteQueueOptions::default()).await;
            }
            if self.created_exchange {
                let _ = self.channel.exchange_delete(&context.options.exchange, false).await;
            }
        }
        let _ = self.connection.close().await;
    }
}

/// Makes "not found" an answer.
fn is_there<T>(answer: Result<T, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if error.reply_code() == Some(404) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A headers exchange is bound for messages with all the headers of the run.
fn binding_arguments(options: &Options) -> FieldTable {
    match options.exchange_type.as_str() {
        "headers" => arguments::table(&options.headers).with("x-match", "all"),
        _ => FieldTable::new(),
    }
}
