//! ICMP of both versions: bytes, typed view, and the datagram that an error quotes.

use core::net::IpAddr;
use etherparse::{Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type};
use proptest::collection::vec;
use proptest::prelude::*;
use wire::checksum::Checksums;
use wire::datagram;
use wire::icmp::{Echo, Message, Quoted, View};
use wire::ip::{self, Protocol, Version};
use wire::tcp::{self, Seq};
use wire::{Error, udp};

fn header(version: Version, protocol: Protocol) -> ip::Header {
    let address = |last| match version {
        Version::V4 => IpAddr::from([192, 0, 2, last]),
        Version::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]),
    };
    ip::Header::new(address(1), address(2), protocol)
}

const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

/// A TCP datagram, and the length of its IP header.
fn segment(version: Version) -> (Vec<u8>, usize) {
    let ip = header(version, Protocol::TCP);
    let tcp = tcp::Header { seq: Seq(0xdead_beef), ..tcp::Header::new(443, 50000) };
    let mut bytes = Vec::new();
    datagram::emit_tcp(&ip, &tcp, b"payload", &mut bytes).unwrap();
    (bytes, ip.bytes() as usize)
}

#[test]
fn an_echo_is_read_by_both() {
    let echo = etherparse::IcmpEchoHeader { id: 7, seq: 9 };
    let data = b"abc";
    let ours = Echo { identifier: 7, sequence: 9, data };
    for (request, view) in [(true, View::EchoRequest(ours)), (false, View::EchoReply(ours))] {
        let v4 = if request { Icmpv4Type::EchoRequest(echo) } else { Icmpv4Type::EchoReply(echo) };
        let v6 = if request { Icmpv6Type::EchoRequest(echo) } else { Icmpv6Type::EchoReply(echo) };
        for version in VERSIONS {
            let ip = header(version, Protocol::ICMP);
            let theirs = match (ip.source, ip.destination) {
                (IpAddr::V6(a), IpAddr::V6(b)) => {
                    let (a, b) = (a.octets(), b.octets());
                    let header = Icmpv6Header::with_checksum(v6, a, b, data).unwrap();
                    header.to_bytes().to_vec()
                }
                _ => Icmpv4Header::with_checksum(v4.clone(), data).to_bytes().to_vec(),
            };
            let bytes = [&theirs[..], data].concat();
            let message = Message::parse(&ip, &bytes, Checksums::Verify).unwrap();
            assert_eq!(message.view(), view);
            let mut again = Vec::new();
            message.emit(&ip, &mut again);
            assert_eq!(again, bytes);
        }
    }
}

#[test]
fn errors_are_read_in_the_numbers_of_their_version() {
    let quoted: &[u8] = b"quoted";
    let mtu = 1400_u32;
    let body = [&mtu.to_be_bytes()[..], quoted].concat();
    let cases = [
        (Version::V4, 3, 1, View::Unreachable { code: 1, quoted }),
        (Version::V4, 3, 4, View::TooBig { mtu, quoted }),
        (Version::V4, 11, 0, View::TimeExceeded { code: 0, quoted }),
        (Version::V4, 2, 0, View::Other),
        (Version::V6, 1, 4, View::Unreachable { code: 4, quoted }),
        (Version::V6, 2, 0, View::TooBig { mtu, quoted }),
        (Version::V6, 3, 1, View::TimeExceeded { code: 1, quoted }),
        (Version::V6, 11, 0, View::Other),
    ];
    for (version, kind, code, view) in cases {
        assert_eq!(Message { version, kind, code, body: &body }.view(), view);
        assert_eq!(Message { version, kind, code, body: &body[..3] }.view(), View::Other);
    }
}

#[test]
fn an_old_router_says_no_mtu_and_the_unused_half_does_not_count() {
    let body = [0xff, 0xff, 0, 0];
    let message = Message { version: Version::V4, kind: 3, code: 4, body: &body };
    assert_eq!(message.view(), View::TooBig { mtu: 0, quoted: &[] });
}

