//! Frames and base stations for the tests.

use bytes::Bytes;
use core::net::IpAddr;
use live::daemon::neighbours::{Neighbours, Ways};
use live::daemon::selection::{Place, Selection, Share};
use live::daemon::station::{Departures, Station};
use live::frame::NETWORK_AT;
use live::io::memory::{Memory, Sent};
use sansio::{Engine, Instant, Priority, Side};
use wire::datagram::{self, Checksums, Datagram};
use wire::ethernet::Mac;
use wire::ip::{self, Protocol};
use wire::tcp::{self, Flags, Seq};

pub(crate) const FIXED: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 1, 0, 1));
pub(crate) const MOBILE: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 2, 0, 1));
pub(crate) const FIXED_MAC: Mac = Mac([2, 0, 0, 0, 0, 1]);
pub(crate) const MOBILE_MAC: Mac = Mac([2, 0, 0, 0, 1, 1]);

/// What the sending host left to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Nothing.
    Nothing,
    /// The TCP checksum, and cutting into segments of this many bytes.
    Cutting(u16),
}

pub(crate) fn at(millis: u64) -> Instant {
    Instant::from_nanos(millis * 1_000_000)
}

/// A segment from the fixed host.
pub(crate) fn data(seq: u32, payload: &[u8]) -> Vec<u8> {
    let mut header = tcp::Header::new(80, 4_000);
    (header.seq, header.ack, header.flags) = (Seq(seq), Seq(7), Flags::ACK.with(Flags::PSH));
    header.window = 1_000;
    frame(Side::WIRED, &header, payload, Left::Nothing)
}

/// An ACK from the mobile host.
pub(crate) fn ack(ack: u32) -> Vec<u8> {
    let mut header = tcp::Header::new(4_000, 80);
    (header.seq, header.ack, header.flags) = (Seq(7), Seq(ack), Flags::ACK);
    header.window = 60_000;
    frame(Side::RADIO, &header, &[], Left::Nothing)
}

/// A frame that arrives on a side, virtio prefix first.
pub(crate) fn frame(side: Side, header: &tcp::Header, payload: &[u8], left: Left) -> Vec<u8> {
    let (source, destination, from) =
        if side == Side::WIRED { (FIXED, MOBILE, FIXED_MAC) } else { (MOBILE, FIXED, MOBILE_MAC) };
    let ip = ip::Header::new(source, destination, Protocol::TCP);
    let mut bytes = vec![0; 10];
    bytes.extend_from_slice(&Memory::device(side).0);
    bytes.extend_from_slice(&from.0);
    bytes.extend_from_slice(&[8, 0]);
    datagram::emit_tcp(&ip, header, payload, &mut bytes).expect("it fits");
    if let Left::Cutting(segment_bytes) = left {
        let (header_bytes, tcp_at) = (14 + 20 + header.bytes() as u16, 14 + 20_u16);
        bytes[0] = 1;
        bytes[1] = 1;
        bytes[2..4].copy_from_slice(&header_bytes.to_ne_bytes());
        bytes[4..6].copy_from_slice(&segment_bytes.to_ne_bytes());
        bytes[6..8].copy_from_slice(&tcp_at.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        // Only the pseudo-header's sum stands there; any wrong value will do.
        bytes[NETWORK_AT + 20 + 16] ^= 0x55;
    }
    bytes
}

/// A base station that knows both hosts.
pub(crate) fn station<E: Engine>(engine: E, departures: Departures) -> Station<E> {
    let neighbours = Neighbours::configured([(FIXED, FIXED_MAC), (MOBILE, MOBILE_MAC)]);
    Station::new(engine, departures, selection(), Ways::Router(neighbours))
}

pub(crate) fn selection() -> Selection {
    Selection {
        mobile: vec!["10.2.0.0/24".parse().expect("a prefix")],
        own: vec![IpAddr::from([10, 1, 0, 254]), IpAddr::from([10, 2, 0, 254])],
        place: Place::Router {
            wired: Memory::device(Side::WIRED),
            radio: Memory::device(Side::RADIO),
        },
        share: Share::Everything,
    }
}

/// What left as a frame, in order.
pub(crate) fn frames(io: &Memory) -> Vec<(Instant, Side, Priority, Bytes)> {
    let frames = io.sent.iter().filter_map(|sent| match sent {
        Sent::Frame { at, side, priority, bytes } => Some((*at, *side, *priority, bytes.clone())),
        Sent::Routed { .. } => None,
    });
    frames.collect()
}

/// The datagram in a frame whose checksums are complete.
pub(crate) fn read(frame: &[u8]) -> (Datagram, tcp::Header, Vec<u8>) {
    let bytes = &frame[NETWORK_AT..];
    let datagram = datagram::parse(bytes, Checksums::Verify).expect("right checksums");
    let datagram::Transport::Tcp(header) = datagram.transport else { panic!("{datagram:?}") };
    let payload = bytes[datagram.payload.clone()].to_vec();
    (datagram, header, payload)
}
