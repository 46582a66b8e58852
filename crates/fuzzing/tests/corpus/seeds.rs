//! The seeds of the corpus: one input for each thing that a target knows.

use core::net::IpAddr;
use wire::ethernet::{self, EtherType, Mac};
use wire::ip::{self, Protocol};
use wire::tcp::{self, Flags, Options, SackBlock, Seq, Timestamps, kind};
use wire::{arp, datagram, icmp, ipv6, udp};

type Seed = (String, Vec<u8>);

/// The seeds of a target by its name.
pub(crate) fn of(target: &str) -> Vec<Seed> {
    match target {
        "wire_datagram" => wire(),
        "tcp_endpoint" => endpoints(),
        "snoop_agent" => agent(),
        "capture_assess" => crate::captures::seeds(),
        "mobility_message" => crate::messages::seeds(),
        "mobility_engines" => engines(),
        other => panic!("no seeds for {other}"),
    }
}

fn addresses(version: ip::Version) -> (IpAddr, IpAddr) {
    match version {
        ip::Version::V4 => ([10, 0, 0, 1].into(), [10, 0, 1, 2].into()),
        ip::Version::V6 => {
            ([0xfd00, 0, 0, 0, 0, 0, 0, 1].into(), [0xfd00, 0, 0, 0, 0, 0, 1, 2].into())
        }
    }
}

/// Datagrams of both versions with every protocol and option there is, frames, and what is cut.
fn wire() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, version) in [("v4", ip::Version::V4), ("v6", ip::Version::V6)] {
        let (source, destination) = addresses(version);
        let under = |protocol| ip::Header::new(source, destination, protocol);
        let mut add =
            |what: &str, bytes: &[u8]| seeds.push((format!("{name}-{what}"), bytes.to_vec()));
        let mut bytes = Vec::new();
        for (what, options) in options() {
            let header = tcp::Header {
                seq: Seq(0xffff_fff0),
                ack: Seq(77),
                flags: Flags::ACK.with(Flags::PSH),
                window: 1_000,
                options,
                ..tcp::Header::new(80, 5_000)
            };
            bytes.clear();
            datagram::emit_tcp(&under(Protocol::TCP), &header, b"payload", &mut bytes)
                .expect("fits");
            add(&format!("tcp-{what}"), &bytes);
        }
        let tcp = bytes.clone();
        for (what, checksum) in
            [("udp", udp::Checksum::Present), ("udp-none", udp::Checksum::Absent)]
        {
            bytes.clear();
            let header = udp::Header { checksum, ..udp::Header::new(53, 53) };
            datagram::emit_udp(&under(Protocol::UDP), &header, b"query", &mut bytes).expect("fits");
            add(what, &bytes);
        }
        for (what, kind, code) in icmp_kinds(version) {
            let body = [&[0, 1, 5, 0x78][..], &tcp[..48]].concat();
            let protocol = match version {
                ip::Version::V4 => Protocol::ICMP,
                ip::Version::V6 => Protocol::ICMPV6,
            };
            let mut message = Vec::new();
            icmp::Message { version, kind, code, body: &body }.emit(&under(protocol), &mut message);
            bytes.clear();
            datagram::emit(&under(protocol), &message, &mut bytes).expect("fits");
            add(&format!("icmp-{what}"), &bytes);
        }
        bytes.clear();
        datagram::emit(&under(Protocol::IP_IN_IP), &tcp, &mut bytes).expect("fits");
        add("in-ip", &bytes);
    }
    seeds.push(("extension-headers".into(), extension_headers()));
    seeds.extend(frames());
    seeds
}

