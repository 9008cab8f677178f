//! What is left when the program gives up: dropped consumers and futures.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Barrier, mpsc};
use std::task::Poll;
use std::time::Duration;

use courser_client::batch::{BatchConsumer, Deliveries, Envelope, PublishBatch};
use courser_client::{Channel, ConsumeOptions, Consumer, Error};
use courser_codec::{Method, ShortStr, basic, confirm};

use tokio::runtime::Builder;

use crate::support::{Peer, Seen, beside, channel};

/// Longer than anything takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Begins something and gives it up at once.
pub(crate) async fn begin_and_drop<F: Future>(future: F) {
    let mut future = pin!(future);
    let is_pending = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await;
    assert!(is_pending, "the server has not answered yet");
}

pub(crate) async fn consume(
    channel: &Channel,
    options: ConsumeOptions,
    peer: &mut Peer,
) -> Consumer {
    let consuming = beside({
        let channel = channel.clone();
        async move { channel.consume("q", options).await }
    });
    peer.accept_consumer().await;
    consuming.await.unwrap().unwrap()
}

pub(crate) fn tagged(tag: &str) -> ConsumeOptions {
    ConsumeOptions { consumer_tag: tag.into(), ..ConsumeOptions::default() }
}

/// The consumer gets a message, and the next thing that the server sees is its acknowledgement.
async fn assert_works(consumer: &mut Consumer, tag: &str, peer: &mut Peer) {
    peer.deliver(1, tag, 1, b"hello").await;
    consumer.next().await.unwrap().unwrap().ack().unwrap();
    peer.request("basic.ack").await;
}

#[tokio::test]
async fn a_consumer_that_has_ended_does_not_end_the_one_that_takes_its_tag() {
    let (_connection, channel, mut peer) = channel().await;
    let mut first = consume(&channel, tagged("mine"), &mut peer).await;
    let consumer_tag = ShortStr::from_static("mine");
    peer.send(1, Method::BasicCancel(basic::Cancel { consumer_tag, nowait: true })).await;
    assert!(matches!(first.next().await, Err(Error::ConsumerCancelled { .. })));
    let mut second = consume(&channel, tagged("mine"), &mut peer).await;
    drop(first);
    assert_works(&mut second, "mine", &mut peer).await;
}

#[tokio::test]
async fn a_late_answer_to_a_second_cancel_does_not_end_the_next_consumer() {
    let (_connection, channel, mut peer) = channel().await;
    let first = consume(&channel, tagged("mine"), &mut peer).await;
    begin_and_drop(first.cancel()).await;
    drop(first);
    peer.request("basic.cancel").await;
    peer.request("basic.cancel").await;
    peer.cancel_ok("mine").await;
    // The program learns only by trying that the tag is free.
    let consuming = beside(async move {
        loop {
            match channel.consume("q", tagged("mine")).await {
                Err(Error::ConsumerTagInUse { .. }) => tokio::task::yield_now().await,
                result => return result,
            }
        }
    });
    peer.request("basic.consume").await;
    peer.cancel_ok("mine").await;
    let consumer_tag = ShortStr::from_static("mine");
    peer.send(1, Method::BasicConsumeOk(basic::ConsumeOk { consumer_tag })).await;
    let mut second = consuming.await.unwrap().unwrap();
    assert_works(&mut second, "mine", &mut peer).await;
}

#[tokio::test]
async fn tags_that_are_made_up_are_never_used_again() {
    let (_connection, channel, mut peer) = channel().await;
    let first = consume(&channel, ConsumeOptions::default(), &mut peer).await;
    let cancelling = beside(async move {
        first.cancel().await.unwrap();
        first
    });
    peer.request("basic.cancel").await;
    peer.cancel_ok("c1").await;
    let first = cancelling.await.unwrap();
    let second = consume(&channel, ConsumeOptions::default(), &mut peer).await;
    assert_ne!(first.consumer_tag(), second.consumer_tag());
}

#[tokio::test]
async fn a_dropped_consume_leaves_no_consumer_and_gives_its_messages_back() {
    let (_connection, channel, mut peer) = channel().await;
    begin_and_drop(channel.consume("q", ConsumeOptions::default())).await;
    peer.accept_consumer().await;
    peer.request("basic.cancel").await;
    peer.deliver(1, "c1", 1, b"on its way").await;
    peer.deliver(1, "c1", 2, &vec![7; 300_000]).await;
    peer.cancel_ok("c1").await;
    assert_eq!(peer.requeued().await, 1);
    assert_eq!(peer.requeued().await, 2);
}

