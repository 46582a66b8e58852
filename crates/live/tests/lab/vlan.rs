//! Connections of the same hosts and ports over one bridge, byte for byte the same but for their
//! VLAN tags and their data: the daemon serves the one without a tag and leaves the others alone.

use crate::bridge::{Bridge, Capture, FIXED_MAC, MOBILE_MAC};
use crate::support;
use live::lab::agent::{Agent, Line};
use live::lab::network::Names;
use live::sys::namespace::within;
use live::sys::packet_socket::{Head, Leave, Listen, Outgoing, PacketSocket, Prefix};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use wire::datagram::{self, Checksums, Transport};
use wire::ip::{self, Protocol};
use wire::tcp::{self, Flags, Seq};

/// What stands between the addresses and the type: nothing, two VLANs, a priority alone (VLAN 0),
/// a VLAN within a VLAN.
const TAGS: [&[u8]; 5] = [
    &[],
    &[0x81, 0, 0, 10],
    &[0x81, 0, 0, 20],
    &[0x81, 0, 0xa0, 0],
    &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 10],
];
const UNTAGGED: usize = 0;

/// Nobody's addresses, so that no kernel answers.
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 78, 5, 11);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 78, 5, 12);

pub(crate) fn tagged_frames_are_left_alone() {
    for back_end in [&[][..], &["--fast"]] {
        check(&Bridge::new(), back_end);
    }
}

/// Plays the same connection with every tag, in step, beside a daemon with these flags.
fn check(bridge: &Bridge, flags: &[&str]) {
    let Names { fixed, base, mobile, .. } = bridge.names();
    let mobiles = MOBILE.to_string();
    let first = ["daemon", "--one-radio-device", "--bridge", "--mobile", &mobiles];
    let program = support::program(&[&first, flags].concat());
    let daemon = Agent::start(&program, "snoop", base, &Line::default());
    let daemon = daemon.unwrap_or_else(|error| panic!("{error:#}"));
    let captures =
        [(Capture::begin(mobile, "in"), FIXED_MAC), (Capture::begin(fixed, "in"), MOBILE_MAC)];
    let open = |namespace: &str| {
        let open =
            || PacketSocket::open("net0", Prefix::Nothing, Listen::Nothing, Leave::Queued(0));
        within(namespace, open).expect("a socket")
    };
    let (at_fixed, at_mobile) = (open(fixed), open(mobile));
    // The second of four segments is lost, as far as the mobile host tells.
    let down = [1, 101, 201, 301];
    let up = [101, 101, 101, 401];
    for seq in down {
        send(&at_fixed, |tag| data(tag, seq));
    }
    for number in up {
        send(&at_mobile, |tag| ack(tag, number));
    }
    std::thread::sleep(Duration::from_millis(300));
    let said = daemon.statistics().expect("statistics");
    drop(daemon);
    let [downward, upward] = captures.map(|(capture, source)| {
        let frames = capture.end(source);
        frames.iter().filter_map(|frame| read(frame)).collect::<Vec<_>>()
    });
    for (tag, bytes) in TAGS.iter().enumerate() {
        let of_tag = |seen: &[Seen]| -> Vec<(u32, Vec<u8>)> {
            let of_tag = seen.iter().filter(|one| one.tag == *bytes);
            of_tag.map(|one| (one.number, one.payload.clone())).collect()
        };
        let (mut came, acks) = (of_tag(&downward), of_tag(&upward));
        for (seq, payload) in &came {
            assert_eq!(*payload, payload_of(tag), "{bytes:02x?}: {seq} has another's data");
        }
        let acks: Vec<u32> = acks.into_iter().map(|(ack, _)| ack).collect();
        if tag == UNTAGGED {
            let before = came.len();
            came.dedup();
            came.sort();
            came.dedup();
            assert!(came.len() < before, "{bytes:02x?}: the daemon sent no copy: {said}");
            assert!(acks.len() < up.len(), "{bytes:02x?}: no duplicate was withheld: {said}");
            assert_eq!(acks.last(), Some(&401));
        } else {
            assert_eq!(acks, up, "{bytes:02x?}");
        }
        let seqs: Vec<u32> = came.iter().map(|(seq, _)| *seq).collect();
        assert_eq!(seqs, down, "{bytes:02x?}");
    }
    let known = |seen: &[Seen]| seen.iter().all(|one| TAGS.contains(&&one.tag[..]));
    assert!(known(&downward) && known(&upward), "{downward:?} {upward:?}");
    let count = |what: &str| said["packets"][what].as_u64().expect("a count");
    let looked_at = count("taken") + count("seen");
    assert_eq!(looked_at, (down.len() + up.len()) as u64, "one of five connections: {said}");
    assert_eq!(said["scheme"]["flows_created"], 1, "{said}");
}

/// Sends a frame with each tag, then lets all of them pass.
fn send(socket: &PacketSocket, frame: impl Fn(usize) -> Vec<u8>) {
    let frames: Vec<Outgoing> =
        (0..TAGS.len()).map(|tag| Outgoing::new(Head::EMPTY, frame(tag))).collect();
    socket.send(&frames, &[], |index, error| panic!("frame {index}: {error}"));
    std::thread::sleep(Duration::from_millis(20));
}

fn payload_of(tag: usize) -> Vec<u8> {
    vec![tag as u8 + 1; 100]
}

fn data(tag: usize, seq: u32) -> Vec<u8> {
    let mut header = tcp::Header::new(80, 4_000);
    (header.seq, header.ack, header.flags) = (Seq(seq), Seq(7), Flags::ACK);
    header.window = 1_000;
    frame((tag, (FIXED_MAC, MOBILE_MAC), (FIXED, MOBILE)), &header, &payload_of(tag))
}

fn ack(tag: usize, ack: u32) -> Vec<u8> {
    let mut header = tcp::Header::new(4_000, 80);
    (header.seq, header.ack, header.flags) = (Seq(7), Seq(ack), Flags::ACK);
    header.window = 60_000;
    frame((tag, (MOBILE_MAC, FIXED_MAC), (MOBILE, FIXED)), &header, &[])
}

/// Tag, link-layer addresses and hosts, the source first.
type Ends = (usize, ([u8; 6], [u8; 6]), (Ipv4Addr, Ipv4Addr));

fn frame((tag, macs, hosts): Ends, header: &tcp::Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [&macs.1[..], &macs.0, TAGS[tag], &[8, 0]].concat();
    let ip = ip::Header::new(hosts.0.into(), hosts.1.into(), Protocol::TCP);
    datagram::emit_tcp(&ip, header, payload, &mut bytes).expect("it fits");
    bytes
}

/// A segment of one of the connections.
#[derive(Debug)]
struct Seen {
    tag: Vec<u8>,
    /// Sequence number of data, otherwise what is acknowledged.
    number: u32,
    payload: Vec<u8>,
}

fn read(frame: &[u8]) -> Option<Seen> {
    let mut at = 12;
    while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
        at += 4;
    }
    if frame.get(at..at + 2)? != [8, 0] {
        return None;
    }
    let bytes = &frame[at + 2..];
    let datagram = datagram::parse(bytes, Checksums::Verify).ok()?;
    let hosts = [FIXED, MOBILE].map(IpAddr::from);
    let Transport::Tcp(header) = datagram.transport else { return None };
    if ![datagram.ip.source, datagram.ip.destination].iter().all(|host| hosts.contains(host)) {
        return None;
    }
    let payload = bytes[datagram.payload].to_vec();
    let number = if payload.is_empty() { header.ack } else { header.seq };
    Some(Seen { tag: frame[12..at].to_vec(), number: number.0, payload })
}
