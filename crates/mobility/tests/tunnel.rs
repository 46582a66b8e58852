//! Tunnels: headers outside and inside, what does not fit, what goes round.

mod common;

use common::{FIXED, HOME_AGENT, Outbox, datagram, mobile, station};
use core::net::IpAddr;
use mobility::tunnel::{self, DEPTH_MAX, Encapsulation, NotTunnelled, Tunnel};
use proptest::prelude::*;
use sansio::{Cause, Packet, PacketRef, Payload, Sink, Transport};
use std::rc::Rc;
use wire::checksum::Checksums;
use wire::icmp;
use wire::ip::{self, Ecn, Protocol};

fn to_station(number: u8, encapsulation: Encapsulation) -> Tunnel {
    Tunnel { from: HOME_AGENT, to: station(number), encapsulation, mtu_bytes: 1_500 }
}

fn for_mobile(length: u32, outbox: &mut Outbox) -> PacketRef {
    datagram((FIXED, mobile(1)), 7, length, outbox)
}

#[test]
fn a_datagram_enters_and_leaves_with_one_hop_less() {
    for encapsulation in [Encapsulation::Ip, Encapsulation::Udp] {
        let mut outbox = Outbox::new();
        let packet = for_mobile(100, &mut outbox);
        let outer =
            tunnel::enter(&packet, to_station(1, encapsulation), &mut outbox).expect("it fits");
        assert_eq!(outer.ip.source, IpAddr::V4(HOME_AGENT));
        assert_eq!(outer.ip.destination, IpAddr::V4(station(1)));
        assert_eq!((outer.cause, outer.ip.dont_fragment), (Cause::Encapsulation, true));
        assert_eq!(outer.bytes(), packet.bytes() + encapsulation.overhead_bytes());
        assert!(tunnel::is_tunnel(&outer) && !tunnel::is_tunnel(&packet));
        let inner = tunnel::leave(&outer, &mut outbox).expect("a datagram is inside");
        assert_eq!(inner.ip.hop_limit, packet.ip.hop_limit - 1);
        assert_eq!(
            (inner.ip.source, inner.ip.destination),
            (packet.ip.source, packet.ip.destination)
        );
        // Payload by name stays so: a checker can follow it through the tunnel.
        assert_eq!(inner.payload, packet.payload);
        assert_eq!(outer.parent, Some(inner.id));
        assert_eq!(inner.parent, Some(packet.id));
    }
}

#[test]
fn mod_9_what_does_not_fit_is_answered_to_its_own_sender() {
    for (encapsulation, fits) in [(Encapsulation::Ip, 1_480), (Encapsulation::Udp, 1_468)] {
        let mut outbox = Outbox::new();
        let tunnel = to_station(1, encapsulation);
        let exact = for_mobile(fits - 28, &mut outbox);
        assert_eq!(exact.bytes(), fits);
        let outer = tunnel::enter(&exact, tunnel, &mut outbox).expect("it fits exactly");
        assert_eq!(outer.bytes(), 1_500);
        let packet = for_mobile(fits - 27, &mut outbox);
        let Err(NotTunnelled::TooBig(Some(answer))) = tunnel::enter(&packet, tunnel, &mut outbox)
        else {
            panic!("a byte too many");
        };
        assert_eq!(answer.ip.destination, IpAddr::V4(FIXED));
        let bytes = common::bytes_of(&answer);
        let message = icmp::Message::parse(&answer.ip, &bytes, Checksums::Verify).unwrap();
        let icmp::View::TooBig { mtu, quoted } = message.view() else { panic!("{message:?}") };
        assert_eq!(mtu, fits);
        let quoted = icmp::Quoted::parse(quoted).unwrap();
        assert_eq!(quoted.ip.destination, IpAddr::V4(mobile(1)));
        assert_eq!(quoted.ports(), Some((5_000, 6_000)));
        // Without "don't fragment" it goes, and so does the tunnel's own header.
        let free = packet.rewrite(outbox.new_id(), Cause::Original, |packet| {
            packet.ip.dont_fragment = false;
        });
        let outer = tunnel::enter(&Rc::new(free), tunnel, &mut outbox).expect("it may be cut");
        assert!(!outer.ip.dont_fragment);
    }
}

#[test]
fn mod_9_no_answer_to_icmp() {
    let mut outbox = Outbox::new();
    let packet = for_mobile(1_473, &mut outbox);
    let error = packet.rewrite(outbox.new_id(), Cause::Original, |packet| {
        packet.ip.protocol = Protocol::ICMP;
        packet.transport = Transport::Opaque;
    });
    let refused = tunnel::enter(&Rc::new(error), to_station(1, Encapsulation::Ip), &mut outbox);
    assert_eq!(refused, Err(NotTunnelled::TooBig(None)));
}

#[test]
fn what_would_go_round_is_refused() {
    let mut outbox = Outbox::new();
    let tunnel = to_station(1, Encapsulation::Ip);
    let to_the_end = datagram((FIXED, station(1)), 1, 10, &mut outbox);
    let to_the_start = datagram((FIXED, HOME_AGENT), 1, 10, &mut outbox);
    let own = datagram((HOME_AGENT, mobile(1)), 1, 10, &mut outbox);
    for packet in [to_the_end, to_the_start, own] {
        assert_eq!(tunnel::enter(&packet, tunnel, &mut outbox), Err(NotTunnelled::Loop));
    }
    let packet = for_mobile(10, &mut outbox);
    let nowhere = Tunnel { to: HOME_AGENT, ..tunnel };
    assert_eq!(tunnel::enter(&packet, nowhere, &mut outbox), Err(NotTunnelled::Loop));
    let spent = packet.rewrite(outbox.new_id(), Cause::Original, |packet| packet.ip.hop_limit = 1);
    let spent = tunnel::enter(&Rc::new(spent), tunnel, &mut outbox);
    assert_eq!(spent, Err(NotTunnelled::HopLimit));
}

