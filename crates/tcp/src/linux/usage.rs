//! Whether cwnd is what limits the sender (RFC 7661; `tcp_cwnd_validate`).

use wire::tcp::Seq;

/// How much of cwnd was in use lately.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Usage {
    is_limited: bool,
    /// The most segments sent and not acknowledged since `until` was set.
    segments_max: u32,
    until: Option<Seq>,
}

/// What was sent, after all that could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// cwnd left no room.
    pub(super) is_limited: bool,
    /// Segments sent and not acknowledged.
    pub(super) segments: u32,
    /// The oldest unacknowledged and the next new number.
    pub(super) una: Seq,
    pub(super) next: Seq,
}

impl Usage {
    /// Before anything was sent.
    pub(super) fn new() -> Self {
        Usage { is_limited: false, segments_max: 0, until: None }
    }

    /// What could be sent has been.
    pub(super) fn note(&mut self, sent: Sent) {
        let Sent { is_limited, segments, una, next } = sent;
        let is_more = !self.is_limited && segments > self.segments_max;
        if self.until.is_none_or(|until| una.at_or_after(until)) || is_limited || is_more {
            *self = Usage { is_limited, segments_max: segments, until: Some(next) };
        }
    }

    /// True if cwnd may open; in slow start half of it in use is enough (`tcp_is_cwnd_limited`).
    pub(super) fn may_open(&self, cwnd: u32, is_slow_start: bool) -> bool {
        self.is_limited || is_slow_start && cwnd < 2 * self.segments_max
    }
}
