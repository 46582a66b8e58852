//! The engines under observation, and what is under way between them.

use core::net::{IpAddr, Ipv4Addr};
use mobility::agents::{AdvertiserConfig, ListConfig};
use mobility::beacon::ListenerConfig;
use mobility::clock::Clock;
use mobility::handoff::{self, station::Place};
use mobility::mobile::{self, MobileHost, Roaming};
use mobility::registration::{home, mobile as registration};
use mobility::station::{self, BaseStation};
use mobility::{Keys, choice, multicast};
use sansio::{
    Cause, Delivery, DropReason, Duration, Engine, Event, Input, Instant, Notice, Packet, PacketId,
    PacketRef, Payload, Priority, Random, Side, Sink, StreamId, Transport,
};
use std::collections::BTreeSet;
use wire::auth::{Algorithm, Key};
use wire::control::Role;
use wire::ip::{self, Protocol};

pub(super) const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
/// A mobile host that nobody knows.
pub(super) const STRANGER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 99);
const FIXED: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
/// What all clocks show when a script begins.
const ZERO: u64 = 1_700_000_000_000_000_000;
const STATIONS: u8 = 3;
const MOBILES: u8 = 2;
/// Mobile hosts that a base station has room for.
const VISITORS_MAX: usize = 2;
/// Packets under way, at most; the oldest is lost.
const UNDER_WAY_MAX: usize = 64;
/// Timers of one pause, at most.
const TIMERS_MAX: usize = 400;
/// The longest lifetime is granted for 300 s; in as long again the last question about it ends.
const SILENCE: Duration = Duration::from_secs(600);
/// Of beacons and advertisements in silence.
const PERIOD: Duration = Duration::from_secs(10);

pub(super) fn mobile(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 1, number)
}

pub(super) fn station(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 2, number, 1)
}

pub(super) fn group(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(239, 1, 0, number)
}

pub(super) fn key(number: u8) -> Key {
    Key::new(1_000, Algorithm::HmacSha256, &[number; 16]).expect("a valid key")
}

/// One of the machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Node {
    Home,
    Station(u8),
    Mobile(u8),
}

/// All of them.
pub(super) struct World {
    home: home::HomeAgent,
    stations: Vec<BaseStation>,
    mobiles: Vec<MobileHost>,
    members: BTreeSet<(Ipv4Addr, u8)>,
    under_way: Vec<(Node, Side, PacketRef)>,
    outbox: Outbox,
    /// The packet that an engine takes, which it may pass on as it is.
    taken: Option<PacketId>,
    now: Instant,
    datagrams: u64,
}

/// What an engine has put out.
struct Outbox {
    next_id: PacketId,
    sent: Vec<(Side, PacketRef)>,
    notices: Vec<Notice>,
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

    fn discard(&mut self, _: PacketRef, _: DropReason) {}
    fn deliver(&mut self, _: Delivery) {}

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn event(&mut self, _: Event) {}
}

impl World {
    /// Nobody is anywhere. `bits` say how mobile hosts roam, and how strict all are.
    pub(super) fn new(bits: u8) -> Self {
        let is_strict = bits & 4 == 0;
        let keys = Keys::new((0..MOBILES).map(|number| (mobile(number), key(number))).collect());
        let (clock, random) = (Clock::new(ZERO), Random::new(7, "home agent"));
        let mut home = home::HomeAgent::new(home::Config::new(HOME_AGENT), clock, random);
        for number in 0..MOBILES {
            home.enroll(mobile(number), key(number), (bits & 3 == 2).then(|| group(number)));
        }
        let stations = (0..STATIONS).map(|number| {
            let address = station(number);
            let strict = station::Config::strict(number.into(), address);
            let modern = station::Config::modern(number.into(), address);
            let mut config = if is_strict { strict } else { modern };
            config.beacon_interval = PERIOD;
            config.advertiser =
                Some(AdvertiserConfig { period: PERIOD, ..AdvertiserConfig::new(address) });
            config.handoff.visitors_max = VISITORS_MAX;
            config.foreign.visitors_max = VISITORS_MAX;
            config.multicast.mobiles_max = VISITORS_MAX;
            BaseStation::new(config, keys.clone(), clock)
        });
        let mobiles = (0..MOBILES).map(|number| {
            let random = Random::new(number.into(), "mobile host");
            MobileHost::new(config_of(number, bits), clock, random)
        });
        World {
            home,
            stations: stations.collect(),
            mobiles: mobiles.collect(),
            members: BTreeSet::new(),
            under_way: Vec::new(),
            outbox: Outbox { next_id: PacketId::FIRST, sent: Vec::new(), notices: Vec::new() },
            taken: None,
            now: Instant::ZERO,
            datagrams: 0,
        }
    }

