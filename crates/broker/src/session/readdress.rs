//! Publishes whose properties do not leave as they came: the headers CC and BCC name further routing
//! keys (RabbitMQ's sender-selected distribution), and `reply-to` may ask for a direct reply.

use super::Session;
use super::publish::{Batch, Inbound, is_persistent, malformed};
use super::reply::wants_direct_reply;
use crate::exchange::Envelope;
use crate::fault::Fault;
use crate::vhost::{Route, clean_name};
use courser_codec::{ContentHeader, OwnedProperties, Properties, RawProperties, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Headers that name further routing keys; the second one is not shown to consumers.
const CC: &[u8] = b"CC";
const BCC: &[u8] = b"BCC";

/// A publish on its way: where it goes, and the content header that goes with it.
pub(super) struct Readdressed<'m> {
    pub route: Arc<Route>,
    pub header: Cow<'m, [u8]>,
}

/// Whether the way of a message is decided by more than its exchange and routing key.
pub(super) fn names_more_keys(properties: RawProperties<'_>) -> Result<bool, Fault> {
    if properties.flags() & Properties::HEADERS_FLAG == 0 {
        return Ok(false);
    }
    let Some(headers) = properties.headers().map_err(malformed)? else { return Ok(false) };
    for entry in headers.iter() {
        let (name, _) = entry.map_err(malformed)?;
        if matches!(name.as_bytes(), CC | BCC) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Session {
    /// The way of a message by all its keys, and its content header without BCC.
    pub(super) fn readdress<'m>(
        &mut self,
        inbound: &Inbound<'m>,
        properties: RawProperties<'_>,
    ) -> Result<Readdressed<'m>, Fault> {
        if !names_more_keys(properties)? {
            let route = self.find_route(inbound, properties)?;
            return Ok(Readdressed { route, header: Cow::Borrowed(inbound.header) });
        }
        let headers = properties.headers().map_err(malformed)?.unwrap_or_default();
        let mut keys = vec![inbound.publish.routing_key.as_bytes()];
        let mut has_bcc = false;
        for entry in headers.iter() {
            let (name, value) = entry.map_err(malformed)?;
            if !matches!(name.as_bytes(), CC | BCC) {
                continue;
            }
            has_bcc |= name.as_bytes() == BCC;
            let Value::Array(array) = value else {
                return Err(Fault::precondition_failed(format_args!(
                    "invalid message: {{unacceptable_type_in_header,\"{name}\",{}}}",
                    value.type_name()
                )));
            };
            for element in array.iter() {
                if let Value::LongStr(key) = element.map_err(malformed)? {
                    keys.push(key);
                }
            }
        }
        let envelope = Envelope { keys: &keys, properties };
        let exchange = clean_name(inbound.publish.exchange);
        let route = Arc::new(self.vhost.route(exchange.as_bytes(), &envelope)?);
        let header = if has_bcc {
            Cow::Owned(rewrite(inbound.header, |properties| {
                if let Some(headers) = &mut properties.headers {
                    headers.remove(BCC);
                }
            })?)
        } else {
            Cow::Borrowed(inbound.header)
        };
        Ok(Readdressed { route, header })
    }
}

impl Session {
    /// Takes in a publish that [`Session::readdress`] has to look at; it takes effect before the call
    /// returns.
    #[cold]
    pub(super) fn publish_readdressed(
        &mut self,
        batch: &mut Batch<'_>,
        inbound: &Inbound<'_>,
        properties: RawProperties<'_>,
    ) -> Result<(), Fault> {
        let mut inbound = *inbound;
        let named;
        if wants_direct_reply(properties)? {
            named = self.name_reply_queue(inbound.channel, inbound.header)?;
            inbound.header = &named;
        }
        let properties = ContentHeader::parse(inbound.header).map_err(malformed)?.properties;
        let Readdressed { route, header } = self.readdress(&inbound, properties)?;
        if self.is_transactional(inbound.channel) {
            return self.publish_later(&inbound, properties);
        }
        let persistent = !route.durable.is_empty() && is_persistent(properties)?;
        self.flush_publishes(batch)?;
        let mut alone = Batch::default();
        let inbound = Inbound { header: &header, ..inbound };
        self.publish_routed(&mut alone, inbound, route, persistent)?;
        self.flush_publishes(&mut alone)
    }
}

/// A content header with other properties.
pub(crate) fn rewrite(
    header: &[u8],
    change: impl FnOnce(&mut OwnedProperties),
) -> Result<Vec<u8>, Fault> {
    let parsed = ContentHeader::parse(header).map_err(malformed)?;
    let decoded = parsed.properties.decode().map_err(malformed)?;
    let mut properties = decoded.to_owned().map_err(malformed)?;
    change(&mut properties);
    let mut rewritten = Vec::with_capacity(header.len() + 64);
    properties.encode_header(parsed.body_size, &mut rewritten);
    Ok(rewritten)
}
