//! Workers that share a durable queue of tasks. Start some of them, then add tasks by `--add N`.
//!
//! `cargo run -p courser-client --example worker [-- --add N]`

use std::time::Duration;

use courser_client::{Connection, ConsumeOptions, Error, Outgoing, QueueOptions};

const QUEUE: &str = "tasks";

#[tokio::main]
async fn main() -> Result<(), Error> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let connection = Connection::open("amqp://localhost?connection_name=worker").await?;
    let channel = connection.open_channel().await?;
    channel.queue_declare(QUEUE, QueueOptions::durable()).await?;
    match &args[..] {
        [option, count] if option == "--add" => {
            channel.confirm_select().await?;
            for number in 0..count.parse().unwrap_or(1_u32) {
                let task = number.to_string();
                channel.publish("", QUEUE, Outgoing::new(&task).persistent()).await?;
            }
            let refused = channel.wait_for_confirms().await?;
            println!("added, {refused} refused");
        }
        _ => {
            // One task at a time: who is free gets the next one. A task comes back if this process dies.
            channel.qos(1).await?;
            let mut tasks = channel.consume(QUEUE, ConsumeOptions::default()).await?;
            while let Some(task) = tasks.next().await? {
                println!("doing {}", String::from_utf8_lossy(task.body()));
                tokio::time::sleep(Duration::from_millis(200)).await;
                task.ack()?;
            }
        }
    }
    connection.close().await
}