    pub(super) fn address(&self, node: Node) -> Ipv4Addr {
        match node {
            Node::Home => HOME_AGENT,
            Node::Station(number) => station(number),
            Node::Mobile(number) => mobile(number),
        }
    }

    /// What all clocks show.
    pub(super) fn clock(&self) -> u64 {
        Clock::new(ZERO).read(self.now)
    }

    /// A packet that is under way arrives, with other bytes if it has any.
    pub(super) fn arrive(&mut self, which: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(place) = self.place(which) else { return };
        let (to, side, packet) = self.under_way.remove(place);
        let mut bytes = match &packet.payload {
            Payload::Bytes(bytes) => bytes.to_vec(),
            _ => return self.handle(to, Input::Arrival { side, packet }),
        };
        change(&mut bytes);
        let id = self.outbox.new_id();
        let packet = packet.rewrite(id, Cause::Original, |copy| {
            copy.payload = Payload::Bytes(bytes.into());
        });
        self.handle(to, Input::Arrival { side, packet: packet.into() });
    }

    /// It arrives, and will once more.
    pub(super) fn arrive_and_stay(&mut self, which: usize) {
        let Some(place) = self.place(which) else { return };
        let (to, side, packet) = self.under_way[place].clone();
        self.handle(to, Input::Arrival { side, packet });
    }

    /// It does not.
    pub(super) fn lose(&mut self, which: usize) {
        if let Some(place) = self.place(which) {
            self.under_way.remove(place);
        }
    }

    /// It arrives at another machine.
    pub(super) fn stray(&mut self, which: usize, to: Node) {
        let Some(place) = self.place(which) else { return };
        let (_, side, packet) = self.under_way.remove(place);
        self.handle(to, Input::Arrival { side, packet });
    }

    fn place(&self, which: usize) -> Option<usize> {
        which.checked_rem(self.under_way.len())
    }

    /// A message that nobody has asked for, from any address.
    pub(super) fn forge(&mut self, to: Node, (from, port): (Ipv4Addr, u16), bytes: Vec<u8>) {
        let packet = udp((from, self.address(to)), port, Payload::Bytes(bytes.into()), self);
        for side in [Side::NETWORK, Side::RADIO] {
            if side == Side::NETWORK || matches!(to, Node::Station(_)) {
                self.handle(to, Input::Arrival { side, packet: packet.clone() });
            }
        }
    }

    /// The fixed host sends a datagram to a mobile host.
    pub(super) fn send_datagram(&mut self, to: Ipv4Addr) {
        self.datagrams += 1;
        let (stream, offset) = (StreamId(u32::from(to)), self.datagrams);
        let payload = Payload::Virtual { stream, offset, length: 500 };
        let packet = udp((FIXED, to), 5_000, payload, self);
        self.handle(Node::Home, Input::Arrival { side: Side::NETWORK, packet });
    }

    pub(super) fn attach(&mut self, number: u8, to: u8) {
        let mobile = &mut self.mobiles[usize::from(number)];
        mobile.attach(station(to), &mut self.outbox, self.now);
        self.drain(Node::Mobile(number));
    }

    /// A mobile host hears a beacon so strong.
    pub(super) fn hear(&mut self, number: u8, of: u8, decibels_10: i16) {
        let notice = Notice::Heard { station: station(of).into(), decibels_10 };
        self.handle(Node::Mobile(number), Input::Notice(notice));
        self.stations[usize::from(of)].beacon(&mut self.outbox, self.now);
        for (_, packet) in core::mem::take(&mut self.outbox.sent) {
            let input = Input::Arrival { side: Side::NETWORK, packet };
            self.handle(Node::Mobile(number), input);
        }
    }

    fn nodes() -> impl Iterator<Item = Node> {
        let stations = (0..STATIONS).map(Node::Station);
        [Node::Home].into_iter().chain(stations).chain((0..MOBILES).map(Node::Mobile))
    }

    fn deadline(&self, node: Node) -> Option<Instant> {
        match node {
            Node::Home => self.home.next_at(),
            Node::Station(number) => self.stations[usize::from(number)].next_at(),
            Node::Mobile(number) => self.mobiles[usize::from(number)].next_at(),
        }
    }

