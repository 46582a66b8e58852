//! What the two verbs accept, pass on and refuse, datagram by datagram.

mod strategies;

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use proptest::prelude::*;
use strategies::{ip_header, payload, tcp_header, udp_header};
use wire::checksum::{Change, update_word};
use wire::datagram::{self, Checksums, Datagram, Reason, Transport};
use wire::ip::Protocol;
use wire::{Error, ip, tcp, udp};

fn v4() -> ip::Header {
    let (source, destination) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
    ip::Header::new(IpAddr::V4(source), IpAddr::V4(destination), Protocol::TCP)
}

fn v6() -> ip::Header {
    let (source, destination) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
    let header = ip::Header::new(IpAddr::V6(source), IpAddr::V6(destination), Protocol::TCP);
    ip::Header { flow_label: 0xabcde, ..header }
}

fn segment(ip: &ip::Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram::emit_tcp(ip, &tcp::Header::new(80, 4000), b"hello", &mut bytes).unwrap();
    bytes
}

fn udp(ip: &ip::Header, header: &udp::Header) -> Vec<u8> {
    let mut bytes = Vec::new();
    datagram::emit_udp(ip, header, b"hello", &mut bytes).unwrap();
    bytes
}

/// Sets a 16-bit word of the IPv4 header and keeps the header's checksum right.
fn set_word(bytes: &mut [u8], at: usize, new: u16) {
    let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
    bytes[10..12].copy_from_slice(&update_word(checksum, Change { old, new }).to_be_bytes());
}

fn verify(bytes: &[u8]) -> Result<Datagram, Error> {
    datagram::parse(bytes, Checksums::Verify)
}

fn opaque(bytes: &[u8]) -> Reason {
    match verify(bytes).unwrap().transport {
        Transport::Opaque(reason) => reason,
        other => panic!("expected an opaque transport, got {other:?}"),
    }
}

#[test]
fn padding_of_the_link_is_not_part_of_the_datagram() {
    for ip in [v4(), v6()] {
        let mut bytes = segment(&ip);
        let length = bytes.len();
        let header = (ip.bytes() + 20) as usize;
        bytes.extend([0xee; 20]);
        assert_eq!(verify(&bytes).unwrap().payload, header..length);
    }
}

#[test]
fn every_shorter_buffer_is_truncated() {
    for ip in [v4(), v6()] {
        for bytes in [segment(&ip), udp(&ip, &udp::Header::new(1, 2))] {
            for end in 0..bytes.len() {
                let parsed = verify(&bytes[..end]);
                assert!(matches!(parsed, Err(Error::Truncated { .. })), "{end}: {parsed:?}");
            }
        }
    }
}

#[test]
fn fragments_are_opaque_the_first_one_included() {
    const MORE_FRAGMENTS: u16 = 0x2000;
    for word in [MORE_FRAGMENTS, MORE_FRAGMENTS | 3, 3] {
        let mut bytes = segment(&v4());
        set_word(&mut bytes, 6, word);
        assert_eq!(opaque(&bytes), Reason::Fragment, "{word:#x}");
    }
}

#[test]
fn the_reserved_flag_is_opaque() {
    let mut bytes = segment(&v4());
    set_word(&mut bytes, 6, 0x8000);
    assert_eq!(opaque(&bytes), Reason::ReservedFlag);
}

#[test]
fn ip_options_are_opaque_and_the_payload_begins_after_them() {
    let plain = segment(&v4());
    let mut bytes = plain.clone();
    bytes.splice(20..20, [1, 1, 1, 0]);
    set_word(&mut bytes, 0, 0x4600);
    set_word(&mut bytes, 2, plain.len() as u16 + 4);
    // The options' own words: NOP NOP, NOP END.
    let checksum = u16::from_be_bytes([bytes[10], bytes[11]]);
    let checksum = update_word(checksum, Change { old: 0, new: 0x0101 });
    let checksum = update_word(checksum, Change { old: 0, new: 0x0100 });
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(opaque(&bytes), Reason::IpOptions);
    assert_eq!(verify(&bytes).unwrap().payload, 24..bytes.len());
}

