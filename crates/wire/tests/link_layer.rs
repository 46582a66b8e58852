//! Ethernet and ARP, byte for byte.

use core::net::Ipv4Addr;
use wire::Error;
use wire::arp::{Operation, Packet};
use wire::ethernet::{EtherType, Header, Mac};

const DESTINATION: [u8; 6] = [2, 0, 0, 0, 0, 1];
const SOURCE: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn frame(after_addresses: &[u8]) -> Vec<u8> {
    [&DESTINATION[..], &SOURCE, after_addresses].concat()
}

#[test]
fn the_network_header_begins_after_the_tags() {
    let cases: [(&[u8], usize, EtherType); 6] = [
        (&[0x08, 0x00], 14, EtherType::IPV4),
        (&[0x86, 0xdd], 14, EtherType::IPV6),
        (&[0x81, 0x00, 0x20, 0x05, 0x08, 0x06], 18, EtherType::ARP),
        (&[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2, 0x08, 0x00], 22, EtherType::IPV4),
        // A third tag is not stepped over.
        (&[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3, 8, 0], 22, EtherType::VLAN),
        // A length, not a type.
        (&[0x00, 0x26], 14, EtherType(0x26)),
    ];
    for (after_addresses, network_at, ether_type) in cases {
        let frame = frame(after_addresses);
        let (header, at) = Header::parse(&frame).unwrap();
        assert_eq!((at, header.ether_type), (network_at, ether_type));
        assert_eq!((header.destination, header.source), (Mac(DESTINATION), Mac(SOURCE)));
        assert_eq!(header.tags.as_bytes().len(), network_at - 14);
        let mut again = Vec::new();
        header.emit(&mut again);
        assert_eq!(again, frame[..network_at]);
    }
}

#[test]
fn a_cut_header_or_tag_is_truncated() {
    let frame = frame(&[0x88, 0xa8, 0, 1, 0x81, 0x00, 0, 2, 0x08, 0x00]);
    for end in 0..frame.len() {
        let need = match end {
            0..14 => 14,
            14..18 => 18,
            _ => 22,
        };
        assert_eq!(Header::parse(&frame[..end]), Err(Error::Truncated { need, have: end }));
    }
}

#[test]
fn addresses_know_groups_and_print_in_hexadecimal() {
    assert!(Mac::BROADCAST.is_multicast());
    assert!(Mac([0x01, 0, 0x5e, 0, 0, 0x0b]).is_multicast());
    assert!(!Mac(SOURCE).is_multicast());
    assert_eq!(Mac([0x02, 0xab, 0, 0, 0, 0x0f]).to_string(), "02:ab:00:00:00:0f");
}

const REQUEST: [u8; 28] = [
    0, 1, 8, 0, 6, 4, 0, 1, // Ethernet, IPv4, request
    2, 0, 0, 0, 0, 2, 10, 0, 0, 2, // sender
    0, 0, 0, 0, 0, 0, 10, 0, 0, 1, // target
];

#[test]
fn a_request_is_read_and_written_byte_for_byte_and_padding_ignored() {
    let padded = [&REQUEST[..], &[0xee; 18]].concat();
    let packet = Packet::parse(&padded).unwrap();
    let expected = Packet {
        operation: Operation::Request,
        sender_mac: Mac(SOURCE),
        sender: Ipv4Addr::new(10, 0, 0, 2),
        target_mac: Mac::default(),
        target: Ipv4Addr::new(10, 0, 0, 1),
    };
    assert_eq!(packet, expected);
    let mut again = Vec::new();
    packet.emit(&mut again);
    assert_eq!(again, REQUEST);
}

#[test]
fn a_reply_is_read_as_etherparse_reads_it() {
    let reply = Packet {
        operation: Operation::Reply,
        sender_mac: Mac(SOURCE),
        sender: Ipv4Addr::new(192, 0, 2, 2),
        target_mac: Mac(DESTINATION),
        target: Ipv4Addr::new(192, 0, 2, 1),
    };
    let mut bytes = Vec::new();
    reply.emit(&mut bytes);
    let theirs = etherparse::ArpPacket::from_slice(&bytes).unwrap().try_eth_ipv4().unwrap();
    assert_eq!(theirs.operation, etherparse::ArpOperation::REPLY);
    assert_eq!(
        (Mac(theirs.sender_mac), Mac(theirs.target_mac)),
        (reply.sender_mac, reply.target_mac)
    );
    assert_eq!(theirs.sender_ipv4, reply.sender.octets());
    assert_eq!(theirs.target_ipv4, reply.target.octets());
    assert_eq!(Packet::parse(&bytes), Ok(reply));
}

#[test]
fn other_hardware_protocols_and_operations_are_refused() {
    let cases = [
        (1, 6, "ARP hardware type", 6),
        (2, 9, "ARP protocol type", 0x0900),
        (4, 8, "ARP hardware address length", 8),
        (5, 16, "ARP protocol address length", 16),
        (7, 3, "ARP operation", 3),
    ];
    for (at, byte, field, value) in cases {
        let mut packet = REQUEST;
        packet[at] = byte;
        assert_eq!(Packet::parse(&packet), Err(Error::Unsupported { field, value }));
    }
    assert_eq!(Packet::parse(&REQUEST[..27]), Err(Error::Truncated { need: 28, have: 27 }));
}
