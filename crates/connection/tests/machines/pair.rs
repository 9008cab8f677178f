//! A client and a server machine against each other, no sockets between, the bytes torn at random places.

use std::sync::Arc;
use std::time::Instant;

use courser_codec::*;
use courser_connection::{client, server};
use proptest::prelude::*;

/// Both ends of a connection. The server confirms and echoes every publish to the channel that it came on.
struct Pair {
    client: client::Connection,
    server: server::Connection,
    now: Instant,
    to_server: Vec<u8>,
    to_client: Vec<u8>,
    left_at_server: Vec<u8>,
    left_at_client: Vec<u8>,
    log: Log,
}

/// What the client has seen.
#[derive(Debug, Default, PartialEq)]
struct Log {
    opened: bool,
    channels: Vec<u16>,
    channels_closed: Vec<u16>,
    deliveries: Vec<(u16, String, Vec<u8>)>,
    confirmed: Vec<(u16, u64)>,
    replies: Vec<&'static str>,
    closed: Option<(u16, String)>,
    server_closed: Option<(u16, String)>,
}

impl Pair {
    fn new(client: client::Config, server: server::Config) -> Self {
        let now = Instant::now();
        let mut pair = Self {
            client: client::Connection::new(Arc::new(client), now),
            server: server::Connection::new(Arc::new(server), now),
            now,
            to_server: Vec::new(),
            to_client: Vec::new(),
            left_at_server: Vec::new(),
            left_at_client: Vec::new(),
            log: Log::default(),
        };
        pair.to_server.append(pair.client.output());
        pair
    }

    /// Carries bytes both ways, in pieces of the given sizes, until both sides are silent.
    fn run(&mut self, mut sizes: impl FnMut() -> usize) {
        while !self.to_server.is_empty() || !self.to_client.is_empty() {
            let size = sizes().min(self.to_server.len());
            self.left_at_server.extend(self.to_server.drain(..size));
            self.serve();
            let size = sizes().min(self.to_client.len());
            self.left_at_client.extend(self.to_client.drain(..size));
            self.consume();
        }
    }

    fn serve(&mut self) {
        let buffer = std::mem::take(&mut self.left_at_server);
        let mut input = &buffer[..];
        while let Some(event) = self.server.next(&mut input, self.now) {
            self.to_client.append(self.server.output());
            match event {
                server::Event::Login { .. } => self.server.login_accepted(self.now),
                server::Event::Open { .. } => self.server.open_accepted(self.now),
                server::Event::Publish(publish) => self.echo(publish),
                server::Event::LargePublish(publish) => self.echo(publish.as_publish()),
                server::Event::Request { channel, method: Method::ConfirmSelect(select) } => {
                    assert!(!select.nowait);
                    self.server.transmit(channel, &Method::ConfirmSelectOk(confirm::SelectOk {}));
                }
                server::Event::Closed(reason) => {
                    self.log.server_closed = Some((reason.code, reason.text.clone()))
                }
                server::Event::ChannelOpened { .. }
                | server::Event::ChannelClosed { .. }
                | server::Event::PublishBegun { .. } => {}
                other => panic!("{other:?}"),
            }
            self.to_client.append(self.server.output());
        }
        self.to_client.append(self.server.output());
        self.left_at_server = input.to_vec();
    }

    fn echo(&mut self, publish: server::Publish<'_>) {
        let deliver = basic::Deliver {
            consumer_tag: "echo".try_into().unwrap(),
            delivery_tag: 1,
            redelivered: false,
            exchange: publish.publish.exchange,
            routing_key: publish.publish.routing_key,
        };
        deliver.write_frame(publish.channel, &mut self.to_client);
        write_frame(FrameKind::Header, publish.channel, publish.header, &mut self.to_client);
        client::write_body(
            publish.channel,
            publish.body,
            self.server.frame_max(),
            &mut self.to_client,
        );
        if publish.confirm_seq != 0 {
            let ack = basic::Ack {
                delivery_tag: publish.confirm_seq,
                multiple: publish.confirm_seq.is_multiple_of(3),
            };
            ack.write_frame(publish.channel, &mut self.to_client);
        }
    }

    fn consume(&mut self) {
        let buffer = std::mem::take(&mut self.left_at_client);
        let mut input = &buffer[..];
        let log = &mut self.log;
        while let Some(event) = self.client.next(&mut input, self.now) {
            self.to_server.append(self.client.output());
            match event {
                client::Event::Opened => log.opened = true,
                client::Event::ChannelOpened { channel } => log.channels.push(channel),
                client::Event::ChannelClosed { channel, .. } => log.channels_closed.push(channel),
                client::Event::Delivery(delivery) => log.deliver(delivery),
                client::Event::LargeDelivery(delivery) => log.deliver(delivery.as_delivery()),
                client::Event::Confirm { channel, first, last, is_ack: true } => {
                    log.confirmed.extend((first..=last).map(|seq| (channel, seq)));
                }
                client::Event::Reply { method, .. } => log.replies.push(method.name()),
                client::Event::Closed(reason) => {
                    log.closed = Some((reason.code, reason.text.clone()))
                }
                other => panic!("{other:?}"),
            }
        }
        self.to_server.append(self.client.output());
        self.left_at_client = input.to_vec();
    }
}

