//! Fast retransmission after a handoff ("Improving the performance of reliable transport protocols
//! in mobile computing environments", Caceres and Iftode, section IV-C; CI-FRX).
//!
//! ```text
//!   TCP of the mobile host ── HOST ─▶ this engine ── RADIO ─▶ base station ── fixed host
//! ```
//!
//! When a handoff is over, nobody waits for a timeout: for data that the mobile host sends, its
//! oldest unacknowledged segment goes out again; for data that it receives, it repeats its last ACK
//! until the fixed host does the same. The base stations know nothing of it.
//!
//! Map: [`config`] (who, when, how often), `kept` (what may be sent again), `hold` (an ACK that is
//! late on purpose). What a TCP does when it is told is in `tcp::handoff`.
//!
//! We differ: the engine works on packets that pass, so that it stands beside a TCP that nobody has
//! changed; only [`config::Sender::OwnTcp`] needs one that has.

pub mod config;
mod hold;
mod kept;

pub use config::Config;

use crate::connections::{Connection, Connections, across};
use config::{Receiver, Sender, Trigger};
use hold::Hold;
use kept::Kept;
use sansio::{
    Deadline, DropReason, Engine, Event, EventKind, Handoff, Input, Instant, Losses, Notice,
    PacketRef, Priority, Side, Sink,
};
use wire::tcp::{Flags, HANDOFF_MARK, SackBlock, Seq};

/// The engine at one mobile host.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    connections: Connections<Own>,
    /// The earliest time at which an ACK that is held back goes out, or earlier.
    due: Option<Instant>,
    statistics: Statistics,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Handoffs for which connections were signalled.
    pub signals: u64,
    /// Handoffs that lost nothing, and so were not (CI-FRX-8).
    pub lossless: u64,
    /// ACKs made.
    pub acks: u64,
    /// Segments of the mobile host sent again.
    pub copies: u64,
}

/// What is kept of one connection.
#[derive(Clone, Debug, Default)]
struct Own {
    kept: Kept,
    hold: Hold,
}

impl Agent {
    /// An engine that knows of no connection yet.
    pub fn new(config: Config) -> Self {
        Agent {
            connections: Connections::new(config.connections_max),
            config,
            due: None,
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

    /// Payload bytes of the mobile host's own that are kept.
    pub fn held_bytes(&self) -> u64 {
        self.connections.iter().map(|connection| connection.own.kept.bytes()).sum()
    }

    /// True if the mobile host's own TCP is to be told of this notice: whoever stacks the machine
    /// then has every endpoint resend (CI-FRX-2, CI-FRX-7).
    pub fn asks_own_tcp(&self, notice: &Notice) -> bool {
        self.config.sender == Sender::OwnTcp && self.is_signal(notice)
    }

    fn is_signal(&self, notice: &Notice) -> bool {
        match notice {
            Notice::Handoff(_, Losses::None) => false,
            Notice::Handoff(Handoff::GreetingAcknowledged, _) => {
                self.config.trigger == Trigger::GreetingAcknowledged
            }
            Notice::Handoff(Handoff::Complete, _) => self.config.trigger == Trigger::Complete,
            Notice::LinkUp(Side::RADIO) => self.config.trigger == Trigger::LinkUp,
            _ => false,
        }
    }

    fn on_arrival(&mut self, side: Side, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let Some(onward) = across(side) else {
            return sink.discard(packet, DropReason::Rule("no such side"));
        };
        let Some(connection) = self.connections.note(side, &packet, now) else {
            return sink.send(onward, Priority::Normal, packet);
        };
        if self.config.sender == Sender::Copy {
            connection.own.kept.note(side, &packet, self.config.kept_bytes_max);
        }
        match self.config.receiver {
            Receiver::HeldBack(span) if side == Side::HOST => {
                let packet = connection.own.hold.shorten(packet, now + span, sink);
                let at = connection.own.hold.at();
                self.due = self.due.into_iter().chain(at).min();
                sink.send(onward, Priority::Normal, packet);
            }
            _ => sink.send(onward, Priority::Normal, packet),
        }
    }

    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        match notice {
            Notice::Forget => {
                self.release_held(sink, Instant::from_nanos(u64::MAX));
                self.connections.clear();
            }
            Notice::ForgetFlow(flow) => self.connections.forget_connection(&flow),
            Notice::Handoff(Handoff::Complete, Losses::None) => self.statistics.lossless += 1,
            _ if self.is_signal(&notice) => self.signal(sink, now),
            _ => {}
        }
    }

    /// CI-FRX-7: every open connection.
    fn signal(&mut self, sink: &mut impl Sink, now: Instant) {
        self.statistics.signals += 1;
        for connection in self.connections.iter_mut() {
            if self.config.sender == Sender::Copy {
                self.statistics.copies += u64::from(resend(connection, sink));
            }
            if connection.has_received_within(self.config.received_within, now) {
                let acks = signal_fixed_host(connection, self.config.receiver, sink);
                self.statistics.acks += u64::from(acks);
            }
        }
    }

    /// ACKs that were held back for as long as that may be.
    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.due.is_some_and(|at| at <= now) {
            self.release_held(sink, now);
        }
    }

