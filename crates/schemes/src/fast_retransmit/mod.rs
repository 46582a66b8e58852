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
//! Map: [`config`] (who, when, how often), `kept` (what may be sent again). What a TCP does when it is
//! told is in `tcp::handoff`; what each way of telling is worth, in `docs/fast-retransmission.md`.
//!
//! We differ: the engine works on packets that pass, so that it stands beside a TCP that nobody has
//! changed; only [`config::Sender::OwnTcp`] needs one that has.

pub mod config;
mod kept;

pub use config::Config;

use crate::connections::{Connection, Connections, across};
use config::{Receiver, Sender, Trigger};
use kept::Kept;
use sansio::{
    Deadline, DropReason, Engine, Event, EventKind, Handoff, Input, Instant, Losses, Notice,
    PacketRef, Priority, Side, Sink,
};
use wire::tcp::{HANDOFF_MARK, SackBlock, Seq};

/// The engine at one mobile host.
#[derive(Clone, Debug)]
pub struct Agent {
    config: Config,
    connections: Connections<Kept>,
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

impl Agent {
    /// An engine that knows of no connection yet.
    pub fn new(config: Config) -> Self {
        Agent {
            connections: Connections::new(config.connections_max),
            config,
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
        self.connections.iter().map(|connection| connection.own.bytes()).sum()
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
            connection.own.note(side, &packet, self.config.kept_bytes_max);
        }
        sink.send(onward, Priority::Normal, packet);
    }

    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        match notice {
            Notice::Forget => self.connections.clear(),
            Notice::ForgetFlow(flow) => self.connections.forget_connection(&flow),
            Notice::Handoff(Handoff::Complete, Losses::None) => self.statistics.lossless += 1,
            _ if self.is_signal(&notice) => self.signal(sink, now),
            _ => {}
        }
    }

    /// CI-FRX-7: every open connection.
    fn signal(&mut self, sink: &mut impl Sink, now: Instant) {
        self.statistics.signals += 1;
        for connection in self.connections.iter() {
            if self.config.sender == Sender::Copy {
                self.statistics.copies += u64::from(resend(connection, sink));
            }
            if connection.has_received_within(self.config.received_within, now) {
                let acks = signal_fixed_host(connection, self.config.receiver, sink);
                self.statistics.acks += u64::from(acks);
            }
        }
    }
}

/// Sends the oldest unacknowledged segment again; false if there is none.
fn resend(connection: &Connection<Kept>, sink: &mut impl Sink) -> bool {
    let Some(copy) = connection.own.oldest(sink) else { return false };
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
fn signal_fixed_host(connection: &Connection<Kept>, form: Receiver, sink: &mut impl Sink) -> u32 {
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
fn send_ack(connection: &Connection<Kept>, extra: Option<Extra>, sink: &mut impl Sink) -> u32 {
    let made = connection.ack(sink.new_id(), |ack| match extra {
        None => {}
        Some(Extra::Mark) => {
            let pushed = ack.options.push(&HANDOFF_MARK);
            debug_assert!(pushed.is_ok(), "there is room beside timestamps");
        }
        Some(Extra::Block) => {
            let start = Seq(ack.ack.0.wrapping_sub(1));
            ack.options.push_sack(&[SackBlock { start, end: ack.ack }]);
        }
        Some(Extra::ZeroWindow) => ack.window = 0,
    });
    let Some(made) = made else { return 0 };
    let made = sink.place(made);
    sink.send(Side::RADIO, Priority::Normal, made);
    1
}

impl Engine for Agent {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side, packet } => self.on_arrival(side, packet, sink, now),
            Input::Notice(notice) => self.on_notice(notice, sink, now),
            Input::Timer | Input::Verdict { .. } => {}
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}
