//! Window control at the mobile host (section 3.2, "processing done at mobile host"; WINC-MH).
//!
//! ```text
//!   signal      ▁▂▄▆▆▆▄▂▁▁▁▁▂▄▆▆▆
//!   window      open    │ closed  │ open
//!   on the air  data    │ (gone)  │ data
//! ```
//!
//! While the window is closed, every segment of the host says so; what is still under way reaches
//! the host's own TCP, whose window is open, and is acknowledged (WINC-MH-7).
//!
//! We differ: the opening ACK is repeated until data comes, since nobody else tells of a lost one
//! before the fixed host's persist timer does (MOD-6). Each repetition offers a little more than the
//! one before, up to what the host offered: two that were alike would count as duplicate ACKs.

use crate::connections::{Connection, Connections, across};
use sansio::{
    Deadline, DropReason, Duration, Engine, Event, EventKind, Input, Instant, Notice, PacketRef,
    Priority, Side, Signal, Sink, Transport,
};
use wire::tcp::{Flags, Header};

/// The engine's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Below this signal the windows close (WINC-MH-1). 5 dB; the paper gives none.
    pub close_below: Signal,
    /// From this signal on they open (WINC-MH-4). 6 dB: a margin, so that they do not flutter.
    pub open_from: Signal,
    /// How often the signal is looked at while they are closed (WINC-MH-3). 100 ms; the paper gives
    /// none.
    pub poll: Duration,
    /// When they open. Strict when polled, modern as soon as the signal is known.
    pub opens: Opens,
    /// Opening ACKs of a connection while no data comes, at most. Strict 1, modern 10.
    pub repeats_max: u32,
    /// From the first of them to the second; doubled for each further one. 100 ms: half of the
    /// least timeout of a Linux host.
    pub repeat_after: Duration,
    /// Only the window of a connection that received data within this time is closed. 10 s.
    pub received_within: Duration,
    /// Connections that are watched (MOD-14). 1024.
    pub connections_max: u32,
}

/// When closed windows open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// At the next look at the signal.
    WhenPolled,
    /// As soon as the signal is known to be strong enough.
    AtOnce,
}

impl Config {
    /// The paper to the letter.
    pub const fn strict() -> Config {
        Config {
            close_below: Signal::from_db(5),
            open_from: Signal::from_db(6),
            poll: Duration::from_millis(100),
            opens: Opens::WhenPolled,
            repeats_max: 1,
            repeat_after: Duration::from_millis(100),
            received_within: Duration::from_secs(10),
            connections_max: 1024,
        }
    }

    /// What paths of today need beside it.
    pub const fn modern() -> Config {
        Config { opens: Opens::AtOnce, repeats_max: 10, ..Config::strict() }
    }
}

/// The engine at one mobile host: HOST toward its TCP, RADIO toward its base station.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    connections: Connections<Own>,
    signal: Option<Signal>,
    /// When the signal is looked at next; none while the windows are open.
    poll_at: Option<Instant>,
    /// When an opening ACK is repeated next, or earlier.
    repeat_at: Option<Instant>,
    statistics: Statistics,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Times the windows were closed.
    pub closings: u64,
    /// ACKs made that close a window.
    pub closing_acks: u64,
    /// ACKs made that open one, repetitions included.
    pub opening_acks: u64,
    /// Connections that were opened as often as allowed, and no data came.
    pub unanswered: u64,
}

/// What is kept of one connection.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    window: Window,
}

/// What the fixed host was told of the window last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Window {
    /// What the host says.
    #[default]
    AsOffered,
    /// That it is closed.
    Closed,
    /// That it is open again, so many times; the next time is at `again_at`.
    Opening { told: u32, again_at: Instant },
}

