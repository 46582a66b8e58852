//! What SACK blocks show of losses on the last hop (MOD-1).
//!
//! The paper learns of one loss per round trip: the one at the cumulative ACK. SACK blocks
//! (RFC 2018) show every hole, and which departures have arrived; [`super::repair`] acts on it. The
//! sender sees nothing of it as long as the cache holds every hole: duplicates are withheld,
//! and in an ACK that must pass the blocks become padding. Nothing is ever added to an ACK.

use super::ack::out_of_patience;
use super::cache::{Cache, Copy, Entry};
use super::config::{Config, Repair, SackTowardSender};
use super::flow::Flow;
use super::rtt::RoundTrip;
use super::{Context, restart, rule};
use sansio::{Duration, Instant, Packet, PacketRef, Sink, Transport};
use std::collections::VecDeque;
use wire::tcp::{self, Options, SackBlock, Seq, TcpOption, kind};

/// What the mobile host has shown to have; first what every ACK tells.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct Evidence {
    /// The latest departure that is known to have arrived,
    pub(super) latest: Arrived,
    /// and the latest one that took the link's normal queue.
    pub(super) latest_in_line: Arrived,
    /// First bytes of the cached segments below `highest` that no block covers, ascending.
    pub(super) holes: VecDeque<Seq>,
    /// Byte after the highest one in a SACK block.
    pub(super) highest: Option<Seq>,
    /// Up to here something is missing that the cache does not hold.
    pub(super) gap_end: Option<Seq>,
    /// Extra time granted to a segment that others overtake; see `on_unneeded`.
    pub(super) allowance: Duration,
    /// Cached segments that arrived after they had been sent again, counted modulo 2^32.
    delivered: u32,
    /// That count when holes were last re-sent.
    delivered_before: u32,
    /// Cached segments above the last ACK that arrived, as far as duplicate ACKs tell.
    arrived: u16,
    /// The same of duplicates that may answer the agent's own.
    arrived_or_own: u16,
    /// Something arrived since the holes were last looked at.
    pub(super) news: bool,
    /// The flow carried SACK blocks.
    seen_sack: bool,
    /// Duplicate ACKs to come that answer the agent's own duplicates, and until when.
    own_duplicates: u16,
    own_duplicates_until: Instant,
    /// Repairs judged in the current batch, and those of them that were not needed.
    judged: u16,
    unneeded: u16,
    /// Of what another base station has sent, the place of the latest that has arrived; places
    /// begin with 1.
    pub(super) elsewhere: u32,
}

/// A departure that arrived; of no place and no time before the first one. Without gaps: every flow
/// has two.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(4))]
pub(super) struct Arrived {
    /// Its place among the departures, which begin with 1, modulo 2^32.
    pub(super) order: u32,
    /// Time from its departure to the ACK that showed it.
    took: Duration,
}

impl Arrived {
    /// Time from its departure to the ACK that showed it, rounded up to a microsecond.
    pub(super) fn round_trip(&self) -> Duration {
        Duration::from_micros(self.took.as_nanos().div_ceil(1_000))
    }

    /// True if it departed after the one of this place.
    #[inline]
    pub(super) fn is_after(&self, order: u32) -> bool {
        (self.order.wrapping_sub(order) as i32) > 0
    }
}

impl Evidence {
    /// True if the flow ever carried a SACK block.
    pub(super) fn has_seen_sack(&self) -> bool {
        self.seen_sack
    }

    /// True if SACK blocks show a hole.
    #[inline]
    pub(super) fn shows_a_hole(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Cached segments that arrived after they had been sent again, modulo 2^32.
    pub(super) fn delivered(&self) -> u32 {
        self.delivered
    }

    /// Segments above the last ACK that arrived, as duplicate ACKs without blocks tell.
    pub(super) fn arrived(&self) -> u16 {
        self.arrived
    }

    /// The same, and those that the agent's own duplicates may have caused.
    pub(super) fn arrived_at_most(&self) -> u16 {
        self.arrived.saturating_add(self.arrived_or_own)
    }

    /// A duplicate ACK came: one more. True if it may answer one of the agent's own duplicates.
    pub(super) fn on_duplicate(&mut self, now: Instant) -> bool {
        let is_own = self.expects_own_duplicate(now);
        let count = if is_own { &mut self.arrived_or_own } else { &mut self.arrived };
        *count = count.saturating_add(1);
        is_own
    }

    /// True if no block and no duplicate tells of anything that arrived above the last ACK.
    pub(super) fn shows_no_loss(&self) -> bool {
        self.highest.is_none() && self.holes.is_empty() && self.arrived_at_most() == 0
    }

    /// A cached segment arrived, so long after the departure of its newest copy.
    #[inline]
    fn on_arrival(&mut self, entry: &Entry, took: Duration) {
        self.note_arrival(entry, took);
        self.news = true;
    }

    /// The same where nothing could be missing that it overtook.
    #[inline]
    pub(super) fn note_arrival(&mut self, entry: &Entry, took: Duration) {
        let arrived = Arrived { order: entry.departed_order, took };
        if arrived.is_after(self.latest.order) {
            self.latest = arrived;
        }
        if entry.retransmissions == 0 && arrived.is_after(self.latest_in_line.order) {
            self.latest_in_line = arrived;
        }
    }

    /// `count` cached segments were acknowledged at once: all but the lowest had arrived before. So
    /// many are left; duplicates for what is not cached may have been counted, too.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, count: usize, left: usize) {
        if self.arrived_at_most() > 0 {
            self.forget_arrived(count, left);
        }
    }

