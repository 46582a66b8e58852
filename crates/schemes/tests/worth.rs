//! What help is worth: flows drawn by lot, measured, and left alone where it is worth nothing.

use sansio::{
    Delivery, DropReason, Duration, Engine, Event, FlowKey, Host, Input, Instant, Packet, PacketId,
    PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use schemes::Scheme;
use schemes::worth::{Group, Measured, Verdict, Worth};
use std::net::IpAddr;
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, Seq};

/// Keeps what was sent.
struct Sent {
    packets: Vec<(Side, PacketRef)>,
    next: PacketId,
}

impl Sink for Sent {
    const TRACE: bool = false;

    fn new_id(&mut self) -> PacketId {
        let id = self.next;
        self.next = id.next();
        id
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        self.packets.push((side, packet));
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {}

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, _: Event) {}
}

/// A measured agent with 10.1.0.0/16 as a class of its own, and flows through it.
struct Bench {
    engine: Measured<Scheme>,
    sent: Sent,
    now: Instant,
}

const MSS: u32 = 1000;

fn key(network: u8, flow: u16) -> FlowKey {
    let host = |octets: [u8; 4], port| Host { address: IpAddr::from(octets), port };
    FlowKey { source: host([10, 9, 0, 1], 80), destination: host([10, network, 0, 7], flow) }
}

impl Bench {
    fn new(control_ppm: u32) -> Self {
        let scheme = Scheme::named("snoop-modern").expect("a scheme of this name");
        let worth = Worth { control_ppm, ..Worth::default() };
        let class = ("trains".to_owned(), vec![(IpAddr::from([10, 1, 0, 0]), 16)]);
        Bench {
            engine: Measured::new(scheme, worth, [class], 7),
            sent: Sent { packets: Vec::new(), next: PacketId::FIRST },
            now: Instant::ZERO,
        }
    }

    fn after(&mut self, millis: u64) -> &mut Self {
        self.now += Duration::from_millis(millis);
        if self.engine.next_at().is_some_and(|at| at <= self.now) {
            self.engine.handle(Input::Timer, &mut self.sent, self.now);
        }
        self
    }

    fn arrive(&mut self, side: Side, key: FlowKey, seq: u32, ack: u32, length: u32) -> PacketId {
        let mut tcp = Header::new(key.source.port, key.destination.port);
        (tcp.seq, tcp.ack, tcp.flags, tcp.window) = (Seq(seq), Seq(ack), Flags::ACK, 1000);
        let ip = ip::Header::new(key.source.address, key.destination.address, Protocol::TCP);
        let payload = Payload::Virtual { stream: StreamId(0), offset: u64::from(seq), length };
        let id = self.sent.new_id();
        let packet = Packet::tcp(id, ip, tcp, payload).into();
        self.engine.handle(Input::Arrival { side, packet }, &mut self.sent, self.now);
        if side == Side::WIRED {
            let sent = self.sent.packets.iter().rev().find(|(_, packet)| packet.id == id);
            if let Some((_, packet)) = sent.cloned() {
                self.engine.on_departure(Side::RADIO, &packet, &mut self.sent, self.now);
            }
        }
        id
    }

    fn data(&mut self, key: FlowKey, start: u32) -> PacketId {
        self.arrive(Side::WIRED, key, start, 1, MSS)
    }

    fn ack(&mut self, key: FlowKey, ack: u32) -> PacketId {
        self.arrive(Side::RADIO, key.reversed(), 1, ack, 0)
    }

    fn has_passed(&self, id: PacketId) -> bool {
        self.sent.packets.iter().any(|(_, packet)| packet.id == id)
    }

    fn group(&self, key: &FlowKey) -> Group {
        self.engine.flow(key).expect("it is measured").group
    }

