//! Which losses the sender has to learn of (*modern*; ours, not the paper's).
//!
//! Hiding a loss wins something only if a smaller window would leave the air idle. While the queue
//! before the air is longer than the round trip of the empty path, half the window still fills the
//! link. A shorter queue may drop, too, and then the sender has to know: it is as long as it ever
//! was, and either a cut costs little or the losses are many. A queue that the link reports as such
//! (departures, [`super::resend`]) needs no guess: what waits in it is counted, and what it drops
//! is seen. There the sender has to know only while the queue grows as in slow start: a loss that
//! ends slow start now saves it from losing half a window at once. One that lies behind the place
//! where departures are seen shows in the time from departure to ACK:
//!
//! ```text
//!   departure ─▶ [ device's queue ] ─▶ air ─▶ mobile host ─▶ ACK
//!                └ smoothed − shortest ┘ └─ shortest round trip ─┘
//! ```
//!
//! Long is a queue that stands: one that no segment of the last round trip of the empty path found
//! shorter (as in CoDel, RFC 8289, section 3.1). A burst makes a queue, too, of less than the path
//! holds, in front of an air that was idle before and will be idle after. Each repair ends in such
//! a burst, since the ACK that it brings about acknowledges all that arrived behind the hole. A
//! loss in it is no sign of a window too large.
//!
//! The queue of slow start does not stand yet when it drops first. There the holes tell: of two
//! segments that the sender sends for one that leaves, one is dropped. So while a queue as long as
//! the path is longer than ever, repairs wait for a few segments more; the sender learns of such
//! holes at once, one round trip over the air sooner than if a copy were under way.
//!
//! In such an episode the agent lets every duplicate and every SACK block pass and repairs nothing:
//! a local copy would arrive before the sender's, show it the old timestamp, and have it undo its
//! reaction (RFC 3522). So it begins only when no copy is under way any more. Only what the sender
//! itself repeats is repaired, if the air loses it, and what an outage took. A sender that such
//! episodes do not slow ([`super::indifference`]) stays in one.

use super::cache::{Copy, Entry};
use super::config::{Config, Congestion, Departures, Restart, StandAside};
use super::flow::Flow;
use super::indifference::Indifference;
use super::trial::Trial;
use super::{Context, aside, rule};
use sansio::{Duration, Instant, Sink};
use wire::tcp::Seq;

/// What one flow's sender may know of losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disclosure {
    /// Since when losses are hidden; [`Instant::ZERO`], before any can be, if none is;
    hidden_since: Instant,
    /// and until the ACK reaches what.
    hidden_until: Seq,
    /// Segments in flight at the last sign of a loss that was none of those.
    flight_at_loss: u16,
    /// Losses repaired since then.
    repaired: u8,
    /// Segments in flight when they were too many last, if a smaller flight then arrived whole: so
    /// many overrun a queue.
    overrun_at: u16,
    /// How often they were too many, without that.
    told: u8,
    /// Are losses that do not end the queue's?
    trial: Trial,
    /// Do they slow the sender at all?
    indifference: Indifference,
    /// It is to learn of losses, once no copy of the agent's is under way,
    is_due: bool,
    /// and then everything passes,
    is_open: bool,
    /// until the ACK reaches this.
    open_until: Seq,
    /// Byte after the highest one that departed.
    departed_end: Seq,
    /// What lies before departed before the last outage ended, or has arrived.
    forgiven_until: Seq,
    /// The most segments that waited for the air in this round trip and in the two before.
    waited: [u16; 3],
    /// This round trip ends when the ACK reaches it.
    round_ends: Seq,
    /// The shortest time from departure to ACK in the current round trip of the empty path and in
    /// the previous one, in microseconds,
    shortest_us: [u32; 2],
    /// and when the current one began.
    began_at: Instant,
}

impl Disclosure {
    pub(super) fn starting_at(start: Seq) -> Self {
        Disclosure {
            hidden_since: Instant::ZERO,
            hidden_until: start,
            flight_at_loss: 0,
            repaired: 0,
            overrun_at: u16::MAX,
            told: 0,
            trial: Trial::NONE,
            indifference: Indifference::UNKNOWN,
            is_due: false,
            is_open: false,
            open_until: start,
            departed_end: start,
            forgiven_until: start,
            waited: [0; 3],
            round_ends: start,
            shortest_us: [u32::MAX; 2],
            began_at: Instant::ZERO,
        }
    }

