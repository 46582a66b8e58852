//! The state of one flow, fixed host to mobile host (SNOOP-ST-1).
//!
//! All of it is soft: it is built from the packets that pass, from any point of a connection on,
//! and may vanish at any instant (SNOOP-GEN-3). The next expected ACK of the paper is not stored:
//! it is any ACK above the last one.

use super::aside::{Reason, Rest};
use super::cache::{Cache, Entry};
use super::config::{Config, HelpFrom, Repair};
use super::disclosure::Disclosure;
use super::mirror::Role;
use super::restart::Phase;
use super::rtt::RoundTrip;
use super::sack::Evidence;
use super::timers::{Timer, Timers};
use sansio::{Duration, FlowKey, Instant};
use wire::tcp::{Flags, Header, Seq, Timestamps};

/// One direction of one connection. What every packet needs while nothing else is going on comes
/// first, in a few cache lines; `repr(C)` keeps the order.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// Four-tuple, as the data travels.
    pub(super) key: FlowKey,
    /// Where it was first seen.
    pub(super) start: Seq,
    /// Byte after the highest one seen from the fixed host.
    pub(super) last_seen: Seq,
    /// Byte after the highest one that its windows allowed; the flow's start without a scale.
    pub(super) right_edge: Seq,
    /// Last cumulative ACK of the mobile host; `None` until one was seen.
    pub(super) last_ack: Option<Seq>,
    /// The shift of its windows; `None` if not both SYNs were seen (MOD-5).
    pub(super) scale: Option<u8>,
    /// Who sends its data to the mobile host.
    pub(super) role: Role,
    /// Why the agent leaves the flow alone, if it does.
    pub(super) aside: Option<Reason>,
    /// A notice said that the mobile host is out of reach.
    pub(super) is_away: bool,
    /// New segments from the fixed host since the mobile host was last heard.
    pub(super) segments_unanswered: u16,
    /// Only if [`Flow::is_nothing_going_on`]: then the next ACK above the last one only frees what
    /// it acknowledges, and the next data is only cached.
    pub(super) is_quiet: bool,
    /// Unacknowledged segments.
    pub(super) cache: Cache,
    /// Segments put into the normal queue and cached, counted modulo 2^32.
    pub(super) sent: u32,
    /// Segments that departed, counted modulo 2^32.
    pub(super) departures: u32,
    /// Place of the next departure in the order of `sent`.
    pub(super) next_departure: u32,
    /// Duplicate ACKs still to be expected (SNOOP-ACK-8).
    pub(super) expected_dupacks: u32,
    /// The mobile host's last segment, as far as an ACK in its name needs it.
    pub(super) mobile: Mobile,
    /// Unexpected duplicate ACKs in a row.
    pub(super) dupacks: u32,
    /// Since when the mobile host has had something to answer; its last packet, if there was
    /// something already.
    pub(super) unanswered_since: Option<Instant>,
    /// Last packet of either host.
    pub(super) active_at: Instant,
    /// Last packet of the fixed host with data.
    pub(super) sender_at: Instant,
    /// Last packet of the mobile host; the flow's beginning before there was one.
    pub(super) mobile_at: Instant,
    /// When it was above the one before.
    pub(super) acked_at: Instant,
    /// The TSval of that packet.
    pub(super) sender_timestamp: Option<u32>,
    /// Bytes that may still be re-sent (MOD-14).
    pub(super) budget_bytes: u64,
    /// The segment being timed.
    pub(super) timed: Timed,
    /// What the sender may know of losses.
    pub(super) disclosure: Disclosure,
    /// The wired round trip (*modern*).
    pub(super) wired: WiredRoundTrip,
    /// The flow's timers, by `Timer`.
    pub(super) timers: Timers,
    /// Round trip over the last hop.
    pub(super) round_trip: RoundTrip,
    /// What SACK blocks told (*modern*).
    pub(super) evidence: Evidence,
    /// When the local retransmission had been queued that departed last.
    pub(super) requeued_departed: Option<Instant>,
    /// Rests after needless repairs, and of a sender that losses do not slow.
    pub(super) rest: Rest,
    /// An episode of recovery lasts until the ACK reaches this (SNOOP-TMR-4).
    pub(super) episode_end: Option<Seq>,
    /// Byte after a FIN from the fixed host: acknowledged, it ends the flow (SNOOP-DATA-8).
    pub(super) fin: Option<Seq>,
    /// Since when the lowest segment is being repaired while its duplicate ACKs are withheld.
    pub(super) withheld_since: Option<Instant>,
    /// Where the flow stands between an outage and normal traffic (*modern*).
    pub(super) phase: Phase,
    /// The deadline for which the agent's queue holds the flow.
    pub(super) queued_deadline: Option<Instant>,
    /// Agent ACKs in the current second (MOD-14).
    pub(super) agent_acks: RatePerSecond,
    /// When it was first seen.
    pub(super) began_at: Instant,
}

