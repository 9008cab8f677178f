//! Entries that have come before there is room for them.

use crate::Packet;
use std::collections::VecDeque;

/// Bytes of packets that wait, unless it is one alone: what comes beyond is lost, and sent again by the leader.
const BYTES_MAX: usize = 64 << 20;
/// How many may wait.
const PACKETS_MAX: usize = 4096;

/// Packets with entries, in the order in which they came.
#[derive(Default)]
pub struct Held {
    packets: VecDeque<Packet>,
    bytes: usize,
}

impl Held {
    pub fn push(&mut self, packet: Packet) {
        let bytes = packet.encoded_len();
        let is_full = self.packets.len() >= PACKETS_MAX || self.bytes + bytes > BYTES_MAX;
        if self.packets.is_empty() || !is_full {
            self.bytes += bytes;
            self.packets.push_back(packet);
        }
    }

    pub fn first(&self) -> Option<&Packet> {
        self.packets.front()
    }

    pub fn take_first_if(&mut self, wanted: bool) -> Option<Packet> {
        let packet = self.packets.pop_front_if(|_| wanted)?;
        self.bytes -= packet.encoded_len();
        Some(packet)
    }
}
