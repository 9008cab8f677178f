//! What a client asks the broker for, a method each.

use super::heard::{Delivery, Heard};
use super::{Client, short};
use courser_codec::{basic, confirm, exchange, queue, tx};

impl Client {
    /// Declares a queue that nothing is special about.
    pub fn declare(&mut self, name: &str) {
        let declared = self.call(queue::Declare { queue: short(name), ..Default::default() });
        assert!(matches!(declared, Heard::DeclareOk { .. }), "{declared:?}");
    }

    pub fn declare_exchange(&mut self, name: &str, kind: &str) {
        let (exchange, kind) = (short(name), short(kind));
        let declare = exchange::Declare { exchange, kind, ..Default::default() };
        assert_eq!(self.call(declare), Heard::Done("exchange.declare-ok"));
    }

    pub fn bind(&mut self, queue: &str, exchange: &str, routing_key: &str) {
        let (queue, exchange) = (short(queue), short(exchange));
        let routing_key = short(routing_key);
        let bind = queue::Bind { queue, exchange, routing_key, ..Default::default() };
        assert_eq!(self.call(bind), Heard::Done("queue.bind-ok"));
    }

    pub fn unbind(&mut self, queue: &str, exchange: &str, routing_key: &str) {
        let (queue, exchange) = (short(queue), short(exchange));
        let routing_key = short(routing_key);
        let unbind = queue::Unbind { queue, exchange, routing_key, ..Default::default() };
        assert_eq!(self.call(unbind), Heard::Done("queue.unbind-ok"));
    }

    /// Binds exchange `to` to exchange `from`.
    pub fn bind_exchange(&mut self, to: &str, from: &str, routing_key: &str) {
        let (destination, source) = (short(to), short(from));
        let routing_key = short(routing_key);
        let bind = exchange::Bind { destination, source, routing_key, ..Default::default() };
        assert_eq!(self.call(bind), Heard::Done("exchange.bind-ok"));
    }

    pub fn delete(&mut self, queue: &str) -> Heard {
        self.call(queue::Delete { queue: short(queue), ..Default::default() })
    }

    pub fn purge(&mut self, queue: &str) -> Heard {
        self.call(queue::Purge { queue: short(queue), ..Default::default() })
    }

    /// Consumes on channel 1, to be acknowledged. The consumer's tag.
    pub fn consume(&mut self, queue: &str) -> String {
        self.consume_with(basic::Consume { queue: short(queue), ..Default::default() })
    }

    /// Consumes on channel 1 without acknowledgements. The consumer's tag.
    pub fn consume_no_ack(&mut self, queue: &str) -> String {
        let no_ack = true;
        self.consume_with(basic::Consume { queue: short(queue), no_ack, ..Default::default() })
    }

    pub fn consume_with(&mut self, consume: basic::Consume<'_>) -> String {
        self.consume_on(1, consume)
    }

    pub fn consume_on(&mut self, number: u16, consume: basic::Consume<'_>) -> String {
        match self.call_on(number, consume) {
            Heard::ConsumeOk(tag) => tag,
            other => panic!("no consumer: {other:?}"),
        }
    }

    pub fn cancel(&mut self, tag: &str) {
        let cancel = basic::Cancel { consumer_tag: short(tag), nowait: false };
        assert_eq!(self.call(cancel), Heard::CancelOk(tag.to_owned()));
    }

    /// Polls on channel 1, to be acknowledged.
    pub fn get(&mut self, queue: &str) -> Option<Delivery> {
        self.get_with(basic::Get { queue: short(queue), no_ack: false })
    }

    /// Polls on channel 1 without an acknowledgement: the body.
    pub fn pop(&mut self, queue: &str) -> Option<String> {
        let delivery = self.get_with(basic::Get { queue: short(queue), no_ack: true });
        delivery.map(|delivery| delivery.text().to_owned())
    }

    /// Polls until the queue is empty.
    pub fn pop_all(&mut self, queue: &str) -> Vec<String> {
        std::iter::from_fn(|| self.pop(queue)).collect()
    }

    fn get_with(&mut self, get: basic::Get<'_>) -> Option<Delivery> {
        match self.call(get) {
            Heard::GetOk { delivery, .. } => Some(delivery),
            Heard::GetEmpty => None,
            other => panic!("no answer to a get: {other:?}"),
        }
    }

    pub fn qos(&mut self, prefetch_count: u16) {
        let qos = basic::Qos { prefetch_count, ..Default::default() };
        assert_eq!(self.call(qos), Heard::Done("basic.qos-ok"));
    }

    /// One limit for the whole channel.
    pub fn qos_global(&mut self, prefetch_count: u16) {
        let qos = basic::Qos { prefetch_count, global: true, ..Default::default() };
        assert_eq!(self.call(qos), Heard::Done("basic.qos-ok"));
    }

    pub fn ack(&mut self, delivery_tag: u64) {
        self.tell(basic::Ack { delivery_tag, multiple: false });
    }

    pub fn ack_through(&mut self, delivery_tag: u64) {
        self.tell(basic::Ack { delivery_tag, multiple: true });
    }

    /// Refuses one delivery, which goes back to its queue.
    pub fn requeue(&mut self, delivery_tag: u64) {
        self.tell(basic::Nack { delivery_tag, multiple: false, requeue: true });
    }

    /// Gives a message back as one that it has failed on.
    pub fn fail_on(&mut self, delivery_tag: u64) {
        self.tell(basic::Reject { delivery_tag, requeue: true });
    }

    pub fn recover(&mut self) {
        assert_eq!(self.call(basic::Recover { requeue: true }), Heard::Done("basic.recover-ok"));
    }

    pub fn confirm_select(&mut self) {
        let select = confirm::Select { nowait: false };
        assert_eq!(self.call(select), Heard::Done("confirm.select-ok"));
    }

    pub fn tx_select(&mut self) {
        assert_eq!(self.call(tx::Select {}), Heard::Done("tx.select-ok"));
    }

    pub fn commit(&mut self) {
        assert_eq!(self.call(tx::Commit {}), Heard::Done("tx.commit-ok"));
    }

    pub fn rollback(&mut self) {
        assert_eq!(self.call(tx::Rollback {}), Heard::Done("tx.rollback-ok"));
    }
}