    #[cold]
    fn forget_arrived(&mut self, count: usize, left: usize) {
        let (count, left) = (clamped(count as u32), clamped(left as u32));
        self.arrived = self.arrived.saturating_sub(count.saturating_sub(1)).min(left);
        self.arrived_or_own = self.arrived_or_own.min(left);
    }

    /// True if a duplicate ACK may answer one of the agent's own duplicates.
    pub(super) fn expects_own_duplicate(&self, now: Instant) -> bool {
        self.own_duplicates > 0 && now <= self.own_duplicates_until
    }

    /// One of them came.
    pub(super) fn on_own_duplicate(&mut self) {
        self.own_duplicates = self.own_duplicates.saturating_sub(1);
    }

    /// `count` more of the agent's duplicates will be answered until `until`.
    pub(super) fn expect_own_duplicates(&mut self, count: u32, until: Instant, now: Instant) {
        if now > self.own_duplicates_until {
            self.own_duplicates = 0;
        }
        self.own_duplicates = self.own_duplicates.saturating_add(clamped(count));
        self.own_duplicates_until = until;
    }

    /// How many segments that had been sent again arrived since this was last asked.
    pub(super) fn take_answered(&mut self) -> u32 {
        let before = core::mem::replace(&mut self.delivered_before, self.delivered);
        self.delivered.wrapping_sub(before)
    }

    /// True if every hole is known to be in the cache.
    pub(super) fn all_cached(&self) -> bool {
        self.gap_end.is_none()
    }

    /// How many repairs out of how many of the current batch were not needed.
    pub(super) fn unneeded_of_judged(&mut self) -> (u16, u16) {
        let batch = (self.unneeded, self.judged);
        if self.judged >= JUDGED_BATCH {
            (self.unneeded, self.judged) = (0, 0);
        }
        batch
    }

    /// A repair was not needed: the radio reorders. Segments get a quarter of the shortest round
    /// trip more (RFC 8985, section 6.2), up to the smoothed one.
    fn on_unneeded(&mut self, round_trip: &RoundTrip) {
        self.allowance = (self.allowance + round_trip.shortest() / 4).min(round_trip.smoothed());
        self.unneeded = self.unneeded.saturating_add(1);
    }

    /// A segment joined the cache below data that has arrived: the sender filled a hole, and the
    /// radio may lose this one, too.
    pub(super) fn on_filled(&mut self, start: Seq) {
        if self.highest.is_some_and(|highest| start.before(highest)) {
            let at = self.holes.partition_point(|hole| hole.before(start));
            if self.holes.get(at) != Some(&start) {
                self.holes.insert(at, start);
            }
        }
    }

    /// Everything below `ack` has arrived, and left the cache.
    #[inline]
    pub(super) fn on_new_ack(&mut self, ack: Seq, cache: &Cache) {
        if self.highest.is_some() {
            self.forget_below(ack, cache);
        }
    }

    #[cold]
    fn forget_below(&mut self, ack: Seq, cache: &Cache) {
        // The first byte of a segment that the ACK cuts.
        let partial = cache.front().map(|entry| entry.start).filter(|start| start.before(ack));
        if self.highest.is_some_and(|highest| highest.at_or_before(ack)) {
            self.highest = None;
            self.holes.clear();
        }
        if self.gap_end.is_some_and(|end| end.at_or_before(ack)) {
            self.gap_end = None;
        }
        while self.holes.front().is_some_and(|hole| hole.before(ack)) {
            self.holes.pop_front();
        }
        if self.highest.is_some()
            && let Some(start) = partial
        {
            self.holes.push_front(start);
        }
    }
}