impl Log {
    fn deliver(&mut self, delivery: client::Delivery<'_>) {
        let client::DeliveryMethod::Deliver(deliver) = delivery.method else {
            panic!("{delivery:?}")
        };
        assert_eq!(delivery.content_header().unwrap().body_size, delivery.body.len() as u64);
        self.deliveries.push((
            delivery.channel,
            deliver.routing_key.to_string(),
            delivery.body.to_vec(),
        ));
    }
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Sizes of pieces: mostly one repeated choice, so that streams of every grain come up.
fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        proptest::collection::vec(1usize..40, 1..20),
        proptest::collection::vec(1usize..5000, 1..20),
        Just(vec![usize::MAX]),
        Just(vec![1]),
    ]
}

fn cycle(sizes: Vec<usize>) -> impl FnMut() -> usize {
    let mut sizes = sizes.into_iter().cycle();
    move || sizes.next().unwrap_or(1)
}

fn body_len() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), 1usize..100, 4000usize..4200, 16_000usize..17_000, 20_000usize..60_000]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn messages_survive_any_split_of_the_stream(
        sizes in pieces(),
        frame_max in prop_oneof![Just(4096u32), Just(20_000), Just(131_072)],
        messages in proptest::collection::vec((1u16..4, body_len()), 0..12),
    ) {
        let client = client::Config { frame_max, ..Default::default() };
        let mut pair = Pair::new(client, server::Config::default());
        pair.run(cycle(sizes.clone()));
        prop_assert!(pair.log.opened);
        prop_assert_eq!(pair.server.frame_max(), frame_max);

        for expected in 1..=3 {
            prop_assert_eq!(pair.client.open_channel(), Ok(expected));
        }
        pair.to_server.append(pair.client.output());
        pair.run(cycle(sizes.clone()));
        prop_assert_eq!(&pair.log.channels, &[1, 2, 3]);

        // Channel 3 has confirms.
        pair.client.request(3, &Method::ConfirmSelect(confirm::Select { nowait: false })).unwrap();
        pair.to_server.append(pair.client.output());
        let mut expected = Vec::new();
        for (i, &(channel, len)) in messages.iter().enumerate() {
            let key = format!("key-{i}");
            let publish = basic::Publish { routing_key: key.as_str().try_into().unwrap(), ..Default::default() };
            let body = body(len);
            pair.client.publish(channel, &publish, RawProperties::EMPTY, &body, &mut pair.to_server).unwrap();
            expected.push((channel, key, body));
        }
        pair.run(cycle(sizes.clone()));
        prop_assert_eq!(&pair.log.deliveries, &expected);
        let confirmed: Vec<_> = (1..).take(expected.iter().filter(|(channel, ..)| *channel == 3).count()).map(|seq| (3, seq)).collect();
        prop_assert_eq!(&pair.log.confirmed, &confirmed);
        prop_assert_eq!(pair.client.unconfirmed(3), 0);
        prop_assert_eq!(&pair.log.replies, &["confirm.select-ok"]);

        pair.client.close_channel(2, 200, "done");
        pair.to_server.append(pair.client.output());
        pair.run(cycle(sizes.clone()));
        prop_assert_eq!(&pair.log.channels_closed, &[2]);
        prop_assert_eq!(pair.client.open_channel(), Ok(2));
        pair.client.close(200, "bye", pair.now);
        pair.to_server.append(pair.client.output());
        pair.run(cycle(sizes));
        prop_assert!(pair.client.is_closed());
        prop_assert_eq!(pair.log.server_closed.take(), Some((200, "bye".to_owned())));
    }
}

#[test]
fn a_server_that_shuts_down_tells_the_client() {
    let mut pair = Pair::new(client::Config::default(), server::Config::default());
    pair.run(cycle(vec![usize::MAX]));
    pair.server.shutdown("broker forced connection closure with reason 'shutdown'", pair.now);
    pair.to_client.append(pair.server.output());
    pair.run(cycle(vec![usize::MAX]));
    let text =
        "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'".to_owned();
    assert_eq!(pair.log.closed, Some((320, text)));
    assert!(pair.client.is_closed() && pair.server.is_closed());
}

#[test]
fn a_channel_that_the_server_closes_can_be_opened_again() {
    let mut pair = Pair::new(client::Config::default(), server::Config::default());
    pair.run(cycle(vec![usize::MAX]));
    let channel = pair.client.open_channel().unwrap();
    pair.to_server.append(pair.client.output());
    pair.run(cycle(vec![usize::MAX]));
    pair.server.channel_error(channel, 404, "no queue 'q' in vhost '/'", (50, 10), pair.now);
    pair.to_client.append(pair.server.output());
    pair.run(cycle(vec![usize::MAX]));
    assert_eq!(pair.log.channels_closed, [channel]);
    assert_eq!(pair.client.open_channel(), Ok(channel));
    pair.to_server.append(pair.client.output());
    pair.run(cycle(vec![usize::MAX]));
    assert_eq!(pair.log.channels, [channel, channel]);
}