#[test]
fn tunnels_in_tunnels_have_a_bound() {
    let mut outbox = Outbox::new();
    let mut packet = for_mobile(10, &mut outbox);
    for depth in 0..DEPTH_MAX {
        let tunnel = Tunnel {
            from: station(10 + depth as u8),
            ..to_station(1 + depth as u8, Encapsulation::Ip)
        };
        packet = tunnel::enter(&packet, tunnel, &mut outbox).expect("within the bound");
    }
    let one_more = Tunnel { from: station(99), ..to_station(98, Encapsulation::Ip) };
    assert_eq!(tunnel::enter(&packet, one_more, &mut outbox), Err(NotTunnelled::Loop));
}

#[test]
fn mod_12_congestion_marked_outside_is_marked_inside() {
    let congested = Ecn::CongestionExperienced as u8;
    for (inside, after) in [(Ecn::Capable0 as u8, Some(congested)), (Ecn::NotCapable as u8, None)] {
        let mut outbox = Outbox::new();
        let packet = for_mobile(10, &mut outbox);
        let packet = packet.rewrite(outbox.new_id(), Cause::Original, |packet| {
            packet.ip.traffic_class = inside;
        });
        let tunnel = to_station(1, Encapsulation::Ip);
        let outer = tunnel::enter(&Rc::new(packet), tunnel, &mut outbox).expect("it fits");
        assert_eq!(outer.ip.traffic_class, inside);
        let marked = outer.rewrite(outbox.new_id(), Cause::Encapsulation, |outer| {
            outer.ip.traffic_class |= congested;
        });
        let inner = tunnel::leave(&marked, &mut outbox);
        assert_eq!(inner.map(|inner| inner.ip.traffic_class), after);
    }
}

/// A packet as it arrives live: bytes.
fn arrived(bytes: &[u8], outbox: &mut Outbox) -> Packet {
    let parsed = wire::datagram::parse(bytes, Checksums::Verify).expect("what was written");
    let transport = match parsed.transport {
        wire::datagram::Transport::Udp(udp) => {
            Transport::Udp { source_port: udp.source_port, destination_port: udp.destination_port }
        }
        _ => Transport::Opaque,
    };
    Packet {
        id: outbox.new_id(),
        parent: None,
        cause: Cause::Original,
        ip: parsed.ip,
        transport,
        payload: Payload::Bytes(bytes[parsed.payload].to_vec().into()),
        segment_bytes: None,
        frame: None,
    }
}

proptest! {
    /// What leaves a tunnel as bytes is what entered it, whatever is inside.
    #[test]
    fn a_tunnel_of_bytes_gives_back_what_entered(
        length in 0..1_400_u32, identification: u16, is_udp: bool, class in 0..=2_u8,
    ) {
        let mut outbox = Outbox::new();
        let encapsulation = if is_udp { Encapsulation::Udp } else { Encapsulation::Ip };
        let packet = datagram((FIXED, mobile(1)), identification, length, &mut outbox);
        let packet = Rc::new(packet.rewrite(outbox.new_id(), Cause::Original, |packet| {
            packet.ip.traffic_class = class;
        }));
        let outer = tunnel::enter(&packet, to_station(1, encapsulation), &mut outbox).unwrap();
        let bytes = tunnel::to_bytes(&outer).unwrap();
        prop_assert_eq!(bytes.len(), outer.bytes() as usize);
        let live = arrived(&bytes, &mut outbox);
        prop_assert!(tunnel::is_tunnel(&live));
        let inner = tunnel::leave(&live, &mut outbox).unwrap();
        let expected = ip::Header { hop_limit: packet.ip.hop_limit - 1, ..packet.ip };
        prop_assert_eq!(inner.ip, expected);
        prop_assert_eq!(&inner.transport, &packet.transport);
        prop_assert_eq!(inner.payload.to_bytes(), packet.payload.to_bytes());
    }

    /// Any bytes where a tunnelled datagram should be: refused, or a datagram.
    #[test]
    fn mod_24_any_bytes_in_a_tunnel(payload in prop::collection::vec(any::<u8>(), 0..80)) {
        let mut outbox = Outbox::new();
        let packet = for_mobile(10, &mut outbox);
        let outer =
            tunnel::enter(&packet, to_station(1, Encapsulation::Ip), &mut outbox).unwrap();
        for first in [0x45, payload.first().copied().unwrap_or(0)] {
            let mut payload = payload.clone();
            payload.splice(..payload.len().min(1), [first]);
            let bytes = Payload::Bytes(payload.into());
            let id = outbox.new_id();
            let outer = outer.rewrite(id, Cause::Original, |outer| outer.payload = bytes);
            if let Some(inner) = tunnel::leave(&outer, &mut outbox) {
                prop_assert!(tunnel::to_bytes(&inner).is_some());
            }
        }
    }
}
