//! What comes at instants of its own: the ends of outages, and base stations that forget.

use super::{Kernel, Slot};
use sansio::{Input, Instant, Notice};
use trace::{Observer, What};

impl<O: Observer> Kernel<O> {
    pub(super) fn on_transition(&mut self, index: usize, now: Instant) {
        self.world.events += 1;
        let away = &self.world.network.away[index];
        let ((node, side), notices) = (away.end, away.notices);
        let down = away.outages.state(now) == link::outage::State::Down;
        let what = if down { What::LinkDown { side } } else { What::LinkUp { side } };
        self.world.record(node, now, what);
        if let Some((base, [begin, end])) = notices {
            self.handle(base, Input::Notice(if down { begin } else { end }), now);
        }
        self.plan_transition(index, now);
    }

    pub(super) fn plan_transition(&mut self, index: usize, now: Instant) {
        let number = self.number(Slot::Away(index));
        if let Some((at, _)) = self.world.network.away[index].outages.next_transition(now) {
            self.world.queue.add(number, at);
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
