//! Flows are found, come and go: their number is bounded, and an idle one yields to a new one
//! (MOD-14).

use super::flow::Flow;
use super::handshake::Origin;
use super::timers::Timer;
use super::{Agent, limit};
use sansio::{FlowKey, Instant, Packet, Sink, TimerQueue};
use wire::tcp::Seq;

/// Flows looked at for one that yields.
const FLOWS_LOOKED_AT: usize = 8;

impl Agent {
    /// The slot of the flow of a packet that `origin` sent.
    #[inline]
    pub(super) fn slot_of(&mut self, packet: &Packet, origin: Origin) -> Option<u32> {
        match self.is_recent(packet, origin) {
            true => Some(self.recent),
            false => self.look_up(packet, origin),
        }
    }

    /// True if a packet that `origin` sent is of the same flow as the last one.
    #[inline]
    pub(super) fn is_recent(&self, packet: &Packet, origin: Origin) -> bool {
        let Some(Some(flow)) = self.flows.get(self.recent as usize) else { return false };
        match origin {
            Origin::Fixed => flow.key.is_of(packet),
            Origin::Mobile => flow.key.is_reverse_of(packet),
        }
    }

    /// The slot of the flow of a packet that the fixed host sent; a new one if there is
    /// none and it has payload.
    #[cold]
    pub(super) fn find_or_begin(
        &mut self,
        packet: &Packet,
        start: Seq,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<u32> {
        self.look_up(packet, Origin::Fixed).or_else(|| {
            let key = FlowKey::of(packet).filter(|_| !packet.payload.is_empty())?;
            self.create(key, start, sink, now)
        })
    }

    #[cold]
    fn look_up(&mut self, packet: &Packet, origin: Origin) -> Option<u32> {
        let slot = self.index.get(&origin.flow_of(packet)?)?;
        self.recent = slot;
        Some(slot)
    }

    /// A place for a new flow, if the limit allows or another flow yields (MOD-14).
    fn create(
        &mut self,
        key: FlowKey,
        start: Seq,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<u32> {
        let most = self.config.flows_max.min(TimerQueue::SLOTS_MAX) as usize;
        if self.index.len() >= most && !self.make_one_yield(now) {
            self.shared.statistics.flows_refused += 1;
            limit(sink, key, "snoop flows", self.index.len() as u64);
            return None;
        }
        let mut flow = Flow::new(key, start, &self.config, now);
        flow.scale = self.handshakes.take_scale(&key);
        flow.timers.set(Timer::Idle, now + self.config.flow_idle);
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.flows.is_empty() {
                // Often there is but one.
                self.flows.reserve_exact(1);
            }
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        self.flows[slot as usize] = Some(flow);
        self.index.insert(key, slot);
        let is_away = self.hosts.join(slot, key.destination.address);
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.is_away = is_away;
        }
        self.shared.statistics.flows_created += 1;
        Some(slot)
    }

    /// Looks at a few flows, going round, and forgets the one idle for longest if that is long
    /// enough. Active flows never yield, however many strangers knock.
    fn make_one_yield(&mut self, now: Instant) -> bool {
        let mut idlest: Option<(Instant, FlowKey)> = None;
        for _ in 0..FLOWS_LOOKED_AT.min(self.flows.len()) {
            self.hand = (self.hand + 1) % self.flows.len();
            if let Some(flow) = &self.flows[self.hand]
                && idlest.is_none_or(|(active_at, _)| flow.active_at < active_at)
            {
                idlest = Some((flow.active_at, flow.key));
            }
        }
        match idlest {
            Some((active_at, key)) if now.since(active_at) >= self.config.flow_yields_after => {
                self.forget(&key);
                true
            }
            _ => false,
        }
    }

    /// Forgets a flow's state, if there is any.
    #[cold]
    pub(super) fn forget(&mut self, key: &FlowKey) {
        let Some(slot) = self.index.remove(key) else { return };
        self.timers.clear(slot);
        self.hosts.leave(slot, key.destination.address);
        if let Some(flow) = self.flows[slot as usize].take() {
            self.shared.held_bytes -= u64::from(flow.cache.bytes());
        }
        self.free.push(slot);
    }
}
