//! Losses in a row, in time: a good and a bad state that alternate, both of exponentially
//! distributed length, whether or not packets are sent (the two-state Markov model of BASE-28).
//!
//! A packet whose air time touches a bad stretch is lost with the probability of the bad state:
//! for an air time s and mean lengths g and b, that is the case for a share of
//! b/(g+b) + g/(g+b) (1 - exp(-s/g)) of all packets.

use super::{Air, Loss, Verdict, probability};
use crate::outage::Interval;
use sansio::{Duration, Instant, Random};

/// Losses in a row, in time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Mean length of the good state, at least 1 us.
    pub good: Duration,
    /// Mean length of the bad state, at least 1 us.
    pub bad: Duration,
    /// Probability that a packet touched by the bad state is lost, 0 to 1.
    pub loss: f64,
}

/// Shorter states would cost more time than they could tell.
const MEAN_MIN: Duration = Duration::from_micros(1);

#[derive(Clone, Debug)]
pub(super) struct Fade {
    loss: f64,
    states: States,
    /// Apart from the states', so that the number of packets sent does not move the fades.
    losses: Random,
}

/// The two states, one after the other.
#[derive(Clone, Debug)]
struct States {
    good: Duration,
    bad: Duration,
    is_bad: bool,
    /// When the present state ends.
    until: Instant,
    random: Random,
}

impl Fade {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        Fade {
            loss: probability(config.loss),
            states: States::new(config, seed, name),
            losses: Random::new(seed, &format!("{name}.fade.loss")),
        }
    }

    pub(super) fn judge(&mut self, air: Air) -> Verdict {
        while self.states.until <= air.time.start {
            self.states.advance();
        }
        let touched = self.states.is_bad || self.states.until < air.time.end;
        Verdict::lost_if(touched && self.losses.chance(self.loss), Loss::Fade)
    }
}

/// The bad stretches that begin before `end`, as a hop of that name meets them.
pub(super) fn stretches(config: &Config, seed: u64, name: &str, end: Instant) -> Vec<Interval> {
    let mut states = States::new(config, seed, name);
    let mut found = Vec::new();
    let mut start = Instant::ZERO;
    while start < end {
        if states.is_bad {
            found.push(Interval { start, end: states.until });
        }
        start = states.until;
        states.advance();
    }
    found
}

impl States {
    fn new(config: &Config, seed: u64, name: &str) -> Self {
        let (good, bad) = (config.good.max(MEAN_MIN), config.bad.max(MEAN_MIN));
        let mut random = Random::new(seed, &format!("{name}.fade"));
        let bad_share = bad.as_secs_f64() / (good.as_secs_f64() + bad.as_secs_f64());
        let is_bad = random.chance(bad_share);
        let mut states = States { good, bad, is_bad, until: Instant::ZERO, random };
        states.draw_length();
        states
    }

    /// Goes on to the next state.
    fn advance(&mut self) {
        self.is_bad = !self.is_bad;
        self.draw_length();
    }

    fn draw_length(&mut self) {
        let mean = if self.is_bad { self.bad } else { self.good };
        let length = self.random.exponential_time(mean);
        self.until += length.max(Duration::from_nanos(1));
    }
}
