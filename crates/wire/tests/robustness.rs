//! Arbitrary bytes and damaged packets: nothing panics, and whatever is accepted is written back
//! byte for byte.

mod strategies;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use strategies::{ip_header, payload, tcp_header, udp_header};
use wire::checksum::Checksums;
use wire::datagram::{self, Transport};
use wire::{arp, ethernet, icmp, ip, ipv4, ipv6, tcp, udp};

/// Parses `bytes` as everything there is and checks what was accepted against its emitter.
fn parse_as_everything(bytes: &[u8]) {
    for checksums in [Checksums::Verify, Checksums::Trust] {
        if let Ok(datagram) = datagram::parse(bytes, checksums) {
            check_datagram(bytes, &datagram, checksums);
        }
        if let Ok(header) = ipv4::Header::parse(bytes, checksums) {
            let _ = header.payload(bytes.len());
            let mut again = Vec::new();
            header.emit(&mut again);
            // The checksum, which the emitter computes, stands at 10 and 11.
            assert_eq!(again[..10], bytes[..10]);
            assert_eq!(again[12..], bytes[12..header.bytes()]);
        }
    }
    if let Ok(header) = ipv6::Header::parse(bytes) {
        let mut again = Vec::new();
        header.emit(&mut again);
        assert_eq!(again, bytes[..ipv6::Header::BYTES]);
    }
    if let Ok((header, length)) = ethernet::Header::parse(bytes) {
        let mut again = Vec::new();
        header.emit(&mut again);
        assert_eq!(again, bytes[..length]);
    }
    if let Ok(packet) = arp::Packet::parse(bytes) {
        let mut again = Vec::new();
        packet.emit(&mut again);
        assert_eq!(again, bytes[..arp::Packet::BYTES]);
    }
    if let Ok(quoted) = icmp::Quoted::parse(bytes) {
        let _ = (quoted.ports(), quoted.seq());
    }
    let _ = (tcp::Header::parse(bytes), udp::Header::parse(bytes));
    if let Ok(options) = tcp::Options::from_bytes(bytes) {
        let _ = (options.validate(), options.iter().count(), options.sack_blocks().count());
        let _ = (options.timestamps(), options.mss(), options.window_scale());
    }
    if let Some((&protocol, rest)) = bytes.split_first()
        && let Ok(upper) = ipv6::upper_layer(ip::Protocol(protocol), rest)
    {
        assert!(upper.at <= rest.len());
    }
}

fn check_datagram(bytes: &[u8], datagram: &datagram::Datagram, checksums: Checksums) {
    let payload = &bytes[datagram.payload.clone()];
    let mut again = Vec::new();
    let emitted = match &datagram.transport {
        Transport::Tcp(tcp) => datagram::emit_tcp(&datagram.ip, tcp, payload, &mut again),
        Transport::Udp(udp) => datagram::emit_udp(&datagram.ip, udp, payload, &mut again),
        Transport::Opaque(_) => {
            if let Ok(message) = icmp::Message::parse(&datagram.ip, payload, checksums) {
                message.view();
            }
            return;
        }
    };
    emitted.expect("what was parsed fits");
    if checksums == Checksums::Verify {
        assert_eq!(again, bytes[..datagram.payload.end]);
    } else {
        assert_eq!(again.len(), datagram.payload.end);
    }
}

/// Some bytes replaced, most of them in the headers, and possibly the end cut off.
fn damaged(mut bytes: Vec<u8>, damage: Vec<(usize, u8)>, (end, cut): (Index, bool)) -> Vec<u8> {
    for (at, value) in damage {
        let at = at % bytes.len();
        bytes[at] = value;
    }
    if cut {
        bytes.truncate(end.index(bytes.len() + 1));
    }
    bytes
}

fn damage() -> impl Strategy<Value = (Vec<(usize, u8)>, (Index, bool))> {
    let place = prop_oneof![0..60_usize, 0..2000_usize];
    (vec((place, any::<u8>()), 0..5), (any::<Index>(), any::<bool>()))
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        mut bytes in vec(any::<u8>(), 0..120),
        version in prop_oneof![Just(4_u8), Just(6), 0..16_u8],
    ) {
        parse_as_everything(&bytes);
        if let Some(first) = bytes.first_mut() {
            *first = version << 4 | *first & 0xf;
        }
        parse_as_everything(&bytes);
    }

    #[test]
    fn damaged_tcp_never_panics_and_survives_if_accepted(
        ip in ip_header(), tcp in tcp_header(), payload in payload(), damage in damage(),
    ) {
        let mut bytes = Vec::new();
        datagram::emit_tcp(&ip, &tcp, &payload, &mut bytes).unwrap();
        parse_as_everything(&damaged(bytes, damage.0, damage.1));
    }

    #[test]
    fn damaged_udp_never_panics_and_survives_if_accepted(
        ip in ip_header(), udp in udp_header(), payload in payload(), damage in damage(),
    ) {
        let mut bytes = Vec::new();
        datagram::emit_udp(&ip, &udp, &payload, &mut bytes).unwrap();
        parse_as_everything(&damaged(bytes, damage.0, damage.1));
    }

    #[test]
    fn damaged_extension_headers_never_panic(
        first in prop_oneof![Just(0_u8), Just(43), Just(44), Just(51), Just(60)],
        rest in vec(prop_oneof![Just(0_u8), Just(44), Just(51), Just(60), any::<u8>()], 0..80),
    ) {
        let mut bytes = vec![first];
        bytes.extend(rest);
        parse_as_everything(&bytes);
    }
}
