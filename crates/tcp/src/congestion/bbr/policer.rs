//! Whether a policer drops what is beyond a rate (`bbr_lt_bw_sampling`): two intervals in a row
//! that both lose much and deliver at the same rate. Then that rate is used, for so many rounds.

use super::bandwidth::{Bandwidth, Gain};
use sansio::{Duration, Instant};

/// The long-term sampler (`lt_bw`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Policer {
    is_sampling: bool,
    /// The rate is used.
    is_found: bool,
    /// That of the last interval, or the one in use.
    bandwidth: Option<Bandwidth>,
    /// Rounds of this interval, or since the rate is used.
    rounds: u32,
    began: Counters,
}

/// What a connection has done by now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Segments delivered.
    pub(super) delivered: u32,
    /// Segments taken for lost.
    pub(super) lost: u32,
    /// When something was delivered last.
    pub(super) at: Instant,
}

/// What an ACK or a timeout adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct News {
    pub(super) counters: Counters,
    /// Something was taken for lost.
    pub(super) has_loss: bool,
    pub(super) is_app_limited: bool,
    pub(super) begins_round: bool,
    /// The gains go through their cycle.
    pub(super) is_cycling: bool,
    pub(super) mss: u32,
}

/// Rounds of an interval (`bbr_lt_intvl_min_rtts`).
const ROUNDS_MIN: u32 = 4;
const ROUNDS_MAX: u32 = 4 * ROUNDS_MIN;
/// Losses of an interval, as a part of what is delivered, in 1/256 (`bbr_lt_loss_thresh`).
const LOSSES_MIN: u64 = 50;
/// Rates are the same within an eighth, or within 4 kbit/s, in bytes per second
/// (`bbr_lt_bw_ratio`, `bbr_lt_bw_diff`).
const SAME_RATIO: Gain = Gain(256 / 8);
const SAME_RATE: u64 = 4000 / 8;
/// Rounds that a rate is used (`bbr_lt_bw_max_rtts`).
const USED_ROUNDS: u32 = 48;
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// There is a policer.
    Found,
    /// Its rate has been used for long enough.
    Over,
}

impl Policer {
    /// The policer's rate, if there is one.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|_| self.is_found)
    }

    /// Forgets everything; an interval may begin here.
    pub(super) fn reset(&mut self, counters: Counters) {
        *self = Policer { began: counters, ..Policer::default() };
    }

    /// An ACK with a sample, or a timeout.
    pub(super) fn on_news(&mut self, news: News) -> Outcome {
        if self.is_found {
            self.rounds += u32::from(news.is_cycling && news.begins_round);
            if !news.is_cycling || !news.begins_round || self.rounds < USED_ROUNDS {
                return Outcome::Nothing;
            }
            self.reset(news.counters);
            return Outcome::Over;
        }
        if !self.is_sampling {
            if !news.has_loss {
                return Outcome::Nothing;
            }
            self.begin_interval(news.counters);
            self.is_sampling = true;
        }
        if news.is_app_limited {
            self.reset(news.counters);
            return Outcome::Nothing;
        }
        self.rounds += u32::from(news.begins_round);
        if self.rounds > ROUNDS_MAX {
            self.reset(news.counters);
        }
        match self.rounds >= ROUNDS_MIN && news.has_loss {
            true => self.end_interval(news),
            false => Outcome::Nothing,
        }
    }

    fn begin_interval(&mut self, counters: Counters) {
        self.began = counters;
        self.rounds = 0;
    }

    /// The interval ends with a loss: the policer's tokens are spent.
    fn end_interval(&mut self, news: News) -> Outcome {
        let lost = news.counters.lost.wrapping_sub(self.began.lost);
        let delivered = news.counters.delivered.wrapping_sub(self.began.delivered);
        let is_much = u64::from(lost) << 8 >= LOSSES_MIN * u64::from(delivered);
        let interval = news.counters.at.since(self.began.at);
        if delivered == 0 || !is_much || interval < INTERVAL_MIN {
            return Outcome::Nothing;
        }
        let bandwidth = Bandwidth::of(delivered, interval);
        let last = self.bandwidth.replace(bandwidth);
        let is_same = |last: &Bandwidth| {
            let difference = bandwidth.abs_diff(*last);
            difference <= last.scaled(SAME_RATIO)
                || difference.pacing_rate(news.mss, Gain::UNIT) <= SAME_RATE
        };
        if let Some(last) = last.filter(is_same) {
            self.bandwidth = Some(bandwidth.mean(last));
            self.is_found = true;
            self.rounds = 0;
            return Outcome::Found;
        }
        self.begin_interval(news.counters);
        Outcome::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10 ms that deliver so many segments each and lose a quarter as many.
    fn after_rounds(policer: &mut Policer, counters: &mut Counters, delivered: &[u32]) -> Outcome {
        let mut outcome = Outcome::Nothing;
        for &delivered in delivered {
            counters.delivered += delivered;
            counters.lost += delivered / 4;
            counters.at += Duration::from_millis(10);
            outcome = policer.on_news(News {
                counters: *counters,
                has_loss: true,
                is_app_limited: false,
                begins_round: true,
                is_cycling: true,
                mss: 1000,
            });
            if outcome != Outcome::Nothing {
                break;
            }
        }
        outcome
    }

    #[test]
    fn two_intervals_that_lose_a_fifth_at_the_same_rate_show_a_policer() {
        let (mut policer, mut counters) = (Policer::default(), Counters::default());
        assert_eq!(after_rounds(&mut policer, &mut counters, &[100; 12]), Outcome::Found);
        let rate = policer.rate().expect("found");
        let expected = Bandwidth::of(100, Duration::from_millis(10));
        assert!(rate.abs_diff(expected) <= expected.scaled(Gain(8)), "{rate:?}, not {expected:?}");
        assert_eq!(after_rounds(&mut policer, &mut counters, &[100; 47]), Outcome::Nothing);
        assert_eq!(after_rounds(&mut policer, &mut counters, &[100]), Outcome::Over);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn intervals_at_different_rates_show_none() {
        let (mut policer, mut counters) = (Policer::default(), Counters::default());
        for rate in [100, 200, 100, 200] {
            let rounds = [rate; ROUNDS_MIN as usize];
            assert_eq!(after_rounds(&mut policer, &mut counters, &rounds), Outcome::Nothing);
        }
    }

    #[test]
    fn few_losses_show_none() {
        let mut policer = Policer::default();
        for round in 1..200_u32 {
            let at = Instant::ZERO + Duration::from_millis(u64::from(10 * round));
            let counters = Counters { delivered: 100 * round, lost: 10 * round, at };
            let outcome = policer.on_news(News {
                counters,
                has_loss: true,
                is_app_limited: false,
                begins_round: true,
                is_cycling: true,
                mss: 1000,
            });
            assert_eq!(outcome, Outcome::Nothing);
        }
    }
}
