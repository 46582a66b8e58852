//! What passes between two devices, counted for a while without touching it: what share is TCP that
//! a daemon can read, and what share of that is seen both ways.

use crate::sys::packet_socket::{Leave, Listen, PacketSocket, Prefix, Received};
use crate::sys::poll::Poll;
use crate::sys::{Clock, signals::Signals};
use anyhow::Result;
use sansio::{Duration, Instant, Side};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use wire::ethernet::{self, EtherType};

/// What kind of traffic a frame belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// TCP whose header can be read, whatever its payload.
    Tcp,
    /// UDP to or from port 443 (RFC 9000 names no port, but this is where it is).
    Quic,
    /// IPsec: ESP (RFC 4303), or ESP in UDP port 4500 (RFC 3948).
    Ipsec,
    /// UDP whose payload begins and measures as WireGuard's messages do.
    WireGuard,
    /// Other UDP.
    Udp,
    /// Anything else, fragments and tagged frames, too.
    Other,
}

impl Class {
    const ALL: [Class; 6] =
        [Class::Tcp, Class::Quic, Class::Ipsec, Class::WireGuard, Class::Udp, Class::Other];

    fn text(self) -> &'static str {
        match self {
            Class::Tcp => "TCP",
            Class::Quic => "QUIC (UDP 443)",
            Class::Ipsec => "IPsec",
            Class::WireGuard => "WireGuard-like",
            Class::Udp => "other UDP",
            Class::Other => "other",
        }
    }
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// For how long, in seconds.
    pub seconds: f64,
    /// Bytes of frames that arrived on both devices, by class.
    pub bytes: BTreeMap<Class, u64>,
    /// TCP flows seen: four-tuples, both directions of one connection being one.
    pub flows: u64,
    /// Of those with a few packets, flows of which only one direction was seen.
    pub one_way_flows: u64,
    /// Bytes toward the mobile hosts of TCP flows seen both ways: what can be helped.
    pub helpable_bytes: u64,
    /// Frames that came faster than they were counted.
    pub overruns: u64,
}

/// A connection, the lower end first.
type Connection = [(IpAddr, u16); 2];

/// What was seen of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Seen {
    /// Packets from the lower end, and from the higher one.
    packets: [u64; 2],
    /// Bytes that arrived from the wired side.
    down_bytes: u64,
}

/// What is counted while it passes.
#[derive(Clone, Debug, Default)]
struct Tally {
    bytes: BTreeMap<Class, u64>,
    flows: BTreeMap<Connection, Seen>,
}

/// Connections that are told apart; further ones are in no flow.
const FLOWS_MAX: usize = 1 << 16;
/// A flow with fewer packets may just have begun.
const PACKETS_MIN: u64 = 4;

/// Counts what arrives on both devices for so long, or until Ctrl-C.
///
/// # Errors
/// If a device does not exist, or packet sockets are not allowed: CAP_NET_RAW is needed.
pub fn watch(wired: &str, radio: &str, span: Duration) -> Result<Traffic> {
    let open = |name| PacketSocket::open(name, Prefix::Nothing, Listen::All, Leave::Direct);
    let sockets = [(Side::WIRED, open(wired)?), (Side::RADIO, open(radio)?)];
    let signals = Signals::catch()?;
    let mut poll = Poll::new()?;
    poll.add(&signals, 0)?;
    for (_, socket) in &sockets {
        poll.add(socket, 1)?;
    }
    let clock = Clock::starting_now();
    let end = Instant::ZERO + span;
    let mut tally = Tally::default();
    let mut received = Received::new();
    while clock.now() < end && !signals.caught() {
        poll.wait(Some(clock.monotonic_at(end)))?;
        for (side, socket) in &sockets {
            // A device that goes down has nothing to count.
            let _count = socket.receive(&mut received);
            for frame in received.frames() {
                tally.note(*side, frame);
            }
        }
    }
    let overruns = sockets.iter().map(|(_, socket)| socket.overruns()).sum();
    Ok(Traffic { overruns, ..tally.sum_up(clock.now().as_secs_f64()) })
}