/// What the mobile host last said beside its ACK.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mobile {
    /// Its next sequence number.
    pub(super) next_seq: Seq,
    /// Its window field as sent; [`Flow::is_window_update`] says what a change means (MOD-5).
    pub(super) window: u16,
    /// Its ECN flags: ECE, CWR and AE.
    pub(super) ecn: Flags,
    /// Its last timestamps.
    pub(super) timestamps: Option<Timestamps>,
}

/// One sample of the round-trip time at a time (SNOOP-DATA-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timed {
    /// The next new segment will be timed.
    Nothing,
    /// A segment that ends here was chosen, and has not departed.
    Chosen(Seq),
    /// It departed then.
    Running(Seq, Instant),
}

/// The round trip from the base station to the fixed host and back, by timestamps: from an ACK that
/// passed to the first data that echoes its TSval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WiredRoundTrip {
    /// The TSval of an ACK whose echo is awaited,
    awaited: Option<u32>,
    /// and when it passed.
    passed_at: Instant,
    /// Zero before the first sample.
    shortest: Duration,
}

/// A count that starts again each second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RatePerSecond {
    /// Which second of the agent's clock.
    second: u32,
    count: u32,
}

/// No window reaches farther (RFC 7323, 2.3: at most 2^30 bytes).
const WINDOW_MAX: u32 = 1 << 30;

/// The ECN flags of a TCP header (RFC 3168, RFC 9768).
pub(super) const ECN_FLAGS: Flags = Flags::ECE.with(Flags::CWR).with(Flags::AE);

impl Flow {
    /// A flow first seen with data at `start`.
    pub(super) fn new(key: FlowKey, start: Seq, config: &Config, now: Instant) -> Self {
        let aside = match config.help_from {
            HelpFrom::FirstPacket => None,
            HelpFrom::Evidence { .. } => Some(Reason::NoEvidence),
        };
        Flow {
            key,
            start,
            last_seen: start,
            fin: None,
            last_ack: None,
            acked_at: now,
            mobile: Mobile::default(),
            scale: None,
            right_edge: start,
            cache: Cache::default(),
            expected_dupacks: 0,
            dupacks: 0,
            sent: 0,
            departures: 0,
            requeued_departed: None,
            next_departure: 0,
            round_trip: RoundTrip::default(),
            timed: Timed::Nothing,
            episode_end: None,
            withheld_since: None,
            disclosure: Disclosure::starting_at(start),
            active_at: now,
            sender_at: now,
            sender_timestamp: None,
            mobile_at: now,
            unanswered_since: None,
            segments_unanswered: 0,
            is_quiet: false,
            evidence: Evidence::default(),
            phase: Phase::Steady,
            wired: WiredRoundTrip::default(),
            budget_bytes: u64::from(config.bounds.retransmission_floor_bytes),
            agent_acks: RatePerSecond::default(),
            role: Role::Forwards,
            aside,
            is_away: false,
            rest: Rest::NONE,
            timers: Timers::new(),
            queued_deadline: None,
            began_at: now,
        }
    }

