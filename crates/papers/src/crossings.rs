//! What happens to a transfer at each crossing of its mobile host: routes, losses, timeouts, and
//! when it goes on.
//!
//! ```text
//!   crossing ── route changed ── old told ── complete ── resumed ─── at the peak
//!      │◀──────────────────── pause ──────────────────────▶│◀─ regrowth ─▶│
//! ```

use node::Plan;
use node::plan::Way;
use node::roaming::address;
use sansio::{Duration, EventKind, HandoffStage, Instant, Packet, Payload, Side};
use trace::handoffs::OUT_OF_CELL;
use trace::metrics::TransferSpec;
use trace::{CellChange, NodeId, Record, What};

/// One crossing. Times count from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Crossing {
    /// From the begin of the run.
    pub at: Duration,
    /// The mobile host's route leads over the new base station.
    pub route_changed: Option<Duration>,
    /// The old base station has been told, and sends on.
    pub old_told: Option<Duration>,
    /// The mobile host knows that both ways lead through the new base station.
    pub complete: Option<Duration>,
    /// The sender's first segment after that.
    pub sent_after_complete: Option<Duration>,
    /// The longest time without a segment of new data from the sender that begins within 5 s.
    pub silent: Duration,
    /// The sender's timeouts until data gets through again.
    pub timeouts: Vec<Duration>,
    /// Data gets through again: the next byte in order at the receiver after the longest time
    /// without one that begins within 5 s. The time until then is the pause. None if nothing was
    /// left to send.
    pub resumed: Option<Duration>,
    /// From then on until the first instant after which data comes at 95 % of the radio's peak for
    /// half a second; none if the next crossing or the end comes first.
    pub regrown: Option<Duration>,
    /// From [`Crossing::resumed`] until the congestion window is as large as the receiver's, having
    /// been smaller.
    pub opened: Option<Duration>,
    /// Segments with payload that were sent where their receiver was not.
    pub lost_data: u32,
    /// And ACKs.
    pub lost_acks: u32,
    /// Under way at the crossing, bytes.
    pub flight: u32,
    /// The sender's retransmission timeout then.
    pub rto: Duration,
    /// Its congestion window, bytes.
    pub cwnd: Cwnd,
}

/// A congestion window around a crossing, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cwnd {
    /// At the crossing.
    pub before: u32,
    /// At the first timeout after it; as before if there is none.
    pub at_timeout: u32,
    /// The smallest until the next crossing.
    pub least: u32,
    /// At the next crossing, or the end.
    pub last: u32,
}

/// Watches the first transfer of a run for crossings.
#[derive(Debug)]
pub(crate) struct Meter {
    spec: TransferSpec,
    mobile: NodeId,
    peak_bps: f64,
    crossings: Vec<Crossing>,
    /// The crossing under way: when, from which cell to which.
    since: Option<(Instant, u16, u16)>,
    /// Bytes in order at the receiver since the crossing: when, and how many by then.
    progress: Vec<(Instant, u64)>,
    /// New data from the sender: one past its last byte, and when it went.
    newest: (u64, Instant),
    cwnd: u32,
    flight: u32,
    rto: Duration,
    /// The receiver's window.
    window: u32,
}

/// A pause that begins later belongs to something else.
const WITHIN: Duration = Duration::from_secs(5);
/// The peak has to last so long.
const PEAK_FOR: Duration = Duration::from_millis(500);
const PEAK_SHARE: f64 = 0.95;
const ACK_BYTES: f64 = 40.0;

impl Meter {
    pub(crate) fn new(plan: &Plan, spec: TransferSpec) -> Meter {
        let up = plan.transfers.first().is_some_and(|transfer| transfer.direction == Way::Up);
        let (mobile, hop) = match up {
            true => (spec.sender, &plan.radio.up),
            false => (spec.receiver, &plan.radio.down),
        };
        let (payload, packet) = (plan.segment_bytes(), plan.packet_bytes());
        // On one air for both directions an ACK for two segments takes its share.
        let ack = if plan.radio.half_duplex { ACK_BYTES / 2.0 } else { 0.0 };
        let share = f64::from(payload) / (f64::from(packet) + ack);
        Meter {
            spec,
            mobile,
            peak_bps: hop.service_rate().as_bps() as f64 * share,
            crossings: Vec::new(),
            since: None,
            progress: Vec::new(),
            newest: (0, Instant::ZERO),
            cwnd: 0,
            flight: 0,
            rto: Duration::ZERO,
            window: plan.tcp.receive_buffer_bytes,
        }
    }

    /// The crossings of a run that ended after so long.
    pub(crate) fn finish(mut self) -> Vec<Crossing> {
        self.close();
        self.crossings
    }

    pub(crate) fn record(&mut self, record: &Record<'_>) {
        let now = record.at;
        match record.what {
            What::Cell(CellChange::Crossed { from, to }) if record.node == self.mobile => {
                self.cross((from, to), now);
            }
            What::Event(event) => self.on_event(record.node, &event.kind, now),
            What::Arrived { side, packet } => self.on_arrival(side, packet, now),
            What::Delivered { payload } if record.node == self.spec.receiver => {
                self.on_delivered(u64::from(payload.len()), now);
            }
            What::Lost { packet, cause: OUT_OF_CELL, .. } => self.on_lost(packet),
            What::Sent { packet, .. } if record.node == self.spec.sender => {
                self.on_sent(packet, now);
            }
            _ => {}
        }
    }

    /// The crossing under way, and the time since it.
    fn current(&mut self, now: Instant) -> Option<(&mut Crossing, Duration)> {
        let (at, ..) = self.since?;
        self.crossings.last_mut().map(|crossing| (crossing, now.since(at)))
    }

