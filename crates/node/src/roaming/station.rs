//! A base station with a cell: mobility toward the network, a scheme toward the air.
//!
//! ```text
//!   WIRED ── mobility (tunnels end, who is here) ── scheme ── RADIO
//!              ▲                            TUNNEL ────┘
//! ```
//!
//! A tunnel ends before the scheme sees what was inside; one that asks is told by the side what
//! came from another base station. What the scheme sends into a tunnel ([`Side::TUNNEL`]) goes back
//! to mobility, which knows where its mobile host is. What mobility keeps for a mobile host that
//! another base station serves ([`Side::MIRROR`]) the scheme hears. Only TCP passes the scheme;
//! beacons, registrations and handoff messages do not.

use super::address::HOME_AGENT;
use super::arrival::Arrivals;
use super::igmp;
use crate::divert::divert;
use core::net::{IpAddr, Ipv4Addr};
use mobility::station::BaseStation;
use sansio::{
    Deadline, Engine, Input, Instant, Notice, Packet, PacketRef, Payload, Priority, Side, Sink,
};
use schemes::Scheme;
use std::collections::VecDeque;

/// The engine.
#[derive(Clone, Debug)]
pub struct Station {
    address: Ipv4Addr,
    mobility: BaseStation,
    scheme: Scheme,
    /// What waits for a mobile host that has just come, where it is to come in order.
    arrivals: Option<Arrivals>,
    between: Between,
    notices: Vec<Notice>,
}

/// Packets between the two, with where they go; empty between two inputs.
type Between = VecDeque<(To, PacketRef)>;

/// One of the two engines and the side on which a packet reaches it, or the air.
#[derive(Clone, Copy, Debug)]
enum To {
    Mobility(Side),
    Scheme(Side),
    Air(Priority),
}

impl Station {
    /// The base station of this address.
    pub fn new(address: Ipv4Addr, mobility: BaseStation, scheme: Scheme) -> Self {
        let (between, notices) = (Between::new(), Vec::new());
        Station { address, mobility, scheme, arrivals: None, between, notices }
    }

    /// The same; what follows a mobile host from its old base station comes in order and not all at
    /// once (`super::arrival`), and follows only if the old cell no longer reaches.
    pub fn with_arrivals(self) -> Self {
        let arrivals = Some(Arrivals::new(self.scheme.wants_departures()));
        Station { arrivals, ..self }
    }

    /// Who is here and who has gone where.
    pub fn mobility(&self) -> &BaseStation {
        &self.mobility
    }

    /// The scheme.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// Bytes kept: payload by the scheme, packets for the next base station; and the most that may
    /// be.
    pub fn held_bytes(&self) -> (u64, u64) {
        let (scheme, keeper) = (&self.scheme, self.mobility.keeper());
        let kept = keeper.map_or((0, 0), |keeper| (keeper.bytes(), keeper.bytes_max()));
        let waiting = self.arrivals.as_ref().map_or(0, Arrivals::bytes);
        (scheme.held_bytes() + kept.0 + waiting, scheme.held_bytes_max() + kept.1)
    }

    /// What waits for mobile hosts that have just come, and what base stations keep for those that
    /// may (MCAST-5).
    pub fn waiting(&self) -> impl Iterator<Item = &PacketRef> {
        let arrivals = self.arrivals.iter().flat_map(Arrivals::packets);
        self.mobility.member().packets().chain(arrivals)
    }

    /// Sends a beacon now (CI-MOD-5).
    pub fn beacon(&mut self, sink: &mut impl Sink, now: Instant) {
        self.mobility.beacon(sink, now);
    }

    fn give_to_mobility(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let Station { mobility, scheme, arrivals, between, notices, .. } = self;
        let is_tunnelled = is_from_station(&input);
        let side = if is_tunnelled && scheme.wants_tunnel() { Side::TUNNEL } else { Side::WIRED };
        let inward = To::Scheme(side);
        let mut outputs = divert(sink, notices, |sink, side, priority, packet| {
            let is_tcp = packet.as_tcp().is_some();
            match side {
                Side::RADIO if is_tcp => {
                    let packet = match arrivals {
                        Some(arrivals) => arrivals.push(packet, is_tunnelled, now),
                        None => Some(packet),
                    };
                    between.extend(packet.map(|packet| (inward, packet)));
                }
                Side::MIRROR if is_tcp && scheme.hears_others() => {
                    between.push_back((To::Scheme(side), packet));
                }
                Side::MIRROR => sink.release(packet),
                _ => sink.send(side, priority, packet),
            }
        });
        mobility.handle(input, &mut outputs, now);
    }

