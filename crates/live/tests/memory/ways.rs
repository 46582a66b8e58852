//! The same loop behind a bridge, and where the kernel forwards what it sees.

use crate::common::{
    FIXED, FIXED_MAC, Left, MOBILE, MOBILE_MAC, ack, at, data, frame, frames, read, selection,
};
use live::daemon::bridged::Bridged;
use live::daemon::neighbours::{Neighbours, Ways};
use live::daemon::selection::{Place, Share};
use live::daemon::station::{Departures, Station};
use live::io::memory::Memory;
use live::io::{Arrived, PacketIo};
use live::sys::packet_socket::Outgoing;
use sansio::{Deadline, Duration, Engine, Input, Instant, Packet, Priority, Side, Sink};
use schemes::Scheme;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use wire::ethernet::Mac;
use wire::tcp::{self, Flags, Seq};

/// A station whose kernel forwards all but bare segments of mobile hosts.
fn fast(scheme: &str) -> Station<Scheme> {
    let scheme = Scheme::named(scheme).expect("a scheme");
    let mut selection = selection();
    selection.share = Share::Acks;
    let neighbours = Neighbours::configured([(FIXED, FIXED_MAC), (MOBILE, MOBILE_MAC)]);
    Station::new(scheme, Departures::Reported, selection, Ways::Router(neighbours))
}

/// A station on a bridge.
fn bridged(scheme: &str) -> Station<Scheme> {
    let scheme = Scheme::named(scheme).expect("a scheme");
    let mut selection = selection();
    selection.place = Place::Bridge { own: vec![OWN] };
    let ways = Ways::Bridge(Bridged::new(Duration::from_secs(300)));
    Station::new(scheme, Departures::Reported, selection, ways)
}

const OWN: wire::ethernet::Mac = wire::ethernet::Mac([2, 0, 0, 0, 9, 9]);

/// The same frame from one host to another, as on a bridge.
fn direct(side: Side, mut frame: Vec<u8>) -> Vec<u8> {
    let to = if side == Side::WIRED { MOBILE_MAC } else { FIXED_MAC };
    frame[10..16].copy_from_slice(&to.0);
    frame
}

/// Data of the mobile host, with an ACK.
fn uplink(seq: u32, acked: u32, payload: &[u8]) -> Vec<u8> {
    let mut header = tcp::Header::new(4_000, 80);
    (header.seq, header.ack, header.window) = (Seq(seq), Seq(acked), 60_000);
    header.flags = Flags::ACK.with(Flags::PSH);
    frame(Side::RADIO, &header, payload, Left::Nothing)
}

fn run(station: &mut Station<Scheme>, io: &mut Memory, until: Instant) {
    io.run(station, until).expect("memory does not fail");
}

#[test]
fn what_the_kernel_forwards_is_not_sent_but_cached_and_repaired() {
    let (mut station, mut io) = (fast("snoop"), Memory::default());
    for index in 0..4_u32 {
        io.arrive(at(1), Side::WIRED, data(1 + index * 100, &[index as u8; 100]));
    }
    io.arrive(at(5), Side::RADIO, uplink(7, 101, b"up"));
    run(&mut station, &mut io, at(6));
    assert_eq!(frames(&io), [], "the kernel has sent all of it");
    assert_eq!(station.engine().held_bytes(), 300, "the first is acknowledged");
    // The second was lost: the duplicate is inline, and stays here; the copy leaves.
    io.arrive(at(10), Side::RADIO, ack(101));
    run(&mut station, &mut io, at(11));
    let left = frames(&io);
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((left[0].1, left[0].2), (Side::RADIO, Priority::High));
    let (_, header, payload) = read(&left[0].3);
    assert_eq!((header.seq, payload), (Seq(101), vec![1; 100]));
    let counters = station.counters();
    assert_eq!((counters.seen, counters.taken, counters.sent, counters.discarded), (5, 1, 1, 1));
}