    /// True if everything passes.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.is_open || self.indifference.is_certain()
    }

    /// True if the sender is left to repair its losses.
    pub(super) fn is_sender_indifferent(&self) -> bool {
        self.indifference.is_certain()
    }

    /// True if nothing is hidden or shown, or being tried.
    pub(super) fn is_nothing_going_on(&self) -> bool {
        !self.is_open && !self.is_hiding() && self.trial.is_idle()
    }

    /// The same as [`Disclosure::on_new_ack`] while nothing is going on.
    #[inline]
    pub(super) fn on_next_ack(&mut self, ack: Seq) {
        self.forgiven_until = self.forgiven_until.max(ack);
    }

    /// Everything up to `end` has departed.
    #[inline]
    pub(super) fn on_departure(&mut self, end: Seq) {
        self.departed_end = self.departed_end.max(end);
    }

    /// The mobile host has everything up to `ack`; so many segments are in flight.
    pub(super) fn on_new_ack(&mut self, ack: Seq, flight: usize, now: Instant) {
        self.is_open &= self.open_until.after(ack);
        self.forgiven_until = self.forgiven_until.max(ack);
        self.trial.on_new_ack((ack, self.departed_end), self.is_open || self.is_due, flight, now);
        if self.is_hiding() && ack.at_or_after(self.hidden_until) {
            self.on_window(flight);
        }
    }

    /// A window with losses that were hidden has arrived.
    #[cold]
    fn on_window(&mut self, flight: usize) {
        self.trial.on_window(self.repaired, flight, self.flight_at_loss.into());
        if self.repaired <= FEW {
            self.told = 0;
        } else if flight < usize::from(self.overrun_at) * 3 / 4 {
            self.overrun_at = u16::MAX;
        }
        (self.hidden_since, self.repaired) = (Instant::ZERO, 0);
        // What the smaller window loses would answer a trial of which the sender never learned.
        self.is_due &= self.trial.is_told();
    }

    /// Something new came from the sender, up to `end`, and so many segments wait for the air.
    #[inline]
    pub(super) fn on_new_data(&mut self, end: Seq, waiting: u32, last_ack: Option<Seq>) {
        if last_ack.is_some_and(|ack| ack.at_or_after(self.round_ends)) {
            self.waited = [0, self.waited[0], self.waited[1]];
            self.round_ends = end;
        }
        if waiting > self.waited[0].into() {
            self.waited[0] = u16::try_from(waiting).unwrap_or(u16::MAX);
        }
    }

    /// True if the queue grows as in slow start: by more than a quarter in this round trip, or in
    /// the one before and goes on.
    fn is_growing(&self) -> bool {
        let grew = |from: u16, to: u16| from > 0 && to > from.saturating_add(from / 4);
        let [now, before, earlier] = self.waited;
        grew(before, now) || grew(earlier, before) && now >= before
    }

    /// A loss is repaired.
    pub(super) fn on_repair(&mut self, now: Instant) {
        self.on_hidden(now);
        self.repaired = self.repaired.saturating_add(1);
        self.trial.on_repair();
    }

    /// True if many losses of one window have been repaired, one after the other.
    pub(super) fn has_repaired_many(&self) -> bool {
        usize::from(self.repaired) >= MANY
    }

    fn is_hiding(&self) -> bool {
        self.hidden_since > Instant::ZERO
    }

    /// A sign of a loss is withheld from the sender.
    pub(super) fn on_hidden(&mut self, now: Instant) {
        if !self.is_hiding() {
            (self.hidden_since, self.hidden_until) = (now, self.departed_end);
        }
    }

    /// A segment took so long from its departure to its ACK.
    #[inline]
    fn on_sample(&mut self, sample: Duration, empty_path: Duration, now: Instant) {
        let [current, previous] = self.shortest_us;
        let is_over = now.since(self.began_at) > empty_path;
        if !is_over && sample.as_nanos() >= u64::from(current) * 1_000 {
            return;
        }
        let sample_us = u32::try_from(sample.as_nanos() / 1_000).unwrap_or(u32::MAX);
        if is_over {
            (self.shortest_us, self.began_at) = ([sample_us, current], now);
        } else {
            self.shortest_us = [sample_us, previous];
        }
    }

    /// True if the sender learns of a loss at `seq` and has to see to it. What an outage took it
    /// has to learn of no more: it may have taken back what it did about that, and then it waits
    /// for its timeout.
    pub(super) fn leaves(&self, seq: Seq) -> bool {
        (self.is_open() || self.is_due) && seq.at_or_after(self.forgiven_until)
    }

    /// An outage was not the sender's fault.
    pub(super) fn forgive(&mut self) {
        self.forgiven_until = self.departed_end;
        (self.is_open, self.is_due) = (false, false);
        (self.hidden_since, self.repaired) = (Instant::ZERO, 0);
        self.trial.forgive();
        self.indifference.forget();
    }

    /// True if losses have been hidden for as long as they may be.
    pub(super) fn is_overdue(&self, config: &Config, now: Instant) -> bool {
        self.is_hiding() && now.since(self.hidden_since) > config.bounds.episode
    }
}

