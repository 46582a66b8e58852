//! The agents of both Snoop schemes, with the packets of a capture as their input.
//!
//! Each scheme stands here twice: once for each direction in which data may flow toward the mobile
//! host, since a capture does not say which end that is. What an agent sends again is noted; what
//! it forwards or withholds goes nowhere, for the replay is open-loop ([`crate::estimate`]).

use crate::decode::Segment;
use crate::sent::SCHEMES;
use sansio::{
    Cause, Delivery, DropReason, Engine, Event, FlowKey, Input, Instant, Packet, PacketId,
    PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use schemes::snoop::{Agent, Config, config::Departures};
use std::num::NonZeroU16;
use std::rc::Rc;
use wire::tcp::Seq;

/// The schemes' names, in the order of their numbers here.
pub const NAMES: [&str; SCHEMES] = ["snoop", "snoop-modern"];

/// Something that an agent sent again.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The scheme's number.
    pub scheme: usize,
    /// The direction of the data.
    pub flow: FlowKey,
    /// The sequence numbers.
    pub range: (Seq, Seq),
    /// When.
    pub at: Instant,
}

/// All agents.
pub struct Replay {
    agents: [[Agent; 2]; SCHEMES],
    outlet: Outlet,
}

impl Default for Replay {
    fn default() -> Self {
        let agents = [Config::strict(), Config::modern()].map(|config| {
            // Nobody tells when a packet of the capture went onto the air.
            let agent = Agent::new(Config { departures: Departures::AssumedWhenSent, ..config });
            [agent.clone(), agent]
        });
        let outlet =
            Outlet { next: PacketId::FIRST, scheme: 0, now: Instant::ZERO, copies: Vec::new() };
        Replay { agents, outlet }
    }
}

impl Replay {
    /// Shows the agents a packet in direction 0 or 1 of its connection; what they send again until
    /// then and because of it.
    pub fn take(
        &mut self,
        segment: &Segment,
        direction: usize,
        mss: u32,
    ) -> impl Iterator<Item = Copy> {
        self.run_until(segment.at);
        let packet = Rc::new(self.packet(segment, mss));
        for (scheme, agents) in self.agents.iter_mut().enumerate() {
            self.outlet.scheme = scheme;
            self.outlet.now = segment.at;
            for (of, agent) in agents.iter_mut().enumerate() {
                let side = if of == direction { Side::WIRED } else { Side::RADIO };
                let input = Input::Arrival { side, packet: packet.clone() };
                agent.handle(input, &mut self.outlet, segment.at);
            }
        }
        self.outlet.copies.drain(..)
    }

    /// Lets timers fire.
    fn run_until(&mut self, now: Instant) {
        for (scheme, agents) in self.agents.iter_mut().enumerate() {
            self.outlet.scheme = scheme;
            for agent in agents {
                // An agent whose packets are never answered sends at each of its timers, whose
                // number is bounded for each flow.
                while let Some(at) = agent.next_at().filter(|at| *at <= now) {
                    self.outlet.now = at;
                    agent.handle(Input::Timer, &mut self.outlet, at);
                    if agent.next_at() == Some(at) {
                        break;
                    }
                }
            }
        }
    }

    fn packet(&mut self, segment: &Segment, mss: u32) -> Packet {
        let length = segment.payload_bytes;
        let payload = Payload::Virtual { stream: StreamId(0), offset: 0, length };
        let id = self.outlet.new_id();
        let is_super = length > mss;
        let segment_bytes = u16::try_from(mss).ok().and_then(NonZeroU16::new);
        Packet {
            segment_bytes: segment_bytes.filter(|_| is_super),
            ..Packet::tcp(id, segment.ip, segment.tcp, payload)
        }
    }
}

/// Where the agents' packets go.
struct Outlet {
    next: PacketId,
    scheme: usize,
    now: Instant,
    copies: Vec<Copy>,
}

impl Sink for Outlet {
    const TRACE: bool = false;

    fn new_id(&mut self) -> PacketId {
        let id = self.next;
        self.next = id.next();
        id
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        let is_copy = matches!(packet.cause, Cause::LocalRetransmission | Cause::Probe);
        let Some((flow, tcp)) = FlowKey::of(&packet).zip(packet.as_tcp()) else { return };
        if is_copy && side == Side::RADIO {
            let range = (tcp.seq, tcp.seq + tcp.sequence_length(packet.payload.len()));
            self.copies.push(Copy { scheme: self.scheme, flow, range, at: self.now });
        }
    }

    fn discard(&mut self, _: PacketRef, _: DropReason) {}

    fn deliver(&mut self, _: Delivery) {}

    fn event(&mut self, _: Event) {}
}
