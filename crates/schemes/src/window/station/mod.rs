//! Window control at a base station (section 3.2, "processing done at base-station"; WINC-BS).
//!
//! ```text
//!   fixed host ── WIRED ─▶ held while the window is closed ─▶ RADIO ── mobile host
//!                                    │
//!                                    └──▶ TUNNEL: its new base station
//! ```
//!
//! The mobile host's own ACKs pass unchanged (WINC-BS-3). Registrations and bindings come as
//! notices; what is sent on TUNNEL is encapsulated, and binding updates are sent, by whoever stacks
//! the machine. The states and what leads from one to another are in [`super::table`]: a mobile
//! host is in IDLE, MON or TUN, each of its flows in the same or, within MON, in BUF.
//!
//! Every packet goes on, waits, or is discarded with a reason: the same bytes that wait already, no
//! room, or nobody there for whom they wait.

mod config;
mod kept;
mod sequenced;

pub use super::sequencer::Waits;
pub use config::Config;

use super::buffer::{Buffer, Verdict};
use super::sequencer::Sequencer;
use super::table::{self, Action, State};
use core::net::{IpAddr, Ipv4Addr};
use sansio::{
    Deadline, DropReason, Engine, Event, EventKind, FlowKey, Host, Input, Instant, Notice, Packet,
    PacketRef, Priority, Side, Sink,
};
use sequenced::arm;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::tcp::Flags;

/// The engine of one base station.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    mobiles: BTreeMap<IpAddr, Mobile>,
    /// The flows in BUF, by mobile host and then by the direction of their data.
    buffers: BTreeMap<(IpAddr, FlowKey), Buffer>,
    /// When to look at what waits: one entry each, at its time or earlier.
    timers: BTreeSet<(Instant, Waiting)>,
    held_bytes: u64,
    statistics: Statistics,
}

/// What is kept of one mobile host.
#[derive(Clone, Debug)]
struct Mobile {
    state: State,
    sequencer: Option<Sequencer>,
}

/// Who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Waiting {
    /// A buffer, for the mobile host to be heard.
    Flow(FlowKey),
    /// A sequencer, for the tunnel to drain.
    Mobile(IpAddr),
}

/// What was done so far, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Held, and later sent or discarded.
    pub held: u64,
    /// Sent through the tunnel.
    pub tunnelled: u64,
    /// Discarded for want of room.
    pub overflowed: u64,
    /// Discarded, since the same bytes were held.
    pub repeated: u64,
    /// Discarded, since their mobile host is gone or silent.
    pub freed: u64,
    /// Held by the sequencer.
    pub sequenced: u64,
}

impl Agent {
    /// An engine without any state.
    pub fn new(config: Config) -> Self {
        Agent {
            config,
            mobiles: BTreeMap::new(),
            buffers: BTreeMap::new(),
            timers: BTreeSet::new(),
            held_bytes: 0,
            statistics: Statistics::default(),
        }
    }

    /// A mobile host that was registered here when the run began.
    pub fn begin(&mut self, mobile: IpAddr) {
        if self.mobiles.len() < self.config.mobiles_max {
            self.mobiles.insert(mobile, Mobile { state: State::Mon, sequencer: None });
        }
    }

    /// The parameters.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What was done so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Payload bytes held.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// The state of a mobile host: never BUF, which is of a flow.
    pub fn state(&self, mobile: IpAddr) -> State {
        self.mobiles.get(&mobile).map_or(self.config.unregistered, |mobile| mobile.state)
    }

    /// The state of a flow, by the direction of its data toward the mobile host.
    pub fn flow_state(&self, flow: &FlowKey) -> State {
        match self.buffers.contains_key(&of_mobile(*flow)) {
            true => State::Buf,
            false => self.state(flow.destination.address),
        }
    }

    fn on_wired(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        match self.state(packet.ip.destination) {
            State::Tun => self.tunnel(packet, sink),
            State::Mon | State::Buf => self.sequence(packet, sink, now),
            State::Idle => sink.send(Side::RADIO, Priority::Normal, packet),
        }
    }

