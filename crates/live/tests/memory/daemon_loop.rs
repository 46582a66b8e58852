//! The daemon's loop in memory, on a virtual clock.

use crate::common::{
    FIXED, FIXED_MAC, Left, MOBILE, MOBILE_MAC, ack, at, data, frame, frames, read,
};
use bytes::Bytes;
use live::daemon::neighbours::{Neighbours, Ways};
use live::daemon::station::{Departures, Station};
use live::frame::NETWORK_AT;
use live::io::memory::{Memory, Sent};
use proptest::prelude::*;
use sansio::{Deadline, Engine, Input, Instant, Packet, Priority, Side, Sink};
use schemes::Scheme;
use std::cell::RefCell;
use std::rc::Rc;
use wire::tcp::{self, Flags, Seq};

fn scheme(name: &str) -> Station<Scheme> {
    let scheme = Scheme::named(name).expect("a scheme");
    let departures =
        if scheme.wants_departures() { Departures::Reported } else { Departures::Silent };
    crate::common::station(scheme, departures)
}

/// A payload that tells its place.
fn payload(seq: u32, length: u32) -> Vec<u8> {
    (seq..seq + length).map(|place| (place % 251) as u8).collect()
}

#[test]
fn an_unchanged_packet_leaves_as_the_bytes_that_came_in() {
    let (mut station, mut io) = (scheme("plain"), Memory::default());
    let came = data(1, b"hello");
    io.arrive(at(1), Side::WIRED, came.clone());
    io.run(&mut station, at(2)).expect("memory does not fail");
    let (when, side, priority, left) = frames(&io).remove(0);
    assert_eq!((when, side, priority), (at(1), Side::RADIO, Priority::Normal));
    let mut expected = came;
    expected[10..16].copy_from_slice(&MOBILE_MAC.0);
    expected[16..22].copy_from_slice(&Memory::device(Side::RADIO).0);
    // One hop further: 63 to go. The checksum grows by the 0x100 that the hop limit's word lost.
    assert_eq!(expected[NETWORK_AT + 8], 64);
    expected[NETWORK_AT + 8] = 63;
    let checksum = read(&left).0;
    assert_eq!(checksum.ip.hop_limit, 63);
    expected[NETWORK_AT + 10..NETWORK_AT + 12].copy_from_slice(&left[NETWORK_AT + 10..][..2]);
    assert_eq!(left, expected);
}

#[test]
fn an_unknown_next_hop_is_left_to_the_kernel_until_its_frames_tell_it() {
    let scheme = Scheme::named("plain").expect("a scheme");
    let ways = Ways::Router(Neighbours::default());
    let selection = crate::common::selection();
    let mut station = Station::new(scheme, Departures::Silent, selection, ways);
    let mut io = Memory::default();
    io.arrive(at(1), Side::WIRED, data(1, b"a"));
    io.arrive(at(2), Side::RADIO, ack(2));
    io.arrive(at(3), Side::WIRED, data(2, b"b"));
    io.run(&mut station, at(4)).expect("memory does not fail");
    let Sent::Routed { destination, bytes, .. } = &io.sent[0] else { panic!("{:?}", io.sent[0]) };
    assert_eq!(*destination, MOBILE);
    let datagram = wire::datagram::parse(bytes, wire::datagram::Checksums::Verify);
    assert_eq!(datagram.expect("right checksums").ip.hop_limit, 63);
    let left = frames(&io);
    assert_eq!(left.len(), 2);
    assert_eq!(left[0].3[10..16], FIXED_MAC.0, "the fixed host's frame told its address");
    assert_eq!(left[1].3[10..16], MOBILE_MAC.0, "the mobile host's ACK did");
    assert_eq!(station.counters().routed, 1);
}