#[tokio::test]
async fn a_dropped_consume_of_batches_leaves_no_consumer_either() {
    let (_connection, channel, mut peer) = channel().await;
    let called = |_: &mut Deliveries<'_>| panic!("it was given up");
    begin_and_drop(channel.consume_batches("q", ConsumeOptions::default(), called)).await;
    peer.accept_consumer().await;
    peer.request("basic.cancel").await;
    peer.deliver(1, "c1", 1, b"on its way").await;
    peer.cancel_ok("c1").await;
    assert_eq!(peer.requeued().await, 1);
}

#[tokio::test]
async fn a_handler_of_messages_that_drops_the_last_handle_closes_the_connection() {
    let (connection, channel, mut peer) = channel().await;
    let mut last = Some(channel.clone());
    let consuming = beside(async move {
        let handler = move |_: &mut Deliveries<'_>| drop(last.take());
        channel.consume_batches("q", ConsumeOptions::default(), handler).await
    });
    peer.accept_consumer().await;
    drop((connection, consuming.await.unwrap().unwrap()));
    peer.deliver(1, "c1", 1, b"the last one").await;
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
    assert_eq!(peer.seen().await, Seen::Gone);
}

#[tokio::test]
async fn a_handler_of_confirms_that_drops_the_last_handle_closes_the_connection() {
    let (connection, channel, mut peer) = channel().await;
    let mut last = Some(channel.clone());
    let publishing = beside(async move {
        channel.confirm_batches(move |_| drop(last.take())).await?;
        let mut batch = PublishBatch::new(&channel);
        batch.push(&Envelope::new("", "q")?, b"the last one")?;
        channel.send(&mut batch).await
    });
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(confirm::SelectOk)).await;
    publishing.await.unwrap().unwrap();
    drop(connection);
    peer.publish().await;
    peer.ack(1, 1, false).await;
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
    assert_eq!(peer.seen().await, Seen::Gone);
}

/// A consumer whose handler waits until that of the other connection is called too, and then drops what it was given.
async fn consumes(
    channel: Channel,
    other: Channel,
    barrier: Arc<Barrier>,
    peer: &mut Peer,
) -> BatchConsumer {
    let mut last = Some(other);
    let consuming = beside(async move {
        let handler = move |_: &mut Deliveries<'_>| {
            barrier.wait();
            drop(last.take());
        };
        channel.consume_batches("q", ConsumeOptions::default(), handler).await
    });
    peer.accept_consumer().await;
    consuming.await.unwrap().unwrap()
}

#[test]
fn handlers_that_end_each_others_connections_do_not_wait_for_each_other() {
    // Threads that wait for ever keep no failing test from its end.
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    let bridged = runtime.block_on(async {
        let (first_connection, first, mut first_peer) = channel().await;
        let (second_connection, second, mut second_peer) = channel().await;
        let barrier = Arc::new(Barrier::new(2));
        let there = consumes(first.clone(), second.clone(), barrier.clone(), &mut first_peer).await;
        let back = consumes(second, first, barrier, &mut second_peer).await;
        drop((first_connection, second_connection, there, back));
        first_peer.deliver(1, "c1", 1, b"the last one").await;
        second_peer.deliver(1, "c1", 1, b"the last one").await;
        let both_end = async {
            for peer in [&mut first_peer, &mut second_peer] {
                while peer.seen().await != Seen::Gone {}
            }
        };
        tokio::time::timeout(PATIENCE, both_end).await
    });
    runtime.shutdown_background();
    bridged.expect("both connections end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_has_ended_when_the_last_call_of_its_handler_has() {
    let (connection, channel, mut peer) = channel().await;
    let ((call, called), (go_on, goes_on)) = (mpsc::channel(), mpsc::channel());
    let consuming = beside(async move {
        let handler = move |_: &mut Deliveries<'_>| {
            call.send(()).unwrap();
            goes_on.recv_timeout(PATIENCE).unwrap();
        };
        channel.consume_batches("q", ConsumeOptions::default(), handler).await
    });
    peer.accept_consumer().await;
    let consumer = consuming.await.unwrap().unwrap();
    peer.deliver(1, "c1", 1, b"the last one").await;
    tokio::task::block_in_place(|| called.recv_timeout(PATIENCE)).unwrap();
    let closing = beside({
        let connection = connection.clone();
        async move { connection.close().await }
    });
    connection.closed().await;
    let mut ended = Box::pin(consumer.ended());
    let is_pending = poll_fn(|cx| Poll::Ready(ended.as_mut().poll(cx).is_pending())).await;
    assert!(is_pending, "the handler is still called");
    go_on.send(()).unwrap();
    ended.await.unwrap();
    closing.abort();
}

