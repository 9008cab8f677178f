//! The batch interface.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use courser_client::batch::{Confirmed, Deliveries, Envelope, PublishBatch, Sent};
use courser_client::{ConsumeOptions, OwnedProperties};
use courser_codec::{Method, ShortStr, basic, confirm};
use tokio::sync::mpsc;

use crate::support::{Seen, beside, channel, code};

#[tokio::test]
async fn a_batch_arrives_as_the_messages_that_were_pushed() {
    let (_connection, channel, mut peer) = channel().await;
    let properties = OwnedProperties { delivery_mode: Some(2), ..Default::default() };
    let envelope = Envelope::new("x", "key").unwrap().with_properties(&properties).mandatory();
    let mut batch = PublishBatch::new(&channel);
    let bodies = [vec![], vec![1], vec![2; 131_064], vec![3; 131_065], vec![4; 500_000]];
    for body in &bodies {
        batch.push(&envelope, body).unwrap();
    }
    assert_eq!(batch.len(), bodies.len());
    let sending =
        beside(async move { (channel.send(&mut batch).await, batch.is_empty(), channel) });
    for body in bodies {
        let expected = Seen::Publish {
            channel: 1,
            exchange: "x".into(),
            key: "key".into(),
            mandatory: true,
            body,
            seq: 0,
        };
        assert_eq!(peer.seen().await, expected);
    }
    let (sent, is_empty, _channel) = sending.await.unwrap();
    assert_eq!((sent.unwrap(), is_empty), (Sent { first: 0, last: 0 }, true));
}

#[tokio::test]
async fn confirms_come_as_ranges() {
    let (_connection, channel, mut peer) = channel().await;
    let (told, mut ranges) = mpsc::unbounded_channel();
    let selecting = beside({
        let channel = channel.clone();
        async move { channel.confirm_batches(move |confirmed| told.send(confirmed).unwrap()).await }
    });
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(confirm::SelectOk)).await;
    selecting.await.unwrap().unwrap();

    let envelope = Envelope::new("", "q").unwrap();
    let mut batch = PublishBatch::new(&channel);
    for _ in 0..10 {
        batch.push(&envelope, b"x").unwrap();
    }
    assert_eq!(channel.send(&mut batch).await.unwrap(), Sent { first: 1, last: 10 });
    batch.push(&envelope, b"x").unwrap();
    assert_eq!(channel.send(&mut batch).await.unwrap(), Sent { first: 11, last: 11 });
    for _ in 0..11 {
        peer.publish().await;
    }
    peer.ack(1, 4, false).await;
    peer.ack(1, 9, true).await;
    let nack = basic::Nack { delivery_tag: 0, multiple: true, requeue: false };
    peer.send(1, Method::BasicNack(nack)).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let Confirmed { first, last, is_ack } = ranges.recv().await.unwrap();
        seen.push((first, last, is_ack));
    }
    assert_eq!(seen, [(4, 4, true), (1, 3, true), (5, 9, true), (10, 11, false)]);
}

#[tokio::test]
async fn a_handler_sees_every_message_and_acknowledges_in_one() {
    let (_connection, channel, mut peer) = channel().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let consuming = beside({
        let (channel, seen) = (channel.clone(), seen.clone());
        let handler = move |deliveries: &mut Deliveries<'_>| {
            let mut seen = seen.lock().unwrap();
            seen.extend(deliveries.iter().map(|view| (view.delivery_tag(), view.body().len())));
            deliveries.ack_all();
        };
        async move { channel.consume_batches("q", ConsumeOptions::default(), handler).await }
    });
    let (_, tag) = peer.accept_consumer().await;
    let consumer = consuming.await.unwrap().unwrap();
    for number in 1..=600 {
        peer.deliver(1, &tag, number, &vec![0; number as usize]).await;
    }
    peer.deliver(1, &tag, 601, &vec![0; 200_000]).await;
    let mut acknowledged = 0;
    while acknowledged < 601 {
        let (_, payload) = peer.request("basic.ack").await;
        let Ok(Method::BasicAck(ack)) = Method::decode(&payload) else { panic!() };
        assert!(ack.multiple && ack.delivery_tag > acknowledged);
        acknowledged = ack.delivery_tag;
    }
    let mut expected: Vec<_> = (1..=600).map(|number| (number, number as usize)).collect();
    expected.push((601, 200_000));
    assert_eq!(*seen.lock().unwrap(), expected);

    let cancelling = beside(async move {
        consumer.cancel().await.unwrap();
        consumer.ended().await
    });
    peer.request("basic.cancel").await;
    let consumer_tag = ShortStr::cut(&tag);
    peer.send(1, Method::BasicCancelOk(basic::CancelOk { consumer_tag })).await;
    cancelling.await.unwrap().unwrap();
    assert_eq!(Arc::strong_count(&seen), 1, "the handler is dropped with its consumer");
}

#[tokio::test]
async fn a_handler_may_hold_the_channel_that_calls_it() {
    let (connection, channel, mut peer) = channel().await;
    let consuming = beside({
        let (holding, channel) = (channel.clone(), channel);
        async move {
            let handler = move |deliveries: &mut Deliveries<'_>| {
                for delivery in deliveries.iter() {
                    holding.nack(delivery.delivery_tag(), false, true).unwrap();
                }
            };
            channel.consume_batches("q", ConsumeOptions::default(), handler).await
        }
    });
    let (_, tag) = peer.accept_consumer().await;
    let consumer = consuming.await.unwrap().unwrap();
    peer.deliver(1, &tag, 1, b"x").await;
    peer.request("basic.nack").await;
    peer.channel_error(1, 406, "unknown delivery tag 1").await;
    assert_eq!(consumer.ended().await.unwrap_err().reply_code(), Some(406));
    assert!(connection.is_open());
}

#[tokio::test]
async fn a_channel_that_is_opened_while_a_handler_runs_is_not_one_that_has_closed() {
    let (connection, channel, mut peer) = channel().await;
    let opening = beside({
        let connection = connection.clone();
        async move { connection.open_channel().await }
    });
    assert_eq!(peer.channel_opened().await, 2);
    let closed = opening.await.unwrap().unwrap();
    let consuming = beside({
        let closed = closed.clone();
        async move { closed.consume("q", ConsumeOptions::default()).await }
    });
    peer.accept_consumer().await;
    let mut consumer = consuming.await.unwrap().unwrap();

    let (told, mut openings) = mpsc::unbounded_channel();
    let consuming = beside(async move {
        let handler = move |_: &mut Deliveries<'_>| {
            let connection = connection.clone();
            let mut opening = Box::pin(async move { connection.open_channel().await });
            // Asks for a channel; the answer can only come when the handler has returned.
            let polled = opening.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
            told.send(opening).map_err(drop).unwrap();
        };
        channel.consume_batches("q", ConsumeOptions::default(), handler).await
    });
    let (_, tag) = peer.accept_consumer().await;
    let _batches = consuming.await.unwrap().unwrap();
    // The client does not run between the two, and so reads them at once.
    peer.deliver(1, &tag, 1, b"x").await;
    peer.channel_error(2, 406, "no more of this").await;
    let opening = openings.recv().await.unwrap();
    let opened = beside(opening);
    peer.channel_opened().await;
    let opened = opened.await.unwrap().expect("the channel of the handler is open");
    assert_eq!(code(consumer.next().await), Some(406));
    assert!(opened.is_open() && !closed.is_open());
}
