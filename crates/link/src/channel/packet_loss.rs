//! Independent losses: each packet is lost with the same probability, whatever its size.

use super::{Loss, Verdict, probability};
use sansio::Random;

/// Independent losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Probability that a packet is lost, 0 to 1.
    pub probability: f64,
}

#[derive(Clone, Debug)]
pub(super) struct PacketLoss {
    probability: f64,
    random: Random,
}

impl PacketLoss {
    pub(super) fn new(config: &Config, seed: u64, name: &str) -> Self {
        PacketLoss {
            probability: probability(config.probability),
            random: Random::new(seed, &format!("{name}.packet_loss")),
        }
    }

    #[inline]
    pub(super) fn judge(&mut self) -> Verdict {
        Verdict::lost_if(self.random.chance(self.probability), Loss::Packet)
    }
}