    /// A packet that the mobile host's last base station sent here.
    fn on_tunnelled(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let address = packet.ip.destination;
        let waits = self.config.sequencer;
        let mobile = self.mobiles.get_mut(&address);
        let sequencer = mobile.and_then(|mobile| mobile.sequencer.as_mut());
        if let Some((sequencer, waits)) = sequencer.zip(waits) {
            sequencer.on_tunnelled(&waits, now);
            arm(&mut self.timers, address, sequencer);
        }
        match self.state(address) {
            State::Tun => self.pass_on(packet, sink),
            State::Mon | State::Buf => self.toward_mobile(packet, sink),
            State::Idle => sink.send(Side::RADIO, Priority::Normal, packet),
        }
    }

    /// The mobile host has moved on: a tunnel into the next one. Where bindings form a ring, the
    /// hop limit ends it.
    fn pass_on(&mut self, packet: PacketRef, sink: &mut impl Sink) {
        if packet.ip.hop_limit <= 1 {
            return sink.discard(packet, DropReason::Rule("hop limit"));
        }
        let id = sink.new_id();
        let onward = packet.rewrite(id, packet.cause, |onward| onward.ip.hop_limit -= 1);
        let onward = sink.place(onward);
        self.tunnel(onward, sink);
    }

    fn tunnel(&mut self, packet: PacketRef, sink: &mut impl Sink) {
        self.statistics.tunnelled += 1;
        sink.send(Side::TUNNEL, Priority::Normal, packet);
    }

    /// A packet that came straight here waits while others are expected through the tunnel. Only
    /// what has a place in a stream.
    fn sequence(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let address = packet.ip.destination;
        let waits = self.config.sequencer.filter(|_| is_data(&packet) || ends_stream(&packet));
        let mobile = self.mobiles.get_mut(&address);
        let sequencer = mobile.and_then(|mobile| mobile.sequencer.as_mut());
        let Some((sequencer, waits)) = sequencer.zip(waits) else {
            return self.toward_mobile(packet, sink);
        };
        let bytes = packet.payload.len();
        let is_over = sequencer.ends_at() <= now || sequencer.bytes() + bytes > waits.bytes_max;
        if is_over || self.held_bytes + u64::from(bytes) > self.config.held_bytes_max {
            self.end_sequencer(address, sink);
            return self.toward_mobile(packet, sink);
        }
        sequencer.push(packet, &waits, now);
        arm(&mut self.timers, address, sequencer);
        self.held_bytes += u64::from(bytes);
        self.statistics.sequenced += 1;
    }

    /// A packet of a mobile host in MON: onto the air, or held with its flow.
    fn toward_mobile(&mut self, packet: PacketRef, sink: &mut impl Sink) {
        let key = FlowKey::of(&packet);
        let buffer =
            key.and_then(|key| self.buffers.get_mut(&of_mobile(key)).map(|buffer| (key, buffer)));
        let Some((key, buffer)) = buffer else {
            return sink.send(Side::RADIO, Priority::Normal, packet);
        };
        if ends_stream(&packet) {
            self.flush(&key, sink);
            return sink.send(Side::RADIO, Priority::Normal, packet);
        }
        if !is_data(&packet) {
            return sink.send(Side::RADIO, Priority::Normal, packet);
        }
        let bytes = packet.payload.len();
        let room = self.config.held_bytes_max - self.held_bytes;
        let verdict = match buffer.judge(&packet, self.config.buffer_bytes_max) {
            Verdict::Held if u64::from(bytes) > room => Verdict::Full,
            verdict => verdict,
        };
        match verdict {
            Verdict::Held => {
                buffer.push(packet);
                self.held_bytes += u64::from(bytes);
                self.statistics.held += 1;
            }
            Verdict::Repeated => {
                self.statistics.repeated += 1;
                sink.discard(packet, DropReason::Rule("held already"));
            }
            Verdict::Full => {
                self.statistics.overflowed += 1;
                let value = u64::from(self.config.buffer_bytes_max);
                let kind = EventKind::Limit { name: BUFFER, value };
                sink.report(|| Event { flow: Some(key), packet: Some(packet.id), kind });
                sink.discard(packet, DropReason::Full(BUFFER));
            }
        }
    }

