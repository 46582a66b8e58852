//! IPv4 headers with options and fragment fields, and the walk along IPv6 extension headers.

use proptest::collection::vec;
use proptest::prelude::*;
use wire::Error;
use wire::checksum::Checksums;
use wire::ip::Protocol;
use wire::ipv4::{self, Flags, Options};
use wire::ipv6::{Fragment, Position, UpperLayer, upper_layer};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION: u8 = 60;
const MOBILITY: u8 = 135;
const TCP: u8 = Protocol::TCP.0;
const ESP: u8 = Protocol::ESP.0;

/// An extension header of `bytes` bytes, zero after the length field.
fn extension(next: u8, length_field: u8, bytes: usize) -> Vec<u8> {
    let mut header = vec![0; bytes];
    header[..2].copy_from_slice(&[next, length_field]);
    header
}

#[test]
fn every_extension_header_is_stepped_over_by_its_own_length_rule() {
    let chain = [
        extension(ROUTING, 0, 8),         // hop-by-hop
        extension(AUTHENTICATION, 2, 24), // routing: (2 + 1) * 8
        extension(DESTINATION, 6, 32),    // authentication: (6 + 2) * 4
        extension(MOBILITY, 1, 16),       // destination options
        extension(TCP, 0, 8),             // mobility
    ];
    let payload = [chain.concat(), vec![0xaa; 20]].concat();
    let upper = UpperLayer { protocol: Protocol::TCP, at: 88, fragment: None };
    assert_eq!(upper_layer(Protocol(HOP_BY_HOP), &payload), Ok(upper));
    // A chain is as weak as its shortest part.
    for end in 0..88 {
        let cut = upper_layer(Protocol(HOP_BY_HOP), &payload[..end]);
        assert!(matches!(cut, Err(Error::Truncated { .. })), "{end}: {cut:?}");
    }
    assert_eq!(upper_layer(Protocol(HOP_BY_HOP), &payload[..88]), Ok(upper));
}

#[test]
fn the_walk_ends_at_encrypted_payload() {
    let payload = extension(ESP, 0, 8);
    let upper = UpperLayer { protocol: Protocol::ESP, at: 8, fragment: None };
    assert_eq!(upper_layer(Protocol(DESTINATION), &payload), Ok(upper));
    let upper = UpperLayer { at: 0, ..upper };
    assert_eq!(upper_layer(Protocol::ESP, &payload), Ok(upper));
}

#[test]
fn the_walk_goes_on_after_a_first_fragment_header_and_ends_at_a_later_one() {
    let after = extension(TCP, 0, 8);
    // The second length byte is reserved in a fragment header and does not count.
    let first = [&[DESTINATION, 0xff, 0, 1, 1, 2, 3, 4][..], &after].concat();
    let fragment =
        Fragment { offset: 0, position: Position::MoreFollow, identification: 0x0102_0304 };
    let upper = UpperLayer { protocol: Protocol::TCP, at: 16, fragment: Some(fragment) };
    assert_eq!(upper_layer(Protocol(FRAGMENT), &first), Ok(upper));

    let last = [&[DESTINATION, 0, 0x12, 0x30, 1, 2, 3, 4][..], &after].concat();
    let fragment = Fragment { offset: 0x246, position: Position::Last, ..fragment };
    let upper = UpperLayer { protocol: Protocol(DESTINATION), at: 8, fragment: Some(fragment) };
    assert_eq!(upper_layer(Protocol(FRAGMENT), &last), Ok(upper));
}

#[test]
fn ipv4_options_are_whole_words_and_at_most_ten() {
    for length in 0..=44 {
        let accepted = length <= 40 && length % 4 == 0;
        assert_eq!(Options::new(&[1; 44][..length]).is_ok(), accepted, "{length}");
    }
}

#[test]
fn an_ipv4_total_length_below_the_header_is_refused_where_the_payload_is_asked_for() {
    let mut bytes = [0; 24];
    bytes[0] = 0x46;
    bytes[3] = 23;
    let header = ipv4::Header::parse(&bytes, Checksums::Trust).unwrap();
    let error = Error::Length { field: "IPv4 total length", value: 23 };
    assert_eq!(header.payload(24), Err(error));
}

proptest! {
    #[test]
    fn etherparse_and_we_write_the_same_ipv4_header(
        addresses: [[u8; 4]; 2], bytes: [u8; 3], words: [u16; 2], fragment_offset in 0..0x2000_u16,
        dont_fragment: bool, more_fragments: bool, options in vec(any::<[u8; 4]>(), 0..=10),
    ) {
        let [source, destination] = addresses;
        let [traffic_class, hop_limit, protocol] = bytes;
        let [total_length, identification] = words;
        let options = options.concat();
        let mut theirs = etherparse::Ipv4Header {
            dscp: (traffic_class >> 2).try_into().unwrap(),
            ecn: (traffic_class & 0b11).try_into().unwrap(),
            total_len: total_length,
            identification,
            dont_fragment,
            more_fragments,
            fragment_offset: fragment_offset.try_into().unwrap(),
            time_to_live: hop_limit,
            protocol: etherparse::IpNumber(protocol),
            header_checksum: 0,
            source,
            destination,
            options: options[..].try_into().unwrap(),
        };
        theirs.header_checksum = theirs.calc_header_checksum();
        let none = Flags::default();
        let flags = none
            .with(if dont_fragment { Flags::DONT_FRAGMENT } else { none })
            .with(if more_fragments { Flags::MORE_FRAGMENTS } else { none });
        let ours = ipv4::Header {
            traffic_class,
            total_length,
            identification,
            flags,
            fragment_offset,
            hop_limit,
            protocol: Protocol(protocol),
            source: source.into(),
            destination: destination.into(),
            options: Options::new(&options).unwrap(),
        };
        let mut bytes = Vec::new();
        ours.emit(&mut bytes);
        prop_assert_eq!(&bytes[..], &theirs.to_bytes()[..]);
        prop_assert_eq!(ipv4::Header::parse(&bytes, Checksums::Verify), Ok(ours));
        prop_assert_eq!(ours.is_fragment(), theirs.is_fragmenting_payload());
    }
}