/// A segment took so long from its departure to its ACK.
#[inline]
pub(super) fn on_sample(flow: &mut Flow, sample: Duration, config: &Config, now: Instant) {
    if let Congestion::Show { wired_rtt_assumed, .. } = config.congestion {
        let empty_path = empty_path(flow, wired_rtt_assumed);
        flow.disclosure.on_sample(sample, empty_path, now);
    }
}

/// A sign of a loss came: decides if the sender shall learn of it.
#[cold]
pub(super) fn on_sign_of_loss(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    if !flow.disclosure.is_hiding() {
        flow.disclosure.flight_at_loss = u16::try_from(flow.cache.len()).unwrap_or(u16::MAX);
    }
    if flow.disclosure.indifference.is_certain() && flow.rest.is_over(now) {
        flow.disclosure.indifference.forget();
    }
    let has_sack = flow.evidence.has_seen_sack();
    // Without SACK the sender is told of one hole at a time. A local copy of it that is under way
    // would show that what it then does is a mistake.
    let is_repaired =
        !has_sack && flow.cache.front().is_some_and(|entry| entry.retransmissions > 0);
    if flow.disclosure.is_open() || is_repaired {
        return;
    }
    let shall_know = flow.disclosure.is_due
        || match has_sack {
            true => begins_trial(flow, context.config, now),
            false => {
                flow.disclosure.is_overdue(context.config, now) || are_too_many(flow, context, now)
            }
        };
    if !shall_know && !is_congested(flow, context) {
        return;
    }
    if has_sack && has_copies_under_way(flow) {
        flow.disclosure.is_due = true;
    } else {
        show(flow, context, now);
    }
}

/// True if a copy of the agent's may yet arrive: its old timestamp would show a sender that knows
/// of the loss that what it does is a mistake. It takes that back, and Linux then repairs nothing
/// that it has not sent again until its timeout.
fn has_copies_under_way(flow: &Flow) -> bool {
    flow.cache.iter().any(|entry| entry.retransmissions > 0 && !entry.sacked)
}

/// Without SACK blocks each hole costs a local round trip, during which nothing tells how long the
/// queue is. If a window has many of them, the sender overruns a queue that nobody sees, or the air
/// is bad: the sender is told, as soon as so many are repaired or seen to be missing ([`lost`]).
/// If its smaller window then has few, it was the queue, and so it is when as much is in flight
/// again; if not, it was the air, and it takes twice as many to tell again.
fn are_too_many(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) -> bool {
    let is_bounded = context.config.bounds.episode < Duration::MAX;
    if !is_bounded || !matches!(context.config.congestion, Congestion::Show { .. }) {
        return false;
    }
    let flight = flow.cache.len();
    let Disclosure { told, repaired, overrun_at, .. } = flow.disclosure;
    let many = |of: usize| MANY.max(of / 5) << told.min(8);
    let are_many =
        flight >= usize::from(overrun_at) * 7 / 8 || usize::from(repaired) >= many(flight) || {
            let (lost, of) = lost(flow, now);
            lost >= many(of)
        };
    if !are_many {
        return false;
    }
    let disclosure = &mut flow.disclosure;
    disclosure.told = disclosure.told.saturating_add(1);
    disclosure.overrun_at = u16::try_from(flight).unwrap_or(u16::MAX);
    disclosure.repaired = 0;
    true
}