    /// The mobile host acknowledges what never passed here. Either that went another way, or the
    /// ACK is forged: the fixed host ignores it then (RFC 9293, 3.10.7.4), so nothing may be
    /// answered with it. All that is known of the flow may be wrong; it begins again here.
    #[cold]
    pub(super) fn start_again(&mut self, config: &Config, now: Instant) {
        let (scale, budget_bytes, rest) = (self.scale, self.budget_bytes, self.rest);
        *self = Flow::new(self.key, self.last_seen, config, now);
        (self.scale, self.budget_bytes, self.rest) = (scale, budget_bytes, rest);
        self.timers.set(Timer::Idle, now + config.flow_idle);
    }

    /// The lowest byte that the mobile host lacks, if an ACK told or the cache can.
    #[inline]
    pub(super) fn lowest_missing(&self) -> Option<Seq> {
        self.last_ack.or_else(|| self.cache.front().map(|entry| entry.start))
    }

    /// True if the mobile host has answered, and there is neither loss nor silence, nor a sign of
    /// one, nor what may follow from it, and no end.
    pub(super) fn is_nothing_going_on(&self, config: &Config) -> bool {
        self.last_ack.is_some()
            && self.role == Role::Forwards
            && (self.expected_dupacks, self.dupacks) == (0, 0)
            && self.episode_end.is_none()
            && self.withheld_since.is_none()
            && self.fin.is_none()
            && self.aside.is_none()
            && self.phase == Phase::Steady
            && self.disclosure.is_nothing_going_on()
            && (config.repair == Repair::Counted || self.evidence.shows_no_loss())
    }

    /// True if an ACK acknowledges something of what is outstanding, and no more.
    #[inline]
    pub(super) fn is_next_ack(&self, ack: Seq) -> bool {
        self.last_ack.is_some_and(|last_ack| {
            let outstanding = self.last_seen.since(last_ack);
            ack.since(last_ack).wrapping_sub(1) < outstanding && outstanding <= WINDOW_MAX
        })
    }

    /// True for the first byte that was not seen yet, within a window of the last ACK.
    #[inline]
    pub(super) fn is_next_data(&self, start: Seq) -> bool {
        start == self.last_seen
            && self.last_ack.is_some_and(|last_ack| start.since(last_ack) <= WINDOW_MAX)
    }

    /// True if no window holds `seq` and what was seen before: it belongs to another connection.
    #[inline]
    pub(super) fn is_far(&self, seq: Seq) -> bool {
        // Farther than a window on either side.
        let is_far = |from| seq.since(from).wrapping_add(WINDOW_MAX) > 2 * WINDOW_MAX;
        is_far(self.last_seen) || self.lowest_missing().is_some_and(is_far)
    }

    /// True if the cache lacks more than an eighth of what is unacknowledged. The sender has to
    /// repeat that: after its timeout as fast as ACKs return, and otherwise, without SACK, one
    /// segment per round trip.
    pub(super) fn outgrows_cache(&self) -> bool {
        let outstanding = self.lowest_missing().map_or(0, |lowest| self.last_seen.since(lowest));
        outstanding.saturating_sub(self.cache.bytes()) > outstanding / 8
    }

    /// The cached segment that holds it.
    pub(super) fn lowest_entry(&self) -> Option<&Entry> {
        let index = self.cache.find(self.lowest_missing()?)?;
        self.cache.get(index)
    }

    /// The TSval below which the mobile host discards data (PAWS; RFC 7323, section 5.3): what it
    /// echoes, if the fixed host sent such a one.
    pub(super) fn oldest_timestamp(&self) -> Option<u32> {
        let (Timestamps { echo, .. }, newest) =
            self.mobile.timestamps.zip(self.sender_timestamp)?;
        ((newest.wrapping_sub(echo) as i32) >= 0).then_some(echo)
    }

    /// True if data was seen that is not acknowledged.
    pub(super) fn has_outstanding(&self) -> bool {
        self.last_ack.is_none_or(|ack| ack.before(self.last_seen))
    }

    /// True if the mobile host's window says something new (MOD-5). With a known scale: it allows a
    /// byte that no window allowed before, or it closes; a smaller one takes nothing back, since a
    /// receiver has to accept what it once allowed (RFC 9293, section 3.8.6). Without a scale
    /// windows are not interpreted, and every change of the field counts.
    #[inline]
    pub(super) fn is_window_update(&self, header: &Header) -> bool {
        let Some(scale) = self.scale else { return header.window != self.mobile.window };
        let closes = header.window == 0 && self.mobile.window != 0;
        closes || right_edge(header, scale).after(self.right_edge)
    }

