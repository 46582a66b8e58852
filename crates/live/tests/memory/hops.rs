//! The emulated hops as pure state, and the records that are read from their log.

use crate::common::{FIXED, Left, MOBILE, ack, at, data, frame};
use link::hop;
use link::outage::State;
use link::preset::Pair;
use live::radio::air::Air;
use live::radio::log::{Happened, Log};
use live::radio::replay::{BASE_STATION, FIXED_HOST, MOBILE_HOST, Stream, replay};
use live::radio::{Config, Lateness, Port, Report};
use sansio::{BitRate, Cause, Duration, Host, Instant, Payload, Side, StreamId};
use trace::metrics::{Meter, TransferSpec};
use trace::{Observer, Record, Role, What};
use wire::tcp::{self, Flags, Seq};

fn config() -> Config {
    let clean = hop::Config::clean(BitRate::from_mbps(8), Duration::from_millis(1));
    Config { wired: Pair::symmetric(clean.clone()), radio: Pair::symmetric(clean), seed: 1 }
}

/// An Ethernet frame without the virtio prefix.
fn bare(frame: &[u8]) -> &[u8] {
    &frame[10..]
}

#[test]
fn a_frame_takes_its_time_on_the_hop_and_leaves_at_the_other_end() {
    let mut air = Air::new(&config());
    // 60 bytes of payload, 100 of datagram: 100 us at 8 Mbit/s, and 1 ms of delay.
    let sent = data(1, &[0; 60]);
    assert_eq!(air.enter(Port::Fixed, bare(&sent), at(5)), None);
    let due = at(6) + Duration::from_micros(100);
    assert_eq!(air.next_event(), Some(due));
    assert_eq!(air.poll(Instant::from_nanos(due.as_nanos() - 1)), None);
    let left = air.poll(due).expect("it is due");
    assert_eq!((left.port, left.due), (Port::BaseWired, due));
    assert_eq!(left.bytes, bare(&sent));
}

#[test]
fn the_high_input_of_the_radio_overtakes_and_arp_is_not_delayed() {
    let mut air = Air::new(&config());
    let (slow, next, urgent) = (data(1, &[1; 60]), data(2, &[2; 60]), data(3, &[3; 60]));
    assert_eq!(air.enter(Port::BaseRadio, bare(&slow), at(0)), None);
    assert_eq!(air.enter(Port::BaseRadio, bare(&next), at(0)), None);
    assert_eq!(air.enter(Port::BaseRadioHigh, bare(&urgent), at(0)), None);
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert_eq!(air.enter(Port::BaseRadio, &arp, at(0)).as_deref(), Some(&arp[..]));
    let order: Vec<_> = std::iter::from_fn(|| air.poll(at(50))).map(|left| left.bytes).collect();
    assert_eq!(order, [bare(&slow), bare(&urgent), bare(&next)].map(<[u8]>::to_vec));
}

/// Keeps causes and deliveries as text.
#[derive(Default)]
struct Told(Vec<String>);

impl Observer for Told {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let (node, millis) = (record.node.0, record.at.as_nanos() / 1_000_000);
        let payload = |payload: &Payload| match payload {
            Payload::Virtual { offset, length, .. } => format!("{offset}+{length}"),
            other => panic!("{other:?}"),
        };
        match record.what {
            What::Sent { packet, side, .. } if !packet.payload.is_empty() => {
                let (cause, bytes) = (packet.cause, payload(&packet.payload));
                self.0.push(format!("{millis} node {node} side {} {cause:?} {bytes}", side.0));
            }
            What::Delivered { payload: delivered } => {
                self.0.push(format!("{millis} node {node} delivers {}", payload(delivered)));
            }
            What::LinkDown { .. } => self.0.push(format!("{millis} node {node} down")),
            What::LinkUp { .. } => self.0.push(format!("{millis} node {node} up")),
            _ => {}
        }
    }
}

/// A segment with its IP identification, the checksum of the IP header left wrong.
fn marked(seq: u32, payload: &[u8], identification: u16) -> Vec<u8> {
    let mut bytes = data(seq, payload);
    bytes[10 + 14 + 4..][..2].copy_from_slice(&identification.to_be_bytes());
    bytes
}

/// Lets everything arrive at its time, up to `until`.
fn pass_time(air: &mut Air, until: Instant) {
    while let Some(next) = air.next_event().filter(|next| *next <= until) {
        while air.poll(next).is_some() {}
    }
}

fn stream() -> Stream {
    let accepted_at = Host { address: MOBILE, port: 4_000 };
    Stream { stream: StreamId(0), sender: FIXED_HOST, receiver: MOBILE_HOST, accepted_at }
}

fn report(log: Log, transitions: Vec<(Instant, State)>) -> Report {
    Report { log, transitions, lateness: Lateness::default(), mishaps: 0 }
}