    fn release_held(&mut self, sink: &mut impl Sink, now: Instant) {
        self.due = None;
        for connection in self.connections.iter_mut() {
            if connection.own.hold.at().is_some_and(|at| at <= now) {
                connection.own.hold.release();
                self.statistics.acks += u64::from(send_ack(connection, None, sink));
            }
            self.due = self.due.into_iter().chain(connection.own.hold.at()).min();
        }
    }
}

/// Sends the oldest unacknowledged segment again; false if there is none.
fn resend(connection: &Connection<Own>, sink: &mut impl Sink) -> bool {
    let Some(copy) = connection.own.kept.oldest(sink) else { return false };
    let flow = connection.flow;
    sink.report(|| Event {
        flow: Some(flow),
        packet: Some(copy.id),
        kind: EventKind::Rule { id: "CI-FRX-2", did: "sends the oldest segment again", value: 1 },
    });
    let copy = sink.place(copy);
    sink.send(Side::RADIO, Priority::Normal, copy);
    true
}

/// Tells the fixed host that the handoff is over; returns how many ACKs that took.
fn signal_fixed_host(
    connection: &mut Connection<Own>,
    form: Receiver,
    sink: &mut impl Sink,
) -> u32 {
    connection.own.hold.release();
    let (id, did) = match form {
        Receiver::Marked => ("CI-FRX-4", "sends a marked ACK"),
        _ => ("CI-FRX-5", "repeats the last ACK"),
    };
    let acks = match form {
        Receiver::Marked => send_ack(connection, Some(Extra::Mark), sink),
        Receiver::Repeated(count) => (0..count).map(|_| send_ack(connection, None, sink)).sum(),
        Receiver::RepeatedWithBlock(count) => {
            (0..count).map(|_| send_ack(connection, Some(Extra::Block), sink)).sum()
        }
        Receiver::ClosedAndOpened => {
            send_ack(connection, Some(Extra::ZeroWindow), sink) + send_ack(connection, None, sink)
        }
        Receiver::HeldBack(_) => send_ack(connection, None, sink),
    };
    let flow = Some(connection.flow.reversed());
    let kind = EventKind::Rule { id, did, value: u64::from(acks) };
    sink.report(|| Event { flow, packet: None, kind });
    acks
}

/// What an ACK carries beside what the host said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extra {
    Mark,
    /// The last byte that was acknowledged, as having come twice.
    Block,
    ZeroWindow,
}

/// Sends what the host said last; returns how many ACKs that are: one, or none.
fn send_ack(connection: &Connection<Own>, extra: Option<Extra>, sink: &mut impl Sink) -> u32 {
    let made = connection.ack(sink.new_id(), |ack| match extra {
        None => {}
        Some(Extra::Mark) => {
            let pushed = ack.options.push(&HANDOFF_MARK);
            debug_assert!(pushed.is_ok(), "there is room beside timestamps");
        }
        Some(Extra::Block) => {
            ack.options.push_sack(&[SackBlock { start: before(ack.ack), end: ack.ack }]);
        }
        Some(Extra::ZeroWindow) => ack.window = 0,
    });
    let Some(made) = made else { return 0 };
    let made = sink.place(made);
    sink.send(Side::RADIO, Priority::Normal, made);
    1
}

/// The sequence number before this one.
fn before(seq: Seq) -> Seq {
    Seq(seq.0.wrapping_sub(1))
}

/// True for a segment that says nothing but what has arrived.
fn is_ack_alone(packet: &PacketRef) -> bool {
    let unusual = Flags::SYN.with(Flags::FIN).with(Flags::RST).with(Flags::URG);
    packet.payload.is_empty()
        && packet.as_tcp().is_some_and(|tcp| {
            tcp.flags.contains(Flags::ACK) && !tcp.flags.intersects(unusual)
        })
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
        self.due.map(|at| Deadline { at, timer: "held ACK" })
    }
}
