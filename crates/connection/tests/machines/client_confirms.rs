//! Publisher confirms on the client's side: each publish is told once, however the server orders and folds them.

use std::collections::BTreeSet;

use courser_codec::*;
use courser_connection::client::Event;
use proptest::prelude::*;

use crate::client::{Client, ack};
use crate::common::frame;

#[test]
fn confirms_that_come_out_of_order_are_told_once_each() {
    let mut client = Client::with_channel();
    let select = Method::ConfirmSelect(confirm::Select { nowait: false });
    client.machine.request(1, &select).unwrap();
    let mut out = Vec::new();
    for seq in 1..=10 {
        let publish = basic::Publish::default();
        assert_eq!(
            client.machine.publish(1, &publish, RawProperties::EMPTY, b"", &mut out),
            Ok(seq)
        );
    }
    assert_eq!(client.machine.unconfirmed(1), 10);
    let confirm = |first: u64, last: u64| {
        format!("Confirm {{ channel: 1, first: {first}, last: {last}, is_ack: true }}")
    };
    let bytes = [ack(3, false), ack(5, false), ack(3, false), ack(6, true), ack(99, false)];
    let expected = [confirm(3, 3), confirm(5, 5), confirm(1, 2), confirm(4, 4), confirm(6, 6)];
    assert_eq!(client.feed(&bytes.concat()), expected);
    assert_eq!(client.machine.unconfirmed(1), 4);
    let nack = frame(
        1,
        Method::BasicNack(basic::Nack { delivery_tag: 8, multiple: true, requeue: false }),
    );
    assert_eq!(client.feed(&nack), ["Confirm { channel: 1, first: 7, last: 8, is_ack: false }"]);
    assert_eq!(client.feed(&ack(0, true)), [confirm(9, 10)]);
    assert_eq!(client.machine.unconfirmed(1), 0);
}

#[test]
fn a_confirm_without_confirm_mode_is_passed_on() {
    let mut client = Client::with_channel();
    assert_eq!(client.feed(&ack(1, false)).len(), 1);
    assert!(!client.machine.is_closing());
}

proptest! {
    #[test]
    fn every_publish_is_resolved_exactly_once(
        published in 1u64..60,
        confirms in proptest::collection::vec((0u64..70, any::<bool>()), 0..60),
    ) {
        let mut client = Client::with_channel();
        client.machine.request(1, &Method::ConfirmSelect(confirm::Select { nowait: true })).unwrap();
        let mut out = Vec::new();
        for _ in 0..published {
            client.machine.publish(1, &basic::Publish::default(), RawProperties::EMPTY, b"", &mut out).unwrap();
        }
        let mut open: BTreeSet<u64> = (1..=published).collect();
        for (tag, multiple) in confirms {
            let bytes = ack(tag, multiple);
            let mut input = &bytes[..];
            let mut told = Vec::new();
            while let Some(event) = client.machine.next(&mut input, client.now) {
                let Event::Confirm { first, last, is_ack: true, .. } = event else { panic!("{event:?}") };
                told.extend(first..=last);
            }
            let up_to = if tag == 0 { u64::MAX } else { tag };
            let expected: Vec<u64> =
                if multiple { open.range(..=up_to).copied().collect() } else { open.get(&tag).copied().into_iter().collect() };
            prop_assert_eq!(&told, &expected);
            told.iter().for_each(|seq| { open.remove(seq); });
            prop_assert_eq!(client.machine.unconfirmed(1), open.len() as u64);
        }
    }
}