    fn give_to_scheme(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let Station { scheme, between, notices, .. } = self;
        let mut outputs = divert(sink, notices, |sink, side, priority, packet| match side {
            // Behind what it has passed on: a NACK tells of data that went before it (MOD-4).
            Side::RADIO if matches!(between.back(), Some((To::Mobility(_) | To::Air(_), _))) => {
                between.push_back((To::Air(priority), packet));
            }
            Side::RADIO => sink.send(side, priority, packet),
            Side::TUNNEL => between.push_back((To::Mobility(Side::WIRED), packet)),
            _ => between.push_back((To::Mobility(Side::RADIO), packet)),
        });
        scheme.handle(input, &mut outputs, now);
    }

    /// Hands on what lies between the two until nothing does. Notices first: who is told to forward
    /// knows it before what was kept comes.
    fn settle(&mut self, sink: &mut impl Sink, now: Instant) {
        loop {
            for notice in core::mem::take(&mut self.notices) {
                self.on_notice(notice, sink, now);
            }
            if let Some((to, packet)) = self.between.pop_front() {
                match to {
                    To::Mobility(side) => {
                        self.give_to_mobility(Input::Arrival { side, packet }, sink, now);
                    }
                    To::Scheme(side) => {
                        self.give_to_scheme(Input::Arrival { side, packet }, sink, now);
                    }
                    To::Air(priority) => sink.send(Side::RADIO, priority, packet),
                }
                continue;
            }
            let next = self.arrivals.as_mut().and_then(|arrivals| arrivals.pop(now));
            match next {
                Some(packet) => self.between.push_back((To::Scheme(Side::WIRED), packet)),
                None if self.notices.is_empty() => return,
                None => {}
            }
        }
    }

    /// What mobility says: groups to the router, all else to the scheme.
    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        if let Notice::Group { group: IpAddr::V4(group), is_member } = notice {
            let report = igmp::message((self.address, HOME_AGENT), group, is_member, sink);
            return sink.send(Side::WIRED, Priority::High, report);
        }
        let (notice, onward) = self.on_arrival_or_end(notice, now);
        self.give_to_scheme(Input::Notice(notice), sink, now);
        if let Notice::Registered(mobile) = notice {
            self.give_to_scheme(Input::Notice(Notice::MobileUp(mobile)), sink, now);
        }
        // After what the scheme sends: that has come before.
        self.between.extend(onward.map(|packet| (To::Mobility(Side::WIRED), packet)));
    }

    /// What a notice means for what waits: what the scheme is told, and what goes after a mobile
    /// host that has moved on.
    fn on_arrival_or_end(
        &mut self,
        notice: Notice,
        now: Instant,
    ) -> (Notice, impl Iterator<Item = PacketRef> + use<>) {
        let mut onward = None;
        let told = match (&mut self.arrivals, notice) {
            (Some(arrivals), Notice::TunnelOpened(mobile)) => {
                // Told again with each registration, and when the old base station has answered.
                if v4(mobile).is_some_and(|it| self.mobility.handover().tells(it)) {
                    arrivals.begin(mobile, now);
                } else {
                    arrivals.answered(mobile, now);
                }
                notice
            }
            (Some(arrivals), Notice::Moved(mobile)) => {
                onward = Some(arrivals.end(mobile));
                // A cell that still reaches the host brings what the scheme has cached.
                let is_wanted =
                    v4(mobile).is_some_and(|it| self.mobility.handover().wants_buffer(it));
                let is_kept = is_wanted || !matches!(self.scheme, Scheme::Snoop(_));
                if is_kept { notice } else { Notice::Deregistered(mobile) }
            }
            _ => notice,
        };
        (told, onward.into_iter().flatten())
    }
}

fn v4(address: IpAddr) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

/// True for what comes by a tunnel that does not begin at the home agent.
fn is_from_station(input: &Input) -> bool {
    let Input::Arrival { side: Side::WIRED, packet } = input else { return false };
    matches!(packet.payload, Payload::Tunnel(_)) && packet.ip.source != IpAddr::V4(HOME_AGENT)
}

impl Engine for Station {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side: Side::RADIO, ref packet } if packet.as_tcp().is_some() => {
                self.give_to_scheme(input, sink, now);
            }
            Input::Arrival { .. } => self.give_to_mobility(input, sink, now),
            Input::Timer => {
                if self.mobility.next_at().is_some_and(|at| at <= now) {
                    self.give_to_mobility(Input::Timer, sink, now);
                }
                if self.scheme.next_at().is_some_and(|at| at <= now) {
                    self.give_to_scheme(Input::Timer, sink, now);
                }
            }
            Input::Verdict { .. } | Input::Notice(_) => self.give_to_scheme(input, sink, now),
        }
        self.settle(sink, now);
    }

    fn on_departure(&mut self, side: Side, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        if packet.as_tcp().is_some() {
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.on_departure(packet, now);
            }
            self.scheme.on_departure(side, packet, sink, now);
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let waiting = self.arrivals.as_ref().and_then(Arrivals::next_at);
        let waiting = waiting.map(|at| Deadline { at, timer: "arrival" });
        let engines = Deadline::earlier(self.mobility.next_deadline(), self.scheme.next_deadline());
        Deadline::earlier(engines, waiting)
    }
}
