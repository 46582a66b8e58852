//! Seeds of captures: one story in each container and over each link layer.

use wire::ip::{self, Protocol};
use wire::pcapng::{Direction, LinkType, Record, Writer};
use wire::tcp::{self, Flags, Options, SackBlock, Seq, Timestamps};
use wire::{datagram, udp};

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;

pub(crate) fn seeds() -> Vec<(String, Vec<u8>)> {
    let packets = story();
    let ethernet = [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0]].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_v2 = [&[8, 0][..], &[0; 18]].concat();
    let all = [
        ("pcapng", pcapng(&packets)),
        ("little", pcap(&packets, MAGIC_MICROSECONDS, 101, &[], false)),
        ("big", pcap(&packets, MAGIC_NANOSECONDS, 101, &[], true)),
        ("vlan", pcap(&packets, MAGIC_MICROSECONDS, 1, &ethernet, false)),
        ("cooked", pcap(&packets, MAGIC_MICROSECONDS, 113, &cooked, false)),
        ("cooked-v2", pcap(&packets, MAGIC_NANOSECONDS, 276, &cooked_v2, false)),
    ];
    all.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

/// A handshake, a flight with a hole, blocks, a timeout, a closed window, and a datagram of QUIC.
fn story() -> Vec<(u64, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut add = |at: u64, down: bool, tcp: tcp::Header, payload: &[u8]| {
        let (server, client) = ([10, 0, 0, 1].into(), [10, 0, 2, 1].into());
        let (from, to) = if down { (server, client) } else { (client, server) };
        let (source_port, destination_port) = if down { (80, 5_000) } else { (5_000, 80) };
        let tcp = tcp::Header { source_port, destination_port, ..tcp };
        let mut bytes = Vec::new();
        let ip = ip::Header::new(from, to, Protocol::TCP);
        datagram::emit_tcp(&ip, &tcp, payload, &mut bytes).expect("fits");
        packets.push((at, bytes));
    };
    let header = |seq: u32, ack: u32, flags, window, at: u64| {
        let mut options = Options::default();
        options.push_timestamps(Timestamps { value: at as u32, echo: 1 }).expect("room");
        let (seq, ack) = (Seq(seq), Seq(ack));
        tcp::Header { seq, ack, flags, window, options, ..tcp::Header::new(0, 0) }
    };
    add(1, false, header(9, 0, Flags::SYN, 900, 1), &[]);
    add(2, true, header(99, 10, Flags::SYN.with(Flags::ACK), 900, 2), &[]);
    add(30, false, header(10, 100, Flags::ACK, 900, 30), &[]);
    for (at, number) in [(31, 0), (32, 1), (34, 3), (400, 2)] {
        add(at, true, header(100 + 64 * number, 10, Flags::ACK, 900, at), &[7; 64]);
        let mut answer = header(10, 228, Flags::ACK, 900, at + 30);
        let block = SackBlock { start: Seq(292), end: Seq(356) };
        if number == 3 {
            answer.options.push_sack(&[block]);
        }
        add(at + 30, false, answer, &[]);
    }
    add(440, false, header(10, 356, Flags::ACK, 0, 440), &[]);
    add(900, false, header(10, 356, Flags::ACK, 900, 900), &[]);
    add(901, true, header(356, 10, Flags::ACK.with(Flags::FIN), 900, 901), &[7; 64]);
    let mut quic = Vec::new();
    let ip = ip::Header::new([10, 0, 2, 1].into(), [10, 0, 0, 1].into(), Protocol::UDP);
    datagram::emit_udp(&ip, &udp::Header::new(5_001, 443), b"hello", &mut quic).expect("fits");
    packets.push((950, quic));
    packets.sort_by_key(|(at, _)| *at);
    packets
}

fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "seed").expect("memory");
    let interface = writer.add_interface("one", LinkType::Ip).expect("memory");
    for (at, bytes) in packets {
        let (at_nanoseconds, direction) = (at * 1_000_000, Direction::Unknown);
        let record =
            Record { interface, at_nanoseconds, direction, packet_id: None, comment: "seed" };
        writer.packet(&record, bytes).expect("memory");
    }
    writer.into_inner().expect("memory")
}

fn pcap(packets: &[(u64, Vec<u8>)], magic: u32, link: u32, head: &[u8], big: bool) -> Vec<u8> {
    let word = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let half = |value: u16| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut file = [word(magic).to_vec(), half(2).into(), half(4).into()].concat();
    for value in [0, 0, 65_535, link] {
        file.extend(word(value));
    }
    let units = if magic == MAGIC_NANOSECONDS { 1_000_000 } else { 1_000 };
    for (at, bytes) in packets {
        let length = (head.len() + bytes.len()) as u32;
        for value in [0, *at as u32 * units, length, length] {
            file.extend(word(value));
        }
        file.extend(head);
        file.extend(bytes);
    }
    file
}