    /// A flow of 100 segments that takes so long, by group, and its group.
    fn transfer(&mut self, key: FlowKey, millis: impl Fn(Group) -> u64) -> Group {
        self.data(key, 0);
        let group = self.group(&key);
        let each = millis(group) / 100;
        self.sent.packets.clear();
        for segment in 1..=100 {
            self.after(each).data(key, segment * MSS);
            self.ack(key, segment * MSS);
        }
        let mut end = Header::new(key.source.port, key.destination.port);
        end.flags = Flags::RST;
        let ip = ip::Header::new(key.source.address, key.destination.address, Protocol::TCP);
        let packet = Packet::tcp(self.sent.new_id(), ip, end, Payload::EMPTY).into();
        let input = Input::Arrival { side: Side::WIRED, packet };
        self.engine.handle(input, &mut self.sent, self.now);
        group
    }
}

#[test]
fn worth_control_flows_pass_untouched_and_others_are_helped() {
    let mut bench = Bench::new(300_000);
    let mut control = 0;
    for flow in 0..300 {
        let key = key(1, flow);
        bench.data(key, 0);
        bench.after(10).ack(key, MSS);
        for segment in 1..6 {
            bench.data(key, segment * MSS);
        }
        bench.after(10);
        let acks: Vec<PacketId> = (0..4).map(|_| bench.ack(key, MSS)).collect();
        let passed = acks.iter().filter(|ack| bench.has_passed(**ack)).count();
        match bench.group(&key) {
            Group::Control => {
                control += 1;
                assert_eq!(passed, 4, "flow {flow}");
            }
            Group::Helped => assert!(passed < 4, "flow {flow}: a duplicate is withheld"),
        }
    }
    assert_eq!(bench.engine.control_flows(0..usize::MAX).count(), control);
    // 90 expected, with a standard deviation of 8.
    assert!((58..=122).contains(&control), "{control} of 300");
    assert!(bench.engine.inner().held_bytes() > 0);
}

#[test]
fn worth_while_it_looks_on_the_wait_for_the_senders_repair_is_counted() {
    let mut bench = Bench::new(50_000);
    bench.engine.set_acts(false);
    let key = key(1, 1);
    bench.data(key, 0);
    bench.after(10).ack(key, MSS);
    for segment in 1..6 {
        bench.data(key, segment * MSS);
    }
    bench.after(10);
    // Segment 1 is lost: a duplicate for each of the others.
    for _ in 0..4 {
        bench.ack(key, MSS);
    }
    // The sender repairs it 300 ms later.
    bench.after(300);
    bench.data(key, MSS);
    bench.after(10);
    bench.ack(key, 6 * MSS);
    let report = bench.engine.flow(&key).expect("it is measured");
    assert_eq!((report.repeats, report.would_repair), (1, 1), "{report:?}");
    assert_eq!(report.would_save, Duration::from_millis(300), "{report:?}");
}

#[test]
fn worth_a_class_that_is_slower_with_help_is_left_alone_and_others_are_not() {
    let mut bench = Bench::new(300_000);
    let slower = |group| if group == Group::Helped { 800 } else { 400 };
    let faster = |group| if group == Group::Helped { 400 } else { 800 };
    for flow in 0..60 {
        bench.transfer(key(1, flow), slower);
        bench.transfer(key(2, flow), faster);
    }
    let verdicts: Vec<(String, Verdict)> =
        bench.engine.classes().map(|class| (class.name, class.verdict)).collect();
    assert_eq!(verdicts[0], ("trains".to_owned(), Verdict::Harm));
    assert_eq!(verdicts[1], ("others".to_owned(), Verdict::Gain));
    let helped = |bench: &mut Bench, network| {
        let groups = (100..200).map(|flow| bench.transfer(key(network, flow), slower));
        groups.filter(|group| *group == Group::Helped).count()
    };
    let few = helped(&mut bench, 1);
    assert!((10..50).contains(&few), "{few} of 100, to see when it changes");
}

#[test]
fn worth_without_a_control_group_nothing_is_measured_and_all_are_helped() {
    let mut bench = Bench::new(0);
    bench.data(key(1, 1), 0);
    assert_eq!(bench.engine.flow(&key(1, 1)), None);
    assert!(bench.engine.inner().held_bytes() > 0);
}