    /// A packet from the mobile host. What it says of its window, it says of the other direction.
    fn on_radio(&mut self, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        if let Some((tcp, key)) = packet.as_tcp().zip(FlowKey::of(&packet)) {
            let flow = key.reversed();
            if let Some(buffer) = self.buffers.get_mut(&of_mobile(flow)) {
                buffer.heard_at = now;
            }
            if tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
                self.free(&flow, sink);
            } else if tcp.flags.contains(Flags::ACK) {
                let input = match tcp.window {
                    0 => table::Input::ClosedWindow,
                    _ => table::Input::OpenWindow,
                };
                self.step_flow(&flow, input, sink, now);
            }
        }
        sink.send(Side::WIRED, Priority::Normal, packet);
    }

    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        let (mobile, input) = match notice {
            Notice::Registered(mobile) => (mobile, table::Input::Registration),
            Notice::Deregistered(mobile) => (mobile, table::Input::Deregistration),
            Notice::Moved(mobile) => (mobile, table::Input::BindingUpdate),
            Notice::BindingExpired(mobile) => (mobile, table::Input::BindingExpired),
            Notice::TunnelOpened(mobile) => return self.begin_sequencer(mobile, now),
            Notice::Forget => return self.forget_all(sink),
            Notice::ForgetFlow(key) => {
                [key, key.reversed()].iter().for_each(|key| self.flush(key, sink));
                return;
            }
            _ => return,
        };
        self.step_mobile(mobile, input, sink, now);
    }

    /// Something happens to a mobile host, and so to its flows.
    fn step_mobile(
        &mut self,
        address: IpAddr,
        input: table::Input,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        for flow in self.flows_of(address) {
            self.step_flow(&flow, input, sink, now);
        }
        let before = self.state(address);
        let after = table::step(before, input).next;
        let waited = match after {
            State::Mon => VecDeque::new(),
            _ => self.take_sequencer(address),
        };
        for packet in waited {
            match after {
                State::Tun => self.tunnel(packet, sink),
                _ => self.let_go(packet, sink),
            }
        }
        self.enter(address, (before, after), sink);
    }

    fn enter(&mut self, address: IpAddr, states: (State, State), sink: &mut impl Sink) {
        let (before, after) = states;
        if before == after {
            return;
        }
        if after == self.config.unregistered {
            self.mobiles.remove(&address);
        } else if let Some(mobile) = self.mobiles.get_mut(&address) {
            mobile.state = after;
        } else if self.mobiles.len() < self.config.mobiles_max {
            self.mobiles.insert(address, Mobile { state: after, sequencer: None });
        } else {
            let value = self.config.mobiles_max as u64;
            let kind = EventKind::Limit { name: "window control mobile hosts", value };
            return sink.report(|| Event { flow: None, packet: None, kind });
        }
        report_state(None, states, sink);
    }

    /// One input of one flow, by the table.
    fn step_flow(
        &mut self,
        flow: &FlowKey,
        input: table::Input,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let row = table::step(self.flow_state(flow), input);
        match row.action {
            Action::Nothing => {}
            Action::Hold => return self.hold(flow, sink, now),
            Action::Flush => self.flush(flow, sink),
            Action::Tunnel => {
                self.take(flow).into_iter().for_each(|packet| self.tunnel(packet, sink));
            }
            Action::Free => self.free(flow, sink),
        }
        if row.state == State::Buf && row.next != State::Buf {
            report_state(Some(*flow), (row.state, row.next), sink);
        }
    }

    /// Holds a flow's data from now on.
    fn hold(&mut self, flow: &FlowKey, sink: &mut impl Sink, now: Instant) {
        if self.buffers.len() >= self.config.flows_max {
            let value = self.config.flows_max as u64;
            let kind = EventKind::Limit { name: "window control flows", value };
            return sink.report(|| Event { flow: Some(*flow), packet: None, kind });
        }
        let timer_at = now + self.config.silence;
        self.buffers.insert(of_mobile(*flow), Buffer::new(timer_at, now));
        self.timers.insert((timer_at, Waiting::Flow(*flow)));
        report_state(Some(*flow), (State::Mon, State::Buf), sink);
    }

    fn flows_of(&self, address: IpAddr) -> Vec<FlowKey> {
        let from_here = self.buffers.range((address, FIRST_FLOW)..);
        let of_it = from_here.take_while(|((mobile, _), _)| *mobile == address);
        of_it.map(|((_, flow), _)| *flow).collect()
    }

    /// WINC-BS-9: what is held goes onto the air before anything that follows.
    fn flush(&mut self, flow: &FlowKey, sink: &mut impl Sink) {
        for packet in self.take(flow) {
            sink.send(Side::RADIO, Priority::Normal, packet);
        }
    }

    fn free(&mut self, flow: &FlowKey, sink: &mut impl Sink) {
        self.take(flow).into_iter().for_each(|packet| self.let_go(packet, sink));
    }

    fn let_go(&mut self, packet: PacketRef, sink: &mut impl Sink) {
        self.statistics.freed += 1;
        sink.discard(packet, DropReason::Rule("WINC-ST-9"));
    }

    /// What is held of a flow, which is then no longer in BUF.
    fn take(&mut self, flow: &FlowKey) -> VecDeque<PacketRef> {
        let Some(buffer) = self.buffers.remove(&of_mobile(*flow)) else { return VecDeque::new() };
        self.timers.remove(&(buffer.timer_at, Waiting::Flow(*flow)));
        self.held_bytes -= u64::from(buffer.bytes());
        buffer.into_packets()
    }

    /// All state is soft: what is held goes to the mobile hosts.
    fn forget_all(&mut self, sink: &mut impl Sink) {
        let addresses: Vec<IpAddr> = self.mobiles.keys().copied().collect();
        addresses.iter().for_each(|address| self.end_sequencer(*address, sink));
        let flows: Vec<FlowKey> = self.buffers.keys().map(|(_, flow)| *flow).collect();
        flows.iter().for_each(|flow| self.flush(flow, sink));
        self.mobiles.clear();
        self.timers.clear();
    }

    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some((at, waiting)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, waiting));
            match waiting {
                Waiting::Flow(flow) => self.on_flow_timer(flow, sink, now),
                Waiting::Mobile(address) => self.on_sequencer_timer(address, sink, now),
            }
        }
    }

    fn on_flow_timer(&mut self, flow: FlowKey, sink: &mut impl Sink, now: Instant) {
        let Some(buffer) = self.buffers.get_mut(&of_mobile(flow)) else { return };
        buffer.timer_at = buffer.heard_at + self.config.silence;
        if buffer.timer_at > now {
            self.timers.insert((buffer.timer_at, Waiting::Flow(flow)));
        } else {
            self.step_flow(&flow, table::Input::Silence, sink, now);
        }
    }
}

