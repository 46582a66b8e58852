//! Binding updates (WINC-BS-5): the new agent sends them, the previous one tunnels because of them.

use super::{Outcome, Relay, Timer, Told};
use crate::binding::Binding;
use crate::clock::{Clock, NotTaken};
use crate::refusal::Refusal;
use crate::registration::end;
use core::net::{Ipv4Addr, SocketAddrV4};
use sansio::{Instant, Sink};
use wire::mobile_ip::binding::{Acknowledge, Update};
use wire::mobile_ip::extension::PreviousForeignAgent;
use wire::mobile_ip::registration::Request;
use wire::mobile_ip::{Authenticator, Extension, Extensions};

impl Relay {
    /// Sends a binding update to the previous agent (WINC-BS-5). What the mobile host asked last
    /// takes the place of what it asked before.
    pub(super) fn tell(
        &mut self,
        request: &Request,
        notification: &PreviousForeignAgent,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let mobile = request.home_address;
        if notification.previous_agent == self.config.address {
            return;
        }
        let mut message = Vec::with_capacity(64);
        Update::for_previous_agent(request, notification).emit(&mut message);
        let authenticator = Extension::Authentication {
            between: Authenticator::RouteOptimization,
            spi: notification.spi,
            code: notification.code,
        };
        if authenticator.emit(&mut message).is_err() {
            return self.refusals.count(Refusal::Malformed, sink);
        }
        let previous = notification.previous_agent;
        let identification = request.identification;
        self.told.insert(mobile, Told { previous, identification, message, asked: 0 });
        self.tell_again(mobile, sink, now);
    }

    pub(super) fn tell_again(&mut self, mobile: Ipv4Addr, sink: &mut impl Sink, now: Instant) {
        let Some(told) = self.told.get_mut(&mobile) else { return };
        if self.config.retry.is_last(told.asked) {
            self.told.remove(&mobile);
            return;
        }
        told.asked += 1;
        let (previous, message) = (told.previous, told.message.clone());
        self.timers.set(Timer::Told(mobile), now + self.config.retry.wait(told.asked));
        self.send_wired(previous, message, sink);
    }

    /// As previous agent: the mobile host has moved (WINC-ST-5, WINC-ST-6).
    pub(super) fn on_update(
        &mut self,
        update: &Update,
        (extensions, message): (Extensions, &[u8]),
        from: SocketAddrV4,
        sink: &mut impl Sink,
        now: Instant,
    ) -> Option<Outcome> {
        let mobile = update.home_address;
        let Some(key) = self.mobiles.get(&mobile) else {
            return self.refuse(Refusal::UnknownMobile, sink);
        };
        let key = crate::key_with(self.config.address, key);
        if extensions.verify(Authenticator::RouteOptimization, &key, message).is_err() {
            return self.refuse(Refusal::NotProved, sink);
        }
        if update.care_of_address == self.config.address {
            return self.refuse(Refusal::Loop, sink);
        }
        let own = self.clock.read(now);
        let sent_at = Clock::from_ntp(update.identification, own);
        let guard = self.guards.entry(mobile).or_default();
        match guard.take(sent_at, own, self.config.tolerance) {
            Ok(()) => {}
            Err(NotTaken::TooFar) => return self.refuse(Refusal::Clock, sink),
            Err(NotTaken::NotLater) => {
                // A repetition, because our answer was lost: answered again, and nothing else.
                let known = self.cache.get(mobile, now).map(|binding| binding.care_of);
                if known == Some(update.care_of_address) {
                    self.acknowledge(update, from, sink);
                }
                return self.refuse(Refusal::Replayed, sink);
            }
        }
        let lifetime_s = update.lifetime_s.min(self.config.forward_max_s);
        self.visitors.remove(mobile);
        if lifetime_s == 0 {
            self.cache.remove(mobile);
        } else {
            let binding = Binding {
                care_of: update.care_of_address,
                encapsulation: self.config.encapsulation,
                until: end(lifetime_s, now),
            };
            if !self.cache.set(mobile, binding) {
                return self.refuse(Refusal::Full, sink);
            }
        }
        self.acknowledge(update, from, sink);
        Some(Outcome::Moved { mobile, registered_at: sent_at })
    }

    fn acknowledge(&self, update: &Update, from: SocketAddrV4, sink: &mut impl Sink) {
        let mut bytes = Vec::with_capacity(64);
        Acknowledge {
            reserved: 0,
            status: 0,
            home_address: update.home_address,
            identification: update.identification,
        }
        .emit(&mut bytes);
        if let Some(key) = self.mobiles.get(&update.home_address) {
            let key = crate::key_with(self.config.address, key);
            Authenticator::RouteOptimization.append(&key, &mut bytes);
        }
        self.send_wired(*from.ip(), bytes, sink);
    }

    /// Ends the repetitions. This agent cannot prove the answer, for it has not the key of the
    /// previous one; a forged answer costs no more than the repetitions.
    pub(super) fn on_acknowledge(
        &mut self,
        acknowledge: &Acknowledge,
        source: Ipv4Addr,
        sink: &mut impl Sink,
    ) -> Option<Outcome> {
        let mobile = acknowledge.home_address;
        let is_awaited = self.told.get(&mobile).is_some_and(|told| {
            told.previous == source && told.identification == acknowledge.identification
        });
        if !is_awaited {
            return self.refuse(Refusal::Unasked, sink);
        }
        self.told.remove(&mobile);
        self.timers.clear(Timer::Told(mobile));
        Some(Outcome::Told(mobile))
    }
}
