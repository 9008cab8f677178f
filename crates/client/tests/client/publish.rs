//! Publishing, confirms, returns, back-pressure.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use courser_client::{Channel, Confirmation, Outgoing};
use courser_codec::{Method, ShortStr, basic, confirm};

use crate::support::{Peer, Seen, beside, channel, channel_over, code};

/// An open channel in confirm mode. The connection stays open with it.
async fn confirming() -> (Channel, Peer) {
    let (_connection, channel, mut peer) = channel().await;
    let selecting = beside({
        let channel = channel.clone();
        async move { channel.confirm_select().await }
    });
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(confirm::SelectOk)).await;
    selecting.await.unwrap().unwrap();
    (channel, peer)
}

#[tokio::test]
async fn a_publish_without_confirms_resolves_at_once() {
    let (_connection, channel, mut peer) = channel().await;
    let message = Outgoing::new("hello").mandatory().persistent();
    let confirm = channel.publish("x", "key", message).await.unwrap();
    assert_eq!(confirm.await.unwrap(), Confirmation::NotRequested);
    assert_eq!(
        peer.seen().await,
        Seen::Publish {
            channel: 1,
            exchange: "x".into(),
            key: "key".into(),
            mandatory: true,
            body: b"hello".to_vec(),
            seq: 0
        }
    );
}

#[tokio::test]
async fn confirms_resolve_in_any_order() {
    let (channel, mut peer) = confirming().await;
    let mut confirms = Vec::new();
    for number in 0..5_u8 {
        confirms.push(channel.publish("", "q", &[number]).await.unwrap());
    }
    for number in 0..5_u8 {
        assert_eq!(peer.publish().await, (vec![number], u64::from(number) + 1));
    }
    assert_eq!(channel.unconfirmed(), 5);
    let nack = basic::Nack { delivery_tag: 2, multiple: false, requeue: false };
    peer.send(1, Method::BasicNack(nack)).await;
    peer.ack(1, 5, false).await;
    peer.ack(1, 4, true).await;
    let mut answers = Vec::new();
    for confirm in confirms {
        answers.push(confirm.await.unwrap());
    }
    use Confirmation::{Ack, Nack};
    assert_eq!(answers, [Ack, Nack, Ack, Ack, Ack]);
    assert_eq!(channel.wait_for_confirms().await.unwrap(), 1);
    assert_eq!(channel.wait_for_confirms().await.unwrap(), 0);
}

#[tokio::test]
async fn confirms_of_a_channel_that_fails_carry_the_reason() {
    let (channel, mut peer) = confirming().await;
    let confirm = channel.publish("nowhere", "q", "x").await.unwrap();
    peer.publish().await;
    peer.channel_error(1, 404, "no exchange 'nowhere' in vhost '/'").await;
    assert_eq!(code(confirm.await), Some(404));
    assert_eq!(code(channel.wait_for_confirms().await), Some(404));
}

#[tokio::test]
async fn closing_a_channel_waits_for_its_confirms() {
    let (channel, mut peer) = confirming().await;
    let confirm = channel.publish("", "q", "x").await.unwrap();
    let closing = beside(async move { channel.close().await });
    peer.publish().await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    peer.ack(1, 1, false).await;
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
    closing.await.unwrap().unwrap();
    assert!(confirm.await.unwrap().is_ack());
}

#[tokio::test]
async fn a_return_can_be_taken_once_the_confirm_is_there() {
    let (channel, mut peer) = confirming().await;
    let mut returns = channel.returns().unwrap();
    let confirm = channel.publish("", "q", Outgoing::new("back").mandatory()).await.unwrap();
    peer.publish().await;
    let returned = basic::Return {
        reply_code: 312,
        reply_text: ShortStr::from_static("NO_ROUTE"),
        exchange: ShortStr::EMPTY,
        routing_key: ShortStr::from_static("q"),
    };
    peer.send_message(1, Method::BasicReturn(returned), b"back").await;
    peer.ack(1, 1, false).await;
    assert!(confirm.await.unwrap().is_ack());
    let returned = returns.next().await.unwrap().unwrap();
    assert_eq!((returned.reply_code, returned.reply_text.as_str()), (312, "NO_ROUTE"));
    assert_eq!(returned.message.body(), b"back");
    assert_eq!(returned.message.routing_key(), "q");
}

#[tokio::test]
async fn a_large_body_goes_in_frames_that_the_server_takes() {
    let (_connection, channel, mut peer) = channel().await;
    let body: Vec<u8> = (0..1_000_000_u32).map(|number| number as u8).collect();
    let publishing = beside({
        let body = body.clone();
        async move { channel.publish("", "q", &body).await.map(drop) }
    });
    assert_eq!(peer.publish().await.0, body);
    publishing.await.unwrap().unwrap();
}

#[tokio::test]
async fn publishing_waits_for_a_server_that_does_not_read() {
    let (_connection, channel, mut peer) = channel_over(4096).await;
    let published = Arc::new(AtomicUsize::new(0));
    let publishing = beside({
        let published = published.clone();
        async move {
            let body = vec![0; 10_000];
            for _ in 0..100 {
                channel.publish("", "q", &body).await.unwrap();
                published.fetch_add(1, Ordering::Relaxed);
            }
            channel.flush().await.unwrap();
            channel
        }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    let held = published.load(Ordering::Relaxed);
    assert!((10..30).contains(&held), "{held} messages of 10 kB were taken");
    for _ in 0..100 {
        peer.publish().await;
    }
    publishing.await.unwrap();
}

#[tokio::test]
async fn publishing_waits_while_the_server_has_stopped_the_channel() {
    let (_connection, channel, mut peer) = channel().await;
    peer.send(1, Method::ChannelFlow(courser_codec::channel::Flow { active: false })).await;
    let asking = beside({
        let channel = channel.clone();
        async move { channel.qos(1).await }
    });
    peer.request("basic.qos").await;
    peer.send(1, Method::BasicQosOk(basic::QosOk)).await;
    asking.await.unwrap().unwrap();
    let publishing = beside(async move { channel.publish("", "q", "x").await.map(|_| channel) });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!publishing.is_finished());
    peer.send(1, Method::ChannelFlow(courser_codec::channel::Flow { active: true })).await;
    peer.publish().await;
    publishing.await.unwrap().unwrap();
}
