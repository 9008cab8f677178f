//! A first message: declare a queue, publish with a confirm, get it back.
//!
//! `cargo run -p courser-client --example hello [URI]`

use courser_client::{Connection, ConsumeOptions, Error, Outgoing, QueueOptions};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let uri = std::env::args().nth(1).unwrap_or_else(|| "amqp://localhost".to_owned());
    let connection = Connection::open(&uri).await?;
    let channel = connection.open_channel().await?;
    let queue = channel.queue_declare("", QueueOptions::exclusive()).await?;

    channel.confirm_select().await?;
    let message = Outgoing::new("Hello!").content_type("text/plain")?.header("greeting", true)?;
    let confirm = channel.publish("", &queue.name, message).await?;
    println!("published to {}: {:?}", queue.name, confirm.await?);

    let mut consumer = channel.consume(&queue.name, ConsumeOptions::default()).await?;
    if let Some(delivery) = consumer.next().await? {
        println!("received {:?}", String::from_utf8_lossy(delivery.body()));
        delivery.ack()?;
    }
    connection.close().await
}