impl Tally {
    fn note(&mut self, side: Side, frame: &[u8]) {
        let (class, connection) = classify(frame);
        *self.bytes.entry(class).or_default() += frame.len() as u64;
        let Some([from, to]) = connection else { return };
        let (key, from_lower) = if from <= to { ([from, to], true) } else { ([to, from], false) };
        if self.flows.len() >= FLOWS_MAX && !self.flows.contains_key(&key) {
            return;
        }
        let seen = self.flows.entry(key).or_default();
        seen.packets[usize::from(!from_lower)] += 1;
        if side == Side::WIRED {
            seen.down_bytes += frame.len() as u64;
        }
    }

    fn sum_up(self, seconds: f64) -> Traffic {
        let is_two_way = |seen: &&Seen| seen.packets.iter().all(|count| *count > 0);
        let flows = self.flows.values();
        let one_way = flows
            .clone()
            .filter(|seen| !is_two_way(seen) && seen.packets.iter().sum::<u64>() >= PACKETS_MIN);
        Traffic {
            seconds,
            bytes: self.bytes,
            flows: self.flows.len() as u64,
            one_way_flows: one_way.count() as u64,
            helpable_bytes: flows.filter(is_two_way).map(|seen| seen.down_bytes).sum(),
            overruns: 0,
        }
    }
}

/// The class of a frame, and of TCP from where to where.
fn classify(frame: &[u8]) -> (Class, Option<Connection>) {
    let Ok((link, at)) = ethernet::Header::parse(frame) else { return (Class::Other, None) };
    let datagram = frame.get(at..).unwrap_or_default();
    let parsed = match link.ether_type {
        EtherType::IPV4 => v4(datagram),
        EtherType::IPV6 => v6(datagram),
        _ => None,
    };
    let Some((protocol, [from, to], payload)) = parsed else { return (Class::Other, None) };
    let ports = payload
        .first_chunk::<4>()
        .map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
    match (protocol, ports) {
        (ESP, _) => (Class::Ipsec, None),
        (TCP, Some((source, destination))) => {
            (Class::Tcp, Some([(from, source), (to, destination)]))
        }
        (UDP, Some(ports)) => (udp(ports, payload.get(8..).unwrap_or_default()), None),
        _ => (Class::Other, None),
    }
}

const TCP: u8 = wire::ip::Protocol::TCP.0;
const UDP: u8 = 17;
/// RFC 4303.
const ESP: u8 = 50;

fn udp((source, destination): (u16, u16), payload: &[u8]) -> Class {
    let has = |port| source == port || destination == port;
    if has(443) {
        return Class::Quic;
    }
    if has(4500) {
        return Class::Ipsec;
    }
    // Type, three zero bytes, and the length of that type (the WireGuard paper, section 5.4).
    let is_wireguard = match payload.first_chunk::<4>() {
        Some([1, 0, 0, 0]) => payload.len() == 148,
        Some([2, 0, 0, 0]) => payload.len() == 92,
        Some([3, 0, 0, 0]) => payload.len() == 64,
        Some([4, 0, 0, 0]) => payload.len() >= 32 && payload.len().is_multiple_of(16),
        _ => false,
    };
    if is_wireguard { Class::WireGuard } else { Class::Udp }
}

