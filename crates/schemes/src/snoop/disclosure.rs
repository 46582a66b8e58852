//! Which losses the sender has to learn of (*modern*; ours, not the paper's).
//!
//! Hiding a loss wins something only if a smaller window would leave the air idle. While the queue
//! before the air is longer than the round trip of the empty path, half the window still fills the
//! link. A shorter queue may drop, too, and then the sender has to know: it is as long as it ever
//! was, and either a cut costs little or the losses are many. A queue that the link reports as such
//! (departures, [`super::resend`]) needs no guess. One that lies behind the place where departures
//! are seen shows in the time from departure to ACK:
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
//! In such an episode the agent lets every duplicate and every SACK block pass and repairs nothing:
//! a local copy would arrive before the sender's, show it the old timestamp, and have it undo its
//! reaction (RFC 3522). Only what the sender itself repeats is repaired, if the air loses it.

use super::config::{Config, Congestion};
use super::flow::Flow;
use super::{Context, rule};
use sansio::{Duration, Instant, Sink};
use wire::tcp::Seq;

/// What one flow's sender may know of losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disclosure {
    /// Until the ACK reaches this, everything passes.
    shown_until: Option<Seq>,
    /// Losses are hidden until the ACK reaches this,
    hidden_until: Option<Seq>,
    /// and have been since then.
    hidden_since: Instant,
    /// Losses repaired since then.
    repaired: u32,
    /// Byte after the highest one that departed.
    departed_end: Seq,
    /// The shortest time from departure to ACK in the current round trip of the empty path and in
    /// the previous one, in microseconds,
    shortest_us: [u32; 2],
    /// and when the current one began.
    began_at: Instant,
}

impl Disclosure {
    pub(super) fn starting_at(start: Seq) -> Self {
        Disclosure {
            shown_until: None,
            hidden_until: None,
            hidden_since: Instant::ZERO,
            repaired: 0,
            departed_end: start,
            shortest_us: [u32::MAX; 2],
            began_at: Instant::ZERO,
        }
    }

    /// True if everything passes.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.shown_until.is_some()
    }

    /// Everything up to `end` has departed.
    #[inline]
    pub(super) fn on_departure(&mut self, end: Seq) {
        self.departed_end = self.departed_end.max(end);
    }

    /// The mobile host has everything up to `ack`.
    #[inline]
    pub(super) fn on_new_ack(&mut self, ack: Seq) {
        if self.shown_until.is_some_and(|end| ack.at_or_after(end)) {
            self.shown_until = None;
        }
        if self.hidden_until.is_some_and(|end| ack.at_or_after(end)) {
            (self.hidden_until, self.repaired) = (None, 0);
        }
    }

    /// A loss is repaired.
    pub(super) fn on_repair(&mut self) {
        self.repaired = self.repaired.saturating_add(1);
    }

    /// A sign of a loss is withheld from the sender.
    pub(super) fn on_hidden(&mut self, now: Instant) {
        if self.hidden_until.is_none() {
            (self.hidden_until, self.hidden_since) = (Some(self.departed_end), now);
        }
    }

    /// A segment took so long from its departure to its ACK.
    #[inline]
    fn on_sample(&mut self, sample: Duration, empty_path: Duration, now: Instant) {
        let sample_us = u32::try_from(sample.as_nanos() / 1_000).unwrap_or(u32::MAX);
        let [current, previous] = self.shortest_us;
        if now.since(self.began_at) > empty_path {
            (self.shortest_us, self.began_at) = ([sample_us, current], now);
        } else {
            self.shortest_us = [current.min(sample_us), previous];
        }
    }

    /// An outage was not the sender's fault.
    pub(super) fn forgive(&mut self) {
        (self.shown_until, self.hidden_until, self.repaired) = (None, None, 0);
    }

    /// True if losses have been hidden for as long as they may be.
    pub(super) fn is_overdue(&self, config: &Config, now: Instant) -> bool {
        self.hidden_until.is_some() && now.since(self.hidden_since) > config.bounds.episode
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
pub(super) fn on_sign_of_loss(flow: &mut Flow, context: &mut Context<'_, impl Sink>) {
    if flow.disclosure.is_open() || !is_congested(flow, context.config) {
        return;
    }
    flow.disclosure.shown_until = Some(flow.last_seen);
    context.shared.statistics.episodes_shown += 1;
    let queue = flow.round_trip.queue().as_nanos();
    rule(context.sink, flow.key, None, ("CONGESTION", "the sender learns of losses", queue));
}

fn is_congested(flow: &Flow, config: &Config) -> bool {
    let Congestion::Show { queue_min, wired_rtt_assumed } = config.congestion else { return false };
    let queue = flow.round_trip.queue();
    if queue < queue_min {
        return false;
    }
    let is_full = queue >= flow.round_trip.longest_queue() * 7 / 8;
    let is_dense = flow.disclosure.repaired >= DENSE;
    let empty_path = empty_path(flow, wired_rtt_assumed);
    let [current, previous] = flow.disclosure.shortest_us;
    let shortest = flow.round_trip.shortest();
    let standing = Duration::from_micros(current.min(previous).into()).max(shortest) - shortest;
    standing > empty_path || is_full && (standing > empty_path / 2 || is_dense)
}

/// The round trip between the hosts without queues.
fn empty_path(flow: &Flow, wired_rtt_assumed: Duration) -> Duration {
    flow.wired.shortest().unwrap_or(wired_rtt_assumed) + flow.round_trip.shortest()
}

/// So many repairs since the first hidden loss whose window has not arrived yet are many.
const DENSE: u32 = 32;
