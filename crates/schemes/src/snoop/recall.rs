//! The fixed host's last ACK again, when a mobile host that sends has fallen silent (*modern*;
//! ours, not the paper's).
//!
//! ```text
//!   mobile host ── RADIO ─▶ data … silence
//!               ◀── ✗ ──── ACKs that the outage took
//!               ◀─ again ─ the last of them, until the mobile host is heard
//! ```
//!
//! The base station has nothing that the mobile host's kernel lacks but this: an outage takes the
//! last ACKs, too, those of data that had passed. Its sender waits for a timeout that doubles, up
//! to the length of the outage once more. That ACK is news to it whenever it comes: it moves the
//! window, and the sender goes on. Who has received it ignores it; nothing can be done for that.
//!
//! A sender takes its timeouts for a mistake then, and repairs what the outage took by what SACK
//! blocks show, with the window of before. Without SACK it would repair a hole for each round trip:
//! its own timeout is the faster way (measured at 20 Mbit/s, 32 ms, reno: 6.4 Mbit/s, not 10.1).
//!
//! Nobody says whether silence is an outage or the end of what there was to send. So the pauses
//! between two ACKs grow with the silence, slowly, and sooner if the last data ended what an
//! application had written (PSH). All of them together use no more of the air than probes may.

use super::config::{Config, Probe, Restart};
use super::nack::in_the_name_of_the_fixed_host;
use super::restart::still_under_way;
use super::uplink::{Reason, Uplink};
use super::{Shared, rule};
use sansio::{Duration, Instant, Side, Sink};

/// What is known of the last ACK's way to the mobile host.
#[derive(Clone, Debug, Default)]
pub(super) struct Recall {
    /// When the fixed host's highest ACK first passed; `None` before one did.
    pub(super) acked_at: Option<Instant>,
    /// The fixed host's ACKs show holes: SACK is agreed on, or its blocks were seen.
    pub(super) has_sack: bool,
    /// The last new data ended what an application had written (PSH).
    pub(super) is_written: bool,
    /// When the ACK was repeated last in this silence.
    repeated_at: Option<Instant>,
    /// A notice said that the mobile host is out of reach, then.
    away_since: Option<Instant>,
}

/// A flow that sent less at a time is left to its sender: an initial window (RFC 6928).
const BUSY_BYTES: u32 = 14_600;
/// The pause between two ACKs is this part of the silence, at least: 60 ms after a minute.
const PART_OF_SILENCE: u64 = 1024;
/// The same after PSH: 1 s after half a minute.
const PART_IF_WRITTEN: u64 = 32;

impl Recall {
    /// Data came. True if it ends a silence.
    pub(super) fn on_heard(&mut self, config: &Config, now: Instant) -> bool {
        if self.away_since.is_some_and(|since| now.since(since) >= still_under_way(config)) {
            self.away_since = None;
        }
        self.repeated_at.take().is_some()
    }
}

/// When the last ACK is to be repeated, if nothing is heard until then. Never, if the mobile host
/// shows that it has it: it sent more since.
pub(super) fn next_at(flow: &Uplink, config: &Config) -> Option<Instant> {
    let Restart::Probe(probe) = config.restart else { return None };
    let since = silent_since(flow).filter(|_| flow.sent_at_once() >= BUSY_BYTES)?;
    let trip = flow.air.shortest().unwrap_or(Duration::ZERO);
    match flow.recall.repeated_at {
        None => Some(since + config.persist.max(trip * 2)),
        Some(last) => Some(last + pause(&flow.recall, &probe, trip, last.since(since))),
    }
}

/// Since when an answer to the last ACK is missing.
fn silent_since(flow: &Uplink) -> Option<Instant> {
    let may_help = flow.recall.has_sack && flow.aside != Some(Reason::Unforgeable);
    let acked_at = flow.recall.acked_at.filter(|_| may_help)?;
    let received_at = acked_at + flow.air.shortest().unwrap_or(Duration::ZERO);
    (flow.heard_at <= received_at).then(|| acked_at.max(flow.heard_at))
}

fn pause(recall: &Recall, probe: &Probe, trip: Duration, silence: Duration) -> Duration {
    let part = if recall.is_written { PART_IF_WRITTEN } else { PART_OF_SILENCE };
    let least = match recall.away_since {
        Some(_) => probe.interval_while_down,
        None => probe.interval,
    };
    least.max(trip).max(silence / part)
}

/// Repeats it now, if the bound on probes allows. Returns when it may be tried again otherwise.
pub(super) fn on_due(
    flow: &mut Uplink,
    (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) -> Option<Instant> {
    let Restart::Probe(probe) = config.restart else { return None };
    // The link is no slower than the flow was, but what passes toward the mobile host is too little
    // to tell.
    let rate = probe.link_rate.unwrap_or_else(|| shared.air.rate(&probe).max(flow.rate()));
    if !shared.air.admit(ACK_BYTES, rate, &probe, now) {
        return Some(shared.air.admits_at());
    }
    repeat(flow, "last ACK again", (config, shared, sink), now);
    None
}

/// About as many bytes has a datagram with an ACK: IPv6, timestamps.
const ACK_BYTES: u32 = 72;

fn repeat(
    flow: &mut Uplink,
    did: &'static str,
    (config, shared, sink): (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) {
    let Some(fixed) = flow.fixed else { return };
    flow.recall.repeated_at = Some(now);
    let ack = in_the_name_of_the_fixed_host(flow.key, &fixed, fixed.options(), sink.new_id());
    shared.statistics.probes += 1;
    shared.statistics.probe_bytes += u64::from(ack.bytes());
    rule(sink, flow.key, Some(ack.id), ("RESTART", did, fixed.ack.0.into()));
    sink.send(Side::RADIO, config.retransmission_priority, ack.into());
}

/// The mobile host was heard on another flow after silence, or a hint says that the link is back.
pub(super) fn on_host_back(
    flow: &mut Uplink,
    context: (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) {
    if flow.recall.repeated_at.is_some() && silent_since(flow).is_some() {
        repeat(flow, "host is back: last ACK", context, now);
    }
}

/// A notice says that the mobile host is out of reach.
pub(super) fn on_link_down(flow: &mut Uplink, now: Instant) {
    flow.recall.away_since = Some(now);
}

/// A notice says that it is back: who may lack an ACK is sent it.
pub(super) fn on_link_up(
    flow: &mut Uplink,
    context: (&Config, &mut Shared, &mut impl Sink),
    now: Instant,
) {
    let Some(away_since) = flow.recall.away_since.take() else { return };
    let received_at =
        silent_since(flow).map(|since| since + flow.air.shortest().unwrap_or_default());
    if received_at.is_some_and(|at| at >= away_since) {
        repeat(flow, "link is back: last ACK", context, now);
    }
}
