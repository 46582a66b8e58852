//! When a hop may not send though its air is free: no opportunity, or an outage that holds.

use super::Hop;
use crate::outage::{Interval, Mode};
use sansio::Instant;

impl<T: Clone> Hop<T> {
    /// True if a transmission from `start` has to wait for an opportunity, or for the end of an
    /// outage that holds; the air is free then, and the next packet is chosen anew.
    pub(super) fn pauses(&mut self, bytes: u32, start: Instant) -> bool {
        if self.lacks_opportunity(start) {
            return true;
        }
        let outages = self.conditions.as_ref().and_then(|conditions| conditions.outages.as_ref());
        if outages.is_none() {
            return false;
        }
        let air = self.air(bytes, start);
        let outages = self.conditions.as_mut().and_then(|conditions| conditions.outages.as_mut());
        let away = outages.filter(|away| away.mode == Mode::Hold);
        let Some(outage) = away.and_then(|away| away.outages.covers(air)) else { return false };
        self.free_at = outage.end;
        true
    }

    /// True if a recorded capacity lets nothing leave at `start`; the air is free when it does.
    pub(super) fn lacks_opportunity(&mut self, start: Instant) -> bool {
        let conditions = self.conditions.as_mut();
        let opportunities = conditions.and_then(|conditions| conditions.opportunities.as_mut());
        let Some(opportunities) = opportunities else { return false };
        let next_at = opportunities.next_from(start);
        let lacks = next_at > start;
        if lacks {
            self.free_at = next_at;
        }
        lacks
    }

    /// From first to last bit of a transmission whose service would begin at `start`.
    pub(super) fn air(&self, bytes: u32, start: Instant) -> Interval {
        let first_bit_at = start + self.host_cost;
        let conditions = self.conditions.as_ref();
        let end = match conditions.and_then(|conditions| conditions.opportunities.as_ref()) {
            Some(opportunities) => opportunities.peek(bytes),
            None => first_bit_at + self.pace.time_for(bytes),
        };
        Interval { start: first_bit_at, end }
    }
}
