//! Links by name.

use crate::hop;
use crate::outage;

/// Both directions of a full-duplex link.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Toward the mobile host.
    pub down: hop::Config,
    /// Toward the fixed host.
    pub up: hop::Config,
}

impl Pair {
    /// Both directions alike.
    pub fn symmetric(config: hop::Config) -> Self {
        Pair { up: config.clone(), down: config }
    }

    /// The same link with these outages, in both directions.
    #[must_use]
    pub fn with_outages(mut self, outages: &outage::Spec) -> Self {
        self.down.outages = outages.clone();
        self.up.outages = outages.clone();
        self
    }
}