/// With SACK blocks: if losses do not end, the sender learns of them by way of trial.
fn begins_trial(flow: &mut Flow, config: &Config, now: Instant) -> bool {
    let (disclosure, flight) = (&mut flow.disclosure, flow.cache.len());
    let may_show = matches!(config.congestion, Congestion::Show { .. });
    let begins = may_show && disclosure.trial.begins(disclosure.repaired, flight, now);
    if begins {
        disclosure.repaired = 0;
    }
    begins
}

/// How many are lost of the segments that should have been answered by now, and how many those are:
/// each that arrived behind the lowest hole caused a duplicate. None if nothing is left on its way
/// whose duplicates could tell the sender.
fn lost(flow: &Flow, now: Instant) -> (usize, usize) {
    let late = flow.round_trip.answered_within();
    let is_settled = |entry: &&Entry| {
        entry.copy == Copy::Departed
            && entry.retransmissions == 0
            && entry.departed_at + late <= now
    };
    let settled = flow.cache.iter().filter(is_settled).count();
    if !flow.round_trip.is_known() || flow.cache.len() - settled < DUPACKS_TELL {
        return (0, 0);
    }
    (settled.saturating_sub(flow.evidence.arrived_at_most().into()), settled)
}

/// From here on the sender learns of every loss of what it has sent so far.
pub(super) fn show(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    flow.disclosure.is_due = false;
    let is_news = !core::mem::replace(&mut flow.disclosure.is_open, true);
    flow.disclosure.open_until = flow.last_seen;
    if !is_news {
        return;
    }
    context.shared.statistics.episodes_shown += 1;
    let queue = flow.round_trip.queue().as_nanos();
    rule(context.sink, flow.key, None, ("CONGESTION", "the sender learns of losses", queue));
    if flow.evidence.has_seen_sack() && context.config.stand_aside == StandAside::IfUseless {
        look_at_sender(flow, context, now);
    }
}

/// If losses do not slow the sender, it is left to repair them itself.
fn look_at_sender(flow: &mut Flow, context: &mut Context<'_, impl Sink>, now: Instant) {
    let wired_rtt = flow.wired.shortest().unwrap_or(Duration::ZERO);
    let round_trip = wired_rtt + flow.round_trip.smoothed();
    if flow.disclosure.indifference.on_shown(flow.cache.len(), round_trip, now) {
        flow.rest.begin(now);
        aside::report(flow, aside::Reason::Indifferent, context);
    }
}

fn is_congested(flow: &Flow, context: &Context<'_, impl Sink>) -> bool {
    let Congestion::Show { queue_min, wired_rtt_assumed } = context.config.congestion else {
        return false;
    };
    let empty_path = empty_path(flow, wired_rtt_assumed);
    if flow.disclosure.is_growing() && waiting(flow, context) > empty_path.max(queue_min) {
        return true;
    }
    let queue = flow.round_trip.queue();
    if queue < queue_min {
        return false;
    }
    if holes(flow, context.config) == Holes::Overrun {
        return true;
    }
    let is_full = is_full(flow);
    let is_dense = flow.disclosure.repaired >= DENSE;
    let [current, previous] = flow.disclosure.shortest_us;
    let shortest = flow.round_trip.shortest();
    let standing = Duration::from_micros(current.min(previous).into()).max(shortest) - shortest;
    standing > empty_path || is_full && (standing > empty_path / 2 || is_dense)
}

/// True if the queue is about as long as it ever was lately.
fn is_full(flow: &Flow) -> bool {
    flow.round_trip.queue() >= flow.round_trip.longest_queue() * 7 / 8
}

/// What holes are a sign of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holes {
    /// Of losses on the air, as far as they tell.
    Air,
    /// A few more segments will tell.
    Undecided,
    /// Slow start overruns a queue: of two segments that it sends for one that leaves, the queue
    /// has room for one.
    Overrun,
}

