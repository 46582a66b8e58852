//! What a base station holds of one flow while its window is closed (WINC-BS-2, WINC-BS-11).

use sansio::{Instant, PacketRef};
use std::collections::VecDeque;

/// Packets in the order in which they came.
#[derive(Clone, Debug)]
pub(super) struct Buffer {
    packets: VecDeque<PacketRef>,
    bytes: u32,
    /// When the mobile host was heard last on this flow.
    pub(super) heard_at: Instant,
    /// Its timer's entry.
    pub(super) timer_at: Instant,
}

/// What becomes of a packet that should be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is held.
    Held,
    /// The same bytes are held already: the fixed host has timed out.
    Repeated,
    /// There is no room.
    Full,
}

impl Buffer {
    pub(super) fn new(timer_at: Instant, now: Instant) -> Self {
        Buffer { packets: VecDeque::new(), bytes: 0, heard_at: now, timer_at }
    }

    /// Payload bytes.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }

    /// What would become of a packet, if at most so many bytes are held.
    pub(super) fn judge(&self, packet: &PacketRef, bytes_max: u32) -> Verdict {
        let same = |held: &PacketRef| {
            held.payload.len() == packet.payload.len()
                && held.as_tcp().map(|tcp| (tcp.seq, tcp.flags))
                    == packet.as_tcp().map(|tcp| (tcp.seq, tcp.flags))
        };
        if self.packets.iter().any(same) {
            return Verdict::Repeated;
        }
        let has_room = self.bytes + packet.payload.len() <= bytes_max;
        if has_room && self.packets.len() < PACKETS_MAX { Verdict::Held } else { Verdict::Full }
    }

    pub(super) fn push(&mut self, packet: PacketRef) {
        self.bytes += packet.payload.len();
        self.packets.push_back(packet);
    }

    /// All packets, first come first.
    pub(super) fn into_packets(self) -> VecDeque<PacketRef> {
        self.packets
    }

    /// The same, which stay.
    pub(super) fn packets(&self) -> impl Iterator<Item = &PacketRef> {
        self.packets.iter()
    }
}

/// Packets held of one flow, however short they are: 80 000 bytes in segments of 80.
const PACKETS_MAX: usize = 1000;