/// The start of a connection, one segment through, and what the base station makes of it.
fn story() -> Report {
    let mut air = Air::new(&config());
    let mut syn = tcp::Header::new(80, 4_000);
    (syn.seq, syn.flags) = (Seq(u32::MAX), Flags::SYN);
    let syn = frame(Side::WIRED, &syn, &[], Left::Nothing);
    let segment = marked(0, &[7; 100], 11);
    let again = marked(0, &[7; 100], 12);
    let probe = marked(0, &[7; 1], 11);
    let steps = [
        (0, Port::Fixed, &syn),
        (10, Port::Fixed, &segment),
        (20, Port::BaseRadio, &segment),
        (30, Port::BaseRadioHigh, &segment),
        (40, Port::BaseRadioHigh, &probe),
        (50, Port::Fixed, &again),
        (60, Port::BaseRadio, &again),
        (70, Port::Mobile, &ack(100)),
        (80, Port::Mobile, &ack(100)),
    ];
    for (millis, port, frame) in steps {
        pass_time(&mut air, at(millis));
        assert_eq!(air.enter(port, bare(frame), at(millis)), None);
    }
    pass_time(&mut air, at(100));
    report(air.into_log(), vec![(at(32), State::Down), (at(90), State::Up)])
}

#[test]
fn causes_and_deliveries_are_inferred_from_what_passed() {
    let mut told = Told::default();
    replay(&story(), &[stream()], &mut told);
    let expected = [
        "10 node 0 side 0 Original 0+100",
        "20 node 1 side 1 Original 0+100",
        "21 node 2 delivers 0+100",
        "30 node 1 side 1 LocalRetransmission 0+100",
        "32 node 1 down",
        "40 node 1 side 1 Probe 0+1",
        "50 node 0 side 0 EndToEndRetransmission 0+100",
        "60 node 1 side 1 EndToEndRetransmission 0+100",
        "90 node 1 up",
    ];
    assert_eq!(told.0, expected);
}

#[test]
fn data_beyond_a_gap_is_delivered_when_the_gap_closes_or_an_ack_says_so() {
    let mut air = Air::new(&config());
    let mut syn = tcp::Header::new(80, 4_000);
    (syn.seq, syn.flags) = (Seq(u32::MAX), Flags::SYN);
    let syn = frame(Side::WIRED, &syn, &[], Left::Nothing);
    let segments = [100, 200, 0].map(|seq| marked(seq, &[7; 100], seq as u16));
    let last = marked(300, &[7; 100], 300);
    let steps = [
        (0, Port::Fixed, &syn),
        (2, Port::Fixed, &segments[2]),
        (2, Port::Fixed, &segments[0]),
        (2, Port::Fixed, &segments[1]),
        (2, Port::Fixed, &last),
        (10, Port::BaseRadio, &segments[0]),
        (20, Port::BaseRadio, &segments[1]),
        (30, Port::BaseRadio, &segments[2]),
        // The last one reaches the mobile host by a way that the radio does not see.
        (40, Port::Mobile, &ack(400)),
    ];
    for (millis, port, frame) in steps {
        pass_time(&mut air, at(millis));
        assert_eq!(air.enter(port, bare(frame), at(millis)), None);
    }
    pass_time(&mut air, at(100));
    let mut told = Told::default();
    replay(&report(air.into_log(), Vec::new()), &[stream()], &mut told);
    told.0.retain(|line| line.contains("delivers"));
    assert_eq!(told.0, ["31 node 2 delivers 0+300", "40 node 2 delivers 300+100"]);
}

#[test]
fn the_simulators_meter_reads_the_labs_records() {
    let spec = TransferSpec {
        stream: StreamId(0),
        sender: FIXED_HOST,
        receiver: MOBILE_HOST,
        base: BASE_STATION,
        size: Some(100),
        messages: None,
    };
    let roles = vec![Role::FixedHost, Role::BaseStation, Role::MobileHost];
    let mut meter = Meter::new(roles, vec![spec]);
    replay(&story(), &[stream()], &mut meter);
    let measures = meter.finish(at(100));
    assert!(measures.transfers[0].complete);
    assert_eq!(measures.transfers[0].last_delivered_at.as_nanos() / 1_000_000, 21);
    // Counted where sent: by the host, and once more where the base station passes it on.
    assert_eq!((measures.retransmissions_local, measures.probes), (1, 1));
    assert_eq!(measures.lost, 0);
}

#[test]
fn other_connections_and_other_protocols_are_passed_but_not_told() {
    let mut air = Air::new(&config());
    let mut other = data(1, &[0; 60]);
    other[10 + 14 + 20 + 3] ^= 1;
    let mut icmp = data(1, &[0; 60]);
    icmp[10 + 14 + 9] = 1;
    for frame in [&other, &icmp] {
        assert_eq!(air.enter(Port::Fixed, bare(frame), at(1)), None);
    }
    assert_eq!(std::iter::from_fn(|| air.poll(at(9))).count(), 2, "both arrive");
    let log = air.into_log();
    let arrived = log.happenings.iter().filter(|one| one.what == Happened::Arrived).count();
    assert_eq!((log.packets.len(), arrived), (2, 2));
    let mut told = Told::default();
    replay(&report(log, Vec::new()), &[stream()], &mut told);
    assert_eq!(told.0, [""; 0]);
    assert_ne!(FIXED, MOBILE);
}

#[test]
fn a_replay_tells_the_cause_of_a_packet_by_whether_it_entered() {
    // The base station answers in the mobile host's name: nothing of it came from the radio.
    let mut air = Air::new(&config());
    air.enter(Port::BaseWired, bare(&ack(5)), at(1));
    let mut causes = Causes::default();
    replay(&report(air.into_log(), Vec::new()), &[stream()], &mut causes);
    assert_eq!(causes.0, [Cause::AgentAck]);
}

#[derive(Default)]
struct Causes(Vec<Cause>);

impl Observer for Causes {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if let What::Sent { packet, .. } = record.what {
            self.0.push(packet.cause);
        }
    }
}