/// A count of segments that takes two bytes: no cache holds more.
fn clamped(count: u32) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// Repairs judged before the agent asks itself whether they are of use.
pub(super) const JUDGED_BATCH: u16 = 64;

/// A cached segment arrived at the mobile host. The time of its departure is returned if it is a
/// valid sample of the round trip: one copy only was ever sent (Karn's rule, as SNOOP-ACK-2).
#[inline]
pub(super) fn on_delivered(
    (evidence, round_trip): (&mut Evidence, &RoundTrip),
    entry: &Entry,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<Instant> {
    if entry.copy != Copy::Departed || entry.sacked || entry.was_repeated() {
        return on_other_delivered((evidence, round_trip), entry, context, now);
    }
    evidence.on_arrival(entry, now.since(entry.departed_at));
    Some(entry.departed_at)
}

/// The same of one that was sent more than once, or that is not news.
#[cold]
fn on_other_delivered(
    (evidence, round_trip): (&mut Evidence, &RoundTrip),
    entry: &Entry,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<Instant> {
    if entry.sacked {
        return None;
    }
    if entry.was_repeated() {
        evidence.delivered = evidence.delivered.wrapping_add(1);
    }
    match entry.copy {
        Copy::Queued => return None,
        Copy::Elsewhere => return evidence.on_arrival_elsewhere(entry),
        Copy::Departed if entry.may_have_gone_ahead() => {
            // It proves nothing of what is in line.
            evidence.news = true;
            return None;
        }
        Copy::Requeued | Copy::Departed => {}
    }
    let since_departure = now.since(entry.departed_at);
    if entry.retransmissions > 0 {
        evidence.judged = evidence.judged.saturating_add(1);
        if entry.copy == Copy::Requeued || since_departure < round_trip.shortest() {
            // Answered sooner than the copy could be: the original had arrived.
            evidence.on_unneeded(round_trip);
            evidence.expect_own_duplicates(1, now + round_trip.twice_smoothed(MARGIN), now);
            context.shared.statistics.unneeded_retransmissions += 1;
            return None;
        }
        evidence.allowance = evidence.allowance - evidence.allowance / 16;
    }
    evidence.on_arrival(entry, since_departure);
    (!entry.was_repeated()).then_some(entry.departed_at)
}

/// How long an answer to an own duplicate may take at least.
const MARGIN: Duration = Duration::from_millis(40);

/// Takes in the SACK blocks of a segment from the mobile host.
#[inline]
pub(super) fn learn(
    flow: &mut Flow,
    header: &tcp::Header,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    let mut blocks = header.options.sack_blocks();
    if blocks.next().is_some() {
        learn_blocks(flow, header, context, now);
    }
}

#[cold]
fn learn_blocks(
    flow: &mut Flow,
    header: &tcp::Header,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) {
    flow.evidence.seen_sack = true;
    let Some(last_ack) = flow.last_ack else { return };
    let mut sorted: [Option<SackBlock>; BLOCKS_MAX] = [None; BLOCKS_MAX];
    let mut count = 0;
    for block in header.options.sack_blocks() {
        // A block outside what is outstanding reports a duplicate (RFC 2883), or is forged.
        let valid = block.start.before(block.end)
            && block.start.after(last_ack)
            && block.end.at_or_before(flow.last_seen);
        if valid && count < BLOCKS_MAX {
            sorted[count] = Some(block);
            count += 1;
        }
    }
    sorted[..count].sort_unstable_by_key(|block| block.map(|block| block.start.since(last_ack)));
    let mut newest = None;
    for block in sorted.into_iter().flatten() {
        newest = fill_holes(flow, block, context, now).or(newest);
        newest = extend(flow, block, last_ack, (context, now)).or(newest);
    }
    if let Some(departed_at) = newest {
        restart::sample(flow, departed_at, context.config, now);
    }
}

/// SACK blocks in one header, at most (RFC 2018, section 3).
const BLOCKS_MAX: usize = 4;

/// Takes out the holes that the block covers.
fn fill_holes(
    flow: &mut Flow,
    block: SackBlock,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<Instant> {
    let Flow { evidence, cache, round_trip, .. } = flow;
    let mut newest = None;
    let mut at = evidence.holes.partition_point(|hole| hole.before(block.start));
    while let Some(hole) = evidence.holes.get(at).copied().filter(|hole| hole.before(block.end)) {
        let entry = cache.find(hole).and_then(|index| cache.get_mut(index));
        match entry {
            Some(entry) if entry.end.after(block.end) => at += 1,
            Some(entry) => {
                newest = on_delivered((&mut *evidence, round_trip), entry, context, now).or(newest);
                entry.sacked = true;
                evidence.holes.remove(at);
            }
            None => {
                evidence.holes.remove(at);
            }
        }
    }
    newest
}

/// Takes in what the block shows above the highest byte known: what it skips is a hole.
fn extend(
    flow: &mut Flow,
    block: SackBlock,
    last_ack: Seq,
    (context, now): (&mut Context<'_, impl Sink>, Instant),
) -> Option<Instant> {
    let Flow { evidence, cache, round_trip, .. } = flow;
    let from = evidence.highest.map_or(last_ack, |highest| highest.max(last_ack));
    if block.end.at_or_before(from) {
        return None;
    }
    let mut newest = None;
    let mut at = from;
    let mut index = cache.first_ending_after(from);
    while let Some(entry) = cache.get_mut(index)
        && entry.start.before(block.end)
    {
        if entry.start.after(at) && at.before(block.start) {
            evidence.gap_end = Some(entry.start.min(block.start));
        }
        if entry.start.at_or_after(block.start) && entry.end.at_or_before(block.end) {
            newest = on_delivered((&mut *evidence, round_trip), entry, context, now).or(newest);
            entry.sacked = true;
        } else if evidence.holes.back() != Some(&entry.start) {
            evidence.holes.push_back(entry.start);
        }
        at = entry.end;
        index += 1;
    }
    if at.before(block.start) {
        evidence.gap_end = Some(block.start);
    }
    evidence.highest = Some(block.end);
    newest
}

/// The packet, with padding where its SACK blocks are, if the agent repairs what they show.
#[inline]
pub(super) fn hide(
    flow: &mut Flow,
    packet: PacketRef,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> PacketRef {
    let shows = packet.as_tcp().is_some_and(|tcp| tcp.options.sack_blocks().next().is_some());
    if shows { hide_blocks(flow, packet, context, now) } else { packet }
}

#[cold]
fn hide_blocks(
    flow: &mut Flow,
    packet: PacketRef,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> PacketRef {
    let Some(tcp) = packet.as_tcp() else { return packet };
    let Some(last_ack) = flow.last_ack else { return packet };
    if tcp.options.sack_blocks().all(|block| !block.start.after(last_ack))
        || !hides(flow, context.config, now)
    {
        return packet;
    }
    let Some(options) = without_sack(&tcp.options) else { return packet };
    let header = tcp::Header { options, ..*tcp };
    flow.disclosure.on_hidden(now);
    context.shared.statistics.sack_hidden += 1;
    let id = context.sink.new_id();
    rule(context.sink, flow.key, Some(id), ("MOD-1", "SACK blocks hidden", header.ack.0.into()));
    let change = |copy: &mut Packet| copy.transport = Transport::Tcp(header);
    packet.rewrite(id, packet.cause, change).into()
}

/// True if the sender need not know of the holes.
fn hides(flow: &Flow, config: &Config, now: Instant) -> bool {
    config.sack_toward_sender == SackTowardSender::Hide
        && config.repair == Repair::Evidence
        && flow.aside.is_none()
        && !flow.disclosure.is_open()
        && flow.evidence.all_cached()
        && !out_of_patience(flow, config, now)
        && flow.lowest_entry().is_some_and(|entry| {
            !entry.sender_retransmitted && entry.retransmissions < config.retransmissions_max
        })
}

/// The options with NOPs in place of SACK blocks, the length kept; `None` if a signature covers
/// them (MOD-13) or the list is malformed.
fn without_sack(options: &Options) -> Option<Options> {
    options.validate().ok()?;
    let signed = options.iter().any(|option| {
        matches!(option, TcpOption::Unknown { kind: kind::MD5 | kind::AUTHENTICATION, .. })
    });
    if signed {
        return None;
    }
    let mut bytes = [0; Options::BYTES_MAX];
    let bytes = &mut bytes[..options.as_bytes().len()];
    bytes.copy_from_slice(options.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        at += match bytes[at] {
            kind::END => break,
            kind::NOP => 1,
            found => {
                let length = usize::from(bytes[at + 1]);
                if found == kind::SACK {
                    bytes[at..at + length].fill(kind::NOP);
                }
                length
            }
        };
    }
    Options::from_bytes(bytes).ok()
}
