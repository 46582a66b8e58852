//! One flow from the mobile host to the fixed host: what of it has passed here, what was lost on
//! the air, and what the fixed host last said (SNOOP-NACK-1).
//!
//! All of it is soft, as in the other direction: it begins with any packet of a connection, and may
//! vanish at any instant.

use super::config::{Nack, Reach};
use super::flow::{ECN_FLAGS, WiredRoundTrip};
use super::recall::Recall;
use sansio::{BitRate, Duration, FlowKey, Instant, Packet, PacketId};
use wire::tcp::{Flags, Header, Options, SackBlock, Seq, Timestamps};

/// Gaps of one flow that are followed (MOD-14). Beyond it the flow begins anew, with nothing known.
const GAPS_MAX: usize = 64;
/// Late arrivals that are remembered until the fixed host acknowledges them.
const LATE_MAX: usize = 64;

/// One direction of one connection.
#[derive(Clone, Debug)]
pub(super) struct Uplink {
    /// Four-tuple, as the data travels.
    pub(super) key: FlowKey,
    /// Byte after the highest one seen from the mobile host.
    seen: Seq,
    /// From here on, all that is below `seen` and in no gap has passed here.
    known_from: Seq,
    /// Where the mobile host went on after a pause, and when, and how much it sent before that at
    /// once; `None` before the first pause.
    message: Seq,
    message_at: Instant,
    usual_bytes: Option<u32>,
    /// What is missing below `seen`, in order of sequence.
    gaps: Vec<Gap>,
    /// What filled a gap and is not acknowledged, in order of arrival.
    late: Vec<Late>,
    /// Byte after a FIN from the mobile host: acknowledged, it ends the flow.
    fin: Option<Seq>,
    /// What the fixed host last said; `None` until it did.
    pub(super) fixed: Option<Fixed>,
    /// Its duplicates in a row of an ACK for what has passed here.
    duplicates: u32,
    /// From a packet of ours to the mobile host until its answer, by timestamps.
    pub(super) air: WiredRoundTrip,
    /// The same toward the fixed host.
    pub(super) wired: WiredRoundTrip,
    /// Last packet of the mobile host with data.
    pub(super) heard_at: Instant,
    /// Whether the last ACK has reached the mobile host.
    pub(super) recall: Recall,
    /// Last packet of either host.
    pub(super) active_at: Instant,
    /// Told gaps of which the data came, and those of them of which it came twice.
    pub(super) judged: u32,
    pub(super) unneeded: u32,
    /// Why nothing is told, if so.
    pub(super) aside: Option<Reason>,
    /// The deadline for which the queue holds the flow.
    pub(super) queued_at: Option<Instant>,
    /// When it was first seen.
    pub(super) began_at: Instant,
}

/// Bytes that others overtook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: Seq,
    pub(super) end: Seq,
    /// Segments that came from beyond since it was noticed, or told last.
    pub(super) overtaken_by: u32,
    /// When it was told last.
    pub(super) told_at: Option<Instant>,
    /// How often.
    pub(super) told: u8,
}

/// What filled a gap, and when.
#[derive(Clone, Copy, Debug)]
struct Late {
    start: Seq,
    end: Seq,
    at: Instant,
    was_told: bool,
}

/// What the fixed host last said: an ACK in its name repeats it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fixed {
    /// Its next sequence number.
    pub(super) next_seq: Seq,
    /// The highest cumulative ACK.
    pub(super) ack: Seq,
    /// Its window field as sent.
    pub(super) window: u16,
    /// Its ECN flags (MOD-12).
    pub(super) ecn: Flags,
    /// Its last timestamps (MOD-3).
    pub(super) timestamps: Option<Timestamps>,
    /// The packet that said so, and when.
    pub(super) packet: PacketId,
    at: Instant,
}

/// Why the mobile host is told nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// SACK blocks mean nothing to it, or it would not take them.
    NoSack,
    /// Its handshake was not seen, so nobody knows whether SACK is permitted.
    NoHandshake,
    /// An ACK of this connection needs what only the fixed host can make (MOD-13, MOD-20).
    Unforgeable,
    /// What was forwarded got lost beyond: the mobile host must not be told that it arrived
    /// (MOD-4).
    WiredLoss,
    /// Most of what was told came anyway: the radio reorders.
    Unneeded,
}

