//! Proportional Rate Reduction (RFC 6937, with PRR-SSRB): how much may be sent during a recovery.
//!
//! What is in flight approaches ssthresh in step with what is delivered, so that a recovery neither
//! falls silent for half a round trip, as Reno without inflation, nor bursts. Counted in segments,
//! as Linux does (`tcp_cwnd_reduction`).

/// One recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prr {
    /// cwnd when it began: RecoverFS (Linux takes cwnd for it).
    before: u32,
    /// Segments delivered since.
    delivered: u32,
    /// Segments sent since.
    out: u32,
}

/// What one ACK brought, in segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Newly delivered.
    pub(crate) delivered: u32,
    /// In flight now.
    pub(crate) in_flight: u32,
    /// Slow start threshold.
    pub(crate) ssthresh: u32,
    /// It acknowledges new data and shows no further loss.
    pub(crate) is_clean: bool,
}

impl Prr {
    /// A recovery begins with this cwnd, segments.
    pub(crate) fn new(cwnd: u32) -> Self {
        Prr { before: cwnd.max(1), delivered: 0, out: 0 }
    }

    /// A segment was sent, new or again.
    pub(crate) fn on_sent(&mut self) {
        self.out = self.out.saturating_add(1);
    }

    /// How many segments may be sent now (RFC 6937, 3). The first is always allowed: it is the
    /// fast retransmit.
    pub(crate) fn on_ack(&mut self, step: Step) -> u32 {
        self.delivered = self.delivered.saturating_add(step.delivered);
        let first = u32::from(self.out == 0);
        let count = if step.in_flight > step.ssthresh {
            let share = u64::from(step.ssthresh) * u64::from(self.delivered);
            let share = share.div_ceil(u64::from(self.before));
            u32::try_from(share).unwrap_or(u32::MAX).saturating_sub(self.out)
        } else {
            // Slow start reduction bound: at most one segment more than was delivered.
            let bound = self.delivered.saturating_sub(self.out).max(step.delivered);
            (bound + u32::from(step.is_clean)).min(step.ssthresh - step.in_flight)
        };
        count.max(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(in_flight: u32) -> Step {
        Step { delivered: 1, in_flight, ssthresh: 10, is_clean: false }
    }

    #[test]
    fn rfc_6937_half_of_what_is_delivered_is_sent_above_ssthresh() {
        let mut prr = Prr::new(20);
        let mut in_flight = 19;
        let mut sent = Vec::new();
        for _ in 0..8 {
            in_flight -= 1;
            let count = prr.on_ack(step(in_flight));
            (0..count).for_each(|_| prr.on_sent());
            in_flight += count;
            sent.push(count);
        }
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0]);
    }

    #[test]
    fn rfc_6937_below_ssthresh_a_clean_ack_sends_one_more() {
        let mut prr = Prr::new(20);
        prr.on_sent();
        assert_eq!(prr.on_ack(Step { is_clean: true, ..step(5) }), 2);
        assert_eq!(prr.on_ack(Step { is_clean: true, ..step(10) }), 0, "never beyond ssthresh");
    }

    #[test]
    fn the_fast_retransmit_is_always_allowed() {
        let mut prr = Prr::new(100);
        assert_eq!(prr.on_ack(Step { ssthresh: 10, ..step(10) }), 1);
        prr.on_sent();
        assert_eq!(prr.on_ack(Step { ssthresh: 10, ..step(10) }), 0);
    }
}
