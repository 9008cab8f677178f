//! A broker inside a program: on a free port, for as long as the program wants it.
//!
//! `cargo run -p courser --example embedded`

use courser::{Config, HttpListen, Management, Metrics, Server};
use courser_client::{Connection, ConsumeOptions, QueueOptions};
use std::error::Error;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("courser-embedded-{}", std::process::id()));
    let config = Config {
        // Port 0 stands for any free one.
        listen: vec!["127.0.0.1:0".parse()?],
        data_dir: folder.clone(),
        // No program asks over HTTP, neither for the API nor for metrics.
        management: Management { listen: HttpListen::none(), ..Management::default() },
        metrics: Metrics { listen: HttpListen::none(), ..Metrics::default() },
        ..Config::default()
    };
    let broker = Server::start(config).await?;
    println!("listening on {}", broker.addresses()[0]);

    let uri = format!("amqp://guest:guest@{}/", broker.addresses()[0]);
    let connection = Connection::open(&uri).await?;
    let channel = connection.open_channel().await?;
    channel.queue_declare("greetings", QueueOptions::default()).await?;
    channel.confirm_select().await?;
    let confirm = channel.publish("", "greetings", "hello").await?;
    assert!(confirm.await?.is_ack());

    let mut consumer = channel.consume("greetings", ConsumeOptions::default()).await?;
    let delivery = consumer.next().await?.ok_or("the consumer has ended")?;
    println!("received {}", String::from_utf8_lossy(delivery.body()));
    delivery.ack()?;

    connection.close().await?;
    broker.stop().await?;
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

#[test]
fn a_message_goes_through_the_embedded_broker() {
    main().expect("a message there and back");
}
