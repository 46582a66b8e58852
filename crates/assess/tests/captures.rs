//! Captures of every kind, made here byte by byte, and small stories in them.

use assess::capture::{Notes, Reader};
use assess::cause::Cause;
use assess::connection::Place;
use assess::decode::Class;
use assess::summary::Assessment;
use assess::{Options, assess};
use core::net::IpAddr;
use wire::ip::{self, Protocol};
use wire::pcapng::{Direction, LinkType, Record, Writer};
use wire::tcp::{self, Flags, SackBlock, Seq, Timestamps, kind};
use wire::{datagram, udp};

const MSS: u32 = 1_448;
const SERVER: [u8; 4] = [10, 0, 0, 1];
const CLIENT: [u8; 4] = [10, 0, 2, 1];

/// A story of one connection: the server sends, the client acknowledges; times in milliseconds.
#[derive(Default)]
struct Story {
    packets: Vec<(u64, Vec<u8>)>,
    /// Each host counts its own packets.
    identifications: [u16; 2],
}

impl Story {
    /// A handshake at 0, 40 and 41 ms: the capture stands at the server, which answers.
    fn new() -> Self {
        let mut story = Story::default();
        story.syn(0, false);
        story.syn(1, true);
        story.ack(41, 0);
        story
    }

    fn syn(&mut self, at: u64, answer: bool) {
        let mut options = tcp::Options::default();
        let offers =
            [kind::MSS, 4, 5, 180, kind::SACK_PERMITTED, 2, kind::NOP, kind::WINDOW_SCALE, 3, 7];
        options.push(&offers).expect("room");
        let flags = if answer { Flags::SYN.with(Flags::ACK) } else { Flags::SYN };
        let seq = if answer { Seq(999) } else { Seq(4_999) };
        let header = tcp::Header { seq, ack: Seq(5_000), flags, options, window: 64, ..tcp() };
        self.push(at, answer, header, &[]);
    }

    /// Segment `number`, from 0, of `segments` full ones.
    fn data(&mut self, at: u64, number: u32, segments: u32) {
        for index in number..number + segments {
            let header = tcp::Header {
                seq: Seq(1_000) + index * MSS,
                ack: Seq(5_000),
                flags: Flags::ACK,
                window: 500,
                options: timestamps(at, &[]),
                ..tcp()
            };
            self.push(at, true, header, &[0; MSS as usize]);
        }
    }

    /// All segments before `number` have arrived.
    fn ack(&mut self, at: u64, number: u32) {
        self.ack_with(at, number, 500, &[]);
    }

    fn ack_with(&mut self, at: u64, number: u32, window: u16, blocks: &[(u32, u32)]) {
        let header = tcp::Header {
            seq: Seq(5_000),
            ack: Seq(1_000) + number * MSS,
            flags: Flags::ACK,
            window,
            options: timestamps(at, blocks),
            ..tcp()
        };
        self.push(at, false, header, &[]);
    }

    fn push(&mut self, at: u64, from_server: bool, header: tcp::Header, payload: &[u8]) {
        let (mut from, mut to) = (IpAddr::from(CLIENT), IpAddr::from(SERVER));
        let mut header = header;
        (header.source_port, header.destination_port) = (50_000, 80);
        if from_server {
            (from, to) = (to, from);
            (header.source_port, header.destination_port) = (80, 50_000);
        }
        let counter = &mut self.identifications[usize::from(from_server)];
        *counter += 1;
        let identification = *counter;
        let ip = ip::Header { identification, ..ip::Header::new(from, to, Protocol::TCP) };
        let mut bytes = Vec::new();
        datagram::emit_tcp(&ip, &header, payload, &mut bytes).expect("it fits");
        self.packets.push((at, bytes));
    }

    /// Twenty flights of ten, each acknowledged after 40 ms, so that the path is known.
    fn warm_up(&mut self) -> (u64, u32) {
        for flight in 0..20_u32 {
            let at = 50 + 50 * u64::from(flight);
            self.data(at, flight * 10, 10);
            self.ack(at + 40, flight * 10 + 10);
        }
        (50 + 50 * 20, 200)
    }

    fn assessed(&self) -> Assessment {
        assess(&self.pcapng(usize::MAX)[..], Options::default(), |_| true).expect("a capture")
    }

