//! Requests and their answers.

use courser_client::{ExchangeKind, ExchangeOptions, FieldTable, QueueOptions};
use courser_codec::{Method, ShortStr, basic, exchange, queue, tx};

use crate::support::{Seen, beside, channel, code};

#[tokio::test]
async fn a_declared_queue_is_described() {
    let (_connection, channel, mut peer) = channel().await;
    let declaring = beside(async move {
        channel.queue_declare("", QueueOptions::exclusive().with("x-max-length", 10)).await
    });
    let (number, payload) = peer.request("queue.declare").await;
    let Ok(Method::QueueDeclare(declare)) = Method::decode(&payload) else { panic!() };
    assert!(declare.exclusive && !declare.durable && !declare.passive && !declare.nowait);
    assert_eq!(declare.arguments.to_owned().unwrap(), FieldTable::new().with("x-max-length", 10));
    let ok = queue::DeclareOk {
        queue: ShortStr::from_static("amq.gen-1"),
        message_count: 3,
        consumer_count: 2,
    };
    peer.send(number, Method::QueueDeclareOk(ok)).await;
    let info = declaring.await.unwrap().unwrap();
    assert_eq!((info.name.as_str(), info.message_count, info.consumer_count), ("amq.gen-1", 3, 2));
}

#[tokio::test]
async fn answers_go_to_requests_in_their_order() {
    let (_connection, channel, mut peer) = channel().await;
    let purging = beside({
        let channel = channel.clone();
        async move { channel.queue_purge("a").await }
    });
    let (number, _) = peer.request("queue.purge").await;
    let deleting = beside(async move { channel.queue_delete("b", Default::default()).await });
    peer.request("queue.delete").await;
    peer.send(number, Method::QueuePurgeOk(queue::PurgeOk { message_count: 1 })).await;
    peer.send(number, Method::QueueDeleteOk(queue::DeleteOk { message_count: 2 })).await;
    assert_eq!(purging.await.unwrap().unwrap(), 1);
    assert_eq!(deleting.await.unwrap().unwrap(), 2);
}

#[tokio::test]
async fn an_error_of_the_servers_closes_the_channel_alone() {
    let (connection, channel, mut peer) = channel().await;
    let asking = beside({
        let channel = channel.clone();
        async move { channel.queue_info("q").await }
    });
    let (number, _) = peer.request("queue.declare").await;
    peer.channel_error(number, 404, "no queue 'q' in vhost '/'").await;
    let error = asking.await.unwrap().unwrap_err();
    assert_eq!(error.reply_code(), Some(404));
    assert!(error.to_string().contains("NOT_FOUND - no queue 'q' in vhost '/'"), "{error}");
    assert!(!error.is_connection_gone());
    assert!(!channel.is_open() && connection.is_open());
    assert_eq!(code(channel.queue_info("q").await), Some(404));
    assert_eq!(code(channel.ack(1, false)), Some(404));
    assert_eq!(code(channel.publish("", "q", "x").await), Some(404));
    assert_eq!(code(channel.close().await), Some(404));

    // The number is free for another channel, which the old handle does not touch.
    let opening = beside(async move { connection.open_channel().await });
    assert_eq!(peer.channel_opened().await, number);
    let other = opening.await.unwrap().unwrap();
    drop(channel);
    let asking = beside(async move { other.queue_info("r").await });
    peer.request("queue.declare").await;
    asking.abort();
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_connection() {
    let (connection, _channel, mut peer) = channel().await;
    peer.send(1, Method::QueueBindOk(queue::BindOk)).await;
    let error = connection.closed().await;
    assert_eq!(error.reply_code(), Some(503));
    assert!(error.to_string().contains("unexpected queue.bind-ok"), "{error}");
}

#[tokio::test]
async fn a_name_that_is_too_long_is_not_sent() {
    let (_connection, channel, mut peer) = channel().await;
    let long = "q".repeat(256);
    let error = channel.queue_declare(&long, QueueOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "a queue's name of 256 bytes; at most 255 are possible");
    assert!(channel.publish("", &long, "x").await.is_err());
    assert!(channel.is_open());
    drop(channel);
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
}

#[tokio::test]
async fn every_request_waits_for_its_own_answer() {
    let (_connection, channel, mut peer) = channel().await;
    let asking = beside(async move {
        let none = FieldTable::new;
        channel.exchange_declare("x", ExchangeKind::Topic, ExchangeOptions::default()).await?;
        channel.exchange_check("x").await?;
        channel.exchange_bind("x", "y", "k", none()).await?;
        channel.exchange_unbind("x", "y", "k", none()).await?;
        channel.exchange_delete("x", true).await?;
        channel.queue_bind("q", "x", "k", none()).await?;
        channel.queue_unbind("q", "x", "k", none()).await?;
        channel.qos(5).await?;
        channel.qos_shared(6).await?;
        channel.recover().await?;
        channel.tx_select().await?;
        channel.tx_commit().await?;
        channel.tx_rollback().await?;
        assert!(channel.get("q", false).await?.is_none());
        channel.close().await
    });
    let script: [(&str, Method<'_>); 14] = [
        ("exchange.declare", Method::ExchangeDeclareOk(exchange::DeclareOk)),
        ("exchange.declare", Method::ExchangeDeclareOk(exchange::DeclareOk)),
        ("exchange.bind", Method::ExchangeBindOk(exchange::BindOk)),
        ("exchange.unbind", Method::ExchangeUnbindOk(exchange::UnbindOk)),
        ("exchange.delete", Method::ExchangeDeleteOk(exchange::DeleteOk)),
        ("queue.bind", Method::QueueBindOk(queue::BindOk)),
        ("queue.unbind", Method::QueueUnbindOk(queue::UnbindOk)),
        ("basic.qos", Method::BasicQosOk(basic::QosOk)),
        ("basic.qos", Method::BasicQosOk(basic::QosOk)),
        ("basic.recover", Method::BasicRecoverOk(basic::RecoverOk)),
        ("tx.select", Method::TxSelectOk(tx::SelectOk)),
        ("tx.commit", Method::TxCommitOk(tx::CommitOk)),
        ("tx.rollback", Method::TxRollbackOk(tx::RollbackOk)),
        ("basic.get", Method::BasicGetEmpty(basic::GetEmpty)),
    ];
    for (request, answer) in script {
        let (number, _) = peer.request(request).await;
        peer.send(number, answer).await;
    }
    assert_eq!(peer.seen().await, Seen::ChannelClosed(1));
    asking.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_message_that_was_got_can_be_acknowledged() {
    let (_connection, channel, mut peer) = channel().await;
    let getting = beside(async move { channel.get("q", false).await });
    let (number, _) = peer.request("basic.get").await;
    let got =
        basic::GetOk { delivery_tag: 9, redelivered: true, message_count: 4, ..Default::default() };
    peer.send_message(number, Method::BasicGetOk(got), b"body").await;
    let delivery = getting.await.unwrap().unwrap().unwrap();
    assert_eq!((delivery.body(), delivery.message_count()), (&b"body"[..], Some(4)));
    assert!(delivery.redelivered());
    delivery.ack().unwrap();
    let (_, payload) = peer.request("basic.ack").await;
    let ack = basic::Ack { delivery_tag: 9, multiple: false };
    assert_eq!(Method::decode(&payload), Ok(Method::BasicAck(ack)));
}
