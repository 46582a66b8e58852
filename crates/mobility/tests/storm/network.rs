//! The network of a storm: it loses, doubles and overtakes; and who listens to it, and attacks.

use super::{MOBILES, Node, STATIONS, Storm, common};
use common::{HOME_AGENT, mobile, station};
use mobility::mobile::MobileHost;
use mobility::registration::home;
use sansio::{Duration, PacketRef, Payload, Side};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;

impl Storm {
    pub(super) fn on_sent(&mut self, from: Node, side: Side, packet: PacketRef) {
        let IpAddr::V4(to) = packet.ip.destination else { panic!("{packet:?}") };
        match (from, side) {
            (Node::Station(_), Side::RADIO) if to.is_broadcast() => {
                for mobile in 1..=MOBILES {
                    self.travel(Node::Mobile(mobile), Side::NETWORK, packet.clone());
                }
            }
            (Node::Station(number), Side::RADIO) => {
                let reached = (1..=MOBILES).find(|other| mobile(*other) == to);
                let reached = reached.unwrap_or_else(|| panic!("to nobody: {packet:?}"));
                self.on_air(number, reached, &packet);
                self.travel(Node::Mobile(reached), Side::NETWORK, packet);
            }
            (Node::Mobile(number), MobileHost::HOST) => self.on_received(number, &packet),
            (Node::Mobile(_), _) => {
                let reached = (1..=STATIONS).find(|other| station(*other) == to);
                let reached = reached.unwrap_or_else(|| panic!("to nobody: {packet:?}"));
                let is_routed = side == MobileHost::ROUTE;
                let side = if is_routed { Side::WIRED } else { Side::RADIO };
                self.travel(Node::Station(reached), side, packet);
            }
            (Node::Station(_), Side::MIRROR) => {}
            (Node::Home, home::HomeAgent::HOME) => {}
            _ => self.on_wire(to, packet),
        }
    }

    fn on_wire(&mut self, to: Ipv4Addr, packet: PacketRef) {
        if to == HOME_AGENT || (1..=MOBILES).any(|number| mobile(number) == to) {
            return self.travel(Node::Home, Side::NETWORK, packet);
        }
        if let Some(number) = (1..=STATIONS).find(|number| station(*number) == to) {
            return self.travel(Node::Station(number), Side::WIRED, packet);
        }
        let members = self.members.iter().filter(|(group, _)| *group == to);
        let members: Vec<u8> = members.map(|(_, number)| *number).collect();
        for number in members {
            self.travel(Node::Station(number), Side::WIRED, packet.clone());
        }
    }

    /// Over the network: lost, or there within 20 ms, or there twice.
    fn travel(&mut self, to: Node, side: Side, packet: PacketRef) {
        if matches!(packet.payload, Payload::Bytes(_)) && self.overheard_max > 0 {
            if self.overheard.len() >= self.overheard_max {
                self.overheard.pop_front();
            }
            self.overheard.push_back((to, side, packet.clone()));
            self.attack();
        }
        for chance in [1.0, if self.loss > 0.0 { 0.1 } else { 0.0 }] {
            if self.random.chance(self.loss) || !self.random.chance(chance) {
                continue;
            }
            let delay =
                self.random.uniform_time(Duration::from_micros(100), Duration::from_millis(20));
            let delay = if self.loss > 0.0 { delay } else { Duration::from_millis(1) };
            self.order += 1;
            let at = self.now + delay;
            self.queue.insert((at, self.order), (to, side, packet.clone()));
        }
    }

    /// An attacker sends one of the messages it has heard: as it was, changed, cut, or to somebody
    /// else.
    fn attack(&mut self) {
        if !self.random.chance(0.2) {
            return;
        }
        let which = self.random.below(self.overheard.len() as u64) as usize;
        let (mut to, mut side, mut packet) = self.overheard[which].clone();
        let mut bytes = common::bytes_of(&packet).to_vec();
        let at = self.random.below(bytes.len().max(1) as u64) as usize;
        match self.random.below(4) {
            0 => {}
            1 => bytes.truncate(at),
            2 => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= 0x10),
            _ => {
                let number = 1 + self.random.below(STATIONS.into()) as u8;
                to = Node::Station(number);
                side = if self.random.chance(0.5) { Side::WIRED } else { Side::RADIO };
                let id = sansio::Sink::new_id(&mut self.outbox);
                packet = Rc::new(packet.rewrite(id, packet.cause, |packet| {
                    packet.ip.destination = station(number).into();
                }));
            }
        }
        let packet = common::with_bytes(&packet, bytes, &mut self.outbox);
        self.forged += 1;
        self.order += 1;
        let delay = self.random.uniform_time(Duration::ZERO, Duration::from_millis(20));
        self.queue.insert((self.now + delay, self.order), (to, side, packet));
    }
}