impl Fixed {
    /// The options of an ACK in its name, but for SACK blocks.
    pub(super) fn options(&self) -> Options {
        let mut options = Options::default();
        if let Some(timestamps) = self.timestamps {
            let pushed = options.push_timestamps(timestamps);
            debug_assert!(pushed.is_ok(), "nothing else is there");
        }
        options
    }

    /// SACK blocks that an ACK in its name has room for (RFC 2018, section 3).
    pub(super) fn room(&self) -> usize {
        if self.timestamps.is_some() { 3 } else { 4 }
    }
}

impl Reason {
    pub(super) fn text(self) -> &'static str {
        match self {
            Reason::NoSack => "SACK is not agreed on: the mobile host cannot be told of losses",
            Reason::NoHandshake => "handshake not seen: is SACK agreed on?",
            Reason::Unforgeable => "ACKs with options that only the fixed host can make",
            Reason::WiredLoss => "data is lost beyond the base station",
            Reason::Unneeded => "most of what seemed lost came without being asked for",
        }
    }
}

/// What an arrival of data means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// In order, or beyond a gap.
    New,
    /// All or a part of a gap.
    Fills,
    /// It had passed here before.
    Again,
}

impl Uplink {
    /// A flow first seen with data at `start`.
    pub(super) fn new(key: FlowKey, start: Seq, aside: Option<Reason>, now: Instant) -> Self {
        Uplink {
            key,
            seen: start,
            known_from: start,
            message: start,
            message_at: now,
            usual_bytes: None,
            gaps: Vec::new(),
            late: Vec::new(),
            fin: None,
            fixed: None,
            duplicates: 0,
            air: WiredRoundTrip::default(),
            wired: WiredRoundTrip::default(),
            heard_at: now,
            recall: Recall::default(),
            active_at: now,
            judged: 0,
            unneeded: 0,
            aside,
            queued_at: None,
            began_at: now,
        }
    }

    /// Leaves the flow alone from here on.
    pub(super) fn stand_aside(&mut self, reason: Reason) {
        self.aside = Some(reason);
        self.gaps = Vec::new();
        self.late = Vec::new();
    }

    /// Takes note of data that passes. `range`: with the FIN; `segments`: how many it is.
    pub(super) fn on_data(
        &mut self,
        (start, end): (Seq, Seq),
        segments: u32,
        now: Instant,
    ) -> Arrival {
        self.heard_at = now;
        self.note_pause(now);
        for gap in self.gaps.iter_mut().take_while(|gap| gap.end.at_or_before(start)) {
            gap.overtaken_by = gap.overtaken_by.saturating_add(segments);
        }
        let is_beyond = end.after(self.seen);
        if start.after(self.seen) {
            if self.gaps.len() >= GAPS_MAX {
                self.gaps.clear();
                self.late.clear();
                self.known_from = start;
            } else {
                self.gaps.push(Gap {
                    start: self.seen,
                    end: start,
                    overtaken_by: segments,
                    told_at: None,
                    told: 0,
                });
            }
        }
        let filled = self.fill((start, end), now);
        if is_beyond {
            self.seen = end;
            Arrival::New
        } else if filled {
            Arrival::Fills
        } else {
            Arrival::Again
        }
    }

    /// Takes note of data of a flow that is told nothing.
    pub(super) fn follow(&mut self, end: Seq, now: Instant) {
        self.heard_at = now;
        self.note_pause(now);
        self.seen = self.seen.max(end);
    }

    /// Byte after the highest one seen.
    pub(super) fn highest(&self) -> Seq {
        self.seen
    }

    /// How much it sent without a pause.
    pub(super) fn sent_at_once(&self) -> u32 {
        self.seen.since(self.message)
    }

    /// At which rate it did; bursts of less than 0.1 s are no rate.
    pub(super) fn rate(&self) -> BitRate {
        let millis = self.heard_at.since(self.message_at).as_millis().max(100);
        BitRate::from_bps(u64::from(self.sent_at_once()) * 8_000 / millis)
    }

