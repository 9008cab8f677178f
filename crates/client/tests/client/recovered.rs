//! What `basic.recover` has taken back, and who had it.

use courser_client::{Channel, ConsumeOptions, Error};
use courser_codec::{Method, basic, confirm};
use tokio::task::JoinHandle;

use crate::dropped::{begin_and_drop, consume, tagged};
use crate::support::{Peer, beside, channel};

/// Begins a recover, of which the server has seen nothing else before.
async fn begin_recover(channel: &Channel, peer: &mut Peer) -> JoinHandle<Result<(), Error>> {
    let recovering = beside({
        let channel = channel.clone();
        async move { channel.recover().await }
    });
    peer.request("basic.recover").await;
    recovering
}

/// The next thing that the client says is this, which stands behind whatever it has said of messages before.
async fn assert_silent(channel: &Channel, peer: &mut Peer) {
    let selecting = beside({
        let channel = channel.clone();
        async move { channel.confirm_select().await }
    });
    peer.request("confirm.select").await;
    peer.send(1, Method::ConfirmSelectOk(confirm::SelectOk)).await;
    selecting.await.unwrap().unwrap();
}

#[tokio::test]
async fn what_recover_takes_back_is_not_given_back_by_those_who_gave_it_up() {
    let (_connection, channel, mut peer) = channel().await;
    let ended = consume(&channel, tagged("ended"), &mut peer).await;
    let dropped = consume(&channel, tagged("dropped"), &mut peer).await;
    peer.deliver(1, "ended", 1, b"not taken").await;
    peer.deliver(1, "dropped", 2, b"not taken").await;
    let cancelling = beside(async move {
        ended.cancel().await.unwrap();
        ended
    });
    peer.request("basic.cancel").await;
    peer.cancel_ok("ended").await;
    let ended = cancelling.await.unwrap();
    drop(dropped);
    peer.request("basic.cancel").await;
    begin_and_drop(channel.get("q", false)).await;
    peer.request("basic.get").await;
    let recovering = begin_recover(&channel, &mut peer).await;
    drop(ended);
    peer.deliver(1, "dropped", 3, b"on its way").await;
    peer.cancel_ok("dropped").await;
    let get_ok = basic::GetOk { delivery_tag: 4, ..Default::default() };
    peer.send_message(1, Method::BasicGetOk(get_ok), b"the caller is gone").await;
    peer.send(1, Method::BasicRecoverOk(basic::RecoverOk)).await;
    recovering.await.unwrap().unwrap();
    assert_silent(&channel, &mut peer).await;
}

#[tokio::test]
async fn a_consumer_hands_out_nothing_that_recover_has_taken_back() {
    let (_connection, channel, mut peer) = channel().await;
    let mut acknowledging = consume(&channel, ConsumeOptions::default(), &mut peer).await;
    let mut automatic = consume(&channel, ConsumeOptions::auto_ack(), &mut peer).await;
    peer.deliver(1, "c1", 1, b"in hand").await;
    let in_hand = acknowledging.next().await.unwrap().unwrap();
    peer.deliver(1, "c1", 2, b"not taken").await;
    let recovering = begin_recover(&channel, &mut peer).await;
    peer.deliver(1, "c1", 3, b"on its way").await;
    peer.deliver(1, "c2", 4, b"nowhere else").await;
    peer.send(1, Method::BasicRecoverOk(basic::RecoverOk)).await;
    recovering.await.unwrap().unwrap();
    for number in 5..=7 {
        peer.deliver(1, "c1", number, b"again").await;
    }
    // The server does not know its tag any more.
    in_hand.ack().unwrap();
    in_hand.nack(true).unwrap();
    let again = acknowledging.next().await.unwrap().unwrap();
    assert_eq!(again.delivery_tag(), 5);
    again.ack().unwrap();
    let (_, payload) = peer.request("basic.ack").await;
    let ack = basic::Ack { delivery_tag: 5, multiple: false };
    assert_eq!(Method::decode(&payload), Ok(Method::BasicAck(ack)));
    assert_eq!(automatic.next().await.unwrap().unwrap().body(), b"nowhere else");
    drop(acknowledging);
    peer.request("basic.cancel").await;
    peer.cancel_ok("c1").await;
    assert_eq!(peer.requeued().await, 6);
    assert_eq!(peer.requeued().await, 7);
}
