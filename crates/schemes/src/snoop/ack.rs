//! `snoop_ack()`: packets from the mobile host (Snoop paper, section 3.1.2; SNOOP-ACK-*).
//!
//! ```text
//!              above last ack ─────────────── New: free, measure, forward
//!   ACK ──▶    below last ack, pure ───────── Spurious: discard
//!              equal, pure, nothing changed ─ a duplicate: see the cases below
//!              otherwise ──────────────────── Other: forward
//! ```
//!
//! We differ from the paper where it costs a byte or a signal: only pure ACKs that say nothing else
//! are ever withheld (MOD-2, MOD-12). *Modern* adds what SACK blocks show ([`super::sack`]).

use super::cache::Copy;
use super::config::{Config, Repair};
use super::flow::{ECN_FLAGS, Flow, Timed};
use super::mirror::Role;
use super::resend::{Occasion, resend};
use super::timers::{Timer, arm_round_trip};
use super::{Context, Fate, aside, assist, disclosure, mirror, repair, restart, rule, sack};
use sansio::{DropReason, Instant, PacketRef, Priority, Side, Sink};
use wire::tcp::{Flags, Header, Seq, TcpOption, Timestamps};

/// The paper's cases and the ones that SACK adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    /// Above the last ACK, or the first one seen (SNOOP-ACK-1, SNHO-5).
    New,
    /// A pure ACK below the last one (SNOOP-ACK-3).
    Spurious,
    /// It carries something else, or there is nothing to repair: none of our business.
    Other,
    /// A duplicate for a segment that is not cached (SNOOP-ACK-5).
    NotCached,
    /// A duplicate for a segment that the sender retransmitted (SNOOP-ACK-6).
    SenderRetransmitted,
    /// A duplicate for a segment that local effort could not bring across (SNOOP-TMR-7, MOD-14).
    GivenUp,
    /// A duplicate for a segment of which a copy still waits for the air: nothing is proved.
    OnItsWay,
    /// A duplicate in an episode of which the sender has to learn.
    Congestion,
    /// An expected duplicate (SNOOP-ACK-9).
    Expected,
    /// A duplicate below the threshold (only if the threshold is not the paper's).
    BelowThreshold,
    /// An unexpected duplicate: its segment is lost (SNOOP-ACK-7).
    Unexpected,
    /// A duplicate whose SACK blocks show what is missing, all of it cached (MOD-1).
    Shown,
    /// A duplicate that answers one of the agent's own duplicates.
    OwnDuplicate,
}

/// The case of an ACK. `pure` is [`is_pure`] of its segment.
pub(super) fn classify(
    flow: &Flow,
    header: &Header,
    pure: bool,
    config: &Config,
    now: Instant,
) -> Case {
    let Some(last_ack) = flow.last_ack else { return Case::New };
    if header.ack.after(last_ack) {
        return Case::New;
    }
    if !pure || flow.aside.is_some() || flow.is_window_update(header) {
        return Case::Other;
    }
    if header.ack.before(last_ack) {
        return Case::Spurious;
    }
    if !flow.has_outstanding() {
        return Case::Other;
    }
    let without_sack = config.repair == Repair::Evidence && !flow.evidence.has_seen_sack();
    if without_sack
        && flow.evidence.expects_own_duplicate(now)
        && !out_of_patience(flow, config, now)
    {
        return Case::OwnDuplicate;
    }
    let Some(entry) = flow.cache.find(last_ack).and_then(|index| flow.cache.get(index)) else {
        return Case::NotCached;
    };
    if entry.sender_retransmitted {
        return Case::SenderRetransmitted;
    }
    if flow.disclosure.is_open() {
        return Case::Congestion;
    }
    if entry.retransmissions >= config.retransmissions_max || out_of_patience(flow, config, now) {
        return Case::GivenUp;
    }
    if config.repair == Repair::Evidence {
        if header.options.sack_blocks().any(|block| block.start.after(last_ack)) {
            let cached = flow.evidence.all_cached();
            return if cached { Case::Shown } else { Case::NotCached };
        }
        if flow.evidence.expects_own_duplicate(now) {
            return Case::OwnDuplicate;
        }
        if flow.evidence.has_seen_sack() {
            // A receiver that speaks SACK shows what it lacks; this ACK answers something else.
            return Case::Other;
        }
    }
    match entry.copy {
        Copy::Queued => Case::OnItsWay,
        _ if flow.expected_dupacks > 0 => Case::Expected,
        Copy::Requeued => Case::OnItsWay,
        _ if flow.dupacks + 1 < config.dupack_threshold => Case::BelowThreshold,
        Copy::Departed | Copy::Elsewhere => Case::Unexpected,
    }
}