    /// The next timer of anybody fires, at its time.
    pub(super) fn next_timer(&mut self) {
        let due = Self::nodes().filter_map(|node| self.deadline(node).map(|at| (at, node))).min();
        let Some((at, node)) = due else { return };
        self.now = self.now.max(at);
        self.handle(node, Input::Timer);
        let next = self.deadline(node);
        assert!(next.is_none_or(|at| at > self.now), "{node:?} does not go on: {next:?}");
    }

    /// Time passes, with its timers.
    pub(super) fn wait(&mut self, span: Duration) {
        let end = self.now + span;
        for _ in 0..TIMERS_MAX {
            let due = Self::nodes().filter_map(|node| self.deadline(node)).min();
            if due.is_none_or(|at| at > end) {
                break;
            }
            self.next_timer();
        }
        self.now = self.now.max(end);
    }

    /// Nothing arrives any more. Every question is given up, and only beacons and advertisements
    /// go on.
    pub(super) fn fall_silent(&mut self) {
        let end = self.now + SILENCE;
        let per_period = usize::from(STATIONS) * 2;
        let periods = (SILENCE.as_millis() / PERIOD.as_millis()) as usize + 1;
        let mut timers = 0;
        while Self::nodes().filter_map(|node| self.deadline(node)).min().is_some_and(|at| at <= end)
        {
            self.under_way.clear();
            self.next_timer();
            timers += 1;
            assert!(timers <= per_period * periods + QUESTIONS_MAX, "nobody gives up");
        }
        for number in 0..MOBILES {
            let mobile = &self.mobiles[usize::from(number)];
            assert_eq!(mobile.next_deadline(), None, "mobile host {number} still asks");
        }
        for (number, station) in self.stations.iter().enumerate() {
            let timer = station.next_deadline().map(|deadline| deadline.timer);
            let is_periodic = matches!(timer, Some("beacon" | "advertisement"));
            assert!(is_periodic, "base station {number} waits for {timer:?}");
        }
    }

    fn handle(&mut self, node: Node, input: Input) {
        self.taken = match &input {
            Input::Arrival { packet, .. } => Some(packet.id),
            _ => None,
        };
        let (outbox, now) = (&mut self.outbox, self.now);
        match node {
            Node::Home => self.home.handle(input, outbox, now),
            Node::Station(number) => {
                self.stations[usize::from(number)].handle(input, outbox, now);
            }
            Node::Mobile(number) => self.mobiles[usize::from(number)].handle(input, outbox, now),
        }
        self.drain(node);
    }

    /// Looks at what an engine has put out, and passes it on.
    fn drain(&mut self, from: Node) {
        for notice in core::mem::take(&mut self.outbox.notices) {
            if let (Node::Station(number), Notice::Group { group: IpAddr::V4(group), is_member }) =
                (from, notice)
            {
                if is_member {
                    self.members.insert((group, number));
                } else {
                    self.members.remove(&(group, number));
                }
            }
        }
        let sent = core::mem::take(&mut self.outbox.sent);
        assert!(sent.len() <= SENT_AT_ONCE_MAX, "{} packets at once", sent.len());
        for (side, packet) in sent {
            self.check(from, side, &packet);
            self.travel(from, side, packet);
        }
        self.check_bounds();
    }

    /// A datagram goes only where its mobile host is registered.
    fn check(&self, from: Node, side: Side, packet: &PacketRef) {
        let IpAddr::V4(to) = packet.ip.destination else { panic!("{packet:?}") };
        match (from, side, &packet.payload) {
            (Node::Station(number), Side::RADIO, Payload::Virtual { stream, .. }) => {
                assert_eq!(StreamId(u32::from(to)), *stream, "to the wrong mobile host");
                let station = &self.stations[usize::from(number)];
                let is_here = station.handover().place(to, self.now) == Some(Place::Here)
                    || station.relay().has(to, self.now)
                    || station.member().role(to) == Role::Forward;
                assert!(is_here, "base station {number} sends to {to}, who is not registered");
            }
            (Node::Home, _, Payload::Tunnel(inner)) if self.taken != Some(packet.id) => {
                let IpAddr::V4(mobile) = inner.ip.destination else { panic!("{inner:?}") };
                let binding = self.home.binding(mobile, self.now);
                assert_eq!(binding.map(|it| it.care_of), Some(to), "tunnel for {mobile}");
            }
            (Node::Mobile(number), MobileHost::HOST, Payload::Virtual { stream, .. }) => {
                assert_eq!(StreamId(u32::from(mobile(number))), *stream, "not for this host");
            }
            _ => {}
        }
    }