    /// The mobile host goes on: after a pause, if all was acknowledged long enough ago and was what
    /// an application had written. Silence in the midst of that is an outage.
    fn note_pause(&mut self, now: Instant) {
        let Some(fixed) = self.fixed.filter(|fixed| fixed.ack == self.seen) else { return };
        let answered_within = self.air.shortest().unwrap_or_default() * 4;
        if self.recall.is_written && now.since(fixed.at) > PAUSE.max(answered_within) {
            self.usual_bytes = Some(self.sent_at_once());
            (self.message, self.message_at) = (self.seen, now);
        }
    }

    /// Takes what came out of the gaps; true if there was something.
    fn fill(&mut self, (start, end): (Seq, Seq), now: Instant) -> bool {
        let first = self.gaps.partition_point(|gap| gap.end.at_or_before(start));
        let mut at = first;
        let mut filled = false;
        while let Some(gap) = self.gaps.get(at).copied().filter(|gap| gap.start.before(end)) {
            filled = true;
            if self.late.len() >= LATE_MAX {
                self.late.remove(0);
            }
            let (from, to) = (gap.start.max(start), gap.end.min(end));
            let was_told = gap.told > 0;
            self.late.push(Late { start: from, end: to, at: now, was_told });
            self.judged += u32::from(was_told);
            self.gaps.remove(at);
            for (start, end) in [(gap.start, from), (to, gap.end)] {
                if start.before(end) {
                    self.gaps.insert(at, Gap { start, end, ..gap });
                    at += 1;
                }
            }
        }
        filled
    }

    /// Data came that had passed before: was it asked for in vain?
    pub(super) fn on_again(&mut self, (start, end): (Seq, Seq)) {
        let overlaps = |late: &&mut Late| late.start.before(end) && start.before(late.end);
        if let Some(late) = self.late.iter_mut().find(overlaps)
            && core::mem::take(&mut late.was_told)
        {
            self.unneeded += 1;
        }
    }

    pub(super) fn note_fin(&mut self, end: Seq) {
        self.fin = Some(end);
    }

    /// True if the mobile host's FIN is acknowledged.
    pub(super) fn is_finished(&self) -> bool {
        self.fin.zip(self.fixed).is_some_and(|(fin, fixed)| fixed.ack == fin)
    }

    /// A segment of the fixed host with an ACK. True if it shows that something got lost after it
    /// had passed here.
    pub(super) fn on_ack(&mut self, packet: &Packet, now: Instant) -> bool {
        let Some(header) = packet.as_tcp() else { return false };
        let payload_bytes = packet.payload.len();
        if header.options.sack_blocks().next().is_some() {
            self.recall.has_sack = true;
        }
        let before = self.fixed.map(|fixed| fixed.ack);
        if before.is_some_and(|before| header.ack.before(before)) || header.ack.after(self.seen) {
            return false;
        }
        self.fixed = Some(Fixed {
            next_seq: header.seq + header.sequence_length(payload_bytes),
            ack: header.ack,
            window: header.window,
            ecn: Flags(header.flags.0 & ECN_FLAGS.0),
            timestamps: header.options.timestamps(),
            packet: packet.id,
            at: now,
        });
        if before != Some(header.ack) {
            self.duplicates = 0;
            self.recall.acked_at = Some(now);
            self.on_acknowledged(header.ack);
            return false;
        }
        if payload_bytes > 0 || !self.is_lost_beyond(header, now) {
            return false;
        }
        self.duplicates += 1;
        self.duplicates >= DUPLICATES
    }

    fn on_acknowledged(&mut self, ack: Seq) {
        self.known_from = self.known_from.max(ack);
        self.gaps.retain(|gap| gap.end.after(ack));
        if let Some(first) = self.gaps.first_mut() {
            first.start = first.start.max(ack);
        }
        self.late.retain(|late| late.end.after(ack));
    }

