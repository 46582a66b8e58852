//! NewReno (RFC 6582; BASE-3): Reno whose fast recovery lasts until all that was sent when it began
//! is acknowledged. An ACK of less is partial: the next segment is lost too, and is sent at once.
//! One loss is repaired per round trip.

use super::{Controller, Loss, Reno, Repair, Windows};
use crate::config::{Config, Deflation};

/// NewReno's windows: Reno's, and what a partial ACK does to them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NewReno {
    reno: Reno,
    deflation: Deflation,
}

impl NewReno {
    pub(super) fn new(config: &Config, windows: Windows) -> Self {
        NewReno { reno: Reno::new(windows), deflation: config.deflation }
    }

    /// An ACK during recovery acknowledged this many bytes, but not all.
    pub(super) fn on_partial_ack(&mut self, bytes: u32) {
        match self.deflation {
            Deflation::Whole => self.reno.deflate_by(u32::MAX),
            Deflation::Acknowledged => {
                self.reno.deflate_by(bytes);
                self.reno.on_dupack();
            }
        }
    }
}

impl Controller for NewReno {
    const REPAIR: Repair = Repair::PartialAcks;

    fn windows(&self) -> &Windows {
        self.reno.windows()
    }

    fn windows_mut(&mut self) -> &mut Windows {
        self.reno.windows_mut()
    }

    fn on_dupack(&mut self) {
        self.reno.on_dupack();
    }

    fn on_fast_retransmit(&mut self, loss: Loss) {
        self.reno.on_fast_retransmit(loss);
    }

    fn on_recovered(&mut self) {
        self.reno.on_recovered();
    }

    fn on_timeout(&mut self, loss: Loss) {
        self.reno.on_timeout(loss);
    }

    #[inline]
    fn cwnd(&self) -> u32 {
        self.reno.cwnd()
    }
}
