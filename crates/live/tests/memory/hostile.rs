//! What nobody sends who means well, and what no limit allows: the daemon's loop passes it on, or
//! leaves it, and stands.

use crate::common::{FIXED_MAC, Left, MOBILE_MAC, ack, at, data, frame, frames, read};
use bytes::Bytes;
use live::daemon::station::{Departures, Station};
use live::frame::NETWORK_AT;
use live::io::memory::{Memory, Sent};
use proptest::prelude::*;
use sansio::{Priority, Side};
use schemes::{Scheme, snoop};
use wire::ethernet::Mac;
use wire::tcp::{self, Flags, Seq};

fn agent(config: snoop::Config) -> Station<Scheme> {
    let scheme = Scheme::Snoop(Box::new(snoop::Agent::new(config)));
    crate::common::station(scheme, Departures::Silent)
}

/// What the router changes: addresses of the link, and a hop.
fn one_hop_on(frame: &[u8], side: Side) -> Vec<u8> {
    let mut bytes = frame.to_vec();
    let (to, from): (Mac, Side) =
        if side == Side::WIRED { (MOBILE_MAC, Side::RADIO) } else { (FIXED_MAC, Side::WIRED) };
    bytes[10..16].copy_from_slice(&to.0);
    bytes[16..22].copy_from_slice(&Memory::device(from).0);
    let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let (old, checksum) = (word(&bytes, NETWORK_AT + 8), word(&bytes, NETWORK_AT + 10));
    bytes[NETWORK_AT + 8] -= 1;
    let new = word(&bytes, NETWORK_AT + 8);
    let change = wire::checksum::Change { old, new };
    let checksum = wire::checksum::update_word(checksum, change);
    bytes[NETWORK_AT + 10..NETWORK_AT + 12].copy_from_slice(&checksum.to_be_bytes());
    bytes
}

#[test]
fn what_only_hosts_may_judge_passes_as_it_came() {
    let spoil = |place: usize, value: u8| {
        let mut header = tcp::Header::new(80, 4_000);
        header.flags = Flags::ACK;
        header.options =
            tcp::Options::from_bytes(&[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]).expect("timestamps");
        let mut bytes = frame(Side::WIRED, &header, b"payload", Left::Nothing);
        bytes[NETWORK_AT + place] = value;
        bytes
    };
    let tcp = 20;
    let cases = [
        ("a checksum that is wrong", spoil(tcp + 16, 0x55)),
        ("a header longer than the segment", spoil(tcp + 12, 0xf0)),
        ("a header shorter than the least", spoil(tcp + 12, 0x40)),
        ("an option of no length", spoil(tcp + 23, 0)),
        ("an option longer than the header", spoil(tcp + 23, 40)),
        ("no ports", spoil(tcp, 0)),
    ];
    for name in ["snoop", "snoop-modern", "plain"] {
        for (case, bytes) in &cases {
            let scheme = Scheme::named(name).expect("a scheme");
            let mut station = crate::common::station(scheme, Departures::Silent);
            let mut io = Memory::default();
            io.arrive(at(1), Side::WIRED, bytes.clone());
            io.run(&mut station, at(1)).expect("memory does not fail");
            let left = frames(&io);
            assert_eq!(left.len(), 1, "{name}: {case}");
            assert_eq!(left[0].3, one_hop_on(bytes, Side::WIRED), "{name}: {case}");
            assert_eq!(station.counters().invalid, 0);
        }
    }
}

/// A transfer of `flows` connections with the losses that make an agent work; every frame has to
/// leave, or be one that the agent answers itself.
fn forwarded(station: &mut Station<Scheme>, flows: u16, segments: u32) -> (usize, usize) {
    let mut io = Memory::default();
    let mut sent = 0;
    for index in 0..segments {
        for flow in 0..flows {
            let mut header = tcp::Header::new(80, 4_000 + flow);
            (header.seq, header.flags, header.window) = (Seq(1 + index * 500), Flags::ACK, 1_000);
            let bytes = frame(Side::WIRED, &header, &[7; 500], Left::Nothing);
            io.arrive(at(u64::from(index)), Side::WIRED, bytes);
            sent += 1;
        }
    }
    io.run(station, at(u64::from(segments))).expect("memory does not fail");
    let left = frames(&io);
    for (_, _, _, bytes) in &left {
        let (_, header, _) = read(bytes);
        assert!(!header.flags.contains(Flags::RST), "{header:?}");
    }
    let data = left.iter().filter(|frame| frame.1 == Side::RADIO && frame.2 == Priority::Normal);
    (sent, data.count())
}

#[test]
fn mod_14_when_its_memory_is_full_data_passes_uncached() {
    let config = snoop::Config { cache_bytes_total_max: 5_000, ..snoop::Config::modern() };
    let mut station = agent(config);
    let (sent, left) = forwarded(&mut station, 3, 40);
    assert_eq!(left, sent);
    let Scheme::Snoop(agent) = station.engine() else { panic!("it is that scheme") };
    assert!(station.engine().held_bytes() <= 5_000, "{}", station.engine().held_bytes());
    assert!(agent.statistics().uncached > 0, "{:?}", agent.statistics());
}

#[test]
fn mod_14_when_its_table_is_full_further_flows_pass_untouched() {
    let config = snoop::Config { flows_max: 2, ..snoop::Config::modern() };
    let mut station = agent(config);
    let (sent, left) = forwarded(&mut station, 9, 5);
    assert_eq!(left, sent);
    let Scheme::Snoop(agent) = station.engine() else { panic!("it is that scheme") };
    assert_eq!(agent.flows(), 2);
    assert!(agent.statistics().flows_refused > 0, "{:?}", agent.statistics());
}