    /// True if a duplicate ACK tells of a segment that passed here before what lies beyond it.
    fn is_lost_beyond(&self, header: &Header, now: Instant) -> bool {
        let ack = header.ack;
        if ack.before(self.known_from)
            || ack == self.seen
            || !header.options.sack_blocks().any(|block| block.start.after(ack))
            || self.gaps.first().is_some_and(|gap| gap.start == ack)
        {
            return false;
        }
        let late =
            self.late.iter().find(|late| late.start.at_or_before(ack) && ack.before(late.end));
        match (late, self.wired.shortest()) {
            // It came late: the duplicates of before are still on their way.
            (Some(late), Some(wired)) => now.since(late.at) > wired * 3,
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// The earliest instant at which a gap may be told again.
    pub(super) fn repeat_after(&self, nack: &Nack) -> Duration {
        let trip = self.air.shortest().unwrap_or(Duration::ZERO);
        nack.silence.max(trip * 2)
    }

    /// True if a gap is to be told: enough came from beyond it (SNOOP-NACK-2), and it was not told
    /// too recently.
    pub(super) fn is_due(&self, nack: &Nack, now: Instant) -> bool {
        self.within_reach(nack).take(self.shown()).any(|gap| {
            let waited = gap.told_at.is_none_or(|at| now.since(at) >= self.repeat_after(nack));
            gap.overtaken_by >= nack.threshold_segments && gap.told < nack.times_max && waited
        })
    }

    /// True if there is something to tell, and that is of use.
    pub(super) fn has_to_tell(&self, nack: &Nack) -> bool {
        let is_far = self.wired.shortest().is_none_or(|wired| wired >= nack.wired_rtt_min);
        let is_known = self.fixed.is_some_and(|fixed| fixed.ack.at_or_after(self.known_from));
        is_far && is_known && self.within_reach(nack).any(|gap| gap.told < nack.times_max)
    }

    /// How many gaps one NACK can show: each has a block above it, and there may be one below all.
    fn shown(&self) -> usize {
        let Some((fixed, lowest)) = self.fixed.as_ref().zip(self.gaps.first()) else { return 0 };
        fixed.room() - usize::from((fixed.ack + 1).before(lowest.start))
    }

    /// The gaps that may be told.
    fn within_reach(&self, nack: &Nack) -> impl Iterator<Item = &Gap> {
        let reach = match nack.reach {
            Reach::Anywhere => u32::MAX,
            Reach::Message { bytes_max } => {
                self.usual_bytes.filter(|bytes| *bytes <= bytes_max).unwrap_or(0)
            }
        };
        let message = self.message;
        self.gaps.iter().take_while(move |gap| gap.start.since(message) < reach)
    }

    /// The SACK blocks that show the lowest gaps, lowest first; they say of nothing that it has
    /// arrived which has not passed here. Marks the gaps as told.
    ///
    /// Nothing below the highest block is left out: a sender takes what it is not told of for lost.
    /// The lowest block begins one byte above the ACK: one that begins at it is no SACK block (RFC
    /// 2018, section 3), and Linux ignores it.
    pub(super) fn tell(&mut self, nack: &Nack, now: Instant) -> Vec<SackBlock> {
        let Some(fixed) = self.fixed.filter(|fixed| fixed.ack.at_or_after(self.known_from)) else {
            return Vec::new();
        };
        let room = fixed.room();
        let mut blocks = Vec::with_capacity(room);
        let mut from = fixed.ack;
        let mut shown = 0;
        for gap in self.within_reach(nack) {
            let start = if from == fixed.ack { from + 1 } else { from };
            if start.before(gap.start) {
                if blocks.len() == room {
                    break;
                }
                blocks.push(SackBlock { start, end: gap.start });
            }
            from = gap.end;
            shown += 1;
        }
        // What lies beyond the last gap that is shown, up to the next one.
        let end = self.gaps.get(shown).map_or(self.seen, |gap| gap.start);
        if shown > 0 && blocks.len() < room && from.before(end) {
            blocks.push(SackBlock { start: from, end });
        }
        let highest = blocks.last().map(|block| block.end);
        for gap in &mut self.gaps {
            if highest.is_some_and(|highest| gap.start.before(highest)) {
                (gap.told_at, gap.overtaken_by) = (Some(now), 0);
                gap.told = gap.told.saturating_add(1);
            }
        }
        blocks
    }
}

/// A sender that has more to send goes on within a round trip of the air; one that does so later
/// begins another message.
const PAUSE: Duration = Duration::from_millis(100);
/// Duplicate ACKs that tell of a loss (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