#[test]
fn snoop_repairs_a_loss_ahead_of_the_queue_with_the_bytes_that_came_in() {
    let (mut station, mut io) = (scheme("snoop"), Memory::default());
    for index in 0..4 {
        let seq = 1 + index * 100;
        io.arrive(at(u64::from(index) + 1), Side::WIRED, data(seq, &payload(seq, 100)));
    }
    // The second was lost: one ACK for the first, then a duplicate for the third.
    for (millis, acked) in [(10, 101), (12, 101)] {
        io.arrive(at(millis), Side::RADIO, ack(acked));
    }
    io.run(&mut station, at(13)).expect("memory does not fail");
    let left = frames(&io);
    let repairs: Vec<_> = left.iter().filter(|frame| frame.2 == Priority::High).collect();
    assert_eq!(repairs.len(), 1, "{left:?}");
    assert_eq!((repairs[0].0, repairs[0].1), (at(12), Side::RADIO));
    assert_eq!(repairs[0].3, left[1].3, "the very frame that left before");
    let to_sender = left.iter().filter(|frame| frame.1 == Side::WIRED).count();
    assert_eq!(to_sender, 1, "the duplicate ACK is not passed on");
}

#[test]
fn a_packet_that_the_engine_made_has_complete_checksums() {
    let (mut station, mut io) = (scheme("snoop"), Memory::default());
    io.arrive(at(1), Side::WIRED, data(1, &payload(1, 100)));
    io.arrive(at(2), Side::RADIO, ack(101));
    // The sender did not see the ACK: SNOOP-DATA-4 answers in the mobile host's name.
    io.arrive(at(300), Side::WIRED, data(1, &payload(1, 100)));
    io.run(&mut station, at(300)).expect("memory does not fail");
    let (when, side, _, left) = frames(&io).pop().expect("an answer");
    assert_eq!((when, side), (at(300), Side::WIRED));
    let (datagram, header, payload) = read(&left);
    assert_eq!((datagram.ip.source, datagram.ip.destination), (MOBILE, FIXED));
    assert_eq!((header.ack, payload.len()), (Seq(101), 0));
    assert_eq!(left[..10], [0; 10], "nothing is left to the device");
    assert_eq!(station.counters().made, 1);
}

#[test]
fn a_super_packet_passes_whole_and_is_repaired_by_the_segment() {
    let (mut station, mut io) = (scheme("snoop-modern"), Memory::default());
    let mut header = tcp::Header::new(80, 4_000);
    (header.seq, header.flags, header.window) = (Seq(1), Flags::ACK.with(Flags::PSH), 1_000);
    let whole = payload(1, 350);
    io.arrive(at(1), Side::WIRED, frame(Side::WIRED, &header, &whole, Left::Cutting(100)));
    for (millis, acked) in [(4, 101), (5, 101), (6, 101)] {
        io.arrive(at(millis), Side::RADIO, ack(acked));
    }
    io.run(&mut station, at(7)).expect("memory does not fail");
    let left = frames(&io);
    let first = &left[0].3;
    assert_eq!(first[0], 1, "the checksum is still the device's to complete");
    assert_eq!(first[1..10], frame(Side::WIRED, &header, &whole, Left::Cutting(100))[1..10]);
    assert_eq!(first[NETWORK_AT + 40..], whole[..]);
    let repair = left.iter().find(|frame| frame.2 == Priority::High).expect("a repair");
    let (_, header, repaired) = read(&repair.3);
    assert_eq!((header.seq, repaired), (Seq(101), payload(101, 100)));
    assert!(!header.flags.contains(Flags::PSH), "PSH belongs to the last segment");
    assert_eq!(repair.3[..10], [0; 10]);
}

#[test]
fn what_is_not_the_daemons_is_left_to_the_kernel_and_rubbish_is_counted() {
    let (mut station, mut io) = (scheme("snoop"), Memory::default());
    let mut to_base_station = data(1, b"a");
    to_base_station[NETWORK_AT + 16..NETWORK_AT + 20].copy_from_slice(&[10, 2, 0, 254]);
    let mut fragment = data(1, b"a");
    fragment[NETWORK_AT + 6] = 0x20;
    let mut expired = data(1, b"a");
    expired[NETWORK_AT + 8] = 1;
    let mut to_another_device = data(1, b"a");
    to_another_device[15] ^= 1;
    let kernels = [to_base_station, fragment, expired, to_another_device, vec![0; 30], vec![]];
    let left_to_kernel = kernels.len() as u64;
    for bytes in kernels {
        io.arrive(at(1), Side::WIRED, bytes);
    }
    let mut corrupt = data(1, b"a");
    *corrupt.last_mut().expect("a payload") ^= 1;
    io.arrive(at(1), Side::WIRED, corrupt);
    io.run(&mut station, at(2)).expect("memory does not fail");
    assert_eq!(io.sent, []);
    let counters = station.counters();
    assert_eq!((counters.left_to_kernel, counters.taken, counters.invalid), (left_to_kernel, 1, 1));
}