/// True if a segment is an ACK and nothing else, so that withholding it can lose no byte and no
/// signal: no payload, SYN, FIN, RST or URG, ECN flags as before, and no option that carries state
/// of its own (MOD-2, MOD-12, MOD-20).
pub(super) fn is_pure(flow: &Flow, header: &Header, payload_bytes: u32) -> bool {
    payload_bytes == 0
        && header.flags.without(ECN_FLAGS.with(Flags::PSH)) == Flags::ACK
        && Flags(header.flags.0 & ECN_FLAGS.0) == flow.mobile.ecn
        && header.options.iter().all(|option| {
            matches!(option, TcpOption::Nop | TcpOption::Timestamps(_) | TcpOption::Sack(_))
        })
}

/// A segment from the mobile host. The flow is over once its FIN is acknowledged (SNOOP-DATA-8).
///
/// Nearly always it acknowledges something while nothing else is going on. As with TCP's own header
/// prediction, that is decided at once, and little remains to be done.
#[inline(always)]
pub(super) fn snoop_ack(
    flow: &mut Flow,
    packet: PacketRef,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Fate {
    debug_assert!(!flow.is_quiet || flow.is_nothing_going_on(context.config));
    let Some(tcp) = packet.as_tcp() else { return Fate::Keep };
    let is_next = flow.is_quiet
        && tcp.flags.contains(Flags::ACK)
        && flow.is_next_ack(tcp.ack)
        && tcp.options.sack_blocks().next().is_none();
    let mut newest = None;
    if !is_next || !free(flow, tcp.ack, &mut newest, context, now) {
        return on_any(flow, packet, newest, context, now);
    }
    flow.active_at = now;
    flow.mobile_at = now;
    flow.segments_unanswered = 0;
    if let Some(departed_at) = newest {
        restart::steady_sample(flow, departed_at, context.config, now);
    }
    flow.acked_at = now;
    flow.last_ack = Some(tcp.ack);
    flow.disclosure.on_next_ack(tcp.ack);
    flow.note_mobile(tcp, packet.payload.len());
    match tcp.options.is_empty() {
        true => flow.mobile.timestamps = None,
        false => on_timestamps(flow, tcp.options.timestamps(), now),
    }
    context.sink.send(Side::WIRED, Priority::Normal, packet);
    Fate::Keep
}

#[inline(never)]
fn on_timestamps(flow: &mut Flow, timestamps: Option<Timestamps>, now: Instant) {
    flow.mobile.timestamps = timestamps;
    flow.wired.on_ack_passed(timestamps, now);
}

/// Frees what an ACK acknowledges, as long as it departed once and nothing else is known of it.
/// False if it comes to something else. `newest` becomes the last sample of the round trip.
#[inline(always)]
fn free(
    flow: &mut Flow,
    ack: Seq,
    newest: &mut Option<Instant>,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> bool {
    if let Timed::Running(end, departed_at) = flow.timed
        && end.at_or_before(ack)
    {
        on_timed(flow, departed_at, context.config, now);
    }
    let evidence = context.config.repair == Repair::Evidence;
    while let Some(entry) = flow.cache.front() {
        if entry.end.after(ack) {
            flow.unanswered_since = entry.copy.has_departed().then_some(now);
            return true;
        }
        if !entry.is_on_its_way() {
            return false;
        }
        if evidence {
            flow.evidence.note_arrival(entry, now.since(entry.departed_at));
            *newest = Some(entry.departed_at);
        }
        if let Some(packet) = flow.cache.pop() {
            context.sink.release(packet);
        }
    }
    flow.unanswered_since = None;
    true
}

/// Any segment from the mobile host. `newest`: a sample of the round trip from what of it was freed
/// already, before something unusual was found.
#[cold]
fn on_any(
    flow: &mut Flow,
    packet: PacketRef,
    newest: Option<Instant>,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Fate {
    let Some(tcp) = packet.as_tcp() else { return Fate::Keep };
    // Where this base station buffers, it has gone ahead of the order to forward (SNHO-2).
    let is_early = flow.role == Role::Buffers;
    if !tcp.flags.contains(Flags::ACK) || is_early || flow.is_far(tcp.ack) {
        context.sink.send(Side::WIRED, Priority::Normal, packet);
        return Fate::Keep;
    }
    if tcp.ack.after(flow.last_seen) {
        flow.start_again(context.config, now);
        context.sink.send(Side::WIRED, Priority::Normal, packet);
        return Fate::Keep;
    }
    mirror::synchronise(flow, tcp.ack, context);
    flow.active_at = now;
    flow.mobile_at = now;
    flow.segments_unanswered = 0;
    let payload_bytes = packet.payload.len();
    let evidence = context.config.repair == Repair::Evidence;
    let advances = flow.last_ack.is_none_or(|last_ack| tcp.ack.after(last_ack));
    let mut repeated_at = None;
    if advances {
        repeated_at = on_new_ack(flow, tcp.ack, newest, context, now);
    }
    if evidence {
        sack::learn(flow, tcp, context, now);
        if flow.evidence.shows_a_hole() {
            disclosure::on_sign_of_loss(flow, context, now);
        }
    }
    let case = match advances {
        true => Case::New,
        false => on_old_ack(flow, tcp, payload_bytes, context, now),
    };
    let (ack, timestamps) = (tcp.ack, tcp.options.timestamps());
    if flow.last_ack.is_none_or(|last_ack| ack.at_or_after(last_ack)) {
        flow.note_mobile(tcp, payload_bytes);
        flow.mobile.timestamps = timestamps;
    }
    let lowest = flow.cache.front();
    flow.unanswered_since = lowest.filter(|entry| entry.copy.has_departed()).map(|_| now);
    aside::on_mobile_heard(flow, context);
    let verdict = match case {
        Case::New => Verdict::Forward,
        case => verdict(flow, case, ack, context, now),
    };
    match verdict {
        Verdict::Forward => {
            flow.wired.on_ack_passed(timestamps, now);
            let packet = sack::hide(flow, packet, context, now);
            context.sink.send(Side::WIRED, Priority::Normal, packet);
        }
        Verdict::Withhold(rule) => {
            context.sink.discard(packet, DropReason::Rule(rule));
        }
    }
    if evidence {
        if let Some(repeated_at) = repeated_at {
            assist::on_partial_ack(flow, repeated_at, context, now);
        }
        repair::repair(flow, context, now);
        restart::on_mobile_heard(flow, context, now);
    }
    flow.is_quiet = flow.is_nothing_going_on(context.config);
    if flow.fin.is_some() && flow.fin == flow.last_ack { Fate::Forget } else { Fate::Keep }
}

/// An ACK that is not above the last one: a sign of a loss, perhaps. Returns its case.
#[cold]
fn on_old_ack(
    flow: &mut Flow,
    header: &Header,
    payload_bytes: u32,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Case {
    let pure = is_pure(flow, header, payload_bytes);
    let duplicate = flow.last_ack == Some(header.ack) && flow.has_outstanding();
    if pure && duplicate {
        let is_own = flow.evidence.on_duplicate(now);
        if !is_own {
            disclosure::on_sign_of_loss(flow, context, now);
        }
    }
    classify(flow, header, pure, context.config, now)
}

/// True if the duplicates of the lowest segment, or losses at all, were withheld for longer than
/// the bound (MOD-14).
pub(super) fn out_of_patience(flow: &Flow, config: &Config, now: Instant) -> bool {
    let patience = config.bounds.patience.max(flow.round_trip.smoothed() * 6);
    flow.withheld_since.is_some_and(|since| now.since(since) > patience)
        || flow.evidence.has_seen_sack() && flow.disclosure.is_overdue(config, now)
}

/// What happens to the ACK itself.
enum Verdict {
    Forward,
    Withhold(&'static str),
}

/// Acts on a case and says what happens to the ACK.
#[cold]
fn verdict(
    flow: &mut Flow,
    case: Case,
    ack: Seq,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Verdict {
    let statistics = &mut context.shared.statistics;
    let (id, did) = match case {
        Case::New | Case::Other => return Verdict::Forward,
        Case::Spurious => {
            statistics.spurious_acks += 1;
            ("SNOOP-ACK-3", "spurious ACK discarded")
        }
        Case::NotCached => ("SNOOP-ACK-5", "forwarded: not cached"),
        Case::SenderRetransmitted => ("SNOOP-ACK-6", "forwarded: the sender retransmitted"),
        Case::GivenUp => ("SNOOP-TMR-7", "forwarded: local effort ended"),
        Case::Congestion => ("CONGESTION", "forwarded: the link's queue is long"),
        Case::OnItsWay => ("SNOOP-ACK-9", "suppressed: a copy waits for the air"),
        Case::BelowThreshold => {
            flow.dupacks += 1;
            ("SNOOP-ACK-7", "suppressed: below the threshold")
        }
        Case::Expected => {
            flow.expected_dupacks -= 1;
            ("SNOOP-ACK-9", "suppressed: expected")
        }
        Case::Shown => ("MOD-1", "suppressed: SACK shows what is missing"),
        Case::OwnDuplicate => {
            flow.evidence.on_own_duplicate();
            ("MOD-1", "suppressed: answers a copy of ours")
        }
        Case::Unexpected => {
            on_unexpected(flow, ack, context, now);
            ("SNOOP-ACK-7", "suppressed: unexpected")
        }
    };
    rule(context.sink, flow.key, None, (id, did, ack.0.into()));
    let statistics = &mut context.shared.statistics;
    match case {
        Case::NotCached | Case::SenderRetransmitted | Case::GivenUp | Case::Congestion => {
            statistics.dupacks_forwarded += 1;
            return Verdict::Forward;
        }
        Case::Spurious => {}
        _ => {
            statistics.dupacks_suppressed += 1;
            flow.withheld_since.get_or_insert(now);
            flow.disclosure.on_hidden(now);
        }
    }
    Verdict::Withhold(id)
}

/// SNOOP-ACK-1: frees what is acknowledged and takes a round-trip sample. Returns when the newest
/// departed of what only the sender had sent again.
fn on_new_ack(
    flow: &mut Flow,
    ack: Seq,
    mut newest: Option<Instant>,
    context: &mut Context<'_, impl Sink>,
    now: Instant,
) -> Option<Instant> {
    flow.evidence.news |= newest.is_some();
    if let Timed::Running(end, departed_at) = flow.timed
        && end.at_or_before(ack)
    {
        on_timed(flow, departed_at, context.config, now);
    }
    let evidence = context.config.repair == Repair::Evidence;
    let before = flow.cache.len();
    let (mut repaired, mut repeated_at) = (false, None);
    while let Some(packet) = flow.cache.pop_acknowledged(ack, |entry| {
        if evidence {
            if entry.was_repeated() {
                repaired = true;
                if entry.retransmissions == 0 {
                    repeated_at = repeated_at.max(Some(entry.departed_at));
                }
            }
            let state = (&mut flow.evidence, &flow.round_trip);
            newest = sack::on_delivered(state, entry, context, now).or(newest);
        }
    }) {
        context.sink.release(packet);
    }
    if evidence {
        flow.evidence.on_new_ack(ack, &flow.cache);
        let left = flow.cache.len();
        flow.evidence.on_acknowledged(before - left, left);
    }
    // Behind a repaired segment others have waited: their time is no round trip.
    if let Some(departed_at) = newest.filter(|_| !repaired) {
        restart::sample(flow, departed_at, context.config, now);
    }
    flow.acked_at = now;
    if repaired {
        on_repaired(flow);
    }
    flow.last_ack = Some(ack);
    flow.expected_dupacks = 0;
    flow.dupacks = 0;
    flow.withheld_since = None;
    let flight = flow.cache.len();
    flow.disclosure.on_new_ack(ack, flight, now);
    if let Some(end) = flow.episode_end {
        on_progress(flow, (ack, end), context.config, now);
    }
    repeated_at
}

/// The segment being timed is acknowledged.
#[inline(never)]
fn on_timed(flow: &mut Flow, departed_at: Instant, config: &Config, now: Instant) {
    flow.timed = Timed::Nothing;
    if config.repair == Repair::Counted {
        flow.round_trip.sample(now.since(departed_at), now);
    }
}

/// What is acknowledged had been sent more than once.
#[cold]
fn on_repaired(flow: &mut Flow) {
    if flow.evidence.has_seen_sack() {
        return;
    }
    // A copy that was needed is answered by this, not by a duplicate.
    flow.evidence.on_own_duplicate();
    // It may stop at the next hole, whoever repaired this one.
    flow.episode_end.get_or_insert(flow.last_seen);
}

/// A new ACK in an episode of recovery that ends at `end`.
#[cold]
fn on_progress(flow: &mut Flow, (ack, end): (Seq, Seq), config: &Config, now: Instant) {
    if ack.at_or_after(end) || flow.cache.is_empty() {
        flow.episode_end = None;
        flow.timers.stop(Timer::RoundTrip);
    } else {
        arm_round_trip(flow, config, now);
    }
}

/// SNOOP-ACK-7 and SNOOP-ACK-8: re-sends the segment and estimates how many duplicates may follow.
fn on_unexpected(flow: &mut Flow, ack: Seq, context: &mut Context<'_, impl Sink>, now: Instant) {
    flow.dupacks = 0;
    let Some(index) = flow.cache.find(ack) else { return };
    let departed_order = flow.cache.get(index).map_or(0, |entry| entry.departed_order);
    let after = flow.departures.wrapping_sub(departed_order);
    let modern = context.config.repair == Repair::Evidence;
    if modern && (is_too_early(flow, index, now) || mirror::waits(flow, index, now)) {
        return;
    }
    if resend(flow, index, Occasion::Loss, context, now) {
        // The duplicate at hand is one of them.
        flow.expected_dupacks = after.saturating_sub(1);
        // The paper arms the timer at the first retransmission of an episode (SNOOP-TMR-4). Its
        // floor of 40 ms hides that a later one may then be repeated too soon; ours would not.
        if flow.episode_end.is_none() || modern {
            flow.episode_end.get_or_insert(flow.last_seen);
            arm_round_trip(flow, context.config, now);
        }
    }
}

/// True if the newest copy departed so recently that nothing can be known of it yet: forged or late
/// duplicates cannot make the agent send more than once per round trip (MOD-14).
fn is_too_early(flow: &Flow, index: usize, now: Instant) -> bool {
    flow.cache.get(index).is_some_and(|entry| {
        entry.copy == Copy::Departed
            && now.since(entry.departed_at) < flow.round_trip.shortest() / 2
    })
}

#[cfg(test)]
mod tests;
