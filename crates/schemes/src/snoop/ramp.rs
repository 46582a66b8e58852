//! How fast a ramp ([`super::restart`]) sends: it opens as slow start does, and where the agent
//! knows what the way to the mobile host holds, it fills that and no more. Copies in crowds would
//! be lost in a queue that nobody here sees.

use super::flow::Flow;
use super::resend::QUEUED_MAX;
use sansio::{Duration, Instant};

/// How many copies of a ramp may be under way, in segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Window {
    /// Deliveries counted when the ramp began.
    delivered_before: u32,
    /// Copies sent.
    sent: u32,
    /// When those will have departed into the pipe.
    departed_at: Instant,
    pipe: Pipe,
    /// What the window begins with; each delivery makes it one longer.
    first: u16,
}

/// What the way to the mobile host and back holds without a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pipe {
    segments: u16,
    /// One segment's share of the round trip.
    interval_ns: u32,
}

impl Pipe {
    pub(super) const UNKNOWN: Pipe = Pipe { segments: u16::MAX, interval_ns: 0 };

    /// So many segments in such a round trip.
    pub(super) fn new(segments: u64, round_trip: Duration) -> Pipe {
        let segments = u16::try_from(segments).unwrap_or(u16::MAX).max(1);
        let interval = round_trip.as_nanos() / u64::from(segments);
        Pipe { segments, interval_ns: u32::try_from(interval).unwrap_or(u32::MAX) }
    }

    fn interval(self) -> Duration {
        Duration::from_nanos(self.interval_ns.into())
    }
}

impl Window {
    pub(super) fn new(flow: &Flow, first: u16, pipe: Pipe, now: Instant) -> Window {
        let delivered_before = flow.evidence.delivered();
        Window { delivered_before, sent: 0, departed_at: now, pipe, first }
    }

    /// How many more may be sent now: what is on its way, and a short queue.
    pub(super) fn room(&self, flow: &Flow, now: Instant) -> u32 {
        // Copies of an earlier ramp may arrive now, too.
        let delivered = flow.evidence.delivered().wrapping_sub(self.delivered_before);
        let delivered = delivered.min(self.sent);
        let window = u32::from(self.first).saturating_add(delivered);
        let under_way = self.sent - delivered;
        if self.pipe == Pipe::UNKNOWN {
            return window.saturating_sub(under_way);
        }
        let segments = u32::from(self.pipe.segments);
        let most = segments + QUEUED_MAX.min(segments / 4);
        let ahead = self.departed_at.since(now).as_nanos();
        let queued = ahead.checked_div(self.pipe.interval_ns.into()).unwrap_or(0);
        let queued = u32::try_from(queued).unwrap_or(u32::MAX);
        window.min(most).saturating_sub(under_way).min(QUEUED_MAX.saturating_sub(queued))
    }

    /// So many copies were sent.
    pub(super) fn on_sent(&mut self, count: u32, now: Instant) {
        self.sent = self.sent.saturating_add(count);
        let took = self.pipe.interval() * u64::from(count);
        self.departed_at = self.departed_at.max(now) + took;
    }
}