/// A frame of a storm: from a flow that lives, then spoiled.
#[derive(Clone, Debug)]
struct Arrow {
    wired: bool,
    seq: u32,
    ack: u32,
    flags: u16,
    port: u16,
    options: Vec<u8>,
    length: usize,
    spoiled: Option<(usize, u8)>,
    cut: Option<usize>,
}

fn arrow() -> impl Strategy<Value = Arrow> {
    // Near the stream's place, near the end of numbers, and anywhere.
    let number = || prop_oneof![0_u32..6_000, 0xffff_f000..=u32::MAX, any::<u32>()];
    let options = prop_oneof![
        Just(vec![]),
        prop::collection::vec(any::<u8>(), 1..40),
        (number(), number()).prop_map(|(left, right)| {
            [&[1, 1, 5, 10][..], &left.to_be_bytes(), &right.to_be_bytes()].concat()
        }),
        Just(vec![19, 18, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 1]),
        Just(vec![29, 4, 1, 1]),
        Just(vec![30, 12, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let head = (any::<bool>(), number(), number(), 0_u16..0x200, 4_000_u16..4_003);
    let spoiled = prop::option::weighted(0.2, (0_usize..80, any::<u8>()));
    let cut = prop::option::weighted(0.1, 0_usize..90);
    (head, options, 0_usize..1_400, spoiled, cut).prop_map(
        |((wired, seq, ack, flags, port), options, length, spoiled, cut)| Arrow {
            wired,
            seq,
            ack,
            flags,
            port,
            options,
            length,
            spoiled,
            cut,
        },
    )
}

impl Arrow {
    fn bytes(&self) -> (Side, Vec<u8>) {
        let (side, from, to) = match self.wired {
            true => (Side::WIRED, 80, self.port),
            false => (Side::RADIO, self.port, 80),
        };
        let mut header = tcp::Header::new(from, to);
        (header.seq, header.ack, header.flags) = (Seq(self.seq), Seq(self.ack), Flags(self.flags));
        header.window = 60_000;
        let padded = [&self.options[..], &[0; 3]].concat();
        let length = self.options.len().next_multiple_of(4);
        // Rubbish is spoiled in afterwards: the header's own type takes none.
        let valid = tcp::Options::from_bytes(&vec![1; length]).expect("no operation");
        header.options = valid;
        let mut bytes = frame(side, &header, &vec![1; self.length], Left::Nothing);
        bytes[NETWORK_AT + 40..NETWORK_AT + 40 + length].copy_from_slice(&padded[..length]);
        // The device is said to have verified the checksum, so that the agent looks at it.
        bytes[0] = 2;
        if let Some((place, value)) = self.spoiled
            && let Some(byte) = bytes.get_mut(NETWORK_AT + place)
        {
            *byte = value;
        }
        if let Some(length) = self.cut {
            bytes.truncate(length);
        }
        (side, bytes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Storms at flows that live: nothing panics, every frame is accounted for, and memory stays
    /// below its limit and below what arrived.
    #[test]
    fn storms_are_survived(
        arrows in prop::collection::vec(arrow(), 1..250),
        strict in any::<bool>(),
    ) {
        let config = if strict { snoop::Config::strict() } else { snoop::Config::modern() };
        let limits = (config.cache_bytes_total_max, u64::from(config.flows_max));
        let (mut station, mut io) = (agent(config), Memory::default());
        let mut millis = 0;
        for index in 0..4 {
            io.arrive(at(millis), Side::WIRED, data(1 + index * 100, &[1; 100]));
        }
        let mut arrived_bytes = 400;
        for arrow in &arrows {
            millis += 1;
            let (side, bytes) = arrow.bytes();
            arrived_bytes += bytes.len() as u64;
            io.arrive(at(millis), side, Bytes::from(bytes));
            io.arrive(at(millis), Side::RADIO, ack(101));
        }
        io.run(&mut station, at(millis + 3_000)).expect("memory does not fail");
        let counters = station.counters();
        let count = arrows.len() as u64;
        prop_assert_eq!(counters.taken + counters.left_to_kernel, 4 + 2 * count);
        let Scheme::Snoop(agent) = station.engine() else { unreachable!("it is that scheme") };
        prop_assert!(station.engine().held_bytes() <= limits.0.min(arrived_bytes));
        prop_assert!(agent.flows() as u64 <= limits.1);
        for sent in &io.sent {
            if let Sent::Frame { side, bytes, .. } = sent {
                prop_assert!(bytes.len() > NETWORK_AT, "{side:?}");
            }
        }
    }

    /// Fragments, other protocols, other hosts, expired packets: left to the kernel, whatever they
    /// hold.
    #[test]
    fn what_is_not_tcp_of_a_mobile_host_is_never_touched(
        arrow in arrow(),
        kind in 0_usize..5,
        protocol in (0_u8..=255).prop_filter("not TCP", |protocol| *protocol != 6),
    ) {
        let whole = Arrow { spoiled: None, cut: None, ..arrow };
        let (side, mut bytes) = whole.bytes();
        let ip = &mut bytes[NETWORK_AT..];
        let mobile = if side == Side::WIRED { 16 } else { 12 };
        match kind {
            0 => ip[9] = protocol,
            1 => ip[6] |= 0x20,
            2 => ip[7] = 9,
            3 => ip[8] = 1,
            _ => ip[mobile + 1] ^= 1,
        }
        let (mut station, mut io) = (agent(snoop::Config::modern()), Memory::default());
        io.arrive(at(1), side, bytes);
        io.run(&mut station, at(1_000)).expect("memory does not fail");
        prop_assert_eq!(io.sent.len(), 0);
        prop_assert_eq!(station.counters().left_to_kernel, 1);
    }
}