#[test]
fn extension_headers_are_opaque_and_fragments_among_them_are_told_apart() {
    const DESTINATION_OPTIONS: u8 = 60;
    const FRAGMENT: u8 = 44;
    for (kind, reason) in
        [(DESTINATION_OPTIONS, Reason::ExtensionHeaders), (FRAGMENT, Reason::Fragment)]
    {
        let mut bytes = segment(&v6());
        bytes[6] = kind;
        bytes[5] += 8;
        bytes.splice(40..40, [Protocol::TCP.0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(opaque(&bytes), reason);
        assert_eq!(verify(&bytes).unwrap().payload, 40..bytes.len());
        assert_eq!(verify(&bytes).unwrap().ip.protocol, Protocol(kind));
    }
}

#[test]
fn mod_13_other_protocols_are_opaque() {
    for ip in [v4(), v6()] {
        let ip = ip::Header { protocol: Protocol::ESP, ..ip };
        let mut bytes = Vec::new();
        datagram::emit(&ip, b"secret", &mut bytes).unwrap();
        assert_eq!(opaque(&bytes), Reason::OtherProtocol);
        assert_eq!(&bytes[verify(&bytes).unwrap().payload], b"secret");
    }
}

#[test]
fn bytes_after_the_udp_datagram_are_opaque() {
    let mut bytes = udp(&v4(), &udp::Header::new(1, 2));
    bytes.extend([0; 4]);
    let length = bytes.len() as u16;
    set_word(&mut bytes, 2, length);
    assert_eq!(opaque(&bytes), Reason::UdpSurplus);
}

#[test]
fn a_checksum_of_minus_zero_is_opaque() {
    // Chooses the identification, or the urgent pointer, such that the checksum becomes zero.
    let bytes = segment(&v4());
    let zeroed = |checksum_at: usize, word_at: usize| {
        let mut bytes = bytes.clone();
        bytes[word_at..word_at + 2].copy_from_slice(&[0; 2]);
        bytes.copy_within(checksum_at..checksum_at + 2, word_at);
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&[0; 2]);
        bytes
    };
    for (checksum_at, word_at) in [(10, 4), (36, 38)] {
        let mut bytes = zeroed(checksum_at, word_at);
        assert!(matches!(verify(&bytes).unwrap().transport, Transport::Tcp(_)));
        bytes[checksum_at..checksum_at + 2].copy_from_slice(&[0xff; 2]);
        assert_eq!(opaque(&bytes), Reason::NegativeZeroChecksum);
    }
}

#[test]
fn wrong_checksums_are_refused_unless_trusted() {
    let cases = [
        (segment(&v4()), 11, "IPv4"),
        (segment(&v4()), 37, "TCP"),
        (segment(&v6()), 57, "TCP"),
        (udp(&v4(), &udp::Header::new(1, 2)), 27, "UDP"),
        (udp(&v6(), &udp::Header::new(1, 2)), 47, "UDP"),
    ];
    for (mut bytes, at, protocol) in cases {
        bytes[at] ^= 0x10;
        assert_eq!(verify(&bytes), Err(Error::Checksum { protocol }));
        assert!(datagram::parse(&bytes, Checksums::Trust).is_ok());
    }
}

#[test]
fn udp_without_checksum_is_accepted_and_written_without() {
    let header = udp::Header { checksum: udp::Checksum::Absent, ..udp::Header::new(1, 2) };
    for ip in [v4(), v6()] {
        let bytes = udp(&ip, &header);
        let checksum_at = ip.bytes() as usize + 6;
        assert_eq!(bytes[checksum_at..checksum_at + 2], [0, 0]);
        assert_eq!(verify(&bytes).unwrap().transport, Transport::Udp(header));
    }
}

#[test]
fn a_udp_checksum_that_computes_to_zero_is_sent_as_all_ones() {
    let probe = udp(&v4(), &udp::Header::new(0, 2));
    let checksum = u16::from_be_bytes([probe[26], probe[27]]);
    let header = udp::Header::new(checksum, 2);
    let bytes = udp(&v4(), &header);
    assert_eq!(bytes[26..28], [0xff, 0xff]);
    assert_eq!(verify(&bytes).unwrap().transport, Transport::Udp(header));
}

#[test]
fn lengths_below_their_minimum_are_refused() {
    let mut header_length = segment(&v4());
    header_length[0] = 0x44;
    let mut total_length = segment(&v4());
    set_word(&mut total_length, 2, 19);
    let mut data_offset = segment(&v4());
    data_offset[32] = 0x40;
    let mut udp_length = udp(&v4(), &udp::Header::new(1, 2));
    udp_length[25] = 7;
    let cases = [
        (header_length, "IPv4 header length", 16),
        (total_length, "IPv4 total length", 19),
        (data_offset, "TCP data offset", 16),
        (udp_length, "UDP length", 7),
    ];
    for (bytes, field, value) in cases {
        assert_eq!(verify(&bytes), Err(Error::Length { field, value }));
    }
}

#[test]
fn a_udp_length_beyond_the_ip_payload_is_truncated_even_if_padding_follows() {
    for ip in [v4(), v6()] {
        let mut bytes = udp(&ip, &udp::Header::new(1, 2));
        bytes[ip.bytes() as usize + 5] += 1;
        bytes.push(0);
        assert_eq!(verify(&bytes), Err(Error::Truncated { need: 14, have: 13 }));
    }
}

#[test]
fn a_data_offset_beyond_the_ip_payload_is_truncated_even_if_padding_follows() {
    for ip in [v4(), v6()] {
        let mut bytes = segment(&ip);
        bytes[ip.bytes() as usize + 12] = 0x70;
        bytes.extend([0; 8]);
        assert_eq!(verify(&bytes), Err(Error::Truncated { need: 28, have: 25 }));
    }
}

#[test]
fn other_versions_and_options_that_cannot_be_walked_are_refused() {
    let version = Error::Unsupported { field: "IP version", value: 5 };
    assert_eq!(verify(&[0x50; 40]), Err(version));
    let mut tcp = tcp::Header::new(1, 2);
    tcp.options = tcp::Options::from_bytes(&[1, 1, 8, 11]).unwrap();
    let mut bytes = Vec::new();
    datagram::emit_tcp(&v4(), &tcp, &[], &mut bytes).unwrap();
    assert_eq!(verify(&bytes), Err(Error::TcpOption { kind: 8, length: 11 }));
}

#[test]
fn the_emitted_protocol_is_that_of_the_transport() {
    for ip in [v4(), v6()] {
        let other = ip::Header { protocol: Protocol::ESP, ..ip };
        let bytes = segment(&other);
        assert_eq!(bytes, segment(&ip));
        let header = udp::Header::new(1, 2);
        let bytes = udp(&other, &header);
        assert_eq!(verify(&bytes).unwrap().transport, Transport::Udp(header));
    }
}

#[test]
fn what_cannot_be_emitted_leaves_the_buffer_alone() {
    let tcp = tcp::Header::new(1, 2);
    let mut into = b"before".to_vec();
    for (ip, largest) in [(v4(), 65535 - 40), (v6(), 65535 - 20)] {
        let payload = vec![0; largest + 1];
        let error = datagram::emit_tcp(&ip, &tcp, &payload, &mut into).unwrap_err();
        assert_eq!(error, Error::Length { field: "IP length", value: 65536 });
        assert_eq!(into, b"before");
        let mut bytes = Vec::new();
        datagram::emit_tcp(&ip, &tcp, &payload[..largest], &mut bytes).unwrap();
        assert!(verify(&bytes).is_ok());
    }
    let mixed = ip::Header { destination: v6().destination, ..v4() };
    assert!(datagram::emit_tcp(&mixed, &tcp, &[], &mut into).is_err());
    assert!(datagram::emit_udp(&mixed, &udp::Header::new(1, 2), &[], &mut into).is_err());
    assert_eq!(into, b"before");
}

proptest! {
    #[test]
    fn tcp_survives_emission_and_parsing(
        ip in ip_header(), tcp in tcp_header(), payload in payload(),
    ) {
        let mut bytes = b"prefix".to_vec();
        datagram::emit_tcp(&ip, &tcp, &payload, &mut bytes).unwrap();
        let bytes = &bytes[6..];
        let parsed = verify(bytes).unwrap();
        prop_assert_eq!(parsed.ip, ip);
        prop_assert_eq!(parsed.transport, Transport::Tcp(tcp));
        prop_assert_eq!(&bytes[parsed.payload.clone()], &payload[..]);
        prop_assert_eq!(parsed.payload.end, bytes.len());
    }

    #[test]
    fn udp_survives_emission_and_parsing(
        ip in ip_header(), udp in udp_header(), payload in payload(),
    ) {
        let ip = ip::Header { protocol: Protocol::UDP, ..ip };
        let mut bytes = Vec::new();
        datagram::emit_udp(&ip, &udp, &payload, &mut bytes).unwrap();
        let parsed = verify(&bytes).unwrap();
        prop_assert_eq!(parsed.ip, ip);
        prop_assert_eq!(parsed.transport, Transport::Udp(udp));
        prop_assert_eq!(&bytes[parsed.payload], &payload[..]);
    }
}