#[tokio::test]
async fn a_dropped_get_gives_its_message_back_before_and_after_the_answer() {
    let (_connection, channel, mut peer) = channel().await;
    let get_ok = |delivery_tag| {
        Method::BasicGetOk(basic::GetOk {
            delivery_tag,
            redelivered: false,
            exchange: ShortStr::EMPTY,
            routing_key: ShortStr::EMPTY,
            message_count: 0,
        })
    };
    begin_and_drop(channel.get("q", false)).await;
    peer.request("basic.get").await;
    peer.send_message(1, get_ok(1), b"the caller is gone").await;
    assert_eq!(peer.requeued().await, 1);

    // The answer of another request behind it says that it has come.
    let mut get = Box::pin(channel.get("q", false));
    let is_pending = poll_fn(|cx| Poll::Ready(get.as_mut().poll(cx).is_pending())).await;
    assert!(is_pending, "the server has not answered yet");
    let selecting = beside({
        let channel = channel.clone();
        async move { channel.confirm_select().await }
    });
    peer.request("basic.get").await;
    peer.request("confirm.select").await;
    peer.send_message(1, get_ok(2), b"it has come").await;
    peer.send(1, Method::ConfirmSelectOk(Default::default())).await;
    selecting.await.unwrap().unwrap();
    drop(get);
    assert_eq!(peer.requeued().await, 2);
}

#[tokio::test]
async fn what_a_channel_takes_with_it_is_not_handed_out_any_more() {
    let (_connection, channel, mut peer) = channel().await;
    let mut acknowledging = consume(&channel, ConsumeOptions::default(), &mut peer).await;
    let mut automatic = consume(&channel, ConsumeOptions::auto_ack(), &mut peer).await;
    for number in 1..=3 {
        peer.deliver(1, "c1", number, b"back in its queue").await;
        peer.deliver(1, "c2", number + 3, b"nowhere else").await;
    }
    peer.channel_error(1, 406, "no more of this").await;
    channel.confirm_select().await.unwrap_err();
    assert_eq!(acknowledging.next().await.unwrap_err().reply_code(), Some(406));
    assert!(acknowledging.next().await.unwrap().is_none());
    for _ in 0..3 {
        assert_eq!(automatic.next().await.unwrap().unwrap().body(), b"nowhere else");
    }
    assert_eq!(automatic.next().await.unwrap_err().reply_code(), Some(406));
}

/// The prefetch that the server is told next, and the consumer behind it.
async fn prefetch(peer: &mut Peer) -> u16 {
    let (channel, payload) = peer.request("basic.qos").await;
    let Ok(Method::BasicQos(qos)) = Method::decode(&payload) else { panic!("no prefetch") };
    peer.send(channel, Method::BasicQosOk(basic::QosOk {})).await;
    assert!(!qos.global);
    qos.prefetch_count
}

#[tokio::test]
async fn a_consumer_has_a_prefetch_unless_the_program_says_otherwise() {
    let (_connection, channel, mut peer) = channel().await;
    let consuming = beside({
        let channel = channel.clone();
        async move {
            let first = channel.consume("q", ConsumeOptions::auto_ack()).await?;
            let second = channel.consume("q", ConsumeOptions::default()).await?;
            let batches = channel.consume_batches("q", ConsumeOptions::default(), |_| {}).await?;
            channel.qos(7).await?;
            let third = channel.consume("q", ConsumeOptions::default()).await?;
            Ok::<_, Error>((first, second, batches, third))
        }
    });
    let consumed = async |peer: &mut Peer| match peer.seen().await {
        Seen::Request(channel, "basic.consume", payload) => {
            let Ok(Method::BasicConsume(consume)) = Method::decode(&payload) else { panic!() };
            let consumer_tag = consume.consumer_tag;
            peer.send(channel, Method::BasicConsumeOk(basic::ConsumeOk { consumer_tag })).await;
        }
        other => panic!("{other:?} instead of a consumer"),
    };
    consumed(&mut peer).await;
    assert_eq!(prefetch(&mut peer).await, courser_client::DEFAULT_PREFETCH);
    consumed(&mut peer).await;
    // A handler takes what comes.
    assert_eq!(prefetch(&mut peer).await, 0);
    consumed(&mut peer).await;
    assert_eq!(prefetch(&mut peer).await, 7);
    consumed(&mut peer).await;
    consuming.await.unwrap().unwrap();
}