    /// Remembers what the mobile host said in a segment that is not older than the last, but for
    /// its timestamps.
    #[inline(always)]
    pub(super) fn note_mobile(&mut self, header: &Header, payload_bytes: u32) {
        let end = header.seq + header.sequence_length(payload_bytes);
        if let Some(scale) = self.scale {
            self.right_edge = self.right_edge.max(right_edge(header, scale));
        }
        self.mobile.next_seq = end;
        self.mobile.window = header.window;
        self.mobile.ecn = Flags(header.flags.0 & ECN_FLAGS.0);
    }
}

/// The byte after the last one that a segment's window allows.
fn right_edge(header: &Header, scale: u8) -> Seq {
    header.ack + (u32::from(header.window) << scale)
}

impl WiredRoundTrip {
    /// An ACK with these timestamps is about to pass to the fixed host.
    #[inline]
    pub(super) fn on_ack_passed(&mut self, timestamps: Option<Timestamps>, now: Instant) {
        if self.awaited.is_none()
            && let Some(Timestamps { value, .. }) = timestamps
        {
            (self.awaited, self.passed_at) = (Some(value), now);
        }
    }

    /// Data came from the fixed host with this TSecr.
    pub(super) fn on_data(&mut self, echo: u32, now: Instant) {
        let Some(value) = self.awaited else { return };
        if (echo.wrapping_sub(value) as i32) < 0 {
            return;
        }
        let sample = now.since(self.passed_at);
        self.awaited = None;
        let old = self.shortest;
        // A sender that had nothing to send answers late: the short samples tell.
        let is_late = !old.is_zero() && sample > old;
        self.shortest = if is_late { old + (sample.min(old * 2) - old) / 64 } else { sample };
    }

    /// The shortest time, slowly rising, if the connection uses timestamps and there was a sample.
    pub(super) fn shortest(&self) -> Option<Duration> {
        (!self.shortest.is_zero()).then_some(self.shortest)
    }
}

impl RatePerSecond {
    /// Counts one more; false if that exceeds `limit` in this second.
    pub(super) fn admit(&mut self, limit: u32, now: Instant) -> bool {
        let second = (now.as_nanos() / 1_000_000_000) as u32;
        if second != self.second {
            *self = RatePerSecond { second, count: 0 };
        }
        if self.count >= limit {
            return false;
        }
        self.count += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_flow_takes_less_than_a_kilobyte() {
        // The slab's slot, the look-up's entry with its spare room, the place in the timer queue.
        let look_up = 2 * (size_of::<(FlowKey, u32)>() + 1);
        let timers = 2 * size_of::<u128>() + size_of::<u32>();
        let bytes = size_of::<Option<Flow>>() + look_up + timers;
        assert!(bytes <= 1024, "{bytes} bytes");
        assert!(size_of::<Flow>() <= 640, "{} bytes", size_of::<Flow>());
    }

    #[test]
    fn a_rate_admits_its_limit_per_second_and_no_more() {
        let mut rate = RatePerSecond::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let admitted = (0..2_000).filter(|millis| rate.admit(3, at(*millis))).count();
        assert_eq!(admitted, 6);
        assert!(!RatePerSecond::default().admit(0, at(0)));
    }

    #[test]
    fn the_wired_round_trip_follows_short_samples_at_once_and_long_ones_slowly() {
        let mut wired = WiredRoundTrip::default();
        let mut now = Instant::ZERO;
        let mut sample = |millis: u64| {
            wired.on_ack_passed(Some(Timestamps { value: 7, echo: 0 }), now);
            wired.on_data(6, now);
            now += Duration::from_millis(millis);
            wired.on_data(7, now);
            wired.shortest().map(|shortest| shortest.as_millis())
        };
        assert_eq!([sample(640), sample(9_000), sample(50)], [Some(640), Some(650), Some(50)]);
    }
}
