//! What hosts tell beside sequence numbers: the receiver's window, timestamps that come back, and
//! IP identifications that count a sender's packets.

use super::Stream;
use crate::decode::Segment;
use crate::verdicts::Way;
use sansio::Instant;
use wire::tcp::{Flags, Seq};

/// A timestamp of the receiver that the sender will echo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Echo {
    pub(super) value: u32,
    pub(super) at: Instant,
    /// After the last byte that the receiver then took.
    pub(super) edge: Option<Seq>,
}

/// The receiver's offer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    /// The scale of the receiver's SYN.
    pub(super) scale: Option<u8>,
    /// The last window, scaled; `None` if it is not zero and the scale is not known.
    pub(super) bytes: Option<u32>,
}

/// The sender's IP identifications, where it counts packets by them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Identifications {
    pub(super) next: Option<u16>,
    pub(super) as_expected: u32,
    pub(super) others: u32,
}

/// ACKs remembered for the round trip to the sender.
const ECHOES_MAX: usize = 4096;

impl Stream {
    pub(super) fn remember_echo(&mut self, segment: &Segment) {
        let Some(value) = segment.tcp.options.timestamps().map(|it| it.value) else { return };
        let mut window = self.window;
        window.take(segment.tcp.window);
        let edge = window.bytes.map(|bytes| segment.tcp.ack + bytes);
        if let Some(last) = self.echoes.back_mut().filter(|last| last.value == value) {
            last.edge = edge;
            return;
        }
        if self.echoes.len() == ECHOES_MAX {
            self.echoes.pop_front();
        }
        self.echoes.push_back(Echo { value, at: segment.at, edge });
    }

    /// The sender echoes a timestamp of the receiver that passed here before.
    pub(super) fn on_echo(&mut self, echo: u32, at: Instant) {
        let index = self.echoes.partition_point(|it| Seq(it.value).before(Seq(echo)));
        let Some(&Echo { value, at: passed_at, edge }) = self.echoes.get(index) else { return };
        if value != echo {
            return;
        }
        self.known_edge = edge;
        let sample = at.since(passed_at);
        self.echo_trips.take(sample, true);
        self.verdicts.on_sample(sample, passed_at, Way::ToSender);
        self.echoes.drain(..=index);
    }
}

impl Window {
    pub(super) fn take(&mut self, field: u16) {
        self.bytes = match (field, self.scale) {
            (0, _) => Some(0),
            (field, Some(scale)) => Some(u32::from(field) << scale.min(14)),
            (_, None) => None,
        };
    }

    pub(super) fn is_same(&self, field: u16) -> bool {
        let mut other = *self;
        other.take(field);
        other.bytes == self.bytes
    }
}

impl Identifications {
    /// Packets between this one and the one before, if the sender counts its packets.
    pub(super) fn missing(&mut self, segment: &Segment, mss: u32) -> Option<u32> {
        /// More at once are another counter.
        const MISSING_MAX: u16 = 1 << 14;
        let identification = segment.ip.identification;
        if segment.ip.source.is_ipv6() || segment.tcp.flags.contains(Flags::SYN) {
            return None;
        }
        // A super-packet is counted by its segments.
        let segments = segment.payload_bytes.div_ceil(mss.max(1)).max(1);
        let next = self.next.replace(identification.wrapping_add(segments as u16));
        let missing = identification.wrapping_sub(next?);
        if missing == 0 {
            self.as_expected += 1;
        } else {
            self.others += 1;
        }
        let counts = self.as_expected >= 8 && self.as_expected / 4 >= self.others;
        (counts && missing < MISSING_MAX).then_some(u32::from(missing))
    }
}
