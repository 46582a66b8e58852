//! The selection said twice, to nft and by the daemon itself: both must agree to the packet.

use live::daemon::selection::{Place, Selection, Share};
use live::lab::network::Names;
use live::sys::namespace::within;
use live::sys::packet_socket::{Head, Leave, Listen, Outgoing, PacketSocket, Prefix, Received};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType, recv, socket_with};
use sansio::Side;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::process::Command;
use wire::ethernet::Mac;

const WIRED: Mac = Mac([2, 1, 0, 0, 0, 1]);
const RADIO: Mac = Mac([2, 1, 0, 0, 0, 2]);
const GROUP: Mac = Mac([0x33, 0x33, 0, 0, 0, 1]);
const OTHER: Mac = Mac([2, 1, 0, 0, 0, 3]);
/// Frames sent at once: as many as the sockets hold.
const AT_ONCE: usize = 100;
const ROUNDS: usize = 10;

/// What is put together to a frame, sensible or not.
#[derive(Clone, Debug)]
struct Made {
    destination: Mac,
    tags: &'static [u8],
    ether_type: u16,
    version: u8,
    /// Words of the IPv4 header.
    words: u8,
    source: IpAddr,
    target: IpAddr,
    fragment: u16,
    protocol: u8,
    hops: u8,
    tcp_words: u8,
    payload_bytes: u16,
    /// Added to the length that the IP header says.
    length_more: i16,
    /// Bytes cut off its end.
    cut: usize,
}

/// The first in three of four cases.
fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    (any::<u8>(), prop::sample::select(values))
        .prop_map(|(odd, value)| if odd < 192 { values[0].clone() } else { value })
}

/// Each field is mostly what the daemon takes, so that many frames differ in one thing only.
fn made(side: Side) -> impl Strategy<Value = Made> {
    const TAGS: &[&[u8]] =
        &[&[], &[0x81, 0, 0, 5], &[0x81, 0, 0x60, 0], &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 5]];
    const INNER: &[&str] = &["10.2.0.9", "10.3.1.1", "fd00::9", "fd00:0:0:1::9", "10.2.1.9"];
    const OUTER: &[&str] = &["10.1.0.9", "10.2.0.254", "fd01::9", "10.3.0.1", "fd00::7"];
    let address = |wanted: bool| {
        let texts = if wanted == (side == Side::RADIO) { INNER } else { OUTER };
        prop::sample::select(texts).prop_map(|text| text.parse::<IpAddr>().expect("an address"))
    };
    let mac = match side {
        Side::RADIO => one_of(&[RADIO, OTHER, WIRED, GROUP]),
        _ => one_of(&[WIRED, OTHER, RADIO, GROUP]),
    };
    let link = (mac, one_of(TAGS), one_of(&[true, false]));
    let header = (
        one_of(&[5_u8, 6, 15]),
        one_of(&[0x4000_u16, 0, 0x2000, 1, 0x8000]),
        one_of(&[6_u8, 17, 0]),
        one_of(&[64_u8, 2, 1, 0]),
    );
    let tcp = (one_of(&[8_u8, 5, 11, 15, 6, 4]), one_of(&[0_u16, 1, 4, 20, 200]));
    let odd = (one_of(&[0_i16, 4, -4, -30]), one_of(&[0_usize, 1, 8, 20, 40, 50]));
    (link, address(true), address(false), header, tcp, odd).prop_map(
        |(link, source, target, ip, tcp, odd)| {
            let is_v4 = target.is_ipv4();
            let (version, ether_type) = match link.2 {
                true => (if is_v4 { 4 } else { 6 }, if is_v4 { 0x0800 } else { 0x86dd }),
                false => (6, 0x0800),
            };
            Made {
                destination: link.0,
                tags: link.1,
                ether_type,
                version,
                words: ip.0,
                source: match source.is_ipv4() == is_v4 {
                    true => source,
                    false if is_v4 => IpAddr::from([10, 2, 0, 9]),
                    false => "fd00::9".parse().expect("an address"),
                },
                target,
                fragment: ip.1,
                protocol: ip.2,
                hops: ip.3,
                tcp_words: tcp.0,
                payload_bytes: tcp.1,
                length_more: odd.0,
                cut: odd.1,
            }
        },
    )
}

impl Made {
    /// The frame; its source address is its number.
    fn frame(&self, number: u32) -> Vec<u8> {
        let tcp_bytes = u16::from(self.tcp_words) * 4 + self.payload_bytes;
        let mut bytes = self.destination.0.to_vec();
        bytes.extend([2, 0]);
        bytes.extend(number.to_be_bytes());
        bytes.extend(self.tags);
        bytes.extend(self.ether_type.to_be_bytes());
        match (self.source, self.target) {
            (IpAddr::V4(source), IpAddr::V4(target)) => {
                let length = u16::from(self.words) * 4 + tcp_bytes;
                bytes.extend([self.version << 4 | self.words, 0]);
                bytes.extend(length.saturating_add_signed(self.length_more).to_be_bytes());
                bytes.extend([0, 0]);
                bytes.extend(self.fragment.to_be_bytes());
                bytes.extend([self.hops, self.protocol, 0, 0]);
                bytes.extend(source.octets());
                bytes.extend(target.octets());
                bytes.resize(bytes.len() + usize::from(self.words) * 4 - 20, 1);
            }
            (IpAddr::V6(source), IpAddr::V6(target)) => {
                bytes.extend([self.version << 4, 0, 0, 0]);
                bytes.extend(tcp_bytes.saturating_add_signed(self.length_more).to_be_bytes());
                bytes.extend([self.protocol, self.hops]);
                bytes.extend(source.octets());
                bytes.extend(target.octets());
            }
            _ => panic!("one version"),
        }
        let tcp_at = bytes.len();
        bytes.resize(tcp_at + usize::from(tcp_bytes).max(20), 0);
        bytes[tcp_at + 12] = self.tcp_words << 4;
        bytes[tcp_at + 13] = 0x10;
        bytes.truncate(bytes.len() - self.cut.min(bytes.len() - 14));
        bytes
    }
}

