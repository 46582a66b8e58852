//! Captures by others (`tests/data/SOURCE.md`): every layer of every frame parses with good
//! checksums and is written back byte for byte, agent discovery and registration included.

use wire::checksum::Checksums;
use wire::datagram::{self, Transport};
use wire::ethernet::{self, EtherType};
use wire::ip::{self, Protocol};
use wire::mobile_ip::advertisement::{self, Advertisement, AgentFlags, Router};
use wire::mobile_ip::{self, Message, registration};
use wire::{arp, icmp, ipv4, udp};

/// The frames of a little-endian classic pcap file.
fn frames(file: &[u8]) -> Vec<&[u8]> {
    const FILE_HEADER: usize = 24;
    const RECORD_HEADER: usize = 16;
    const NANOSECOND_MAGIC: [u8; 4] = 0xa1b2_3c4d_u32.to_le_bytes();
    assert_eq!(file[..4], NANOSECOND_MAGIC);
    let mut rest = &file[FILE_HEADER..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let length = u32::from_le_bytes([rest[8], rest[9], rest[10], rest[11]]) as usize;
        frames.push(&rest[RECORD_HEADER..RECORD_HEADER + length]);
        rest = &rest[RECORD_HEADER + length..];
    }
    frames
}

/// What the frames of a capture carry; a tunnelled datagram counts beside its tunnel.
#[derive(Debug, Default, PartialEq, Eq)]
struct Census {
    arp: usize,
    icmp: usize,
    udp: usize,
    ip_in_ip: usize,
    advertisements: usize,
    solicitations: usize,
    requests: usize,
    replies: usize,
}

fn check_frame(frame: &[u8], census: &mut Census) {
    let (header, network_at) = ethernet::Header::parse(frame).unwrap();
    let network = &frame[network_at..];
    let mut again = Vec::new();
    header.emit(&mut again);
    match header.ether_type {
        EtherType::ARP => {
            census.arp += 1;
            arp::Packet::parse(network).unwrap().emit(&mut again);
        }
        EtherType::IPV4 => again.extend(check_datagram(network, census)),
        other => panic!("no such frame was expected: {other:?}"),
    }
    // The frames were taken before they were padded.
    assert_eq!(again, frame);
}

/// The datagram at the start of `bytes`, parsed and written again.
fn check_datagram(bytes: &[u8], census: &mut Census) -> Vec<u8> {
    let header = ipv4::Header::parse(bytes, Checksums::Verify).unwrap();
    let payload = &bytes[header.payload(bytes.len()).unwrap()];
    let ip = ip::Header::from(&header);
    let mut message = Vec::new();
    let mut again = Vec::new();
    header.emit(&mut again);
    match header.protocol {
        Protocol::ICMP => {
            census.icmp += 1;
            let read = icmp::Message::parse(&ip, payload, Checksums::Verify).unwrap();
            read.emit(&ip, &mut message);
            check_discovery(&read, census);
        }
        Protocol::IP_IN_IP => {
            census.ip_in_ip += 1;
            message = check_datagram(mobile_ip::tunnel::in_ip(payload).unwrap(), census);
        }
        Protocol::UDP => {
            census.udp += 1;
            let parsed = datagram::parse(bytes, Checksums::Verify).unwrap();
            let Transport::Udp(udp) = parsed.transport else { panic!("UDP was expected") };
            let data = &bytes[parsed.payload];
            let length = (udp::Header::BYTES + data.len()) as u32;
            let sum = wire::checksum::pseudo_header(&ip, length);
            udp.emit(sum, data, &mut message).unwrap();
            let mut whole = Vec::new();
            datagram::emit_udp(&parsed.ip, &udp, data, &mut whole).unwrap();
            assert_eq!(whole, bytes);
            check_registration(data, census);
        }
        other => panic!("no such datagram was expected: {other:?}"),
    }
    assert_eq!(message, payload);
    again.extend(message);
    again
}

/// An advertisement read and written again; its parts, too, since they are what engines write.
fn check_discovery(message: &icmp::Message, census: &mut Census) {
    if advertisement::is_solicitation(message) {
        census.solicitations += 1;
        assert_eq!(message.body, advertisement::SOLICITATION_BODY);
    }
    let Ok(read) = Advertisement::parse(message) else {
        return assert_ne!(message.kind, advertisement::ADVERTISEMENT);
    };
    census.advertisements += 1;
    assert_eq!(read.body(), message.body);
    let routers: Vec<Router> = read.routers().collect();
    let extensions: Vec<advertisement::Extension> = read.extensions().collect();
    let again = advertisement::body(read.lifetime_s, &routers, &extensions).unwrap();
    assert_eq!(again, message.body);
    let agent = read.agent().unwrap();
    let both = AgentFlags::HOME_AGENT.with(AgentFlags::FOREIGN_AGENT);
    assert!(agent.flags.contains(both.with(AgentFlags::REGISTRATION_REQUIRED)));
    assert_eq!(agent.care_of.len(), 1);
}

/// A registration message read and written again. Nobody authenticates in these captures.
fn check_registration(data: &[u8], census: &mut Census) {
    let message = Message::parse(data).unwrap();
    let mut again = Vec::new();
    message.emit(&mut again);
    assert_eq!(again, data);
    match message {
        Message::Request(request, extensions) => {
            census.requests += 1;
            assert_eq!(request.care_of_address.octets(), [192, 168, 0, 3]);
            assert_eq!((request.lifetime_s, extensions.iter().count()), (25, 0));
        }
        Message::Reply(reply, extensions) => {
            census.replies += 1;
            assert_eq!(reply.code, registration::Code::ACCEPTED);
            assert_eq!((reply.lifetime_s, extensions.iter().count()), (25, 0));
        }
        other => panic!("no such message was expected: {other:?}"),
    }
}

fn check_file(file: &[u8], count: usize) -> Census {
    let frames = frames(file);
    assert_eq!(frames.len(), count);
    let mut census = Census::default();
    for frame in frames {
        check_frame(frame, &mut census);
    }
    census
}

#[test]
fn home_network() {
    let census = check_file(include_bytes!("data/home.pcap"), 29);
    assert_eq!(
        census,
        Census { arp: 4, icmp: 25, advertisements: 3, solicitations: 2, ..Census::default() }
    );
}

#[test]
fn foreign_network() {
    let census = check_file(include_bytes!("data/foreign.pcap"), 87);
    assert_eq!(
        census,
        Census {
            arp: 4,
            icmp: 79,
            udp: 4,
            advertisements: 7,
            solicitations: 6,
            requests: 2,
            replies: 2,
            ip_in_ip: 0
        }
    );
}

#[test]
fn public_network() {
    let census = check_file(include_bytes!("data/public.pcap"), 140);
    assert_eq!(
        census,
        Census {
            arp: 12,
            icmp: 124,
            udp: 4,
            ip_in_ip: 33,
            requests: 2,
            replies: 2,
            ..Census::default()
        }
    );
}
