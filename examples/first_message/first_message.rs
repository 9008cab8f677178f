//! The first message, with the client in `crates/client`.
//!
//! `cargo run -p courser-client --example first_message`, with a broker on this machine.

use courser_client::{Connection, ConsumeOptions, Error, Outgoing, QueueOptions};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let local = "amqp://guest:guest@localhost:5672/".to_owned();
    let connection = Connection::open(&std::env::var("AMQP_URI").unwrap_or(local)).await?;
    let channel = connection.open_channel().await?;
    let queue = channel.queue_declare("", QueueOptions::exclusive()).await?;
    channel.confirm_select().await?;
    channel.publish("", &queue.name, Outgoing::new("Hello from Rust!")).await?.await?;
    let mut consumer = channel.consume(&queue.name, ConsumeOptions::default()).await?;
    if let Some(delivery) = consumer.next().await? {
        println!("{}", String::from_utf8_lossy(delivery.body()));
        delivery.ack()?;
    }
    connection.close().await
}
