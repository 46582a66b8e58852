//! Verdicts fall late: whether a path is another one since a stall shows only in the round trips
//! after it, and how long the queue gets only with time. Until then stalls and losses wait here,
//! in their order.

use crate::cause::{self, Cause, Evidence, Path};
use crate::delay::RoundTrips;
use crate::estimate::{self, Copies, Saved};
use crate::sent::SCHEMES;
use sansio::{Duration, Instant};
use std::collections::VecDeque;
use wire::tcp::Seq;

/// The losses of one flight: what was sent again until all that was sent then is acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Losses {
    /// The first retransmission.
    pub from: Instant,
    /// The last.
    pub until: Instant,
    /// What has to be acknowledged for its end.
    pub recover: Seq,
    /// Packets sent again.
    pub packets: u64,
    /// Queueing delay when they were lost.
    pub queue: Option<Duration>,
    /// A router marked congestion.
    pub marked: bool,
    /// They were lost before the place of the capture.
    pub before: bool,
}

/// Which way a round trip from the place of the capture goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the sender and back.
    ToSender,
    /// To the receiver and back.
    ToReceiver,
}

/// Round trips to the receiver, and to the sender.
pub type Paths<'a> = (&'a mut RoundTrips, &'a mut RoundTrips);

/// A stall with its cause.
#[derive(Clone, Debug)]
pub struct Stall {
    /// The last progress before it.
    pub from: Instant,
    /// The next progress.
    pub until: Instant,
    /// Why.
    pub cause: Cause,
    /// What speaks for it.
    pub evidence: String,
    /// What each replayed scheme would have saved of it.
    pub saved: [Saved; SCHEMES],
}

impl Stall {
    /// Its length.
    pub fn length(&self) -> Duration {
        self.until.since(self.from)
    }
}

/// Stalls and losses of one cause.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCause {
    /// Stalls.
    pub stalls: u64,
    /// Their time.
    pub stalled: Duration,
    /// Packets lost.
    pub packets: u64,
    /// In so many flights.
    pub flights: u64,
}

/// Stalls and losses of one direction.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// The longest, in order of time.
    pub stalls: Vec<Stall>,
    /// All, by [`Cause::ALL`].
    pub by_cause: [OfCause; Cause::ALL.len()],
    /// What each replayed scheme would have saved in all.
    pub saved: [Saved; SCHEMES],
    waiting: VecDeque<Waiting>,
    /// The last stall that losses may belong to.
    last_stall: Option<(Instant, Instant, Cause)>,
}

/// What waits for its verdict.
#[derive(Clone, Debug)]
enum Waiting {
    Stall { evidence: Box<Evidence>, copies: Copies, path: Path, after: After },
    Losses(Losses, Instant),
}

/// Round trips of packets sent after a stall.
#[derive(Clone, Copy, Debug, Default)]
struct After {
    samples: u32,
    floor: Option<Duration>,
}

/// Stalls kept of one direction.
const STALLS_KEPT: usize = 16;
/// Verdicts that may wait.
const WAITING_MAX: usize = 16;
/// Round trips after a stall that tell of the path.
const SAMPLES_AFTER: u32 = 20;
/// Fewer do not.
const SAMPLES_LEAST: u32 = 3;
/// No verdict waits longer.
const PATIENCE: Duration = Duration::from_secs(5);

impl Verdicts {
    /// A stall ended.
    pub fn on_stall(
        &mut self,
        evidence: Evidence,
        copies: Copies,
        (to_receiver, to_sender): (&RoundTrips, &RoundTrips),
    ) {
        let trips = match trouble_on(&evidence) {
            Way::ToReceiver => to_receiver,
            Way::ToSender => to_sender,
        };
        let path = Path {
            floor_before: trips.floor,
            recent_before: trips.recent_floor(),
            smoothed: trips.smoothed,
            ..Path::default()
        };
        let (evidence, after) = (Box::new(evidence), After::default());
        self.waiting.push_back(Waiting::Stall { evidence, copies, path, after });
    }

    /// A flight with losses is acknowledged.
    pub fn on_losses(&mut self, losses: Losses, now: Instant) {
        self.waiting.push_back(Waiting::Losses(losses, now));
    }

    /// A packet of the sender: one that follows soon shows that the first one was not alone.
    pub fn on_data(&mut self, at: Instant, smoothed: Option<Duration>) {
        let Some(Waiting::Stall { evidence, .. }) = self.waiting.back_mut() else { return };
        let soon = smoothed.unwrap_or(Duration::from_millis(20)) / 2;
        let until = evidence.until;
        if let Some(resumed) = &mut evidence.resumed
            && at.since(until) < soon
        {
            resumed.lonely = false;
        }
    }

    /// A segment is sent again that was first sent at `first_at`.
    pub fn on_lost(&mut self, first_at: Instant) {
        if let Some(Waiting::Stall { evidence, .. }) = self.waiting.back_mut()
            && first_at < evidence.until
        {
            evidence.lost_after += 1;
        }
    }

    /// A round trip of a packet that passed here at `sent_at`.
    pub fn on_sample(&mut self, sample: Duration, sent_at: Instant, way: Way) {
        for waiting in &mut self.waiting {
            if let Waiting::Stall { evidence, after, .. } = waiting
                && sent_at >= evidence.until
                && way == trouble_on(evidence)
            {
                after.samples += 1;
                after.floor = Some(after.floor.map_or(sample, |floor| floor.min(sample)));
            }
        }
    }