#[test]
fn duplicates_for_data_that_the_ring_has_lost_pass_untouched() {
    for scheme in ["snoop", "snoop-modern"] {
        let (mut station, mut io) = (fast(scheme), Memory::default());
        io.arrive(at(1), Side::WIRED, data(1, &[1; 100]));
        io.arrive(at(2), Side::RADIO, ack(101));
        // 101..201 went through the kernel and was never seen here; the radio lost it.
        for index in 2..6 {
            io.arrive(at(3), Side::WIRED, data(1 + index * 100, &[2; 100]));
        }
        for millis in 4..8 {
            io.arrive(at(millis), Side::RADIO, ack(101));
        }
        run(&mut station, &mut io, at(9));
        let to_sender: Vec<_> = frames(&io).into_iter().map(|frame| frame.1).collect();
        assert_eq!(to_sender, [Side::WIRED; 5], "{scheme}: the ACK, and every duplicate");
        assert_eq!(station.counters().discarded, 0);
    }
}

#[test]
fn what_cannot_be_withheld_nor_answered_is_counted() {
    let (mut station, mut io) = (fast("snoop"), Memory::default());
    io.arrive(at(1), Side::WIRED, data(1, &[1; 100]));
    io.arrive(at(2), Side::RADIO, ack(101));
    // SNOOP-DATA-4: inline, the station would answer in place of the mobile host.
    io.arrive(at(300), Side::WIRED, data(1, &[1; 100]));
    run(&mut station, &mut io, at(301));
    assert_eq!(frames(&io).len(), 1, "the ACK alone");
    let counters = station.counters();
    assert_eq!((counters.forwarded_all_the_same, counters.answers_left_out), (1, 1));
    assert_eq!((counters.discarded, counters.made), (0, 0));
}

/// Frames that a ring had kept for a while, each with the time at which it arrived.
struct Kept(Memory, Vec<Arrived>);

impl PacketIo for Kept {
    fn now(&self) -> Instant {
        self.0.now()
    }
    fn receive(&mut self, into: &mut Vec<Arrived>) -> anyhow::Result<()> {
        into.append(&mut self.1);
        Ok(())
    }
    fn mac(&self, side: Side, priority: Priority) -> Mac {
        self.0.mac(side, priority)
    }
    fn queue(&mut self, side: Side, priority: Priority, token: u32, frame: Outgoing) {
        self.0.queue(side, priority, token, frame);
    }
    fn flush(&mut self, refused: &mut Vec<u32>) -> usize {
        self.0.flush(refused)
    }
    fn tell_bridge(&mut self, side: Side, station: Mac) {
        self.0.tell_bridge(side, station);
    }
    fn route(&mut self, destination: IpAddr, datagram: &[u8]) -> std::io::Result<()> {
        self.0.route(destination, datagram)
    }
}

/// Forwards to the other side, and notes when it was told of what.
#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<Vec<(Instant, &'static str)>>>);

impl Engine for Recorder {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let Input::Arrival { side, packet } = input else { panic!("{input:?}") };
        let (what, onward) = match side {
            Side::WIRED => ("data", Side::RADIO),
            _ => ("ack", Side::WIRED),
        };
        self.0.borrow_mut().push((now, what));
        sink.send(onward, Priority::Normal, packet);
    }

    fn on_departure(&mut self, _: Side, _: &Packet, _: &mut impl Sink, now: Instant) {
        self.0.borrow_mut().push((now, "departure"));
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}

#[test]
fn what_the_ring_kept_departed_when_it_arrived_and_time_never_goes_back() {
    let mut memory = Memory::default();
    let recorder = Recorder::default();
    let mut selection = selection();
    selection.share = Share::Acks;
    let neighbours = Neighbours::configured([(FIXED, FIXED_MAC), (MOBILE, MOBILE_MAC)]);
    let ways = Ways::Router(neighbours);
    let mut station = Station::new(recorder.clone(), Departures::Reported, selection, ways);
    // Nothing arrives in memory: it only brings the clock to 9 ms.
    memory.run(&mut station, at(9)).expect("memory does not fail");
    let arrived = |side, frame: Vec<u8>, at| Arrived { side, frame: frame.into(), at };
    let turn = vec![
        arrived(Side::WIRED, data(1, b"a"), Some(at(5))),
        // A clock that was set back in between.
        arrived(Side::WIRED, data(2, b"b"), Some(at(4))),
        arrived(Side::RADIO, ack(2), None),
    ];
    let mut io = Kept(memory, turn);
    station.turn(&mut io).expect("memory does not fail");
    let expected = [
        (at(5), "data"),
        (at(5), "departure"),
        (at(5), "data"),
        (at(5), "departure"),
        (at(9), "ack"),
    ];
    assert_eq!(recorder.0.borrow()[..], expected);
    let left = frames(&io.0);
    assert_eq!((left.len(), left[0].1), (1, Side::WIRED), "the ACK alone");
}