#[test]
fn a_quoted_datagram_is_read_as_far_as_it_goes() {
    for version in VERSIONS {
        let (bytes, header_bytes) = segment(version);
        // RFC 792 quotes 8 bytes after the IP header, RFC 4443 as much as fits.
        for (after, ports, seq) in [
            (0, None, None),
            (4, Some((443, 50000)), None),
            (8, Some((443, 50000)), Some(Seq(0xdead_beef))),
            (27, Some((443, 50000)), Some(Seq(0xdead_beef))),
        ] {
            let quoted = Quoted::parse(&bytes[..header_bytes + after]).unwrap();
            assert_eq!(quoted.ip, header(version, Protocol::TCP));
            assert_eq!(quoted.transport.len(), after);
            assert_eq!((quoted.ports(), quoted.seq()), (ports, seq));
        }
        let cut = Quoted::parse(&bytes[..header_bytes - 1]);
        assert!(matches!(cut, Err(Error::Truncated { .. })));
    }
}

#[test]
fn what_follows_the_quoted_datagram_does_not_belong_to_it() {
    for version in VERSIONS {
        let (mut bytes, header_bytes) = segment(version);
        let transport_bytes = bytes.len() - header_bytes;
        bytes.extend([0xee; 12]);
        assert_eq!(Quoted::parse(&bytes).unwrap().transport.len(), transport_bytes);
    }
}

#[test]
fn a_later_fragment_of_ipv4_quotes_no_ports() {
    let (mut bytes, header_bytes) = segment(Version::V4);
    bytes[7] = 1;
    let quoted = Quoted::parse(&bytes[..header_bytes + 8]).unwrap();
    assert_eq!((quoted.transport, quoted.ports()), (&[][..], None));
}

#[test]
fn a_quoted_total_length_below_the_header_is_refused() {
    let (mut bytes, header_bytes) = segment(Version::V4);
    bytes[3] = header_bytes as u8 - 1;
    let error = Error::Length { field: "IPv4 total length", value: header_bytes - 1 };
    assert_eq!(Quoted::parse(&bytes), Err(error));
}

#[test]
fn a_quoted_udp_datagram_has_ports_and_no_sequence_number() {
    let mut bytes = Vec::new();
    let ip = header(Version::V4, Protocol::UDP);
    datagram::emit_udp(&ip, &udp::Header::new(53, 5353), b"", &mut bytes).unwrap();
    let quoted = Quoted::parse(&bytes).unwrap();
    assert_eq!((quoted.ports(), quoted.seq()), (Some((53, 5353)), None));
}

#[test]
fn the_upper_layer_is_found_behind_extension_headers_and_not_in_later_fragments() {
    const FRAGMENT: u8 = 44;
    let (mut bytes, header_bytes) = segment(Version::V6);
    bytes[6] = FRAGMENT;
    bytes[5] += 8;
    bytes.splice(header_bytes..header_bytes, [Protocol::TCP.0, 0, 0, 1, 0, 0, 0, 5]);
    let quoted = Quoted::parse(&bytes).unwrap();
    assert_eq!(quoted.ip.protocol, Protocol::TCP);
    assert_eq!(quoted.seq(), Some(Seq(0xdead_beef)));
    bytes[header_bytes + 3] = 8 | 1;
    assert_eq!(Quoted::parse(&bytes).unwrap().transport, b"");
}

#[test]
fn an_ipv6_message_is_bound_to_its_addresses() {
    let ip = header(Version::V6, Protocol::ICMPV6);
    let message = Message { version: Version::V6, kind: 128, code: 0, body: &[0, 1, 0, 2] };
    let mut bytes = Vec::new();
    message.emit(&ip, &mut bytes);
    let elsewhere = ip::Header { hop_limit: 1, destination: IpAddr::from([9; 16]), ..ip };
    let wrong = Message::parse(&elsewhere, &bytes, Checksums::Verify);
    assert_eq!(wrong, Err(Error::Checksum { protocol: "ICMP" }));
    assert_eq!(Message::parse(&elsewhere, &bytes, Checksums::Trust), Ok(message));
    assert_eq!(Message::parse(&ip, &bytes, Checksums::Verify), Ok(message));
}

proptest! {
    #[test]
    fn every_message_survives(
        v4: bool, kind: u8, code: u8, body in vec(any::<u8>(), 0..100), flip in 0..104_usize,
    ) {
        let version = if v4 { Version::V4 } else { Version::V6 };
        let ip = header(version, Protocol::ICMP);
        let message = Message { version, kind, code, body: &body };
        let mut bytes = Vec::new();
        message.emit(&ip, &mut bytes);
        prop_assert_eq!(Message::parse(&ip, &bytes, Checksums::Verify), Ok(message));
        let flip = flip % bytes.len();
        bytes[flip] ^= 0x20;
        prop_assert!(Message::parse(&ip, &bytes, Checksums::Verify).is_err());
    }
}