/// Such holes are looked for behind a queue that is as long as ever, and nearly as long as the
/// empty path: it grew within the last round trip and does not stand yet.
fn holes(flow: &Flow, config: &Config) -> Holes {
    let Congestion::Show { queue_min, wired_rtt_assumed } = config.congestion else {
        return Holes::Air;
    };
    let queue = flow.round_trip.queue();
    let is_long = queue >= queue_min && queue > empty_path(flow, wired_rtt_assumed) * 3 / 4;
    if !is_long || !is_full(flow) {
        return Holes::Air;
    }
    let Some(&first) = flow.evidence.holes.front() else { return Holes::Air };
    let [from, to] = [first, flow.evidence.highest.unwrap_or(first)]
        .map(|seq| flow.cache.first_ending_after(seq));
    match flow.evidence.holes.len() * SPARSE >= to.saturating_sub(from) {
        true if are_in_runs(flow) => Holes::Overrun,
        true => Holes::Undecided,
        false => Holes::Air,
    }
}

/// True if holes begin, or follow something that arrived, at [`OVERRUN`] places at least.
fn are_in_runs(flow: &Flow) -> bool {
    let (cache, holes) = (&flow.cache, &flow.evidence.holes);
    let end = |hole: Seq| cache.find(hole).and_then(|at| cache.get(at)).map(|entry| entry.end);
    let pairs = holes.iter().zip(holes.iter().skip(1));
    let breaks = pairs.filter(|(hole, next)| end(**hole) != Some(**next));
    breaks.take(OVERRUN).count() + 1 >= OVERRUN
}

/// True if repairs wait, since holes may yet show that the sender has to know: its recovery begins
/// sooner if no copy is under way.
pub(super) fn is_undecided(flow: &Flow, config: &Config) -> bool {
    !flow.disclosure.is_open() && holes(flow, config) == Holes::Undecided
}

/// The round trip between the hosts without queues.
fn empty_path(flow: &Flow, wired_rtt_assumed: Duration) -> Duration {
    flow.wired.shortest().unwrap_or(wired_rtt_assumed) + flow.round_trip.shortest()
}

/// How long the flow's last segment has to wait for the air, where departures from the link's queue
/// are reported: behind the flow's own segments, at the link's rate.
fn waiting(flow: &Flow, context: &Context<'_, impl Sink>) -> Duration {
    let (Restart::Probe(probe), Departures::Reported) =
        (context.config.restart, context.config.departures)
    else {
        return Duration::ZERO;
    };
    let segments = flow.sent.wrapping_sub(flow.next_departure);
    let length = flow.cache.front().map_or(0, Entry::length);
    context.shared.air.rate(&probe).time_for(length.saturating_mul(segments))
}

/// So many repairs of one window are many, or a fifth of it: without SACK they take longer than the
/// sender's own recovery from half the window.
const MANY: usize = 8;
/// So many segments on their way bring three duplicates, if half of them are lost.
const DUPACKS_TELL: usize = 6;
/// So many runs of holes,
const OVERRUN: usize = 3;
/// of all segments one in so many at least, are not the air's.
const SPARSE: usize = 4;
/// So many are few.
const FEW: u8 = 3;
/// So many repairs since the first hidden loss whose window has not arrived yet are many.
const DENSE: u8 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const FLIGHT: usize = 50;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// A window departs, and ten of its losses are repaired.
    fn repair_ten(disclosure: &mut Disclosure, window: u32) {
        disclosure.on_departure(Seq(window * 100 + 100));
        (0..10).for_each(|_| disclosure.on_repair(at(10 * u64::from(window) + 10)));
    }

    #[test]
    fn congestion_a_trial_waits_until_the_sender_has_learned_whatever_arrives_before() {
        let mut disclosure = Disclosure::starting_at(Seq(0));
        for window in 0..3 {
            repair_ten(&mut disclosure, window);
            disclosure.on_new_ack(Seq(window * 100 + 100), FLIGHT, at(10 * u64::from(window) + 20));
        }
        repair_ten(&mut disclosure, 3);
        assert!(disclosure.trial.begins(10, FLIGHT, at(45)));
        // Copies are under way; they arrive before another sign of a loss does.
        disclosure.is_due = true;
        for ack in [400, 450, 500] {
            disclosure.on_departure(Seq(ack + 100));
            disclosure.on_new_ack(Seq(ack), FLIGHT, at(50));
            assert!(disclosure.trial.is_told() && disclosure.leaves(Seq(600)), "{ack}");
        }
        // Without a trial there is nothing to learn of any more.
        disclosure.trial.forgive();
        repair_ten(&mut disclosure, 6);
        disclosure.on_new_ack(Seq(700), FLIGHT, at(60));
        assert!(!disclosure.leaves(Seq(800)));
    }
}
