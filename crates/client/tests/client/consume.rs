//! Consumers.

use std::time::Duration;

use courser_client::{ConsumeOptions, Consumer, Error};
use courser_codec::{Method, ShortStr, basic};

use crate::support::{Peer, Seen, beside, channel, channel_over, code};

async fn consumer(options: ConsumeOptions, pipe_bytes: usize) -> (Consumer, String, Peer) {
    let (_connection, channel, mut peer) = channel_over(pipe_bytes).await;
    let consuming = beside(async move { channel.consume("q", options).await });
    let (_, tag) = peer.accept_consumer().await;
    (consuming.await.unwrap().unwrap(), tag, peer)
}

#[tokio::test]
async fn deliveries_come_as_a_stream() {
    let (mut consumer, tag, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    assert_eq!(consumer.consumer_tag(), tag);
    for number in 1..=3 {
        peer.deliver(1, &tag, number, &[number as u8; 10]).await;
    }
    peer.deliver(1, &tag, 4, &vec![4; 300_000]).await;
    for number in 1..=3 {
        let delivery = consumer.next().await.unwrap().unwrap();
        assert_eq!(delivery.delivery_tag(), number);
        assert_eq!(
            (delivery.exchange(), delivery.routing_key()),
            ("x".try_into().unwrap(), "key".try_into().unwrap())
        );
        assert_eq!(delivery.body(), [number as u8; 10]);
        delivery.ack().unwrap();
        peer.request("basic.ack").await;
    }
    let large = consumer.next().await.unwrap().unwrap();
    assert_eq!(large.into_message().into_body(), vec![4; 300_000]);
}

#[tokio::test]
async fn a_consumer_that_does_not_keep_up_stops_the_reading_and_loses_nothing() {
    let options = ConsumeOptions { buffer_bytes: Some(20_000), ..ConsumeOptions::auto_ack() };
    let (mut consumer, tag, mut peer) = consumer(options, 4096).await;
    let sending = beside(async move {
        for number in 1..=1000 {
            peer.deliver(1, &tag, number, &[7; 1000]).await;
        }
        peer
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!sending.is_finished(), "a megabyte was read that the consumer has not taken");
    for number in 1..=1000 {
        let delivery = consumer.next().await.unwrap().unwrap();
        assert_eq!(delivery.delivery_tag(), number);
    }
    sending.await.unwrap();
}

#[tokio::test]
async fn a_full_consumer_does_not_keep_the_connection_from_closing() {
    let (connection, channel, mut peer) = channel_over(4096).await;
    let options = ConsumeOptions { buffer_bytes: Some(1000), ..ConsumeOptions::auto_ack() };
    let consuming = beside(async move { channel.consume("q", options).await });
    let (_, tag) = peer.accept_consumer().await;
    let mut consumer = consuming.await.unwrap().unwrap();
    for number in 1..=4 {
        peer.deliver(1, &tag, number, &[7; 1000]).await;
    }
    let closing = beside(async move { connection.close().await });
    assert_eq!(peer.seen().await, Seen::Gone);
    closing.await.unwrap().unwrap();
    // What had come is still there.
    let mut count = 0;
    while consumer.next().await.unwrap().is_some() {
        count += 1;
    }
    assert!(count >= 1);
}

#[tokio::test]
async fn a_cancelled_consumer_ends_behind_what_has_come() {
    let (mut consumer, tag, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    peer.deliver(1, &tag, 1, b"last").await;
    let cancelling = beside(async move {
        consumer.cancel().await?;
        Ok::<_, Error>((consumer.next().await?, consumer.next().await?))
    });
    peer.request("basic.cancel").await;
    peer.cancel_ok(&tag).await;
    let (last, end) = cancelling.await.unwrap().unwrap();
    assert_eq!(last.unwrap().body(), b"last");
    assert!(end.is_none());
}

#[tokio::test]
async fn a_consumer_that_the_server_cancels_says_so() {
    let (mut consumer, tag, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    let consumer_tag = ShortStr::cut(&tag);
    peer.send(1, Method::BasicCancel(basic::Cancel { consumer_tag, nowait: true })).await;
    let error = consumer.next().await.unwrap_err();
    assert!(matches!(error, Error::ConsumerCancelled { consumer_tag } if consumer_tag == tag));
    assert!(consumer.next().await.unwrap().is_none());
}

#[tokio::test]
async fn what_a_consumer_has_that_the_server_cancels_goes_back_and_is_not_handed_out() {
    let (_connection, channel, mut peer) = channel().await;
    let consuming = beside({
        let channel = channel.clone();
        async move {
            let acknowledging = channel.consume("q", ConsumeOptions::default()).await?;
            let automatic = channel.consume("q", ConsumeOptions::auto_ack()).await?;
            Ok::<_, Error>((acknowledging, automatic))
        }
    });
    peer.accept_consumer().await;
    peer.accept_consumer().await;
    let (mut acknowledging, mut automatic) = consuming.await.unwrap().unwrap();
    for number in 1..=2 {
        peer.deliver(1, "c1", number, b"back in its queue").await;
        peer.deliver(1, "c2", number + 2, b"nowhere else").await;
    }
    for tag in ["c1", "c2"] {
        let consumer_tag = ShortStr::cut(tag);
        peer.send(1, Method::BasicCancel(basic::Cancel { consumer_tag, nowait: true })).await;
    }
    assert_eq!(peer.requeued().await, 1);
    assert_eq!(peer.requeued().await, 2);
    assert!(matches!(acknowledging.next().await, Err(Error::ConsumerCancelled { .. })));
    assert!(acknowledging.next().await.unwrap().is_none());
    for _ in 0..2 {
        assert_eq!(automatic.next().await.unwrap().unwrap().body(), b"nowhere else");
    }
    assert!(matches!(automatic.next().await, Err(Error::ConsumerCancelled { .. })));
}

#[tokio::test]
async fn a_program_can_wait_for_the_end_of_a_consumer_with_a_message_in_hand() {
    let (mut consumer, tag, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    peer.deliver(1, &tag, 1, b"in hand").await;
    let _in_hand = consumer.next().await.unwrap().unwrap();
    let waiting = beside(async move {
        consumer.ended().await;
        consumer
    });
    peer.deliver(1, &tag, 2, b"this is no end").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    let consumer_tag = ShortStr::cut(&tag);
    peer.send(1, Method::BasicCancel(basic::Cancel { consumer_tag, nowait: true })).await;
    let mut consumer = waiting.await.unwrap();
    assert!(matches!(consumer.next().await, Err(Error::ConsumerCancelled { .. })));
    // It has ended before it is asked.
    consumer.ended().await;
}

#[tokio::test]
async fn a_consumer_whose_channel_fails_says_why() {
    let (mut consumer, _, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    peer.channel_error(1, 406, "unknown delivery tag 99").await;
    assert_eq!(code(consumer.next().await), Some(406));
    assert!(consumer.next().await.unwrap().is_none());
}

#[tokio::test]
async fn a_dropped_consumer_gives_back_what_it_has_not_taken() {
    let (mut consumer, tag, mut peer) = consumer(ConsumeOptions::default(), 1 << 20).await;
    peer.deliver(1, &tag, 1, b"taken").await;
    let taken = consumer.next().await.unwrap().unwrap();
    peer.deliver(1, &tag, 2, b"not taken").await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(consumer);
    peer.request("basic.cancel").await;
    // One that was on its way meanwhile. Given back before the server has ended the consumer, both would come again.
    peer.deliver(1, &tag, 3, b"late").await;
    taken.ack().unwrap();
    peer.request("basic.ack").await;
    peer.cancel_ok(&tag).await;
    assert_eq!(peer.requeued().await, 2);
    assert_eq!(peer.requeued().await, 3);
}

#[tokio::test]
async fn tags_are_made_up_and_one_of_ones_own_is_taken_once() {
    let (_connection, channel, mut peer) = channel().await;
    let consuming = beside({
        let channel = channel.clone();
        async move {
            let own = ConsumeOptions { consumer_tag: "c2".into(), ..ConsumeOptions::default() };
            let first = channel.consume("q", own.clone()).await?;
            let second = channel.consume("q", ConsumeOptions::default()).await?;
            let third = channel.consume("q", ConsumeOptions::default()).await?;
            let tags = [&first, &second, &third].map(|consumer| consumer.consumer_tag().to_owned());
            Ok::<_, Error>((
                tags,
                channel.consume("q", own).await.unwrap_err(),
                (first, second, third),
            ))
        }
    });
    for _ in 0..3 {
        peer.accept_consumer().await;
    }
    let (mut tags, error, _consumers) = consuming.await.unwrap().unwrap();
    assert_eq!(error.to_string(), "the channel has a consumer \"c2\" already");
    tags.sort();
    assert!(tags.windows(2).all(|pair| pair[0] != pair[1]), "{tags:?}");
}
