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
//! In such an episode the agent lets every duplicate and every SACK block pass and repairs nothing:
//! a local copy would arrive before the sender's, show it the old timestamp, and have it undo its
//! reaction (RFC 3522). Only what the sender itself repeats is repaired, if the air loses it.

use super::config::{Config, Congestion};
use super::flow::Flow;
use super::{Context, rule};
use sansio::{Instant, Sink};
use wire::tcp::Seq;

/// What one flow's sender may know of losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Disclosure {
    /// Until the ACK reaches this, everything passes.
    shown_until: Option<Seq>,
    /// Since when losses are hidden, and until the ACK reaches what.
    hidden: Option<(Instant, Seq)>,
    /// Losses repaired since then.
    repaired: u32,
    /// Byte after the highest one that departed.
    departed_end: Seq,
}

impl Disclosure {
    pub(super) fn starting_at(start: Seq) -> Self {
        Disclosure { shown_until: None, hidden: None, repaired: 0, departed_end: start }
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
        if self.hidden.is_some_and(|(_, end)| ack.at_or_after(end)) {
            (self.hidden, self.repaired) = (None, 0);
        }
    }

    /// A loss is repaired.
    pub(super) fn on_repair(&mut self) {
        self.repaired = self.repaired.saturating_add(1);
    }

    /// A sign of a loss is withheld from the sender.
    pub(super) fn on_hidden(&mut self, now: Instant) {
        self.hidden.get_or_insert((now, self.departed_end));
    }

    /// An outage was not the sender's fault.
    pub(super) fn forgive(&mut self) {
        (self.shown_until, self.hidden, self.repaired) = (None, None, 0);
    }

    /// True if losses have been hidden for as long as they may be.
    pub(super) fn is_overdue(&self, config: &Config, now: Instant) -> bool {
        self.hidden.is_some_and(|(since, _)| now.since(since) > config.bounds.episode)
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
    let wired = flow.wired.shortest().unwrap_or(wired_rtt_assumed);
    let empty_path = wired + flow.round_trip.shortest();
    let queue = flow.round_trip.queue();
    if queue < queue_min {
        return false;
    }
    let is_full = queue >= flow.round_trip.longest_queue() * 7 / 8;
    let is_dense = flow.disclosure.repaired >= DENSE;
    queue > empty_path || is_full && (queue > empty_path / 2 || is_dense)
}

/// So many repairs since the first hidden loss whose window has not arrived yet are many.
const DENSE: u32 = 32;
