//! How much BBR wants in flight, and the way there: cwnd.

use super::bandwidth::{Bandwidth, Gain};
use super::{Ack, Bbr, CWND_MIN, Mode, Repair};
use crate::congestion::Windows;
use crate::linux::pacing::Pacing;
use sansio::Instant;

/// cwnd before the path is known (`TCP_INIT_CWND`), segments; the SYN counts as one delivered.
const CWND_INITIAL: u32 = 10;

impl Bbr {
    pub(super) fn set_cwnd(&mut self, ack: &Ack, windows: &mut Windows, pacing: &Pacing) {
        let mss = windows.mss();
        let mut cwnd = windows.cwnd() / mss;
        if ack.acked > 0 && !self.follows_repair(ack, &mut cwnd) {
            let mut target = self.product(self.bandwidth(), self.cwnd_gain());
            if self.pipe.is_full {
                target = target.saturating_add(self.aggregation.extra(self.bandwidth()));
            }
            target = self.with_bursts(target, pacing, mss);
            if self.pipe.is_full {
                cwnd = (cwnd + ack.acked).min(target);
            } else if cwnd < target || ack.delivered + 1 < CWND_INITIAL {
                cwnd += ack.acked;
            }
            cwnd = cwnd.max(CWND_MIN);
        }
        if self.mode == Mode::ProbeRoundTrip {
            cwnd = cwnd.min(CWND_MIN);
        }
        windows.set_cwnd(cwnd.saturating_mul(mss));
    }

    /// Takes what was lost from cwnd, and gives it back after the repair. True if cwnd is to
    /// follow what is delivered alone (`bbr_set_cwnd_to_recover_or_restore`).
    fn follows_repair(&mut self, ack: &Ack, cwnd: &mut u32) -> bool {
        if ack.lost > 0 {
            *cwnd = cwnd.saturating_sub(ack.lost).max(1);
        }
        let before = core::mem::replace(&mut self.repair, ack.repair);
        if ack.repair == Repair::Loss && before != Repair::Loss {
            self.conserves = true;
            self.round.until = ack.delivered;
            *cwnd = ack.in_flight + ack.acked;
        } else if ack.repair == Repair::Nothing && before != Repair::Nothing {
            *cwnd = (*cwnd).max(self.cwnd_before);
            self.conserves = false;
        }
        if self.conserves {
            *cwnd = (*cwnd).max(ack.in_flight + ack.acked);
        }
        self.conserves
    }

    /// What bandwidth and shortest round trip hold, times the gain.
    fn product(&self, bandwidth: Bandwidth, gain: Gain) -> u32 {
        self.shortest.map_or(CWND_INITIAL, |shortest| bandwidth.product(shortest, gain))
    }

    /// So much in flight fills the path, times the gain (`bbr_inflight`).
    pub(super) fn target(
        &self,
        bandwidth: Bandwidth,
        gain: Gain,
        pacing: &Pacing,
        mss: u32,
    ) -> u32 {
        self.with_bursts(self.product(bandwidth, gain), pacing, mss)
    }

    /// Room for the bursts that wait in both hosts, in an even number, since every second segment
    /// is acknowledged (`bbr_quantization_budget`).
    fn with_bursts(&self, segments: u32, pacing: &Pacing, mss: u32) -> u32 {
        let room = segments.saturating_add(3 * pacing.burst_segments(mss));
        let even = room.saturating_add(1) & !1;
        let is_faster = self.mode == Mode::ProbeBandwidth && self.phase == 0;
        if is_faster { even.saturating_add(2) } else { even }
    }

    /// What will be in flight when the next burst leaves (`bbr_packets_in_net_at_edt`).
    pub(super) fn in_flight_at_departure(
        &self,
        in_flight: u32,
        pacing: &Pacing,
        mss: u32,
        now: Instant,
    ) -> u32 {
        let is_rising = self.pacing_gain() > Gain::UNIT;
        let burst = if is_rising { pacing.burst_segments(mss) } else { 0 };
        (in_flight + burst).saturating_sub(self.bandwidth().segments_in(pacing.wait(now)))
    }
}