    fn pcapng(&self, snap: usize) -> Vec<u8> {
        if snap == usize::MAX {
            let mut writer = Writer::new(Vec::new(), "test").expect("memory");
            let interface = writer.add_interface("one", LinkType::Ip).expect("memory");
            for (at, bytes) in &self.packets {
                let record = Record {
                    interface,
                    at_nanoseconds: at * 1_000_000,
                    direction: Direction::Unknown,
                    packet_id: None,
                    comment: "",
                };
                writer.packet(&record, bytes).expect("memory");
            }
            return writer.into_inner().expect("memory");
        }
        self.pcap(0xa1b2_c3d4, 101, &[], snap, false)
    }

    /// A pcap file; `head` stands before each datagram.
    fn pcap(&self, magic: u32, link: u32, head: &[u8], snap: usize, big: bool) -> Vec<u8> {
        let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
        let mut file = [word(magic).to_vec(), half(2).into(), half(4).into()].concat();
        for value in [0, 0, 65_535, link] {
            file.extend(word(value));
        }
        let units = if magic == 0xa1b2_3c4d { 1_000_000 } else { 1_000 };
        for (at, bytes) in &self.packets {
            let frame = [head, bytes].concat();
            let kept = &frame[..frame.len().min(snap)];
            let fraction = (at % 1_000) as u32 * units;
            for value in [(at / 1_000) as u32, fraction, kept.len() as u32, frame.len() as u32] {
                file.extend(word(value));
            }
            file.extend(kept);
        }
        file
    }
}

fn tcp() -> tcp::Header {
    tcp::Header::new(0, 0)
}

fn timestamps(at: u64, blocks: &[(u32, u32)]) -> tcp::Options {
    let mut options = tcp::Options::default();
    // Every ACK here follows 40 ms after the segment that it answers.
    let echo = at.saturating_sub(40) as u32;
    options.push_timestamps(Timestamps { value: at as u32, echo }).expect("room");
    let edge = |number: u32| Seq(1_000) + number * MSS;
    let blocks: Vec<SackBlock> = blocks
        .iter()
        .map(|&(start, end)| SackBlock { start: edge(start), end: edge(end) })
        .collect();
    if !blocks.is_empty() {
        options.push_sack(&blocks);
    }
    options
}

/// The only stall: its cause, and what was said of it.
#[track_caller]
fn only_stall(of: &Assessment) -> (Cause, f64) {
    let [connection] = &of.connections[..] else { panic!("{:?}", of.connections) };
    let [stall] = &connection.stalls[..] else { panic!("{:?}", connection.stalls) };
    (stall.cause, (stall.length_s * 1e3).round())
}

