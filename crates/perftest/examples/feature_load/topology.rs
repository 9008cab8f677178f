//! Declaring, deleting, and looking at queues.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use courser_client::{
    Channel, Connection, DeleteQueueOptions, Error, ExchangeKind, ExchangeOptions, QueueOptions,
};
use tokio::task::JoinSet;

use crate::Answer;
use crate::command::{Declare, Delete, Depth, ExchangeSpec, Json, QueueSpec, table};

/// Something to ask of the server.
enum Request {
    Exchange(ExchangeSpec),
    Queue(QueueSpec),
    Binding(String, String, String, Json),
}

impl Request {
    async fn ask(&self, channel: &Channel) -> Result<(), Error> {
        match self {
            Self::Exchange(ExchangeSpec { name, kind, durable, arguments }) => {
                let (durable, arguments) = (*durable, table(arguments)?);
                let options = ExchangeOptions { durable, arguments, ..Default::default() };
                channel.exchange_declare(name, ExchangeKind::from(kind.as_str()), options).await
            }
            Self::Queue(QueueSpec { name, durable, arguments }) => {
                let (durable, arguments) = (*durable, table(arguments)?);
                let options = QueueOptions { durable, arguments, ..Default::default() };
                channel.queue_declare(name, options).await.map(drop)
            }
            Self::Binding(queue, exchange, key, arguments) => {
                channel.queue_bind(queue, exchange, key, table(arguments)?).await
            }
        }
    }
}

/// Declares everything; counts exchanges, queues and bindings.
pub async fn declare(uri: &str, declare: Declare) -> Result<Answer, Error> {
    let Declare { exchanges, queues, bindings, in_flight } = declare;
    let connection = Connection::open(uri).await?;
    let channel = connection.open_channel().await?;
    let kinds: [Vec<Request>; 3] = [
        exchanges.into_iter().map(Request::Exchange).collect(),
        queues.into_iter().map(Request::Queue).collect(),
        bindings.into_iter().map(|(q, e, key, more)| Request::Binding(q, e, key, more)).collect(),
    ];
    let count = kinds.iter().map(Vec::len).sum::<usize>() as u64;
    let begun = Instant::now();
    for requests in kinds {
        ask_all(&channel, in_flight, requests).await?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    connection.close().await?;
    Ok(Answer { count, seconds, ..Default::default() })
}

/// Asks for all of them, with so many requests on their way at once.
async fn ask_all(channel: &Channel, in_flight: usize, requests: Vec<Request>) -> Result<(), Error> {
    let (requests, next) = (Arc::new(requests), Arc::new(AtomicUsize::new(0)));
    let mut tasks: JoinSet<Result<(), Error>> = JoinSet::new();
    for _ in 0..in_flight.clamp(1, requests.len().max(1)) {
        let (channel, requests, next) = (channel.clone(), requests.clone(), next.clone());
        tasks.spawn(async move {
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                request.ask(&channel).await?;
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap_or(Ok(()))?;
    }
    Ok(())
}

/// Deletes everything.
pub async fn delete(uri: &str, delete: Delete) -> Result<Answer, Error> {
    let connection = Connection::open(uri).await?;
    let channel = connection.open_channel().await?;
    let begun = Instant::now();
    for queue in &delete.queues {
        channel.queue_delete(queue, DeleteQueueOptions::default()).await?;
    }
    for exchange in &delete.exchanges {
        channel.exchange_delete(exchange, false).await?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    connection.close().await?;
    let count = (delete.queues.len() + delete.exchanges.len()) as u64;
    Ok(Answer { count, seconds, ..Default::default() })
}

/// Looks at a queue until it has as many messages as wanted, or the time is over; counts what it has then.
pub async fn wait_for_depth(uri: &str, depth: Depth) -> Result<Answer, Error> {
    let connection = Connection::open(uri).await?;
    let channel = connection.open_channel().await?;
    let begun = Instant::now();
    loop {
        let count = channel.queue_info(&depth.queue).await?.message_count;
        let is_wanted = count >= depth.at_least && depth.at_most.is_none_or(|most| count <= most);
        let elapsed = begun.elapsed();
        if is_wanted || (depth.limit_ms > 0 && elapsed.as_millis() >= depth.limit_ms.into()) {
            connection.close().await?;
            let seconds = elapsed.as_secs_f64();
            return Ok(Answer { count: count.into(), seconds, ..Default::default() });
        }
        tokio::time::sleep(Duration::from_millis(depth.every_ms.max(1))).await;
    }
}
