//! Clients of the user of the lowest rank, with all that they may say of themselves: each is a row of what such a user sees.

use crate::LOW;
use crate::direct::{Asked, Direct};
use crate::largest::{CONNECTION, QUEUE};
use courser_broker::admin::{ClientProperties, ConnectionDetails};
use courser_broker::{Batch, Identity, Session};
use courser_codec::{FieldTable, Method, ShortString, Table, basic, channel};

/// Connections, and channels of the first of them. Each channel has a consumer.
const CONNECTIONS: usize = 48;
const CHANNELS: u16 = 48;
/// Bytes of what a client says of itself, and of what it says of a consumer.
const PROPERTIES_BYTES: usize = 16 << 10;
const ARGUMENTS_BYTES: usize = 4 << 10;
const FRAME_MAX: usize = 128 << 10;

/// The connections, which stay open as long as they are kept.
pub async fn connect(direct: &Direct) -> Vec<Session> {
    let sessions = (0..CONNECTIONS).map(|nth| open(direct, nth)).collect();
    let channels = CONNECTIONS + usize::from(CHANNELS) - 1;
    for (path, rows) in
        [("connections", CONNECTIONS), ("channels", channels), ("consumers", channels)]
    {
        let path = format!("/api/{path}");
        let seen = direct.ask(Asked::new("GET", &path).by(LOW)).await.json();
        assert_eq!(seen.as_array().map(Vec::len), Some(rows), "{path}");
    }
    sessions
}

fn open(direct: &Direct, nth: usize) -> Session {
    let mut session = connected(direct, nth);
    for number in 1..=if nth == 0 { CHANNELS } else { 1 } {
        session.admit_channel().expect("let in");
        session.open_channel(number);
        consume(&mut session, number);
    }
    session
}

/// More connections, of which each has so many channels.
pub fn with_channels(direct: &Direct, connections: usize, channels: u16) -> Vec<Session> {
    let with_channels = |nth| {
        let mut session = connected(direct, CONNECTIONS + nth);
        for number in 1..=channels {
            session.admit_channel().expect("let in");
            session.open_channel(number);
        }
        session
    };
    (0..connections).map(with_channels).collect()
}

fn connected(direct: &Direct, nth: usize) -> Session {
    let admission = direct.broker.admit(LOW, "/").expect("let in");
    let user = ShortString::try_from(LOW).expect("short");
    let identity = Identity { user, cancel_notify: true, impersonator: false };
    let said = FieldTable::new().with("product", "p".repeat(PROPERTIES_BYTES)).to_entries();
    let details = ConnectionDetails {
        name: if nth == 0 { CONNECTION.to_owned() } else { format!("{CONNECTION} {nth}") },
        mechanism: "PLAIN",
        channel_max: 2047,
        heartbeat_s: 60,
        client_properties: ClientProperties::of(Table::from_entries(&said)),
        tls: None,
    };
    direct.broker.open_connection(admission, identity, FRAME_MAX, details)
}

/// A consumer that is sent nothing.
fn consume(session: &mut Session, number: u16) {
    let arguments = FieldTable::new().with("x-note", "a".repeat(ARGUMENTS_BYTES)).to_entries();
    let tag = "t".repeat(200);
    let consume = basic::Consume {
        queue: QUEUE.try_into().expect("short"),
        consumer_tag: tag.as_str().try_into().expect("short"),
        arguments: Table::from_entries(&arguments),
        ..basic::Consume::default()
    };
    let mut batch = Batch::default();
    let no_flow = Method::ChannelFlow(channel::Flow { active: false });
    for method in [no_flow, Method::BasicConsume(consume)] {
        session.request(&mut batch, number, &method).expect("it is taken");
    }
    session.flush(&mut batch).expect("it is taken");
}
