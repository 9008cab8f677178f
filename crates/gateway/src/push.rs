//! PUSH: the messages of a queue go to peers.
//!
//! A message is acknowledged when the socket has taken it over; from there on it is at most once. While peers do not
//! read, or there is none, the socket takes nothing, and the broker sends no more than the prefetch. If the broker takes
//! that back, because nothing of it is acknowledged for too long, none of it goes to a peer.

use crate::link::{Link, LinkError};
use crate::socket::has_peer;
use courser_client::{ConsumeOptions, Delivery};
use omq_tokio::{Message, Socket};

/// Carries messages from the broker to the socket until the gateway stops.
pub(crate) async fn run(link: Link, socket: &Socket) {
    loop {
        let served = tokio::select! {
            served = serve(&link, socket) => served,
            () = link.stopped() => return,
        };
        if let Err(error) = served
            && !link.may_retry(&error).await
        {
            return;
        }
    }
}

async fn serve(link: &Link, socket: &Socket) -> Result<(), LinkError> {
    let (_connection, channel, queue) = link.with_queue().await?;
    channel.qos(link.config.prefetch).await?;
    let options = ConsumeOptions {
        buffer_bytes: Some(link.config.high_water_bytes),
        ..ConsumeOptions::default()
    };
    let mut consumer = channel.consume(&queue, options).await?;
    while let Some(delivery) = consumer.next().await? {
        tokio::select! {
            biased;
            // The message is back in the queue, or will be, as the connection goes with the consumer.
            () = consumer.ended() => {}
            handed_over = hand_over(link, socket, &delivery) => handed_over?,
        }
    }
    Err(LinkError::QueueGone)
}

async fn hand_over(link: &Link, socket: &Socket, delivery: &Delivery) -> Result<(), LinkError> {
    let Some((frames, _)) = link.outgoing(delivery.message()) else {
        return Ok(delivery.nack(false)?);
    };
    let message = Message::multipart(frames);
    let size_bytes = message.byte_len();
    has_peer(socket).await?;
    socket.send(message).await?;
    link.metrics.note_sent(size_bytes);
    Ok(delivery.ack()?)
}
