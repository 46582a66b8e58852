//! What the drills share: a sink that keeps what it is given, keys, addresses, datagrams.

#![allow(dead_code, clippy::allow_attributes, reason = "each test uses some of it")]

use bytes::Bytes;
use mobility::Keys;
use mobility::clock::Clock;
use mobility::station::{BaseStation, Config};
use sansio::{
    Cause, Delivery, DropReason, Duration, Event, EventKind, Instant, Notice, Packet, PacketId,
    PacketRef, Payload, Priority, Random, Side, Sink, StreamId, Transport,
};
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use wire::auth::{Algorithm, Key};
use wire::control::{Body, Envelope, Header, Message};
use wire::ip::{self, Protocol};

pub(crate) const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const FIXED: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);

/// The home address of a mobile host.
pub(crate) fn mobile(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, number)
}

/// The address of a base station.
pub(crate) fn station(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, number, 1)
}

/// The key of a mobile host.
pub(crate) fn key(number: u8) -> Key {
    Key::new(1_000, Algorithm::HmacSha256, &[number; 16]).expect("a valid key")
}

/// The keys of mobile hosts 1 to `count`.
pub(crate) fn keys(count: u8) -> Keys {
    Rc::new((1..=count).map(|number| (mobile(number), key(number))).collect())
}

pub(crate) fn clock() -> Clock {
    Clock::new(1_700_000_000_000_000_000)
}

pub(crate) fn random(name: &str) -> Random {
    Random::new(7, name)
}

pub(crate) fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// Keeps what an engine puts out.
#[derive(Debug)]
pub(crate) struct Outbox {
    next_id: PacketId,
    pub(crate) sent: Vec<(Side, PacketRef)>,
    pub(crate) dropped: Vec<(PacketRef, DropReason)>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) limits: Vec<&'static str>,
}

impl Outbox {
    pub(crate) fn new() -> Self {
        let next_id = PacketId::FIRST;
        Outbox { next_id, sent: vec![], dropped: vec![], notices: vec![], limits: vec![] }
    }

    /// All that was sent since the last time.
    pub(crate) fn take(&mut self) -> Vec<(Side, PacketRef)> {
        core::mem::take(&mut self.sent)
    }

    /// The only packet that was sent, on this side.
    #[track_caller]
    pub(crate) fn only(&mut self, side: Side) -> PacketRef {
        let sent = self.take();
        assert_eq!(sent.len(), 1, "{sent:#?}");
        assert_eq!(sent[0].0, side, "{sent:#?}");
        sent[0].1.clone()
    }
}

impl Sink for Outbox {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        self.sent.push((side, packet));
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.dropped.push((packet, reason));
    }

    fn deliver(&mut self, _: Delivery) {}

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn event(&mut self, event: Event) {
        if let EventKind::Limit { name, .. } = event.kind {
            self.limits.push(name);
        }
    }
}

/// A UDP datagram with so many bytes of payload by name only.
pub(crate) fn datagram(
    (from, to): (Ipv4Addr, Ipv4Addr),
    identification: u16,
    length: u32,
    outbox: &mut Outbox,
) -> PacketRef {
    let ip = ip::Header::new(IpAddr::V4(from), IpAddr::V4(to), Protocol::UDP);
    Rc::new(Packet {
        id: outbox.new_id(),
        parent: None,
        cause: Cause::Original,
        ip: ip::Header { identification, ..ip },
        transport: Transport::Udp { source_port: 5_000, destination_port: 6_000 },
        payload: Payload::Virtual { stream: StreamId(1), offset: identification.into(), length },
        segment_bytes: None,
        frame: None,
    })
}

/// The same packet with other bytes.
pub(crate) fn with_bytes(packet: &PacketRef, bytes: Vec<u8>, outbox: &mut Outbox) -> PacketRef {
    let id = outbox.new_id();
    Rc::new(packet.rewrite(id, Cause::Original, |copy| copy.payload = Payload::Bytes(bytes.into())))
}

/// What a message says on the wire.
pub(crate) fn bytes_of(packet: &PacketRef) -> Bytes {
    packet.payload.to_bytes().expect("a message has bytes")
}

/// A base station by its number.
pub(crate) fn base_station(number: u8, change: impl Fn(&mut Config)) -> BaseStation {
    let mut config = Config::modern(number.into(), station(number));
    config.first_beacon_at = at_ms(1_000_000);
    config.advertiser = None;
    change(&mut config);
    BaseStation::new(config, keys(3), clock())
}

/// What a message in a packet says, read with a mobile host's key.
pub(crate) fn body_of(packet: &PacketRef, number: u8) -> Body {
    let bytes = bytes_of(packet);
    Envelope::parse(&bytes).expect("ours").open(&key(number)).expect("proved").body
}

/// A proved message about mobile host 1, as a packet.
pub(crate) fn message(
    (sender, receiver): (Ipv4Addr, Ipv4Addr),
    (generation, sent_ms): (u64, u64),
    body: Body,
    proved_by: &Key,
    outbox: &mut Outbox,
) -> PacketRef {
    let sent_at = clock().read(at_ms(sent_ms));
    let header = Header { mobile: mobile(1), sender, receiver, generation, sent_at, request: 1 };
    let mut bytes = vec![];
    Message { header, body }.emit(proved_by, &mut bytes);
    let packet = datagram((sender, receiver), 0, 0, outbox);
    let id = sansio::Sink::new_id(outbox);
    let port = wire::control::PORT;
    Rc::new(packet.rewrite(id, packet.cause, |packet| {
        packet.transport = sansio::Transport::Udp { source_port: port, destination_port: port };
        packet.payload = Payload::Bytes(bytes.into());
    }))
}
