//! A base station: beacons, foreign agent, handoffs, multicast groups, and where each datagram
//! goes.
//!
//! ```text
//!   WIRED ── tunnel's end ─┬─ here ─────────────▶ RADIO
//!                          ├─ gone ─▶ tunnel ───▶ WIRED
//!                          └─ its group: forward or buffer
//! ```

use crate::Keys;
use crate::agents::{Advertiser, AdvertiserConfig};
use crate::beacon::Sender;
use crate::clock::Clock;
use crate::forward::{self, Keeper};
use crate::handoff::station::{self as handoff, Handover, Outcome, Place};
use crate::inbox::Inbox;
use crate::mobile::Roaming;
use crate::multicast::station::{self as multicast, Member};
use crate::post::v4;
use crate::refusal::{Refusal, Refusals};
use crate::registration::foreign::{self, Relay};
use crate::registration::home::reason_of;
use crate::tunnel::{self, NotTunnelled, Tunnel};
use core::net::Ipv4Addr;
use sansio::{
    Deadline, DropReason, Duration, Engine, Input, Instant, Notice, PacketRef, Priority, Side, Sink,
};
use wire::control::Body;

/// Parameters of a base station.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Its id in beacons.
    pub id: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// Between beacons.
    pub beacon_interval: Duration,
    /// When the first beacon leaves.
    pub first_beacon_at: Instant,
    /// Handoffs.
    pub handoff: handoff::Config,
    /// Registrations.
    pub foreign: foreign::Config,
    /// Advertisements; none if it only answers by registrations.
    pub advertiser: Option<AdvertiserConfig>,
    /// When the first advertisement leaves; `None`: beside the first beacon, and beside every one
    /// that is sent out of turn.
    pub first_advertisement_at: Option<Instant>,
    /// What is kept of each mobile host for the next base station (CI-SMOOTH-2); nothing without.
    pub keeper: Option<forward::Config>,
    /// Multicast groups.
    pub multicast: multicast::Config,
    /// The largest datagram on the way to other base stations, in bytes.
    pub mtu_bytes: u32,
}

impl Config {
    /// As the papers have it: beacons and advertisements each second, 50 and 100 ms of processing
    /// (PAR-2), nothing kept.
    pub fn strict(id: u32, address: Ipv4Addr) -> Self {
        Config {
            id,
            address,
            beacon_interval: Sender::INTERVAL,
            first_beacon_at: Instant::ZERO,
            handoff: handoff::Config::strict(address),
            foreign: foreign::Config::new(address),
            advertiser: Some(AdvertiserConfig::new(address)),
            first_advertisement_at: None,
            keeper: None,
            multicast: multicast::Config::strict(address),
            mtu_bytes: 1_500,
        }
    }

    /// At once, with packets kept for the next base station, and none freed that may be missing.
    pub fn modern(id: u32, address: Ipv4Addr) -> Self {
        Config {
            handoff: handoff::Config::modern(address),
            keeper: Some(forward::Config::default()),
            multicast: multicast::Config::modern(address),
            ..Self::strict(id, address)
        }
    }
}

/// The engine, between [`Side::WIRED`] and [`Side::RADIO`].
#[derive(Clone, Debug)]
pub struct BaseStation {
    config: Config,
    inbox: Inbox,
    beacons: Sender,
    advertiser: Option<Advertiser>,
    relay: Relay,
    handover: Handover,
    keeper: Option<Keeper>,
    member: Member,
    refusals: Refusals,
}

impl BaseStation {
    /// Nobody is here yet. `keys`: those of all mobile hosts that may come.
    pub fn new(config: Config, keys: Keys, clock: Clock) -> Self {
        let (id, address, first_at) = (config.id, config.address, config.first_beacon_at);
        let advertises_at = config.first_advertisement_at.unwrap_or(first_at);
        BaseStation {
            inbox: Inbox::new(address, keys.clone()),
            beacons: Sender::new((id, address), config.beacon_interval, clock, first_at),
            advertiser: config.advertiser.map(|it| Advertiser::new(it, advertises_at)),
            relay: Relay::new(config.foreign, keys.clone(), clock),
            handover: Handover::new(config.handoff, keys.clone(), clock),
            keeper: config.keeper.map(Keeper::new),
            member: Member::new(config.multicast, keys),
            refusals: Refusals::default(),
            config,
        }
    }

    /// Shares a key with a home agent.
    pub fn trust(&mut self, home_agent: Ipv4Addr, key: wire::auth::Key) {
        self.relay.trust(home_agent, key);
    }

    /// A mobile host that was in this cell when the run began, and by which `roaming`.
    pub fn begin(&mut self, mobile: Ipv4Addr, roaming: &Roaming, now: Instant) {
        self.relay.begin(mobile, now);
        match roaming {
            Roaming::MobileIp => {}
            Roaming::Greeting(_) => self.handover.begin(mobile, now),
            Roaming::Multicast(config) => self.member.begin(mobile, config.group, now),
        }
    }

