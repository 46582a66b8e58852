//! Two endpoints back to back, without a link: what a data packet costs in TCP alone.
//!
//! `time cargo run --release --example back_to_back -- 10000000000` sends that many bytes, with
//! 1460-byte segments, a window of 44 of them and an ACK for each, and prints the number of data
//! packets; user time by that number is the cost of one packet at both ends. A second argument,
//! `modern`, adds timestamps, SACK and window scaling.

use sansio::{
    Delivery, DropReason, Duration, Engine, Event, FlowKey, Host, Input, Instant, PacketId,
    PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use tcp::{Config, Congestion, DelayedAck, Endpoint};
use wire::tcp::Seq;

struct Wire {
    next_id: PacketId,
    sent: Vec<PacketRef>,
    delivered: u64,
}

impl Sink for Wire {
    const TRACE: bool = false;

    #[inline]
    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    #[inline]
    fn send(&mut self, _: Side, _: Priority, packet: PacketRef) {
        self.sent.push(packet);
    }

    #[inline]
    fn discard(&mut self, _: PacketRef, _: DropReason) {}

    #[inline]
    fn deliver(&mut self, delivery: Delivery) {
        self.delivered += u64::from(delivery.payload.len());
    }

    fn event(&mut self, _: Event) {}
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let bytes: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1_000_000_000);
    let base = match arguments.next().as_deref() {
        Some("modern") => Config::modern(Congestion::Sack),
        _ => Config::bsd_1995(Congestion::Reno),
    };
    let config = Config { receive_buffer_bytes: 44 * 1460, delayed_ack: DelayedAck::None, ..base };
    let host = |last| Host { address: [10, 0, 0, last].into(), port: 80 };
    let flow = FlowKey { source: host(1), destination: host(2) };
    let mut client = Endpoint::client(config, flow, Seq(1));
    let mut server = Endpoint::server(config, flow.reversed(), Seq(1));
    let wire = || Wire { next_id: PacketId::FIRST, sent: Vec::new(), delivered: 0 };
    let (mut down, mut up) = (wire(), wire());
    let mut now = Instant::ZERO;
    for offset in (0..bytes).step_by(1 << 30) {
        let length = (bytes - offset).min(1 << 30) as u32;
        client.write(Payload::Virtual { stream: StreamId(0), offset, length }, &mut down, now);
    }
    client.open(&mut down, now);
    let mut batch = Vec::new();
    let mut deadlines = 0u64;
    while !down.sent.is_empty() {
        now += Duration::from_millis(1);
        std::mem::swap(&mut batch, &mut down.sent);
        for packet in batch.drain(..) {
            server.handle(Input::Arrival { side: Side::NETWORK, packet }, &mut up, now);
            deadlines += u64::from(server.next_deadline().is_some());
        }
        std::mem::swap(&mut batch, &mut up.sent);
        for packet in batch.drain(..) {
            client.handle(Input::Arrival { side: Side::NETWORK, packet }, &mut down, now);
            deadlines += u64::from(client.next_deadline().is_some());
        }
    }
    let packets = client.statistics().data_segments_sent;
    println!("{packets} data packets, {} bytes delivered, {deadlines} deadlines", up.delivered);
}
