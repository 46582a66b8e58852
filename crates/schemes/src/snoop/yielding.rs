//! Flows are found, come and go: their number is bounded, and an idle one yields to a new one
//! (MOD-14).

use super::flow::Flow;
use super::handshake::Origin;
use super::timers::Timer;
use super::{Agent, Context, Fate, limit};
use sansio::{FlowKey, Instant, Packet, Sink, TimerQueue};
use wire::tcp::Seq;

/// Flows looked at for one that yields.
const FLOWS_LOOKED_AT: usize = 8;

/// The flow at a place, if there is one.
#[inline]
pub(super) fn flow_at(flows: &mut [Option<Flow>], slot: u32) -> Option<&mut Flow> {
    flows.get_mut(slot as usize)?.as_mut()
}

impl Agent {
    /// Makes the flow of a packet that `origin` sent the recent one; false if there is none.
    #[cold]
    pub(super) fn look_up(&mut self, packet: &Packet, origin: Origin) -> bool {
        let slot = origin.flow_of(packet).and_then(|key| self.index.get(&key));
        self.recent = slot.unwrap_or(self.recent);
        slot.is_some()
    }

    /// The same for one that the fixed host sent; a new flow if there is none and it has payload.
    #[cold]
    pub(super) fn find_or_begin(
        &mut self,
        packet: &Packet,
        start: Seq,
        sink: &mut impl Sink,
        now: Instant,
    ) -> bool {
        if self.look_up(packet, Origin::Fixed) {
            return true;
        }
        let key = FlowKey::of(packet).filter(|_| !packet.payload.is_empty());
        let slot = key.and_then(|key| self.create(key, start, sink, now));
        self.recent = slot.unwrap_or(self.recent);
        slot.is_some()
    }

    /// Lets `act` have a flow, then does what it says, and brings what is known of the flow beside
    /// it up to date.
    pub(super) fn with_flow<S: Sink>(
        &mut self,
        slot: u32,
        sink: &mut S,
        act: impl FnOnce(&mut Flow, &mut Context<'_, S>) -> Fate,
    ) -> Fate {
        let Some(flow) = flow_at(&mut self.flows, slot) else {
            self.timers.clear(slot);
            return Fate::Forget;
        };
        let mut context = Context { config: &self.config, shared: &mut self.shared, sink };
        let held_before = flow.cache.bytes();
        let fate = act(flow, &mut context);
        flow.is_quiet &= flow.is_nothing_going_on(&self.config);
        if self.shared.settle(flow, held_before) || fate == Fate::Forget {
            self.requeue_or_forget(slot, fate);
        }
        fate
    }

    /// Forgets a flow, or brings its place in the timer queue up to date.
    #[cold]
    pub(super) fn requeue_or_forget(&mut self, slot: u32, fate: Fate) {
        let Some(flow) = flow_at(&mut self.flows, slot) else { return };
        if fate == Fate::Forget {
            let key = flow.key;
            return self.forget(&key);
        }
        let deadline = flow.timers.next().map(|(_, at)| at);
        if deadline != flow.queued_deadline {
            flow.queued_deadline = deadline;
            match deadline {
                Some(at) => self.timers.set(slot, at),
                None => self.timers.clear(slot),
            }
        }
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