/// Protocol, addresses and payload of an unfragmented IPv4 datagram.
fn v4(datagram: &[u8]) -> Option<(u8, [IpAddr; 2], &[u8])> {
    let header = datagram.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let length = usize::from(header[0] & 0xf) * 4;
    let address =
        |at: usize| IpAddr::from([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let payload = datagram.get(length..)?;
    (!is_fragment).then(|| (header[9], [address(12), address(16)], payload))
}

/// The same of IPv6, without extension headers.
fn v6(datagram: &[u8]) -> Option<(u8, [IpAddr; 2], &[u8])> {
    let header = datagram.first_chunk::<40>()?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("sixteen of forty bytes");
        IpAddr::from(octets)
    };
    Some((header[6], [address(8), address(24)], &datagram[40..]))
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.bytes.values().sum();
        if all == 0 {
            return write!(
                f,
                "nothing arrived in {:.0} s: there is nothing to judge",
                self.seconds
            );
        }
        let share = |bytes: u64| 100.0 * bytes as f64 / all as f64;
        writeln!(f, "traffic of {:.0} s, {all} bytes that arrived on both devices:", self.seconds)?;
        for class in Class::ALL {
            let bytes = self.bytes.get(&class).copied().unwrap_or(0);
            if bytes > 0 {
                writeln!(f, "  {:<16} {:5.1} %", class.text(), share(bytes))?;
            }
        }
        write!(f, "  {} TCP flows", self.flows)?;
        if self.one_way_flows > 0 {
            write!(
                f,
                ", {} seen one way only: their other half takes another path, and nothing can be \
                 done for them here; put the daemon where both ways pass",
                self.one_way_flows
            )?;
        }
        write!(
            f,
            "\n  can be helped: {:.1} % (TCP toward the mobile hosts, seen both ways)",
            share(self.helpable_bytes)
        )?;
        if self.overruns > 0 {
            write!(f, "\n  {} frames came too fast to be counted", self.overruns)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame: 14 bytes of Ethernet, a header of IPv4 or IPv6, ports, payload.
    fn frame(v6: bool, protocol: u8, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![2; 12];
        bytes.extend(if v6 { [0x86, 0xdd] } else { [8, 0] });
        if v6 {
            bytes.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
            bytes.extend([[0xfd; 16], [0xfe; 16]].concat());
        } else {
            bytes.extend([0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            bytes.extend([10, 1, 0, 1, 10, 2, 0, 1]);
        }
        bytes.extend(ports.0.to_be_bytes());
        bytes.extend(ports.1.to_be_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn frames_are_told_apart_by_what_can_be_read() {
        let mut wireguard = vec![4, 0, 0, 0];
        wireguard.resize(64, 7);
        let cases = [
            (frame(false, 6, (80, 4_000), &[0; 20]), Class::Tcp),
            (frame(true, 6, (80, 4_000), &[0; 20]), Class::Tcp),
            (frame(false, 17, (443, 4_000), b"x"), Class::Quic),
            (frame(true, 17, (4_000, 443), b"x"), Class::Quic),
            (frame(false, 17, (4_500, 4_500), b"x"), Class::Ipsec),
            (frame(false, 50, (0, 0), b"x"), Class::Ipsec),
            (frame(false, 17, (51_820, 9), &wireguard), Class::WireGuard),
            (frame(false, 17, (51_820, 9), &wireguard[..63]), Class::Udp),
            (frame(false, 17, (53, 53), b"x"), Class::Udp),
            (frame(false, 1, (0, 0), b"x"), Class::Other),
            (vec![0; 5], Class::Other),
        ];
        for (frame, class) in cases {
            assert_eq!(classify(&frame).0, class, "{frame:?}");
        }
        let mut fragment = frame(false, 6, (80, 4_000), &[0; 20]);
        fragment[14 + 6] = 0x20;
        assert_eq!(classify(&fragment).0, Class::Other);
    }

    #[test]
    fn only_flows_seen_both_ways_can_be_helped() {
        let mut tally = Tally::default();
        let down = frame(false, 6, (80, 4_000), &[0; 100]);
        let mut up = down.clone();
        up[14 + 12..14 + 20].rotate_left(4);
        up[34..38].rotate_left(2);
        let lonely = frame(false, 6, (80, 4_001), &[0; 100]);
        for _ in 0..4 {
            tally.note(Side::WIRED, &down);
            tally.note(Side::WIRED, &lonely);
        }
        tally.note(Side::RADIO, &up);
        let traffic = tally.sum_up(10.0);
        assert_eq!((traffic.flows, traffic.one_way_flows), (2, 1));
        assert_eq!(traffic.helpable_bytes, 4 * down.len() as u64);
        let text = traffic.to_string();
        assert!(
            text.contains("can be helped: 44.4 %") && text.contains("1 seen one way"),
            "{text}"
        );
    }
}