impl Agent {
    /// An engine that knows of no connection yet; the windows are open.
    pub fn new(config: Config) -> Self {
        Agent {
            connections: Connections::new(config.connections_max),
            config,
            signal: None,
            poll_at: None,
            repeat_at: None,
            statistics: Statistics::default(),
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

    /// Connections that are watched.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// True while the windows are closed.
    pub fn is_closed(&self) -> bool {
        self.poll_at.is_some()
    }

    fn on_arrival(&mut self, side: Side, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let Some(onward) = across(side) else {
            return sink.discard(packet, DropReason::Rule("no such side"));
        };
        let is_closed = self.is_closed();
        let Some(connection) = self.connections.note(side, &packet, now) else {
            return sink.send(onward, Priority::Normal, packet);
        };
        match side {
            Side::RADIO if !packet.payload.is_empty() => {
                if let Window::Opening { .. } = connection.own.window {
                    connection.own.window = Window::AsOffered;
                }
            }
            Side::HOST
                if is_closed
                    && says_open(&packet)
                    && connection.has_received_within(self.config.received_within, now) =>
            {
                connection.own.window = Window::Closed;
                let closed = packet.rewrite(sink.new_id(), packet.cause, |closed| {
                    if let Transport::Tcp(tcp) = &mut closed.transport {
                        tcp.window = 0;
                    }
                });
                let closed = sink.place(closed);
                return sink.send(onward, Priority::Normal, closed);
            }
            _ => {}
        }
        sink.send(onward, Priority::Normal, packet);
    }

    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        match notice {
            Notice::Signal(signal) => {
                self.signal = Some(signal);
                if !self.is_closed() && signal < self.config.close_below {
                    self.close(sink, now);
                } else if self.config.opens == Opens::AtOnce {
                    self.open_if_strong(sink, now);
                }
            }
            // Whoever is forgotten must not stay closed.
            Notice::Forget => {
                if self.is_closed() {
                    self.open(sink, now);
                }
                self.connections.clear();
                self.repeat_at = None;
            }
            Notice::ForgetFlow(flow) => self.connections.forget_connection(&flow),
            _ => {}
        }
    }

    /// WINC-MH-1: an ACK with the window closed for every connection that receives.
    fn close(&mut self, sink: &mut impl Sink, now: Instant) {
        self.statistics.closings += 1;
        self.poll_at = Some(now + self.config.poll);
        self.repeat_at = None;
        for connection in self.connections.iter_mut() {
            if !connection.has_received_within(self.config.received_within, now) {
                continue;
            }
            if send(connection, |ack| ack.window = 0, sink) {
                connection.own.window = Window::Closed;
                self.statistics.closing_acks += 1;
                report(connection, "WINC-MH-1", "closes the window", 0, sink);
            }
        }
    }

    fn open_if_strong(&mut self, sink: &mut impl Sink, now: Instant) {
        let is_strong = self.signal.is_some_and(|signal| signal >= self.config.open_from);
        if self.is_closed() && is_strong {
            self.open(sink, now);
        }
    }

    /// WINC-MH-4: what the host offered last, to everyone whose window was closed.
    fn open(&mut self, sink: &mut impl Sink, now: Instant) {
        self.poll_at = None;
        for connection in self.connections.iter_mut() {
            if connection.own.window == Window::Closed {
                connection.own.window = Window::Opening { told: 0, again_at: now };
            }
        }
        self.tell_open(sink, now);
    }

    /// Opening ACKs that are due.
    fn tell_open(&mut self, sink: &mut impl Sink, now: Instant) {
        self.repeat_at = None;
        let Config { repeats_max, repeat_after, .. } = self.config;
        for connection in self.connections.iter_mut() {
            let Window::Opening { told, again_at } = connection.own.window else { continue };
            if again_at > now {
                self.repeat_at = self.repeat_at.into_iter().chain([again_at]).min();
                continue;
            }
            // A host that has no room itself opens its window itself.
            let offered = connection.last().map_or(0, |last| last.window);
            if told >= repeats_max || offered == 0 {
                self.statistics.unanswered += u64::from(told > 1);
                connection.own.window = Window::AsOffered;
                continue;
            }
            let less = u16::try_from(repeats_max - 1 - told).unwrap_or(u16::MAX);
            let window = offered.saturating_sub(less).max(1);
            if !send(connection, |ack| ack.window = window, sink) {
                connection.own.window = Window::AsOffered;
                continue;
            }
            report(connection, "WINC-MH-4", "opens the window", u64::from(window), sink);
            self.statistics.opening_acks += 1;
            let again_at = now + repeat_after * (1 << told.min(DOUBLED_MAX));
            connection.own.window = Window::Opening { told: told + 1, again_at };
            self.repeat_at = self.repeat_at.into_iter().chain([again_at]).min();
        }
    }

    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.poll_at.is_some_and(|at| at <= now) {
            self.poll_at = Some(now + self.config.poll);
            self.open_if_strong(sink, now);
        }
        if self.repeat_at.is_some_and(|at| at <= now) {
            self.tell_open(sink, now);
        }
    }
}

/// Doublings of the time between repetitions.
const DOUBLED_MAX: u32 = 10;

/// True for a segment of an open connection that offers a window.
fn says_open(packet: &PacketRef) -> bool {
    packet.as_tcp().is_some_and(|tcp| {
        tcp.flags.contains(Flags::ACK)
            && !tcp.flags.intersects(Flags::SYN.with(Flags::RST))
            && tcp.window > 0
    })
}

/// Sends an ACK of a connection; false if none can be made.
fn send(
    connection: &Connection<Own>,
    change: impl FnOnce(&mut Header),
    sink: &mut impl Sink,
) -> bool {
    let Some(ack) = connection.ack(sink.new_id(), change) else { return false };
    let ack = sink.place(ack);
    sink.send(Side::RADIO, Priority::Normal, ack);
    true
}

fn report(
    connection: &Connection<Own>,
    id: &'static str,
    did: &'static str,
    value: u64,
    sink: &mut impl Sink,
) {
    let flow = Some(connection.flow.reversed());
    sink.report(|| Event { flow, packet: None, kind: EventKind::Rule { id, did, value } });
}

impl Engine for Agent {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side, packet } => self.on_arrival(side, packet, sink, now),
            Input::Timer => self.on_timer(sink, now),
            Input::Notice(notice) => self.on_notice(notice, sink, now),
            Input::Verdict { .. } => {}
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        let poll = self.poll_at.map(|at| Deadline { at, timer: "signal" });
        let repeat = self.repeat_at.map(|at| Deadline { at, timer: "window" });
        Deadline::earlier(poll, repeat)
    }
}
