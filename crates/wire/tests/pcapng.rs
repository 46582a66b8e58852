//! The bytes of a capture, and what tcpdump makes of them where there is one.

use std::io::{Cursor, ErrorKind};
use std::process::{Command, Stdio};
use wire::pcapng::{Direction, LinkType, Record, Writer};

/// An ICMP echo request; 29 bytes, so that the block has to be padded.
const DATAGRAM: [u8; 29] = [
    0x45, 0, 0, 29, 0, 0, 0x40, 0, 64, 1, 0x26, 0xde, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
    8, 0, 0x93, 0xf7, 0, 7, 0, 1, 0x64, // ICMP
];

fn capture() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "lasthop").unwrap();
    let wired = writer.add_interface("wired", LinkType::Ip).unwrap();
    let record = Record {
        interface: wired,
        at_nanoseconds: 0x1_0000_0002,
        direction: Direction::Outbound,
        packet_id: Some(0x0a0b_0c0d),
        comment: "dupack 1: sent again",
    };
    writer.packet(&record, &DATAGRAM).unwrap();
    writer.into_inner().unwrap()
}

#[rustfmt::skip]
#[test]
fn every_byte_of_a_capture() {
    let expected = [
        // Section header: type, length, magic, version 1.0, length unknown.
        &[0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0][..],
        &[0xff; 8],
        &[4, 0, 7, 0], b"lasthop\0", &[0, 0, 0, 0], &[44, 0, 0, 0],
        // Interface: raw IP, no limit, name, nanoseconds.
        &[1, 0, 0, 0, 44, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 5, 0], b"wired\0\0\0", &[9, 0, 1, 0, 9, 0, 0, 0], &[0, 0, 0, 0], &[44, 0, 0, 0],
        // Packet: interface 0, time upper half first, lengths, data, comment, outbound, identity.
        &[6, 0, 0, 0, 112, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 29, 0, 0, 0, 29, 0, 0, 0],
        &DATAGRAM, &[0, 0, 0],
        &[1, 0, 20, 0], b"dupack 1: sent again",
        &[2, 0, 4, 0, 2, 0, 0, 0], &[5, 0, 8, 0, 0x0d, 0x0c, 0x0b, 0x0a, 0, 0, 0, 0],
        &[0, 0, 0, 0], &[112, 0, 0, 0],
    ];
    assert_eq!(capture(), expected.concat());
}

/// The type and body of each block; checks that lengths agree at both ends.
fn blocks(mut capture: &[u8]) -> Vec<(u32, &[u8])> {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
    let mut blocks = Vec::new();
    while !capture.is_empty() {
        let length = word(&capture[4..]) as usize;
        assert!(length.is_multiple_of(4));
        assert_eq!(word(&capture[length - 4..]) as usize, length);
        blocks.push((word(capture), &capture[8..length - 4]));
        capture = &capture[length..];
    }
    blocks
}

#[test]
fn interfaces_may_be_added_between_packets_and_are_numbered_in_order() {
    let mut writer = Writer::new(Vec::new(), "").unwrap();
    for (number, link_type) in [LinkType::Ip, LinkType::Ethernet].into_iter().enumerate() {
        let interface = writer.add_interface("", link_type).unwrap();
        let direction = Direction::Unknown;
        let record =
            Record { interface, at_nanoseconds: 0, direction, packet_id: None, comment: "" };
        writer.packet(&record, &[number as u8]).unwrap();
    }
    let capture = writer.into_inner().unwrap();
    let blocks = blocks(&capture);
    let types: Vec<u32> = blocks.iter().map(|block| block.0).collect();
    assert_eq!(types, [0x0a0d_0d0a, 1, 6, 1, 6]);
    assert_eq!((blocks[1].1[0], blocks[3].1[0]), (101, 1));
    assert_eq!((blocks[2].1[0], blocks[4].1[0]), (0, 1));
    // No comment: the options begin with the flags, right after the padded packet.
    assert_eq!(blocks[4].1[24..], [2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn a_long_comment_is_cut_between_characters() {
    let mut writer = Writer::new(Vec::new(), "").unwrap();
    let interface = writer.add_interface("", LinkType::Ip).unwrap();
    let comment = format!("a{}", "é".repeat(40000));
    let record = Record {
        interface,
        at_nanoseconds: 0,
        direction: Direction::Inbound,
        packet_id: None,
        comment: &comment,
    };
    writer.packet(&record, &[]).unwrap();
    let capture = writer.into_inner().unwrap();
    let packet = blocks(&capture)[2].1;
    assert_eq!(packet[20..24], [1, 0, 0xff, 0xff]);
    assert_eq!(core::str::from_utf8(&packet[24..24 + 65535]).unwrap(), &comment[..65535]);

    let comment = "é".repeat(40000);
    let mut writer = Writer::new(Vec::new(), "").unwrap();
    let interface = writer.add_interface("", LinkType::Ip).unwrap();
    writer.packet(&Record { interface, comment: &comment, ..record }, &[]).unwrap();
    let capture = writer.into_inner().unwrap();
    assert_eq!(blocks(&capture)[2].1[20..24], [1, 0, 0xfe, 0xff]);
}

#[test]
fn an_interface_of_another_capture_is_refused() {
    let mut other = Writer::new(Vec::new(), "").unwrap();
    let interface = other.add_interface("", LinkType::Ip).unwrap();
    let mut writer = Writer::new(Vec::new(), "").unwrap();
    let direction = Direction::Unknown;
    let record = Record { interface, at_nanoseconds: 0, direction, packet_id: None, comment: "" };
    assert_eq!(writer.packet(&record, &[]).unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn errors_of_the_underlying_writer_come_back() {
    let mut room = [0; 60];
    let mut writer = Writer::new(Cursor::new(&mut room[..]), "lasthop").unwrap();
    let error = writer.add_interface("wired", LinkType::Ip).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WriteZero);
}

/// A second opinion, in addition to the bytes above: tcpdump reads time, protocol and direction.
#[test]
fn tcpdump_reads_the_same_where_it_is_installed() {
    let path = std::env::temp_dir().join(format!("lasthop-wire-{}.pcapng", std::process::id()));
    std::fs::write(&path, capture()).unwrap();
    let mut command = Command::new("tcpdump");
    command.args(["-nvtt", "--nano", "-r"]).arg(&path).stderr(Stdio::null());
    let output = command.output();
    std::fs::remove_file(&path).unwrap();
    let Ok(output) = output else {
        println!("no tcpdump here: the byte-level test stands alone");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("4.294967298 "), "{text}");
    assert!(text.contains("10.0.0.1 > 10.0.0.2: ICMP echo request, id 7, seq 1"), "{text}");
    assert!(!text.contains("wrong") && !text.contains("bad"), "{text}");
}