    /// Sends a beacon now, beside those that are due (CI-MOD-5), and an advertisement if these
    /// leave with beacons.
    pub fn beacon(&mut self, sink: &mut impl Sink, now: Instant) {
        self.beacons.send(sink, now);
        let is_beside = self.config.first_advertisement_at.is_none();
        if let Some(advertiser) = self.advertiser.as_mut().filter(|_| is_beside) {
            advertiser.send(sink);
        }
    }

    /// The registrations.
    pub fn relay(&self) -> &Relay {
        &self.relay
    }

    /// The handoffs.
    pub fn handover(&self) -> &Handover {
        &self.handover
    }

    /// What is kept for the next base station.
    pub fn keeper(&self) -> Option<&Keeper> {
        self.keeper.as_ref()
    }

    /// The multicast groups.
    pub fn member(&self) -> &Member {
        &self.member
    }

    /// All that was refused, whichever part did.
    pub fn refused(&self, reason: Refusal) -> u64 {
        let parts = [self.relay.refusals(), self.handover.refusals(), self.member.refusals()];
        self.refusals.of(reason) + parts.map(|part| part.of(reason)).iter().sum::<u64>()
    }

    /// True for a datagram whose end is this base station itself.
    fn is_ours(&self, packet: &PacketRef) -> bool {
        v4(packet.ip.destination) == Some(self.config.address)
    }

    fn on_wired(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let destination = v4(packet.ip.destination);
        if self.is_ours(&packet) && !tunnel::is_tunnel(&packet) {
            self.on_message(Side::WIRED, &packet, sink, now);
            return sink.discard(packet, DropReason::Consumed);
        }
        let group = destination.filter(|destination| destination.is_multicast());
        if !self.is_ours(&packet) && group.is_none() {
            return self.deliver(packet, None, sink, now);
        }
        match (tunnel::leave(&packet, sink), group) {
            (Some(inner), None) => self.deliver(inner, v4(packet.ip.source), sink, now),
            (Some(inner), Some(group)) => self.on_group(inner, group, sink),
            (None, _) => self.refusals.count(Refusal::Malformed, sink),
        }
        sink.discard(packet, DropReason::Consumed);
    }

    /// A datagram that came by a group: only for the mobile host whose group that is.
    fn on_group(&mut self, inner: PacketRef, group: Ipv4Addr, sink: &mut impl Sink) {
        let mobile = v4(inner.ip.destination);
        match mobile.filter(|mobile| self.member.group(*mobile) == Some(group)) {
            Some(mobile) => self.member.on_datagram(mobile, inner, sink),
            None => {
                self.refusals.count(Refusal::UnknownMobile, sink);
                sink.discard(inner, DropReason::Rule("MCAST-18"));
            }
        }
    }

    /// Sends a datagram to a mobile host that is here, or after it. `from`: the tunnel it came by.
    fn deliver(
        &mut self,
        packet: PacketRef,
        from: Option<Ipv4Addr>,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let Some(mobile) = v4(packet.ip.destination) else {
            return sink.discard(packet, DropReason::Rule("no such host"));
        };
        let place = self.handover.place(mobile, now).or_else(|| {
            let next = || self.relay.next_agent(mobile, now).map(|next| Place::Gone(next.care_of));
            if self.relay.has(mobile, now) { Some(Place::Here) } else { next() }
        });
        match place {
            Some(Place::Here) => {
                // What another base station has kept is not kept again: it would follow the mobile
                // host for as long as that moves.
                let was_kept = from.is_some_and(|from| {
                    let home_agent = self.relay.home_agent(mobile, now);
                    self.handover.has_told(from, mobile) || home_agent.is_some_and(|it| it != from)
                });
                if let Some(keeper) = self.keeper.as_mut().filter(|_| !was_kept) {
                    keeper.keep(mobile, &packet, now);
                }
                sink.send(Side::RADIO, Priority::Normal, packet);
            }
            Some(Place::Gone(to)) if from != Some(to) => self.send_after(packet, to, sink),
            Some(Place::Gone(_)) => {
                self.refusals.count(Refusal::Loop, sink);
                sink.discard(packet, DropReason::Rule("loop"));
            }
            None => sink.discard(packet, DropReason::Rule("no such visitor")),
        }
    }

    /// Tunnels a datagram to the base station where its mobile host is now.
    fn send_after(&mut self, packet: PacketRef, to: Ipv4Addr, sink: &mut impl Sink) {
        let tunnel = Tunnel {
            from: self.config.address,
            to,
            encapsulation: self.config.foreign.encapsulation,
            mtu_bytes: self.config.mtu_bytes,
        };
        match tunnel::enter(&packet, tunnel, sink) {
            Ok(outer) => sink.send(Side::WIRED, Priority::Normal, outer),
            Err(why) => {
                self.refusals.count(reason_of(&why), sink);
                if let NotTunnelled::TooBig(Some(answer)) = why {
                    sink.send(Side::WIRED, Priority::Normal, answer);
                }
                sink.discard(packet, DropReason::Rule("MOD-9"));
            }
        }
    }

