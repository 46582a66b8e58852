//! What comes at instants of its own: the ends of outages, and base stations that forget.

use super::{Kernel, Outbox, Slot};
use crate::network::{Machine, Stage};
use link::outage::State;
use node::Plan;
use sansio::{Input, Instant, Notice, Side};
use trace::{NodeId, Observer, What};

impl<O: Observer> Kernel<O> {
    /// Opens the hosts' connections, and plans the first of everything.
    pub(super) fn start(&mut self) {
        for index in 0..self.nodes.len() {
            let node = NodeId(index as u32);
            let now = Instant::ZERO;
            let mut outbox = Outbox { world: &mut self.world, node, now, told: false };
            match &mut self.nodes[index].machine {
                Machine::Host(host) => host.start(&mut outbox, now),
                Machine::Mobile(mobile) => mobile.start(&mut outbox, now),
                Machine::Roaming(mobile) => mobile.start(&mut outbox, now),
                Machine::Base(_) | Machine::Router(_) | Machine::Cellular(_) => {}
            }
            self.rearm(node);
        }
        for index in 0..self.world.network.away.len() {
            self.plan_transition(index, Instant::ZERO);
        }
        for index in 0..self.world.network.forgetting.len() {
            self.plan_forgetting(index, Instant::ZERO);
        }
        let moving = self.world.network.roam().map_or(0, |roam| roam.movements.len());
        for mobile in 0..moving as u32 {
            self.plan_moving(mobile, Instant::ZERO);
        }
    }

    pub(super) fn on_transition(&mut self, index: usize, now: Instant) {
        self.world.events += 1;
        let away = &mut self.world.network.away[index];
        let ((node, side), notices, mobile) = (away.end, away.notices, away.mobile);
        let is_warned = away.warned.is_some();
        let stage = match (away.stage, away.outages.state(now)) {
            (_, State::Down) => Stage::Down,
            (Stage::Down, State::Up) => Stage::Up,
            (Stage::Up | Stage::Warned, State::Up) => Stage::Warned,
        };
        away.stage = stage;
        let what = match stage {
            Stage::Up => Some(What::LinkUp { side }),
            Stage::Down => Some(What::LinkDown { side }),
            Stage::Warned => None,
        };
        if let Some(what) = what {
            self.world.record(node, now, what);
            if let Some((base, [begin, end])) = notices {
                let notice = if stage == Stage::Down { begin } else { end };
                self.handle(base, Input::Notice(notice), now);
            }
        }
        if let Some(mobile) = mobile {
            self.tell_mobile(mobile, (stage, is_warned), now);
        }
        self.plan_transition(index, now);
    }

    /// What a mobile host's engine learns of its link.
    fn tell_mobile(&mut self, mobile: NodeId, (stage, is_warned): (Stage, bool), now: Instant) {
        let link = match stage {
            Stage::Up => Some(Notice::LinkUp(Side::RADIO)),
            Stage::Down => Some(Notice::LinkDown(Side::RADIO)),
            Stage::Warned => None,
        };
        let signal = if stage == Stage::Up { Plan::SIGNAL_GOOD } else { Plan::SIGNAL_WEAK };
        let signal = is_warned.then_some(Notice::Signal(signal));
        for notice in link.into_iter().chain(signal) {
            self.handle(mobile, Input::Notice(notice), now);
        }
    }

    pub(super) fn plan_transition(&mut self, index: usize, now: Instant) {
        let number = self.number(Slot::Away(index));
        let away = &self.world.network.away[index];
        if let Some((at, next)) = away.outages.next_transition(now) {
            let lead = away.warned.filter(|_| next == State::Down && away.stage == Stage::Up);
            let warned_at = lead.map(|lead| Instant::ZERO + at.since(Instant::ZERO + lead));
            self.world.queue.add(number, warned_at.map_or(at, |at| at.max(now)));
        }
    }

    pub(super) fn on_forget(&mut self, index: usize, now: Instant) {
        self.world.events += 1;
        let base = self.world.network.forgetting[index].base;
        self.handle(base, Input::Notice(Notice::Forget), now);
        self.plan_forgetting(index, now);
    }

    pub(super) fn plan_forgetting(&mut self, index: usize, now: Instant) {
        let number = self.number(Slot::Forgetting(index));
        let forgetting = &mut self.world.network.forgetting[index];
        let at = now + forgetting.random.exponential_time(forgetting.every);
        self.world.queue.add(number, at);
    }
}