fn number(frame: &[u8]) -> Option<u32> {
    match frame.get(6..12)? {
        [2, 0, number @ ..] => Some(u32::from_be_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

/// A namespace with two devices to send on, and their other ends with the rules.
struct Bench {
    name: String,
}

impl Bench {
    fn new(selection: &Selection) -> Bench {
        let bench = Bench { name: Names::new(8).base };
        let name = &bench.name;
        let table = selection.table("verdicts", "wired", "radio").expect("device names");
        // The table shall outlive the nft that makes it.
        let table = table.replace("{ flags owner; }", "");
        let script = format!(
            "set -e
            ip netns add {name}
            ip -n {name} link add to-wired type veth peer name wired
            ip -n {name} link add to-radio type veth peer name radio
            for d in to-wired wired to-radio radio; do ip -n {name} link set $d up; done
            ip netns exec {name} nft -f - <<'END'\n{table}END"
        );
        let status = Command::new("sh").args(["-c", &script]).status();
        assert!(status.expect("sh runs").success(), "{script}");
        bench
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let removed = Command::new("ip").args(["netns", "del", &self.name]).status();
        assert!(removed.is_ok_and(|status| status.success()));
    }
}

pub(crate) fn nft_and_the_daemon_agree() {
    let mobile = ["10.2.0.0/24", "10.3.0.0/16", "10.2.0.0/25", "fd00::/64"];
    let router = Place::Router { wired: WIRED, radio: RADIO };
    let bridge = Place::Bridge { own: vec![OTHER] };
    for (place, share) in [
        (router.clone(), Share::Everything),
        (router, Share::Acks),
        (bridge.clone(), Share::Everything),
        (bridge, Share::Acks),
    ] {
        let selection = Selection {
            mobile: mobile.iter().map(|prefix| prefix.parse().expect("a prefix")).collect(),
            own: vec!["10.2.0.254".parse().expect("an address")],
            place,
            share,
        };
        let bench = Bench::new(&selection);
        let compared = within(&bench.name, || {
            compare(&selection);
            Ok(())
        });
        compared.expect("it runs");
    }
}

fn compare(selection: &Selection) {
    let open = |device: &str, listen| {
        PacketSocket::open(device, Prefix::Nothing, listen, Leave::Direct).expect("a socket")
    };
    let ways = [(Side::WIRED, "to-wired", "wired"), (Side::RADIO, "to-radio", "radio")];
    let ways = ways.map(|(side, from, to)| {
        (side, open(from, Listen::Nothing), open(to, Listen::Tcp), open(to, Listen::All))
    });
    // Bound to one protocol, a socket sees what the rules left.
    let protocols = [libc::ETH_P_IP, libc::ETH_P_IPV6, libc::ETH_P_8021Q, libc::ETH_P_8021AD];
    let left = protocols.map(|protocol| {
        let protocol = std::num::NonZeroU32::new(u32::from((protocol as u16).to_be()));
        let protocol = protocol.map(rustix::net::Protocol::from_raw);
        let (family, flags) = (AddressFamily::PACKET, SocketFlags::NONBLOCK);
        socket_with(family, SocketType::RAW, flags, protocol).expect("a socket")
    });
    let mut runner = TestRunner::deterministic();
    let (mut next, mut taken_in_all) = (0_u32, 0);
    for _ in 0..ROUNDS {
        let mut sent = Vec::new();
        for (side, socket, ..) in &ways {
            let mut frames = Vec::new();
            for _ in 0..AT_ONCE {
                let made = made(*side).new_tree(&mut runner).expect("a frame").current();
                next += 1;
                let rest = made.frame(next);
                sent.push((next, made));
                frames.push(Outgoing::new(Head::EMPTY, rest));
            }
            socket.send(&frames, &[], |index, error| panic!("{:?}: {error}", frames[index]));
        }
        let (mut taken, mut arrived) = (BTreeSet::new(), BTreeSet::new());
        let mut received = Received::new();
        for (side, _, socket, all) in &ways {
            while all.receive(&mut received).expect("frames") > 0 {
                arrived.extend(received.frames().filter_map(number));
            }
            while socket.receive(&mut received).expect("frames") > 0 {
                let frames = received.frames().filter(|frame| selection.takes(*side, frame));
                taken.extend(frames.filter_map(number));
            }
        }
        let mut passed = BTreeSet::new();
        for socket in &left {
            let mut buffer = [0_u8; 2048];
            while let Ok((length, _)) = recv(socket, &mut buffer, RecvFlags::empty()) {
                passed.extend(number(&buffer[..length]));
            }
        }
        // The kernel lets go of frames that end within a VLAN tag, before anybody looks.
        for (number, made) in sent.iter().filter(|(number, _)| arrived.contains(number)) {
            let (dropped, taken) = (!passed.contains(number), taken.contains(number));
            assert_eq!(dropped, taken, "dropped by nft, taken by the daemon; {made:#?}");
        }
        assert!(arrived.len() * 10 > sent.len() * 9, "{} of {}", arrived.len(), sent.len());
        taken_in_all += taken.len();
    }
    // A generator that never hits would show nothing.
    assert!(taken_in_all > 3 * ROUNDS, "{taken_in_all} frames were taken");
    println!("  {taken_in_all} of {} frames taken", ROUNDS * AT_ONCE * 2);
}
