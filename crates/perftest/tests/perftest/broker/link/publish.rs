//! What becomes of a message that is published.

use std::time::Instant;

use courser_codec::{ContentHeader, Method, basic};
use courser_connection::server;

use super::Link;
use crate::broker::state::{Message, Published};

impl Link {
    pub(super) fn publish(&mut self, publish: &server::Publish<'_>) {
        let state = self.state.clone();
        let mut state = state.lock().unwrap();
        state.published += 1;
        let (number, faults) = (Some(state.published), state.faults);
        if let Some(code) = faults.rejects {
            let (channel, ids) = (publish.channel, (60, 40));
            return self.machine.channel_error(channel, code, "not this", ids, Instant::now());
        }
        if number == faults.restarts_at {
            self.is_broken = true;
            return state.restart();
        }
        if number == faults.breaks_at || number == faults.closes_at {
            self.is_broken = number == faults.breaks_at;
            if !self.is_broken {
                self.machine.connection_error(541, "out of order", (60, 40), Instant::now());
            }
            return;
        }
        let (exchange, key) =
            (publish.publish.exchange.to_string(), publish.publish.routing_key.to_string());
        let properties = ContentHeader::parse(publish.header).unwrap().properties;
        state.seen.published.push(Published {
            key: key.clone(),
            properties: properties.decode().unwrap().to_owned().unwrap(),
            size_bytes: publish.body.len(),
        });
        self.channels.entry(publish.channel).or_default().in_transaction += 1;
        let targets = match exchange.as_str() {
            _ if publish.publish.mandatory && faults.returns.is_some() => Vec::new(),
            "" => vec![key],
            name => state.exchanges.get(name).map(|found| found.route(&key)).unwrap_or_default(),
        };
        let copies = match number {
            number if number == faults.loses || number == faults.refuses => 0,
            number if number == faults.doubles => 2,
            _ => 1,
        };
        let mut is_routed = false;
        for target in targets {
            if let Some(queue) = state.queues.get_mut(&target) {
                is_routed = true;
                let body = publish.body.to_vec();
                let message = Message { body, redelivered: false, offset: None };
                (0..copies).for_each(|_| queue.push(message.clone()));
            }
        }
        drop(state);
        if !is_routed && publish.publish.mandatory {
            let returned = basic::Return {
                reply_code: 312,
                exchange: publish.publish.exchange,
                ..Default::default()
            };
            let body = faults.returns.map_or_else(|| publish.body.to_vec(), |of| of(publish.body));
            self.message(publish.channel, Method::BasicReturn(returned), &body, None);
        }
        let is_forgotten = faults.forgets_from.is_some_and(|from| number >= Some(from));
        if publish.confirm_seq > 0 && !is_forgotten {
            let delivery_tag = publish.confirm_seq;
            let answer = match number == faults.refuses {
                true => {
                    Method::BasicNack(basic::Nack { delivery_tag, multiple: false, requeue: false })
                }
                false => Method::BasicAck(basic::Ack { delivery_tag, multiple: false }),
            };
            self.machine.transmit(publish.channel, &answer);
        }
    }
}