#[test]
fn the_same_arrivals_give_the_same_frames() {
    let script = || {
        let (mut station, mut io) = (scheme("snoop-modern"), Memory::default());
        for index in 0..50_u32 {
            let seq = 1 + index * 100;
            io.arrive(at(u64::from(index)), Side::WIRED, data(seq, &payload(seq, 100)));
            if index % 3 == 0 {
                io.arrive(at(u64::from(index)), Side::RADIO, ack(1 + index / 7 * 100));
            }
        }
        // Nothing more is heard: probes and timers follow.
        io.run(&mut station, at(2_000)).expect("memory does not fail");
        io.sent
    };
    let first = script();
    assert_eq!(first, script());
    assert!(first.len() > 70, "probes are among them: {}", first.len());
}

/// Forwards to the radio, notes what it is given, and has a timer at 5 ms.
#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<Vec<(Instant, String)>>>);

impl Engine for Recorder {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let note = |text: &str| self.0.borrow_mut().push((now, text.to_owned()));
        match input {
            Input::Arrival { packet, .. } => {
                note("arrival");
                sink.send(Side::RADIO, Priority::Normal, packet.clone());
                sink.send(Side::WIRED, Priority::Normal, packet);
            }
            Input::Timer => note("timer"),
            other => panic!("{other:?}"),
        }
    }

    fn on_departure(&mut self, side: Side, _: &Packet, _: &mut impl Sink, now: Instant) {
        assert_eq!(side, Side::RADIO);
        self.0.borrow_mut().push((now, "departure".to_owned()));
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let fired = self.0.borrow().iter().any(|(_, text)| text == "timer");
        (!fired).then_some(Deadline { at: at(5), timer: "recorder" })
    }
}

#[test]
fn departures_on_the_radio_are_reported_right_after_and_timers_fire_on_time() {
    let recorder = Recorder::default();
    let mut station = crate::common::station(recorder.clone(), Departures::Reported);
    let mut io = Memory::default();
    io.arrive(at(1), Side::WIRED, data(1, b"a"));
    io.arrive(at(1), Side::WIRED, data(2, b"b"));
    let last = Instant::from_nanos(at(5).as_nanos() - 1);
    io.run(&mut station, last).expect("memory does not fail");
    let noted = |texts: &[(u64, &str)]| {
        let expected: Vec<_> =
            texts.iter().map(|(ms, text)| (at(*ms), (*text).to_owned())).collect();
        assert_eq!(*recorder.0.borrow(), expected);
    };
    let so_far = [(1, "arrival"), (1, "arrival"), (1, "departure"), (1, "departure")];
    noted(&so_far);
    io.run(&mut station, at(5)).expect("memory does not fail");
    noted(&[&so_far[..], &[(5, "timer")]].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever arrives, nothing panics, and a frame is the kernel's, or invalid, or handled.
    #[test]
    fn rubbish_never_panics(
        spoiled in prop::collection::vec(
            (any::<bool>(), 0_usize..80, any::<u8>(), 0_usize..200), 1..60
        )
    ) {
        let (mut station, mut io) = (scheme("snoop-modern"), Memory::default());
        let count = spoiled.len() as u64;
        for (index, (wired, place, value, length)) in (0..).zip(spoiled) {
            let sent = || data(1 + index * 40, &payload(1, 100));
            let mut bytes = if wired { sent() } else { ack(41 * index) };
            if let Some(byte) = bytes.get_mut(place) {
                *byte = value;
            }
            bytes.truncate(length.max(20));
            let side = if wired { Side::WIRED } else { Side::RADIO };
            io.arrive(at(u64::from(index)), side, Bytes::from(bytes));
        }
        io.run(&mut station, at(1_000)).expect("memory does not fail");
        let counters = station.counters();
        prop_assert_eq!(counters.taken + counters.left_to_kernel, count);
        prop_assert!(counters.invalid <= counters.taken);
    }
}