    fn check_bounds(&self) {
        for station in &self.stations {
            assert!(station.handover().len() <= VISITORS_MAX);
            if let Some(keeper) = station.keeper() {
                assert!(keeper.bytes() <= keeper.bytes_max());
            }
            let packets = station.member().packets().count();
            assert!(packets <= VISITORS_MAX * 12, "{packets} packets of groups");
        }
        for mobile in &self.mobiles {
            let heard = mobile.listener().all().count();
            assert!(heard <= ListenerConfig::default().stations_max, "{heard} in the list");
        }
    }

    fn travel(&mut self, from: Node, side: Side, packet: PacketRef) {
        let IpAddr::V4(to) = packet.ip.destination else { return };
        let mobile_of = |to: Ipv4Addr| (0..MOBILES).find(|number| mobile(*number) == to);
        let station_of = |to: Ipv4Addr| (0..STATIONS).find(|number| station(*number) == to);
        let mut reach = |to: Node, side: Side| {
            if self.under_way.len() >= UNDER_WAY_MAX {
                self.under_way.remove(0);
            }
            self.under_way.push((to, side, packet.clone()));
        };
        match (from, side) {
            (Node::Station(_), Side::MIRROR) | (Node::Mobile(_), MobileHost::HOST) => {}
            (Node::Home, home::HomeAgent::HOME) => {}
            (Node::Station(_), Side::RADIO) if to.is_broadcast() => {
                (0..MOBILES).for_each(|number| reach(Node::Mobile(number), Side::NETWORK));
            }
            (Node::Station(_), Side::RADIO) => {
                mobile_of(to).into_iter().for_each(|it| reach(Node::Mobile(it), Side::NETWORK));
            }
            (Node::Mobile(_), _) => {
                let is_routed = side == MobileHost::ROUTE;
                let side = if is_routed { Side::WIRED } else { Side::RADIO };
                station_of(to).into_iter().for_each(|it| reach(Node::Station(it), side));
            }
            _ if to == HOME_AGENT || mobile_of(to).is_some() => reach(Node::Home, Side::NETWORK),
            _ => {
                let members = self.members.iter().filter(|(group, _)| *group == to);
                let members = members.map(|(_, number)| *number);
                for number in members.chain(station_of(to)) {
                    reach(Node::Station(number), Side::WIRED);
                }
            }
        }
    }
}

/// All that mobile hosts and base stations may ask for in silence: some questions each, a few
/// times each, and roles and registrations that end.
const QUESTIONS_MAX: usize = 400;
/// A whole buffer, and messages.
const SENT_AT_ONCE_MAX: usize = 300;

fn config_of(number: u8, bits: u8) -> mobile::Config {
    let own = mobile(number);
    let is_strict = bits & 4 == 0;
    let greeting = if is_strict {
        handoff::mobile::Config::strict()
    } else {
        handoff::mobile::Config::modern()
    };
    let roaming = match bits & 3 {
        0 => Roaming::MobileIp,
        1 => Roaming::Greeting(greeting),
        2 => Roaming::Multicast(multicast::mobile::Config::new(own, key(number), group(number))),
        _ => Roaming::Greeting(handoff::mobile::Config::modern()),
    };
    let registration = registration::Config::new(own, HOME_AGENT, key(number));
    let list = if bits & 8 == 0 { ListConfig::prefetch() } else { ListConfig::wait() };
    mobile::Config {
        own,
        key: key(number),
        roaming,
        registration: (bits & 16 == 0).then_some((registration, list)),
        registers_after_greeting: bits & 32 != 0,
        names_previous: bits & 64 == 0,
        listener: ListenerConfig::default(),
        choice: if is_strict { choice::Config::strict() } else { choice::Config::modern() },
    }
}

fn udp(
    (from, to): (Ipv4Addr, Ipv4Addr),
    port: u16,
    payload: Payload,
    world: &mut World,
) -> PacketRef {
    let ip = ip::Header::new(IpAddr::V4(from), IpAddr::V4(to), Protocol::UDP);
    PacketRef::new(Packet {
        id: world.outbox.new_id(),
        parent: None,
        cause: Cause::Original,
        ip,
        transport: Transport::Udp { source_port: 5_000, destination_port: port },
        payload,
        segment_bytes: None,
        frame: None,
    })
}
