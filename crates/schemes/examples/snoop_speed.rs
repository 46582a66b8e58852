//! What the Snoop agent costs per data packet and its ACK without loss: `cargo run --release
//! -p lasthop-schemes --example snoop_speed`, the cost of plain forwarding taken away.

use sansio::{
    Delivery, DropReason, Engine, Event, Input, Instant, Packet, PacketId, PacketRef, Payload,
    Priority, Side, Sink, StreamId,
};
use schemes::Scheme;
use std::net::Ipv4Addr;
use wire::ip::{self, Protocol};
use wire::tcp::{Flags, Header, Seq, Timestamps};

struct Nowhere;

impl Sink for Nowhere {
    const TRACE: bool = false;
    fn new_id(&mut self) -> PacketId {
        PacketId::FIRST
    }
    fn send(&mut self, _: Side, _: Priority, packet: PacketRef) {
        std::hint::black_box(packet);
    }
    fn discard(&mut self, _: PacketRef, _: DropReason) {}
    fn deliver(&mut self, _: Delivery) {}
    fn event(&mut self, _: Event) {}
}

const PAIRS: u32 = 8_000_000;
const MSS: u32 = 1460;

fn packet(flow: u32, number: u32, down: bool) -> PacketRef {
    let fixed = Ipv4Addr::from_bits(0x0A00_0001);
    let mobile = Ipv4Addr::from_bits(0x0A01_0000 + flow);
    let (from, to) = if down { (fixed, mobile) } else { (mobile, fixed) };
    let ip = ip::Header::new(from.into(), to.into(), Protocol::TCP);
    let (from, to) = if down { (80, 5000) } else { (5000, 80) };
    let mut tcp = Header { flags: Flags::ACK, window: 1000, ..Header::new(from, to) };
    let timestamps = Timestamps { value: number, echo: number };
    tcp.options.push_timestamps(timestamps).expect("room for timestamps");
    let mut payload = Payload::EMPTY;
    if down {
        tcp.seq = Seq(number * MSS);
        let offset = u64::from(number * MSS);
        payload = Payload::Virtual { stream: StreamId(flow), offset, length: MSS };
    } else {
        tcp.ack = Seq((number + 1) * MSS);
    }
    Packet::tcp(PacketId::FIRST, ip, tcp, payload).into()
}

/// What the agent meets.
enum Step {
    Arrival(Side, PacketRef),
    Departure(PacketRef),
}

/// Data packets and ACKs of `flows` flows in turn, `window` segments under way in each; nanoseconds
/// of CPU time per data packet, its departure and its ACK, the making of both packets included.
fn measure(name: &str, flows: u32, window: u32) -> f64 {
    let mut scheme = Scheme::named(name).expect("a name of the list");
    let before = cpu_seconds();
    let mut time = 0;
    let mut drive = |step: Step| {
        time += 1_000;
        let now = Instant::from_nanos(time);
        if scheme.next_deadline().is_some_and(|deadline| deadline.at <= now) {
            scheme.handle(Input::Timer, &mut Nowhere, now);
        }
        match step {
            Step::Arrival(side, packet) => {
                scheme.handle(Input::Arrival { side, packet }, &mut Nowhere, now);
            }
            Step::Departure(packet) => {
                scheme.on_departure(Side::RADIO, &packet, &mut Nowhere, now);
            }
        }
    };
    for number in 0..PAIRS / flows {
        for flow in 0..flows {
            let data = packet(flow, number, true);
            drive(Step::Arrival(Side::WIRED, data.clone()));
            drive(Step::Departure(data));
            if number >= window {
                let ack = packet(flow, number - window, false);
                drive(Step::Arrival(Side::RADIO, ack));
            }
        }
    }
    (cpu_seconds() - before) * 1e9 / f64::from(PAIRS)
}

/// CPU time of this process, in steps of 10 ms.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let field = |index| stat.split(' ').nth(index).and_then(|ticks| ticks.parse::<f64>().ok());
    let (user, system) = (field(13).expect("utime"), field(14).expect("stime"));
    (user + system) / 100.0
}

fn main() {
    for (flows, window) in [(1, 44), (100, 44), (10_000, 8)] {
        let plain = measure("plain", flows, window);
        for name in ["snoop", "snoop-modern"] {
            let cost = measure(name, flows, window) - plain;
            println!("{name:>12}, {flows:>6} flows: {cost:5.1} ns above plain ({plain:.1} ns)");
        }
    }
}