#[test]
fn every_container_and_link_layer_tells_the_same() {
    let mut story = Story::new();
    story.warm_up();
    let ethernet = [&[2; 12][..], &[8, 0]].concat();
    let vlan = [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_v2 = [&[8, 0][..], &[0; 18]].concat();
    let captures = [
        ("pcapng", story.pcapng(usize::MAX)),
        ("little endian", story.pcap(0xa1b2_c3d4, 101, &[], 99_999, false)),
        ("big endian", story.pcap(0xa1b2_c3d4, 101, &[], 99_999, true)),
        ("nanoseconds", story.pcap(0xa1b2_3c4d, 12, &[], 99_999, true)),
        ("ethernet", story.pcap(0xa1b2_c3d4, 1, &ethernet, 99_999, false)),
        ("VLAN", story.pcap(0xa1b2_c3d4, 1, &vlan, 99_999, false)),
        ("cooked", story.pcap(0xa1b2_c3d4, 113, &cooked, 99_999, false)),
        ("cooked v2", story.pcap(0xa1b2_c3d4, 276, &cooked_v2, 99_999, false)),
        ("loopback", story.pcap(0xa1b2_c3d4, 0, &[2, 0, 0, 0], 99_999, false)),
        ("headers only", story.pcap(0xa1b2_c3d4, 101, &[], 80, false)),
    ];
    for (name, bytes) in captures {
        let of = assess(&bytes[..], Options::default(), |_| true).expect(name);
        assert_eq!(of.helpable_share, 1.0, "{name}");
        assert_eq!(of.capture.packets, story.packets.len() as u64, "{name}");
        assert_eq!(of.capture.duration_s, 1.040, "{name}");
        let connection = &of.connections[0];
        assert_eq!(connection.payload_bytes, 200 * u64::from(MSS), "{name}");
        assert_eq!(connection.sender, "10.0.0.1:80", "{name}");
        assert_eq!(connection.place, Some(Place::Middle), "{name}: a round trip of 1 ms is near");
        assert_eq!(of.capture.snapped_packets > 0, name == "headers only");
    }
}

#[test]
fn what_is_no_capture_is_refused_with_its_place() {
    let refused = |bytes: &[u8]| match assess(bytes, Options::default(), |_| true) {
        Err(error) => error.to_string(),
        Ok(of) => panic!("{of:?}"),
    };
    assert!(refused(b"GET / HTTP/1.1\r\n").contains("offset 0: found the bytes 47455420"));
    assert!(refused(b"\n").contains("offset 0: found 1 bytes"));
    let mut story = Story::new();
    story.warm_up();
    let mut bytes = story.pcapng(usize::MAX);
    // The length of a block in the middle.
    let at = bytes.len() / 2;
    let block = (at..).find(|at| bytes[*at..].starts_with(&[6, 0, 0, 0])).expect("a packet");
    bytes[block + 4] ^= 0x10;
    assert!(refused(&bytes).contains("expected a packet record or block whose lengths agree"));
}

#[test]
fn a_capture_that_was_cut_is_read_up_to_there() {
    let mut story = Story::new();
    story.warm_up();
    for bytes in [story.pcapng(usize::MAX), story.pcap(0xa1b2_c3d4, 101, &[], 99_999, false)] {
        let cut = &bytes[..bytes.len() - 7];
        let of = assess(cut, Options::default(), |_| true).expect("its beginning is one");
        assert_eq!(of.capture.packets, story.packets.len() as u64 - 1);
        assert!(of.remarks[0].contains("ends within a packet"), "{:?}", of.remarks);
    }
}

#[test]
fn what_cannot_be_helped_is_named() {
    let mut story = Story::new();
    story.data(50, 0, 1);
    let tcp = story.packets[3].1.clone();
    let mut fragment = tcp.clone();
    fragment[6] = 0x20;
    let mut lonely = tcp.clone();
    lonely[20] = 1;
    let mut esp = tcp;
    esp[9] = 50;
    let header = ip::Header::new(CLIENT.into(), SERVER.into(), Protocol::UDP);
    let mut quic = Vec::new();
    datagram::emit_udp(&header, &udp::Header::new(50_001, 443), b"hello", &mut quic).expect("fits");
    for bytes in [fragment, lonely, esp, quic] {
        story.packets.push((60, bytes));
    }
    let of = story.assessed();
    let classes: Vec<Class> = of.traffic.iter().map(|it| it.class).collect();
    for class in [Class::Tcp, Class::TcpFragment, Class::TcpOneSided, Class::Esp, Class::Quic] {
        assert!(classes.contains(&class), "{class:?} of {classes:?}");
    }
    let shares: f64 = of.traffic.iter().map(|it| it.share).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{shares}");
    assert!(of.helpable_share < 0.4);
}

#[test]
fn a_pause_of_the_sender_is_the_applications() {
    let mut story = Story::new();
    let (at, next) = story.warm_up();
    story.data(at + 2_000, next, 4);
    story.ack(at + 2_040, next + 4);
    assert_eq!(only_stall(&story.assessed()), (Cause::Application, 2_010.0));
}

#[test]
fn a_closed_window_is_the_receivers_as_long_as_it_is_closed() {
    let mut story = Story::new();
    let (at, next) = story.warm_up();
    story.data(at, next, 10);
    story.ack_with(at + 40, next + 10, 0, &[]);
    story.ack_with(at + 1_000, next + 10, 500, &[]);
    story.data(at + 1_001, next + 10, 10);
    story.ack(at + 1_041, next + 20);
    assert_eq!(only_stall(&story.assessed()), (Cause::Receiver, 961.0));
}

#[test]
fn a_flight_that_vanishes_is_an_outage_and_a_tail_is_not() {
    for (segments, cause) in [(10, Cause::Outage), (1, Cause::Radio)] {
        let mut story = Story::new();
        let (at, next) = story.warm_up();
        story.data(at, next, segments);
        story.data(at + 300, next, 1);
        story.ack(at + 340, next + 1);
        if segments > 1 {
            story.data(at + 341, next + 1, segments - 1);
            story.ack(at + 381, next + segments);
        }
        // Nothing longer than the round trip of 40 ms tells of a queue.
        assert_eq!(only_stall(&story.assessed()).0, cause, "{segments} segments");
    }
}

#[test]
fn the_same_flight_over_another_path_afterwards_is_a_handoff() {
    let mut story = Story::new();
    let (at, next) = story.warm_up();
    story.data(at, next, 10);
    story.data(at + 300, next, 10);
    story.ack(at + 420, next + 10);
    for flight in 1..20 {
        let at = at + 300 + 130 * u64::from(flight);
        story.data(at, next + flight * 10, 10);
        story.ack(at + 120, next + flight * 10 + 10);
    }
    assert_eq!(only_stall(&story.assessed()), (Cause::Handoff, 420.0));
}

#[test]
fn what_is_held_and_then_delivered_was_never_lost() {
    let mut story = Story::new();
    let (at, next) = story.warm_up();
    story.data(at, next, 10);
    story.ack(at + 900, next + 10);
    let of = story.assessed();
    assert_eq!(only_stall(&of), (Cause::Outage, 900.0));
    assert!(of.connections[0].stalls[0].evidence.starts_with("nothing was lost"));
    assert_eq!(of.schemes[1].saved_s_max, 0.0, "an agent cannot deliver what is held");
}

#[test]
fn a_loss_shown_by_blocks_is_repaired_by_the_agent_before_the_sender_does() {
    let mut story = Story::new();
    let (at, next) = story.warm_up();
    story.data(at, next, 10);
    for behind in 2..=10 {
        story.ack_with(at + 40 + u64::from(behind), next, 500, &[(next + 1, next + behind)]);
    }
    story.data(at + 400, next, 1);
    story.ack(at + 440, next + 10);
    let of = story.assessed();
    assert_eq!(only_stall(&of), (Cause::Radio, 440.0));
    for scheme in &of.schemes {
        assert_eq!(scheme.stalls_acted, 1, "{}", scheme.scheme);
        assert_eq!((scheme.retransmissions_before, scheme.retransmissions), (1, 1));
        // Its copy leaves at the first duplicate ACK, 42 ms after the flight, and takes 40 ms.
        assert!((0.30..=0.358).contains(&scheme.saved_s_max), "{scheme:?}");
        assert!(scheme.saved_s_min < scheme.saved_s_max, "{scheme:?}");
    }
}

#[test]
fn direction_number_and_comment_of_a_packet_are_read_where_the_file_has_them() {
    let packet = Story::new().packets.remove(0).1;
    let mut writer = Writer::new(Vec::new(), "test").expect("memory");
    let interface = writer.add_interface("one", LinkType::Ip).expect("memory");
    let notes = [
        (Direction::Outbound, Some(u64::MAX - 1), "dropped: the queue is full"),
        (Direction::Inbound, Some(7), ""),
        (Direction::Unknown, None, ""),
    ];
    for (direction, packet_id, comment) in notes {
        let record = Record { interface, at_nanoseconds: 0, direction, packet_id, comment };
        writer.packet(&record, &packet).expect("memory");
    }
    let file = writer.into_inner().expect("memory");
    let mut reader = Reader::new(&file[..]).expect("a capture");
    let mut seen = Vec::new();
    let own = |comment: &str| notes.iter().map(|note| note.2).find(|one| *one == comment);
    while let Some(notes) = reader
        .next(|packet| {
            let comment = packet.notes.comment.and_then(own);
            (packet.notes.is_outbound, packet.notes.packet_id, comment)
        })
        .expect("a capture")
    {
        seen.push(notes);
    }
    let expected = [
        (Some(true), Some(u64::MAX - 1), Some("dropped: the queue is full")),
        (Some(false), Some(7), None),
        (None, None, None),
    ];
    assert_eq!(seen, expected);
    let bytes = Story::new().pcap(0xa1b2_c3d4, 101, &[], 64, false);
    let mut reader = Reader::new(&bytes[..]).expect("a capture");
    let of_pcap = reader.next(|packet| packet.notes == Notes::default()).expect("a capture");
    assert_eq!(of_pcap, Some(true), "pcap has nothing of the kind");
}