fn options() -> [(&'static str, Options); 5] {
    let mut syn = Options::default();
    let offers =
        [kind::MSS, 4, 5, 180, kind::SACK_PERMITTED, 2, kind::NOP, kind::WINDOW_SCALE, 3, 7];
    syn.push(&offers).expect("room");
    let mut sack = Options::default();
    sack.push_timestamps(Timestamps { value: 7, echo: 9 }).expect("room");
    let timestamps = sack;
    sack.push_sack(
        &[1_000, 3_000, 5_000].map(|at| SackBlock { start: Seq(at), end: Seq(at + 900) }),
    );
    let mut strange = Options::default();
    strange.push(&[kind::MPTCP, 8, 1, 2, 3, 4, 5, 6, kind::FAST_OPEN, 2, kind::END]).expect("room");
    let plain = Options::default();
    [
        ("plain", plain),
        ("syn", syn),
        ("timestamps", timestamps),
        ("strange", strange),
        ("sack", sack),
    ]
}

fn icmp_kinds(version: ip::Version) -> [(&'static str, u8, u8); 4] {
    match version {
        ip::Version::V4 => [("echo", 8, 0), ("too-big", 3, 4), ("port", 3, 3), ("time", 11, 0)],
        ip::Version::V6 => [("echo", 128, 0), ("too-big", 2, 0), ("port", 1, 4), ("time", 3, 0)],
    }
}

/// Hop-by-hop options, then a fragment header, then what is left of a TCP segment.
fn extension_headers() -> Vec<u8> {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = addresses(ip::Version::V6) else {
        unreachable!("these are of version 6")
    };
    let payload = [&[44, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 1, 0, 0, 0, 9][..], &[0x50; 24]].concat();
    let header = ipv6::Header {
        traffic_class: 0,
        flow_label: 0x12345,
        payload_length: payload.len() as u16,
        next_header: Protocol(0),
        hop_limit: 64,
        source,
        destination,
    };
    let mut bytes = Vec::new();
    header.emit(&mut bytes);
    bytes.extend(payload);
    bytes
}

/// A frame with two VLAN tags around a padded datagram, and an ARP request.
fn frames() -> Vec<Seed> {
    let (IpAddr::V4(source), IpAddr::V4(destination)) = addresses(ip::Version::V4) else {
        unreachable!("these are of version 4")
    };
    let macs = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1];
    let mut tagged = macs.to_vec();
    tagged.extend([0x88, 0xa8, 0, 1, 0x81, 0, 0, 2, 8, 0]);
    let ip = ip::Header::new(source.into(), destination.into(), Protocol::TCP);
    let ack = tcp::Header { flags: Flags::ACK, ..tcp::Header::new(80, 5_000) };
    datagram::emit_tcp(&ip, &ack, &[], &mut tagged).expect("fits");
    tagged.extend([0; 6]);
    assert_eq!(
        ethernet::Header::parse(&tagged).map(|(header, _)| header.ether_type),
        Ok(EtherType::IPV4)
    );
    let mut request = macs.to_vec();
    request.extend(EtherType::ARP.0.to_be_bytes());
    let sender_mac = Mac([2, 0, 0, 0, 0, 1]);
    let operation = arp::Operation::Request;
    let arp = arp::Packet {
        operation,
        sender_mac,
        sender: source,
        target_mac: Mac::default(),
        target: destination,
    };
    arp.emit(&mut request);
    let bare = request[14..].to_vec();
    vec![("frame-tagged".into(), tagged), ("frame-arp".into(), request), ("arp".into(), bare)]
}

/// Scripts for two endpoints: each sender and preset, a loss, a forgery, an early end.
fn endpoints() -> Vec<Seed> {
    // Congestion, preset, nothing toggled, initial sequence number; of the client, of the server.
    let worlds = [
        ("tahoe-1995", [0, 0, 0, 1, 0, 0, 0, 200]),
        ("reno-ns2", [1, 2, 0, 255, 1, 2, 0, 0]),
        ("newreno-modern", [2, 1, 0, 254, 2, 1, 0, 127]),
        ("vegas-ns2", [3, 2, 0, 255, 3, 2, 0, 0]),
        ("sack1-ns2", [4, 2, 0, 255, 4, 2, 0, 0]),
        ("sack-modern", [5, 1, 0, 254, 5, 1, 0, 127]),
        ("sack-with-1995", [5, 1, 0, 3, 0, 0, 0, 250]),
    ];
    let open = [11, 0, 0, 0, 0];
    let write = [9, 0x20, 0x01, 0x89, 0x05, 0xdc];
    let stories: [(&str, &[u8]); 8] = [
        ("transfer", &[0, 0, 0, 0, 6, 0, 0, 0, 0, 11, 4, 0x8b, 4, 0, 0, 0, 0, 6]),
        ("loss", &[4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 6, 0, 0, 0, 7, 0]),
        ("reorder", &[3, 2, 3, 1, 5, 0, 0, 3, 3, 0, 0, 8, 200, 0x48, 30, 0]),
        ("frozen", &[0, 12, 9, 0, 0x8c, 9, 6, 12, 0, 0, 0]),
        ("abort", &[0, 0, 0x8b, 7, 0, 0, 6]),
        ("fin-beyond-a-hole", &[11, 4, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0]),
        ("fin-first", &[11, 4, 0x8b, 4, 3, 6, 3, 5, 3, 7, 3, 3, 0, 0, 0, 0, 0, 6]),
        (
            "forged",
            &[
                0x8e, 0x27, 0, 9, 0, 1, 0, 0x10, 1, 0, 0x0e, 0x61, 0, 100, 2, 0, 0x8f, 0x14, 0,
                0x12, 4, 2, 4, 5, 180, 0, 0, 6, 0x0e, 0x84, 0, 4, 0, 0,
            ],
        ),
    ];
    let mut seeds = Vec::new();
    for (world, configuration) in worlds {
        for (story, steps) in stories {
            let script = [&configuration, &open[..], &write, steps].concat();
            seeds.push((format!("{world}-{story}"), script));
        }
    }
    // The server has 600 bytes of room and reads when told; then all that is on the wire is lost.
    let small_window = [1, 0, 0, 9, 1, 0, 0x82, 0, 250];
    for rounds in 1..5 {
        let steps = [&[0, 0, 6].repeat(rounds)[..], &[0x8d, 0x40, 0, 4, 4, 4]].concat();
        let script = [&small_window[..], &open, &write[..3], &steps].concat();
        seeds.push((format!("lost-window-update-{rounds}"), script));
    }
    seeds
}

/// Scripts for an agent, strict and modern: repair, SACK, silence, hostile segments, notices.
fn agent() -> Vec<Seed> {
    // Segments of 1000 bytes at 0, 1000 and so on, and their departures.
    let data = [0, 0, 8, 0, 8, 8, 0, 16, 8, 0, 24, 8, 7, 3];
    let stories: [(&str, &[u8]); 8] = [
        ("dupacks", &[3, 8, 0, 3, 8, 0, 3, 8, 0, 7, 9, 3, 32, 0]),
        ("sack", &[3, 8, 4, 16, 8, 7, 1, 3, 8, 8, 16, 4, 24, 8, 3, 16, 0, 9]),
        ("silence", &[9, 7, 1, 9, 7, 1, 9, 9, 3, 8, 0, 7, 9, 9]),
        ("sender-repeats", &[3, 8, 0, 0, 8, 8, 3, 8, 0, 0, 0, 8, 0, 4, 12]),
        ("queue-drops", &[0, 32, 8, 0, 40, 8, 8, 1, 7, 9, 3, 8, 4, 24, 8]),
        ("super-packet", &[0, 48, 0x4f, 10, 7, 9, 3, 50, 4, 54, 3, 3, 50, 0]),
        ("notices", &[14, 0, 9, 14, 1, 7, 9, 3, 8, 0, 14, 3, 0, 8, 8]),
        (
            "hostile",
            &[
                0x1b, 3, 0, 9, 0, 8, 0, 0x10, 3, 5, 10, 1, 0x0b, 4, 0xff, 0xff, 0xff, 0xff, 0, 0,
                0, 0, 0, 0x11, 0, 5, 0xdc, 12, 3, 0, 80, 19, 136, 0, 0, 4, 0, 0, 0, 8, 0, 80, 16,
                4, 0, 0, 0, 0, 0, 13, 1, 9, 0, 13, 3, 9, 2, 15, 1, 10, 200, 0xca, 200,
            ],
        ),
    ];
    let mut seeds = Vec::new();
    for (name, configuration) in
        [("strict", [0, 0]), ("modern", [1, 2]), ("small", [0x8f, 0]), ("assumed", [0x31, 3])]
    {
        for (story, steps) in stories {
            let script = [&configuration, &data[..], steps].concat();
            seeds.push((format!("{name}-{story}"), script));
        }
    }
    seeds
}

/// Scripts for mobile hosts that roam by registrations, greetings and roles: handoffs with and
/// without losses, and messages that nobody has asked for.
fn engines() -> Vec<Seed> {
    // Heard, and attached there; what is under way arrives in order.
    let arrive = |times: usize| [0, 0].repeat(times);
    let first = [&[12, 0, 100, 11, 0][..], &arrive(8)].concat();
    let second = [&[12, 1, 100, 11, 1][..], &arrive(12)].concat();
    let data = [&[13, 0, 13, 1][..], &arrive(4)].concat();
    let stories: [(&str, Vec<u8>); 6] = [
        ("stays", [&first[..], &data, &[9, 9, 9], &data].concat()),
        ("moves", [&first[..], &data, &second, &data, &[10, 3, 2], &data].concat()),
        ("loses", [&first[..], &[12, 1, 100, 11, 1, 5, 0, 5, 0, 9, 9], &arrive(9), &data].concat()),
        ("twice", [&first[..], &[12, 1, 100, 11, 1, 4, 0, 4, 1], &arrive(12), &data].concat()),
        ("changed", [&first[..], &[11, 1, 6, 0, 20, 1, 7, 0, 30, 8, 0, 2], &data].concat()),
        (
            "proved",
            [&first[..], &[15, 1, 0, 1, 0, 2, 0, 2, 5, 0, 0, 0, 0, 3, 2, 0, 1], &data].concat(),
        ),
    ];
    let mut seeds = Vec::new();
    for (name, bits) in
        [("registration", 0), ("greeting", 1), ("roles", 2), ("modern", 5), ("modern-roles", 6)]
    {
        for (story, steps) in &stories {
            seeds.push((format!("{name}-{story}"), [&[bits][..], steps].concat()));
        }
    }
    seeds
}
