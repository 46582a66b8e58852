//! Losses in a row, in time: a good and a bad state that alternate, both of exponentially
//! distributed length, whether or not packets are sent (the two-state Markov model of BASE-28).
//!
//! A packet whose air time touches a bad stretch is lost with the probability of the bad state:
//! for an air time s and mean lengths g and b, that is the case for a share of
//! b/(g+b) + g/(g+b) (1 - exp(-s/g)) of all packets.

use super::{Air, Loss, Verdict, probability};
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
    good: Duration,
    bad: Duration,
    loss: f64,
    is_bad: bool,
    /// When the present state ends.
    until: Instant,
    states: Random,
    /// Apart from `states`, so that the number of packets sent does not move the fades.
    losses: Random,
}

impl Fade {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        let (good, bad) = (config.good.max(MEAN_MIN), config.bad.max(MEAN_MIN));
        let mut states = Random::new(seed, &format!("{name}.fade"));
        let bad_share = bad.as_secs_f64() / (good.as_secs_f64() + bad.as_secs_f64());
        let mut fade = Fade {
            good,
            bad,
            loss: probability(config.loss),
            is_bad: states.chance(bad_share),
            until: Instant::ZERO,
            states,
            losses: Random::new(seed, &format!("{name}.fade.loss")),
        };
        fade.draw_length();
        fade
    }

    pub(super) fn judge(&mut self, air: Air) -> Verdict {
        while self.until <= air.time.start {
            self.is_bad = !self.is_bad;
            self.draw_length();
        }
        let touched = self.is_bad || self.until < air.time.end;
        Verdict::lost_if(touched && self.losses.chance(self.loss), Loss::Fade)
    }

    fn draw_length(&mut self) {
        let mean = if self.is_bad { self.bad } else { self.good };
        let length = self.states.exponential_time(mean);
        self.until += length.max(Duration::from_nanos(1));
    }
}