#[test]
fn an_ack_on_data_keeps_its_sack_blocks_where_the_kernel_forwards_it() {
    // Several holes, all cached: inline, the agent hides the blocks from the sender (MOD-1).
    let up = |blocks: bool| {
        let mut header = tcp::Header::new(4_000, 80);
        (header.seq, header.ack, header.window) = (Seq(7), Seq(101), 60_000);
        header.flags = Flags::ACK.with(Flags::PSH);
        if blocks {
            let block = tcp::SackBlock { start: Seq(201), end: Seq(301) };
            assert_eq!(header.options.push_sack(&[block]), 1, "there is room");
        }
        frame(Side::RADIO, &header, b"up", Left::Nothing)
    };
    let script = |station: &mut Station<Scheme>| {
        let mut io = Memory::default();
        for index in 0..4_u32 {
            io.arrive(at(1), Side::WIRED, data(1 + index * 100, &[index as u8; 100]));
        }
        io.arrive(at(20), Side::RADIO, ack(101));
        io.arrive(at(40), Side::RADIO, up(true));
        run(station, &mut io, at(41));
        io
    };
    let mut inline = crate::common::station(
        Scheme::named("snoop-modern").expect("a scheme"),
        Departures::Reported,
    );
    let io = script(&mut inline);
    let hidden = frames(&io).into_iter().filter(|frame| frame.1 == Side::WIRED).any(|frame| {
        let (_, header, payload) = read(&frame.3);
        payload == b"up" && header.options.sack_blocks().count() == 0
    });
    assert!(hidden, "inline the blocks are hidden");
    let mut station = fast("snoop-modern");
    let io = script(&mut station);
    let to_sender = frames(&io).into_iter().filter(|frame| frame.1 == Side::WIRED).count();
    assert_eq!(to_sender, 1, "the bare ACK only");
    assert_eq!(station.counters().forwarded_unchanged, 1);
}

#[test]
fn behind_a_bridge_frames_pass_as_they_came_and_acks_of_ours_bear_the_hosts_addresses() {
    let (mut station, mut io) = (bridged("snoop"), Memory::default());
    let first = direct(Side::WIRED, data(1, &[1; 100]));
    let acked = direct(Side::RADIO, ack(101));
    io.arrive(at(1), Side::WIRED, first.clone());
    io.arrive(at(2), Side::RADIO, acked.clone());
    io.arrive(at(300), Side::WIRED, first.clone());
    run(&mut station, &mut io, at(301));
    let left = frames(&io);
    assert_eq!((left[0].1, &left[0].3[..]), (Side::RADIO, &first[..]), "byte by byte");
    assert_eq!((left[1].1, &left[1].3[..]), (Side::WIRED, &acked[..]));
    // SNOOP-DATA-4: from the mobile host to the fixed host, in a frame as between those.
    assert_eq!(left.len(), 3);
    assert_eq!((left[2].1, &left[2].3[10..22]), (Side::WIRED, &acked[10..22]));
    let (datagram, ..) = read(&left[2].3);
    assert_eq!(datagram.ip.hop_limit, 64, "nothing was routed");
    assert_eq!(io.told, [(at(1), Side::WIRED, FIXED_MAC), (at(2), Side::RADIO, MOBILE_MAC)]);
}

#[test]
fn a_bridge_neither_passes_what_is_for_itself_nor_what_stays_on_its_side() {
    let (mut station, mut io) = (bridged("plain"), Memory::default());
    let mut to_us = data(1, b"a");
    to_us[10..16].copy_from_slice(&OWN.0);
    io.arrive(at(1), Side::WIRED, to_us);
    // The mobile host is heard on the wired side: what is for it stays there.
    io.arrive(at(2), Side::RADIO, direct(Side::RADIO, ack(1)));
    let mut moved = data(1, b"moved");
    moved[16..22].copy_from_slice(&MOBILE_MAC.0);
    moved[10..16].copy_from_slice(&FIXED_MAC.0);
    io.arrive(at(3), Side::WIRED, moved);
    io.arrive(at(4), Side::WIRED, direct(Side::WIRED, data(1, b"b")));
    run(&mut station, &mut io, at(5));
    let counters = station.counters();
    assert_eq!((counters.left_to_kernel, counters.filtered, counters.sent), (1, 1, 2));
}