    fn cross(&mut self, (from, to): (u16, u16), now: Instant) {
        self.close();
        self.since = Some((now, from, to));
        self.progress.clear();
        self.crossings.push(Crossing {
            at: now.since(Instant::ZERO),
            flight: self.flight,
            rto: self.rto,
            cwnd: Cwnd {
                before: self.cwnd,
                at_timeout: self.cwnd,
                least: self.cwnd,
                last: self.cwnd,
            },
            ..Crossing::default()
        });
    }

    /// Nothing more belongs to the crossing under way.
    fn close(&mut self) {
        let Some((crossed_at, ..)) = self.since.take() else { return };
        let Some(crossing) = self.crossings.last_mut() else { return };
        let (mut last, mut longest) = (crossed_at, Duration::ZERO);
        let mut resumed_at = None;
        for (at, _) in &self.progress {
            if last <= crossed_at + WITHIN && at.since(last) > longest {
                (longest, resumed_at) = (at.since(last), Some(*at));
            }
            last = *at;
        }
        let Some(resumed_at) = resumed_at else { return };
        let resumed = resumed_at.since(crossed_at);
        crossing.resumed = Some(resumed);
        crossing.opened = crossing.opened.and_then(|at| (at > resumed).then(|| at - resumed));
        crossing.timeouts.retain(|timeout| *timeout < resumed);
        crossing.regrown = regrown(&self.progress, resumed_at, self.peak_bps);
    }

    fn on_sent(&mut self, packet: &Packet, now: Instant) {
        let Payload::Virtual { offset, length, .. } = packet.payload else { return };
        let (newest, last) = self.newest;
        let end = offset + u64::from(length);
        if end > newest {
            self.newest = (end, now);
        }
        let Some((crossing, at)) = self.current(now) else { return };
        if crossing.complete.is_some() {
            crossing.sent_after_complete.get_or_insert(at);
        }
        if end > newest {
            let crossed_at = Instant::ZERO + crossing.at;
            let silent = now.since(last.max(crossed_at));
            let began = last <= crossed_at + WITHIN;
            crossing.silent = crossing.silent.max(if began { silent } else { Duration::ZERO });
        }
    }

    fn on_event(&mut self, node: NodeId, kind: &EventKind, now: Instant) {
        if let (true, EventKind::Handoff { stage, .. }) = (node == self.mobile, kind) {
            if let Some((crossing, at)) = self.current(now) {
                match stage {
                    HandoffStage::RouteChanged => crossing.route_changed = Some(at),
                    HandoffStage::Complete => crossing.complete = Some(at),
                    _ => {}
                }
            }
            return;
        }
        if node != self.spec.sender {
            return;
        }
        match kind {
            EventKind::Window { cwnd, flight, .. } => {
                let opens = self.cwnd < self.window && *cwnd >= self.window;
                (self.cwnd, self.flight) = (*cwnd, *flight);
                if let Some((crossing, at)) = self.current(now) {
                    if opens {
                        crossing.opened = Some(at);
                    }
                    let window = &mut crossing.cwnd;
                    (window.least, window.last) = (window.least.min(*cwnd), *cwnd);
                }
            }
            EventKind::Rtt { timeout, .. } => self.rto = *timeout,
            EventKind::Timeout { .. } => {
                let cwnd = self.cwnd;
                if let Some((crossing, at)) = self.current(now) {
                    if crossing.timeouts.is_empty() {
                        crossing.cwnd.at_timeout = cwnd;
                    }
                    crossing.timeouts.push(at);
                }
            }
            _ => {}
        }
    }

    /// The notice from the new base station to the old one: the router between them comes first,
    /// the old base station last.
    fn on_arrival(&mut self, side: Side, packet: &Packet, now: Instant) {
        let Some((_, from, to)) = self.since else { return };
        let stations = (address::station(to).into(), address::station(from).into());
        if side == Side::WIRED
            && (packet.ip.source, packet.ip.destination) == stations
            && packet.as_tcp().is_none()
            && let Some((crossing, at)) = self.current(now)
            && crossing.complete.is_none()
        {
            crossing.old_told = Some(at);
        }
    }

    fn on_delivered(&mut self, bytes: u64, now: Instant) {
        if self.since.is_some() {
            let before = self.progress.last().map_or(0, |(_, bytes)| *bytes);
            self.progress.push((now, before + bytes));
        }
    }

    fn on_lost(&mut self, packet: &Packet) {
        let (Some(_), Some(crossing)) = (self.since, self.crossings.last_mut()) else { return };
        if packet.as_tcp().is_some() {
            let is_data = !packet.payload.is_empty();
            crossing.lost_data += u32::from(is_data);
            crossing.lost_acks += u32::from(!is_data);
        }
    }
}

/// From `since` until data comes at the peak.
fn regrown(progress: &[(Instant, u64)], since: Instant, peak_bps: f64) -> Option<Duration> {
    let wanted = peak_bps / 8.0 * PEAK_FOR.as_secs_f64() * PEAK_SHARE;
    let later = progress.iter().enumerate().filter(|(_, (at, _))| *at >= since);
    for (index, (at, bytes)) in later {
        let end = *at + PEAK_FOR;
        let after = progress[index..].partition_point(|(other, _)| *other <= end);
        if index + after == progress.len() {
            return None;
        }
        let (_, most) = progress[index + after - 1];
        if (most - bytes) as f64 >= wanted {
            return Some(at.since(since));
        }
    }
    None
}
