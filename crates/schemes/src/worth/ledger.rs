//! What passes in one flow: how fast it is while it has something to do.

use super::class::Group;
use sansio::{Duration, FlowKey, Instant};
use wire::tcp::{Flags, Header, Seq};

/// One flow, data toward the mobile host.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    key: FlowKey,
    class: usize,
    group: Group,
    /// Byte after the highest one seen from the fixed host,
    highest: Seq,
    /// and after the highest one acknowledged.
    acked: Seq,
    /// Byte after a FIN of the fixed host.
    fin: Option<Seq>,
    /// Since when something is unacknowledged.
    busy_since: Option<Instant>,
    report: FlowReport,
    /// A byte that is timed: from its passing here to its ACK.
    timed: Option<(Seq, Instant)>,
    /// The shortest such time: the last hop's round trip.
    shortest: Option<Duration>,
    /// What the scheme would have sent again, up to here, and when.
    copy: Option<(Seq, Instant)>,
    began_at: Instant,
    active_at: Instant,
}

/// What was seen of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// Its group.
    pub group: Group,
    /// Payload bytes that the mobile host acknowledged.
    pub bytes: u64,
    /// Time in which something was unacknowledged.
    pub busy: Duration,
    /// Segments that the fixed host sent more than once.
    pub repeats: u64,
    /// Only while observing: how often the scheme would have sent a segment again for which
    /// the flow was waiting,
    pub would_repair: u64,
    /// and how long the flow waited for these beyond a round trip of the last hop: at most so much
    /// time would have been saved, not counting what a sender does that knows of no loss.
    pub would_save: Duration,
}

/// A flow of the control group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlFlow {
    /// Four-tuple, as its data travels.
    pub key: FlowKey,
    /// When it was first seen.
    pub began_at: Instant,
    /// When a packet of it passed last.
    pub active_at: Instant,
    /// The shortest round trip over the last hop, if it was measured.
    pub round_trip: Option<Duration>,
}

/// With fewer bytes a flow tells nothing: it ends in slow start.
const BYTES_MIN: u64 = 64 << 10;
/// A longer flow counts once it was busy for so long.
const BUSY_MAX: Duration = Duration::from_secs(30);
/// No window reaches farther (RFC 7323, section 2.3).
const WINDOW_MAX: u32 = 1 << 30;

impl Ledger {
    /// A flow of this class and group, first seen with data at `start`.
    pub(super) fn new(
        key: FlowKey,
        (class, group): (usize, Group),
        start: Seq,
        now: Instant,
    ) -> Self {
        Ledger {
            key,
            class,
            group,
            highest: start,
            acked: start,
            fin: None,
            busy_since: None,
            report: FlowReport {
                group,
                bytes: 0,
                busy: Duration::ZERO,
                repeats: 0,
                would_repair: 0,
                would_save: Duration::ZERO,
            },
            timed: None,
            shortest: None,
            copy: None,
            began_at: now,
            active_at: now,
        }
    }

    pub(super) fn control_flow(&self) -> ControlFlow {
        ControlFlow {
            key: self.key,
            began_at: self.began_at,
            active_at: self.active_at,
            round_trip: self.shortest,
        }
    }

    pub(super) fn key(&self) -> &FlowKey {
        &self.key
    }

    pub(super) fn class(&self) -> usize {
        self.class
    }

    pub(super) fn group(&self) -> Group {
        self.group
    }

    pub(super) fn report(&self) -> FlowReport {
        self.report
    }

    /// A segment of the fixed host.
    pub(super) fn on_data(&mut self, tcp: &Header, payload_bytes: u32, now: Instant) {
        self.active_at = now;
        let end = tcp.seq + tcp.sequence_length(payload_bytes);
        if tcp.flags.contains(Flags::FIN) {
            self.fin = Some(end);
        }
        if end == tcp.seq || end.since(self.acked) > WINDOW_MAX {
            return;
        }
        if end.at_or_before(self.highest) {
            self.report.repeats += 1;
            // Of what is sent twice no ACK tells which copy it answers (Karn's rule).
            self.timed = None;
            return;
        }
        self.busy_since.get_or_insert(now);
        self.highest = end;
        self.timed.get_or_insert((end, now));
    }

    /// A segment of the mobile host.
    pub(super) fn on_ack(&mut self, tcp: &Header, now: Instant) {
        self.active_at = now;
        let ack = tcp.ack;
        let is_new = tcp.flags.contains(Flags::ACK)
            && ack.after(self.acked)
            && ack.at_or_before(self.highest);
        if !is_new {
            return;
        }
        self.report.bytes += u64::from(ack.since(self.acked));
        self.acked = ack;
        if let Some((end, at)) = self.timed
            && ack.at_or_after(end)
        {
            let sample = now.since(at);
            self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
            self.timed = None;
        }
        if let Some((end, at)) = self.copy
            && ack.at_or_after(end)
        {
            self.copy = None;
            let local = self.shortest.unwrap_or(Duration::ZERO);
            self.report.would_save += now.since(at).saturating_sub(local);
        }
        if let Some(since) = self.busy_since {
            self.report.busy += now.since(since);
            self.busy_since = (ack != self.highest).then_some(now);
        }
    }

    /// The scheme would have sent a segment again that ends here.
    pub(super) fn on_copy(&mut self, end: Seq, now: Instant) {
        if self.copy.is_none() && end.after(self.acked) && end.at_or_before(self.highest) {
            self.copy = Some((end, now));
            self.report.would_repair += 1;
        }
    }

    /// True if nothing more is to be learned from it: its FIN is acknowledged, or it was busy for
    /// long enough.
    pub(super) fn is_over(&self) -> bool {
        self.fin == Some(self.acked) || self.report.busy >= BUSY_MAX
    }

    /// True if nothing passed for so long.
    pub(super) fn is_idle(&self, idle: Duration, now: Instant) -> bool {
        now.since(self.active_at) > idle
    }

    /// Bytes per second of busy time, if there were enough to tell something. A flow that broke
    /// was busy to the last.
    pub(super) fn goodput(&self, now: Instant) -> Option<f64> {
        let rest = self.busy_since.map_or(Duration::ZERO, |since| now.since(since));
        let busy = (self.report.busy + rest).as_secs_f64();
        (self.report.bytes >= BYTES_MIN && busy > 0.0).then(|| self.report.bytes as f64 / busy)
    }
}
