//! The asking side of direct reply-to: its consumer, and the requests that name it.

use super::Session;
use super::properties::malformed;
use crate::direct_reply::{REPLY_TO, REPLY_TO_PREFIX, is_reply_name};
use crate::fault::Fault;
use crate::memory::queue_bytes;
use crate::policy::QueuePolicies;
use crate::queue::{NewConsumer, Queue, QueueSettings};
use courser_codec::{
    ContentHeader, FieldTable, Frame, Properties, RawProperties, ShortStr, ShortString, basic,
    queue,
};
use std::sync::Arc;

/// Whether a request wants its answer sent to the direct reply consumer of its channel.
pub(super) fn wants_direct_reply(properties: RawProperties<'_>) -> Result<bool, Fault> {
    if properties.flags() & Properties::REPLY_TO_FLAG == 0 {
        return Ok(false);
    }
    let reply_to = properties.reply_to().map_err(malformed)?;
    Ok(reply_to.is_some_and(|name| name.as_bytes() == REPLY_TO.as_bytes()))
}

impl Session {
    /// `basic.consume` on the pseudo-queue, once all that concerns every consumer has been checked.
    pub(super) fn consume_replies(
        &mut self,
        number: u16,
        consume: &basic::Consume<'_>,
    ) -> Result<(), Fault> {
        let already_set = self.reply_queue(number).is_some();
        let tag = self.consumer_tag(number, consume);
        // That of the reply consumer itself may be used, in vain.
        if let (Err(fault), false) = (&tag, already_set) {
            return Err(fault.clone());
        }
        if !consume.no_ack {
            return Err(Fault::precondition_failed("reply consumer cannot acknowledge"));
        }
        if already_set {
            return Err(Fault::precondition_failed("reply consumer already set"));
        }
        let tag = tag?;
        let settings = QueueSettings {
            durable: false,
            exclusive_owner: Some(self.client.connection),
            auto_delete: true,
            arguments: FieldTable::new(),
        };
        let name = self.broker.random_name(REPLY_TO_PREFIX);
        self.admit_held(queue_bytes(&name, &settings.arguments))?;
        // No policy is for what is in no list.
        let policies = QueuePolicies::default();
        let queue = self.vhost.make_queue(self.shard.next_id(), name, settings, policies);
        let reply = basic::ConsumeOk { consumer_tag: tag.as_short_str() };
        let new = NewConsumer {
            outbox: &self.outbox,
            channel: number,
            tag: tag.clone(),
            no_ack: true,
            exclusive: false,
            prefetch: 0,
            priority: 0,
            timeout_ms: None,
            consumers_max: 1,
            reply: &mut |out| {
                if !consume.nowait {
                    reply.write_frame(number, out);
                }
            },
        };
        queue.add_consumer(new, &self.vhost.name, &*self.shard.store, &mut self.wakes)?;
        self.vhost.begin_reply_queue(&queue);
        self.channel(number)?.reply_queue = Some(queue.handle.clone());
        Ok(())
    }

    /// The queue behind the channel's direct reply consumer.
    fn reply_queue(&self, number: u16) -> Option<Arc<Queue>> {
        let queue = self.channels.get(number)?.reply_queue.as_ref()?.upgrade()?;
        (!queue.is_deleted()).then_some(queue)
    }

    /// The content header of a request, with the name that its answer finds back by.
    pub(super) fn name_reply_queue(&self, number: u16, header: &[u8]) -> Result<Vec<u8>, Fault> {
        let queue = self
            .reply_queue(number)
            .ok_or_else(|| Fault::precondition_failed("fast reply consumer does not exist"))?;
        let parsed = ContentHeader::parse(header).map_err(malformed)?;
        let mut properties = parsed.properties.decode().map_err(malformed)?;
        properties.reply_to = Some(queue.name.as_short_str());
        let mut named = Vec::with_capacity(header.len() + 32);
        properties.encode_header(parsed.body_size, &mut named);
        let frame_max = self.outbox.lock().frame_max();
        if named.len() + Frame::OVERHEAD > frame_max {
            // It could not be returned.
            return Err(Fault::precondition_failed(format_args!(
                "content header with the reply queue's name does not fit frame_max ({frame_max} bytes): shorten the headers"
            )));
        }
        Ok(named)
    }

    /// `queue.declare` of the pseudo-queue, or of a queue behind it: it is there or not, a client
    /// can't make one. None for any other name.
    pub(super) fn find_reply_queue(&self, name: &ShortString) -> Option<Result<(), Fault>> {
        if *name == *REPLY_TO {
            return Some(Ok(()));
        }
        if !is_reply_name(name.as_bytes()) {
            return None;
        }
        let found = self.vhost.replies.get(name.as_bytes());
        Some(found.map(drop).ok_or_else(|| self.vhost.no_queue(name.as_bytes())))
    }

    /// What is answered to a `queue.declare` of it.
    pub(super) fn reply_queue_declared(name: ShortStr<'_>) -> queue::DeclareOk<'_> {
        queue::DeclareOk { queue: name, message_count: 0, consumer_count: 1 }
    }
}