    fn on_radio(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let is_broadcast = v4(packet.ip.destination).is_some_and(|to| to.is_broadcast());
        if !self.is_ours(&packet) && !is_broadcast {
            // MCAST-17: from the mobile host by ordinary routing.
            return sink.send(Side::WIRED, Priority::Normal, packet);
        }
        self.on_message(Side::RADIO, &packet, sink, now);
        sink.discard(packet, DropReason::Consumed);
    }

    /// A datagram for this base station itself.
    fn on_message(&mut self, side: Side, packet: &PacketRef, sink: &mut impl Sink, now: Instant) {
        let own_time = self.handover.clock().read(now);
        match self.inbox.open(packet, own_time) {
            Some(Err(reason)) => self.refusals.count(reason, sink),
            Some(Ok(message)) if matches!(message.body, Body::SetRole { .. }) => {
                self.member.on_message((side, &message), self.handover.clock(), sink, now);
            }
            Some(Ok(message)) => {
                let keeper = self.keeper.as_ref();
                let kept = |mobile| keeper.map_or(0, |keeper| keeper.count(mobile, now));
                let outcome = self.handover.on_message((side, &message), kept, sink, now);
                match outcome {
                    Some(Outcome::Arrived(mobile)) => {
                        self.tell_arrival(mobile, sink);
                    }
                    Some(Outcome::Moved { mobile, to, wants_buffer }) => {
                        self.relay.depart(mobile);
                        self.flush(mobile, wants_buffer.then_some(to), sink, now);
                        sink.notify(Notice::Moved(mobile.into()));
                    }
                    None => {}
                }
            }
            None => {
                let outcome = self.relay.on_packet(side, packet, sink, now);
                match outcome {
                    Some(foreign::Outcome::Asked { mobile, proved_at: Some(at) }) => {
                        self.handover.learn(mobile, true, at);
                        self.tell_arrival(mobile, sink);
                    }
                    Some(foreign::Outcome::Told(mobile)) => {
                        sink.notify(Notice::TunnelOpened(mobile.into()));
                    }
                    Some(foreign::Outcome::Left(mobile)) => {
                        sink.notify(Notice::Deregistered(mobile.into()));
                    }
                    Some(foreign::Outcome::Moved { mobile, registered_at }) => {
                        self.handover.learn(mobile, false, registered_at);
                        let next = self.relay.next_agent(mobile, now).map(|next| next.care_of);
                        self.flush(mobile, next, sink, now);
                        sink.notify(Notice::Moved(mobile.into()));
                    }
                    _ => {}
                }
                if let (Some(advertiser), Side::RADIO) = (&mut self.advertiser, side) {
                    advertiser.on_packet(packet, sink, now);
                }
            }
        }
    }

    /// A mobile host has come; what its last base station holds for it will follow (WINC-BS-12).
    fn tell_arrival(&self, mobile: Ipv4Addr, sink: &mut impl Sink) {
        sink.notify(Notice::Registered(mobile.into()));
        if self.relay.tells(mobile) || self.handover.tells(mobile) {
            sink.notify(Notice::TunnelOpened(mobile.into()));
        }
    }

    /// A mobile host has moved: what was kept goes after it, or away.
    fn flush(
        &mut self,
        mobile: Ipv4Addr,
        to: Option<Ipv4Addr>,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let kept = self.keeper.as_mut().map(|keeper| keeper.take(mobile, now));
        for packet in kept.into_iter().flatten() {
            match to {
                Some(to) => self.send_after(packet, to, sink),
                // It was sent into the cell as well.
                None => sink.release(packet),
            }
        }
    }
}

impl Engine for BaseStation {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side: Side::WIRED, packet } => self.on_wired(packet, sink, now),
            Input::Arrival { side: Side::RADIO, packet } => self.on_radio(packet, sink, now),
            Input::Arrival { packet, .. } => {
                sink.discard(packet, DropReason::Rule("no such side"));
            }
            Input::Timer => {
                self.beacons.on_timer(sink, now);
                if let Some(advertiser) = &mut self.advertiser {
                    advertiser.on_timer(sink, now);
                }
                self.relay.on_timer(sink, now);
                self.handover.on_timer(sink, now);
                self.member.on_timer(sink, now);
            }
            _ => {}
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let advertiser = self.advertiser.as_ref();
        [
            Some(Deadline { at: self.beacons.next_at(), timer: "beacon" }),
            advertiser.map(|it| Deadline { at: it.next_at(), timer: "advertisement" }),
            self.relay.next_deadline(),
            self.handover.next_deadline(),
            self.member.next_deadline(),
        ]
        .into_iter()
        .fold(None, Deadline::earlier)
    }
}
