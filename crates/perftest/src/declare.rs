//! Exchange and queues of a run: made where they are missing.

use courser_client::{Connection, Error, ExchangeKind, ExchangeOptions, FieldTable, QueueOptions};

use crate::arguments;
use crate::context::Context;
use crate::options::Options;

/// What a run has made, and so has to delete.
#[derive(Default)]
pub struct Declared {
    /// Names of queues.
    pub queues: Vec<String>,
    /// Whether the exchange.
    pub exchange: bool,
}

/// Makes what is missing. What is there already is used as it is.
///
/// # Errors
/// When the broker refuses.
pub async fn declare(context: &Context, connection: &Connection) -> Result<(), Error> {
    declare_exchange(context, connection).await?;
    for queue in 0..context.topology.queues.len() {
        declare_queue(context, connection, queue).await?;
    }
    Ok(())
}

async fn declare_exchange(context: &Context, connection: &Connection) -> Result<(), Error> {
    let options = &context.options;
    if options.exchange.is_empty() {
        return Ok(());
    }
    // A missing exchange costs the channel that asks for it.
    let asking = connection.open_channel().await?;
    if is_there(asking.exchange_check(&options.exchange).await)? {
        return asking.close().await;
    }
    let exchange = ExchangeOptions {
        durable: options.is_durable(),
        arguments: arguments::table(&options.kind.exchange_args),
        ..ExchangeOptions::default()
    };
    let kind = ExchangeKind::from(options.exchange_type.as_str());
    let channel = connection.open_channel().await?;
    channel.exchange_declare(&options.exchange, kind, exchange).await?;
    context.declared.lock().exchange = true;
    channel.close().await
}

async fn declare_queue(
    context: &Context,
    connection: &Connection,
    queue: usize,
) -> Result<(), Error> {
    let options = &context.options;
    let name = &context.topology.queues[queue];
    let asking = connection.open_channel().await?;
    let exists = is_there(asking.queue_info(name).await)?;
    let channel = if exists { asking } else { connection.open_channel().await? };
    if !exists {
        let queue = QueueOptions {
            durable: options.is_durable(),
            arguments: arguments::table(&arguments::of_queues(options)),
            ..QueueOptions::default()
        };
        channel.queue_declare(name, queue).await?;
        context.declared.lock().queues.push(name.clone());
    }
    if !options.exchange.is_empty() {
        for key in context.topology.binding_keys(queue) {
            let arguments = binding_arguments(options);
            channel.queue_bind(name, &options.exchange, &key, arguments).await?;
        }
    }
    channel.close().await
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
