//! Times during which the link is away, the same for both directions and for every scheme.
//!
//! All of it follows from the seed alone: period k draws from a stream of its own, so that any
//! period can be had without those before it. What an outage does to packets is its [`Mode`]; who
//! is told about it is up to the driver ([`Spec::notified`]).

use sansio::{Duration, Instant, Random};

/// Which outages a link has. Plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// When.
    pub schedule: Schedule,
    /// What becomes of packets.
    pub mode: Mode,
    /// True if the base station is told begin and end. For the driver: the hop itself tells nobody.
    pub notified: bool,
}

/// When outages happen.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Schedule {
    /// Never.
    #[default]
    Never,
    /// One in each period of the length `every`, the first period beginning at the start of the
    /// run; it begins at a uniformly drawn time at which it still fits. A length that does not fit
    /// is cut to 1 ns less than the period; `every` below 2 ns means never.
    Every {
        /// The period.
        every: Duration,
        /// How long.
        length: Length,
    },
    /// These; overlapping ones are joined.
    At(Vec<Planned>),
}

/// One planned outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// When it begins, at the earliest.
    pub start: Instant,
    /// By how much later it may begin: drawn uniformly, so that outages of many runs meet their
    /// flows in any phase.
    pub spread: Duration,
    /// How long.
    pub length: Length,
}

/// How long an outage is: drawn so that its logarithm is uniform between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// At least.
    pub shortest: Duration,
    /// At most.
    pub longest: Duration,
}

/// What an outage does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A packet whose air time touches the outage is lost.
    #[default]
    Lose,
    /// The transmitter pauses: a transmission that would touch the outage begins at its end, and
    /// packets wait in the queue with its limit.
    Hold,
}

/// What becomes of the link at a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is there again.
    Up,
    /// It is gone.
    Down,
}

/// A stretch of time, `start` included, `end` not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Its first nanosecond.
    pub start: Instant,
    /// The first nanosecond after it.
    pub end: Instant,
}

/// The outages of one run.
#[derive(Clone, Debug)]
pub struct Outages {
    plan: Plan,
    /// The first outage that ends after `Memory::asked`; asked for again and again by a hop.
    memory: Memory,
}

#[derive(Clone, Debug)]
enum Plan {
    Every {
        every: Duration,
        length: Length,
        seed: u64,
    },
    /// In order, none empty, none touching another.
    At(Vec<Interval>),
}

#[derive(Clone, Debug)]
struct Memory {
    asked: Instant,
    next: Option<Interval>,
}

impl Spec {
    /// True if there is no outage.
    pub fn is_never(&self) -> bool {
        match &self.schedule {
            Schedule::Never => true,
            Schedule::Every { every, length } => {
                *every < Duration::from_nanos(2) || length.longest.is_zero()
            }
            Schedule::At(planned) => planned.is_empty(),
        }
    }
}

impl Length {
    /// Always this long.
    pub const fn fixed(length: Duration) -> Self {
        Length { shortest: length, longest: length }
    }

    fn draw(self, random: &mut Random) -> Duration {
        if self.shortest >= self.longest {
            return self.shortest;
        }
        random.log_uniform_time(self.shortest, self.longest)
    }
}

impl Interval {
    /// True if it shares a nanosecond with `other`; an empty one counts as its first nanosecond.
    #[inline]
    pub fn touches(self, other: Interval) -> bool {
        let first = Duration::from_nanos(1);
        self.start < other.end.max(other.start + first)
            && other.start < self.end.max(self.start + first)
    }
}

impl Outages {
    /// The outages of the run with this seed.
    pub fn new(spec: &Spec, seed: u64) -> Self {
        let plan = match &spec.schedule {
            Schedule::Every { every, length } if !spec.is_never() => {
                Plan::Every { every: *every, length: *length, seed }
            }
            Schedule::At(planned) => Plan::At(joined(planned, seed)),
            Schedule::Never | Schedule::Every { .. } => Plan::At(Vec::new()),
        };
        let next = plan.first_ending_after(Instant::ZERO);
        Outages { plan, memory: Memory { asked: Instant::ZERO, next } }
    }

    /// The first transition later than `after`.
    pub fn next_transition(&self, after: Instant) -> Option<(Instant, State)> {
        let next = self.plan.first_ending_after(after)?;
        Some(if next.start > after { (next.start, State::Down) } else { (next.end, State::Up) })
    }

    /// Whether the link is there.
    pub fn state(&self, at: Instant) -> State {
        match self.plan.first_ending_after(at) {
            Some(next) if next.start <= at => State::Down,
            _ => State::Up,
        }
    }

    /// The first outage that touches a stretch of time. Cheapest when asked with increasing starts.
    #[inline]
    pub fn covers(&mut self, air: Interval) -> Option<Interval> {
        let remembered = self.memory.asked <= air.start
            && self.memory.next.is_none_or(|next| air.start < next.end);
        if !remembered {
            self.memory =
                Memory { asked: air.start, next: self.plan.first_ending_after(air.start) };
        }
        self.memory.next.filter(|next| next.touches(air))
    }
}

impl Plan {
    /// The first outage whose end is later than `at`.
    fn first_ending_after(&self, at: Instant) -> Option<Interval> {
        match self {
            Plan::Every { every, length, seed } => {
                let period = at.as_nanos() / every.as_nanos();
                // The one of this period may be over; then it is the next period's, and no
                // outage is empty.
                (period..=period.saturating_add(1))
                    .filter_map(|period| nth(period, *every, *length, *seed))
                    .find(|outage| outage.end > at)
            }
            Plan::At(outages) => {
                outages.get(outages.partition_point(|outage| outage.end <= at)).copied()
            }
        }
    }
}

/// The outage of one period; `None` at the end of time.
fn nth(period: u64, every: Duration, length: Length, seed: u64) -> Option<Interval> {
    let begin = Instant::from_nanos(period.checked_mul(every.as_nanos())?);
    begin.as_nanos().checked_add(every.as_nanos())?;
    let mut random = Random::new(seed, &format!("outage.{period}"));
    // At least 1 ns of each period is up, so that two outages never touch.
    let longest = every.saturating_sub(Duration::from_nanos(1));
    let length = length.draw(&mut random).max(Duration::from_nanos(1)).min(longest);
    let start = begin + random.uniform_time(Duration::ZERO, every.saturating_sub(length));
    Some(Interval { start, end: start + length })
}

fn joined(planned: &[Planned], seed: u64) -> Vec<Interval> {
    let mut random = Random::new(seed, "outage");
    let mut outages: Vec<Interval> = planned
        .iter()
        .map(|one| {
            let length = one.length.draw(&mut random);
            let start = match one.spread {
                Duration::ZERO => one.start,
                spread => one.start + random.uniform_time(Duration::ZERO, spread),
            };
            Interval { start, end: start + length }
        })
        .filter(|outage| outage.start < outage.end)
        .collect();
    outages.sort_by_key(|outage| outage.start);
    outages.dedup_by(|later, earlier| {
        let joins = later.start <= earlier.end;
        if joins {
            earlier.end = earlier.end.max(later.end);
        }
        joins
    });
    outages
}