/// The name of the limit.
const BUFFER: &str = "window control buffer";

/// Where a flow's buffer stands among the others.
fn of_mobile(flow: FlowKey) -> (IpAddr, FlowKey) {
    (flow.destination.address, flow)
}

/// Before every flow in their order.
const FIRST_FLOW: FlowKey = {
    let host = Host { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), port: 0 };
    FlowKey { source: host, destination: host }
};

fn report_state(flow: Option<FlowKey>, (from, to): (State, State), sink: &mut impl Sink) {
    let kind = EventKind::State { from: from.name(), to: to.name() };
    sink.report(|| Event { flow, packet: None, kind });
}

/// True for a TCP segment with a place in its stream.
fn is_data(packet: &Packet) -> bool {
    packet.as_tcp().is_some_and(|tcp| tcp.sequence_length(packet.payload.len()) > 0)
}

/// True for a segment behind which there is nothing of the stream before.
fn ends_stream(packet: &Packet) -> bool {
    packet.as_tcp().is_some_and(|tcp| tcp.flags.intersects(Flags::SYN.with(Flags::RST)))
}

impl Engine for Agent {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side: Side::WIRED, packet } => self.on_wired(packet, sink, now),
            Input::Arrival { side: Side::RADIO, packet } => self.on_radio(packet, sink, now),
            Input::Arrival { side: Side::TUNNEL, packet } => self.on_tunnelled(packet, sink, now),
            Input::Arrival { packet, .. } => {
                sink.discard(packet, DropReason::Rule("no such side"));
            }
            Input::Timer => self.on_timer(sink, now),
            Input::Notice(notice) => self.on_notice(notice, sink, now),
            Input::Verdict { .. } => {}
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        self.timers.first().map(|(at, waiting)| {
            let timer = match waiting {
                Waiting::Flow(_) => "silence",
                Waiting::Mobile(_) => "sequencer",
            };
            Deadline { at: *at, timer }
        })
    }
}