    /// Says what can be said by now.
    pub fn resolve(&mut self, now: Instant, paths: Paths<'_>, excess: &RoundTrips) {
        while let Some(first) = self.waiting.front() {
            let ready = match first {
                Waiting::Stall { evidence, after, .. } => {
                    after.samples >= SAMPLES_AFTER || now.since(evidence.until) >= PATIENCE
                }
                Waiting::Losses(_, since) => now.since(*since) >= PATIENCE,
            };
            if !ready && self.waiting.len() <= WAITING_MAX {
                return;
            }
            self.resolve_first((&mut *paths.0, &mut *paths.1), excess);
        }
    }

    /// Says the rest.
    pub fn finish(&mut self, paths: Paths<'_>, excess: &RoundTrips) {
        while !self.waiting.is_empty() {
            self.resolve_first((&mut *paths.0, &mut *paths.1), excess);
        }
    }

    /// The verdict on what waits longest; what is known of a path ends with a handoff.
    fn resolve_first(&mut self, (to_receiver, to_sender): Paths<'_>, excess: &RoundTrips) {
        match self.waiting.pop_front() {
            None => {}
            Some(Waiting::Losses(losses, _)) => self.judge_losses(&losses, to_receiver, excess),
            Some(Waiting::Stall { evidence, copies, mut path, after }) => {
                path.floor_after = after.floor.filter(|_| after.samples >= SAMPLES_LEAST);
                let (trips, queues) = match trouble_on(&evidence) {
                    Way::ToReceiver => (to_receiver, None),
                    Way::ToSender => (to_sender, Some(excess)),
                };
                let (of, floor) = match queues {
                    Some(excess) => (excess, None),
                    None => (&*trips, path.floor_before),
                };
                path.queue_full = queue(of, floor, FULL);
                path.queue_usual = queue(of, floor, USUAL);
                let (cause, words) = cause::of_stall(&evidence, &path);
                self.count_stall(&evidence, cause, words, (&copies, &path));
                if let Some(floor) = path.floor_after.filter(|_| cause == Cause::Handoff) {
                    trips.begin_path(floor);
                }
            }
        }
    }

    fn count_stall(
        &mut self,
        evidence: &Evidence,
        cause: Cause,
        words: String,
        (copies, path): (&Copies, &Path),
    ) {
        let stall = Stall {
            from: evidence.from,
            until: evidence.until,
            cause,
            evidence: words,
            saved: copies.map(|copies| estimate::saved(cause, evidence, copies, path)),
        };
        let of = &mut self.by_cause[cause.index()];
        of.stalls += 1;
        of.stalled += stall.length();
        if let Some(missing) = evidence.resumed.and_then(|resumed| resumed.missing)
            && cause != Cause::Application
        {
            of.packets += u64::from(missing);
            of.flights += u64::from(missing > 0);
        }
        for (total, saved) in self.saved.iter_mut().zip(&stall.saved) {
            total.add(saved);
        }
        self.last_stall = Some((stall.from, stall.until, cause));
        self.stalls.push(stall);
        if self.stalls.len() > STALLS_KEPT {
            let shortest = self.stalls.iter().enumerate().min_by_key(|(_, it)| it.length());
            if let Some((index, _)) = shortest {
                self.stalls.remove(index);
            }
        }
    }

    fn judge_losses(&mut self, losses: &Losses, trips: &RoundTrips, excess: &RoundTrips) {
        let explained = self.last_stall.filter(|(from, until, cause)| {
            let within = losses.from >= *from && losses.from <= *until;
            within && !matches!(cause, Cause::Application | Cause::Receiver)
        });
        let cause = match explained {
            Some((_, _, cause)) => cause,
            None => {
                let trips = if losses.before { excess } else { trips };
                let path = Path {
                    floor_before: trips.floor,
                    queue_full: queue(trips, None, FULL),
                    queue_usual: queue(trips, None, USUAL),
                    ..Path::default()
                };
                cause::of_loss(losses.queue, losses.marked, &path, "packets were lost").0
            }
        };
        let of = &mut self.by_cause[cause.index()];
        of.packets += losses.packets;
        of.flights += u64::from(losses.packets > 0);
    }
}

/// On which side of the capture the trouble was: packets that never came here were lost before.
fn trouble_on(evidence: &Evidence) -> Way {
    match evidence.missing_here || evidence.resumed.is_some() {
        true => Way::ToSender,
        false => Way::ToReceiver,
    }
}

/// How long the queue gets: the few round trips across an outage do not move that percentile.
const FULL: f64 = 0.95;
/// How long it is for half of the time.
const USUAL: f64 = 0.5;

/// The queueing delay of a percentile. A dozen samples tell little, but more than none.
fn queue(trips: &RoundTrips, floor: Option<Duration>, share: f64) -> Option<Duration> {
    const SAMPLES_LEAST: u64 = 8;
    let trip = trips.quantile(share).filter(|_| trips.count() >= SAMPLES_LEAST)?;
    Some(trip.saturating_sub(floor.or(trips.floor)?))
}
