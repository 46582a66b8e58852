//! One end of one connection (RFC 9293): what its owner and its driver call.
//!
//! Times inside are the connection's own: the driver's plus an offset, so that a frozen connection
//! goes on anywhere ([`crate::Frozen`]). The work is done in the modules beside this one: `arrival`
//! takes segments in, `sender` and `recovery` decide what is sent, `receiver` keeps what came,
//! `output` builds packets.

use crate::buffer::Buffer;
use crate::config::Config;
use crate::congestion::{AnyController, SackUse};
use crate::receiver::Receiver;
use crate::rtt::RoundTrip;
use crate::sender::{Fin, Sender};
use crate::state::State;
use crate::statistics::Statistics;
use crate::timers::{Timer, Timers};
use sansio::{
    Deadline, Duration, Engine, Event, EventKind, FlowKey, Input, Instant, Payload, Sink,
};
use std::rc::Rc;
use wire::tcp::{Flags, Seq};

/// One end of one TCP connection. It sends and receives on `Side::NETWORK`.
///
/// With many connections in a simulation each packet finds its end out of the processor's cache.
/// Therefore what every packet needs lies together, here and in the parts; `repr(C)` keeps the
/// order.
#[derive(Clone, Debug, PartialEq)]
#[repr(C)]
pub struct Endpoint {
    pub(crate) flow: FlowKey,
    pub(crate) state: State,
    pub(crate) opening: Opening,
    /// Window fields are scaled.
    pub(crate) scales: bool,
    /// The connection has begun, or never will: it cannot be opened.
    pub(crate) begun: bool,
    /// IPv4 identification of the last packet.
    pub(crate) identification: u16,
    /// Where the timestamp clock began.
    pub(crate) timestamp_base: u32,
    /// The connection's time less the driver's, modulo 2^64 ns.
    pub(crate) clock_offset: u64,
    pub(crate) timers: Timers,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) rtt: RoundTrip,
    pub(crate) controller: AnyController,
    pub(crate) statistics: Statistics,
    /// Shared by all ends that were made with it: many of them, one copy in the cache.
    pub(crate) config: Rc<Config>,
}

/// Who began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// This end: a refused connection is over.
    Active,
    /// The peer: this end listened, and listens again if the peer resets during the handshake.
    Passive,
}

impl Endpoint {
    /// An end that will open the connection. `flow` is the direction from here to the peer,
    /// `initial_seq` the sequence number of the SYN.
    pub fn client(config: impl Into<Rc<Config>>, flow: FlowKey, initial_seq: Seq) -> Self {
        Self::new(config.into(), flow, initial_seq, Opening::Active)
    }

    /// An end that waits for the peer's SYN. `flow` is the direction from here to the peer,
    /// `initial_seq` the sequence number of the SYN that will answer.
    pub fn server(config: impl Into<Rc<Config>>, flow: FlowKey, initial_seq: Seq) -> Self {
        Self::new(config.into(), flow, initial_seq, Opening::Passive)
    }

    /// The same end on a host whose last tick was so long before time zero, less than a tick
    /// ([`crate::config::TimerModel::Ticks`]); by default it was then.
    pub fn with_tick_phase(mut self, phase: Duration) -> Self {
        self.rtt.tick_phase = phase;
        self
    }

    fn new(config: Rc<Config>, flow: FlowKey, initial_seq: Seq, opening: Opening) -> Self {
        let state = match opening {
            Opening::Active => State::Closed,
            Opening::Passive => State::Listen,
        };
        let mss = u32::from(config.mss).max(1);
        Endpoint {
            flow,
            state,
            opening,
            sender: Sender::new(initial_seq, mss),
            receiver: Receiver::new(&config),
            rtt: RoundTrip::new(config.clone()),
            controller: AnyController::new(&config, mss, SackUse::Refused),
            config,
            identification: 0,
            scales: false,
            timestamp_base: initial_seq.0,
            begun: false,
            statistics: Statistics::default(),
            timers: Timers::default(),
            clock_offset: 0,
        }
    }

    /// Sends the SYN. Nothing happens on an end that is open already or waits for a peer.
    pub fn open(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.state != State::Closed || self.begun {
            return;
        }
        self.begun = true;
        let now = self.local(now);
        self.enter(State::SynSent, sink);
        self.send_syn(Flags::SYN, sink, now);
    }

    /// Takes bytes to send, before, during or after the handshake; returns how many it took: all
    /// unless the send buffer is full, none after `close` or on a connection that is over.
    pub fn write(&mut self, payload: Payload, sink: &mut impl Sink, now: Instant) -> u32 {
        if self.sender.fin != Fin::Open || matches!(payload, Payload::Tunnel(_)) {
            return 0;
        }
        self.note_idle_application();
        let room = u32::try_from(self.send_space()).unwrap_or(u32::MAX);
        let accepted = payload.len().min(room);
        if accepted == payload.len() {
            self.sender.buffer.push(payload);
        } else {
            self.sender.buffer.push(payload.slice(0, accepted));
        }
        self.transmit(sink, self.local(now));
        accepted
    }

    /// No more bytes will be written: a FIN follows those that were. A connection that has not
    /// begun is over at once.
    pub fn close(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.sender.fin != Fin::Open {
            return;
        }
        match self.state {
            State::Closed | State::Listen | State::SynSent => return self.finish(sink),
            // RFC 9293, 3.10.4: the FIN waits until the connection is established.
            State::SynReceived => {}
            State::Established => self.enter(State::FinWait1, sink),
            State::CloseWait => self.enter(State::LastAck, sink),
            _ => return,
        }
        self.sender.fin = Fin::Pending;
        self.transmit(sink, self.local(now));
    }

    /// Ends the connection at once and tells the peer by RST.
    pub fn abort(&mut self, sink: &mut impl Sink, now: Instant) {
        let now = self.local(now);
        if self.state.is_synchronized() && self.state != State::TimeWait
            || self.state == State::SynReceived
        {
            self.send_control(Flags::RST.with(Flags::ACK), sink, now);
        }
        self.finish(sink);
    }

    /// The state of the connection.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// The direction from here to the peer.
    pub fn flow(&self) -> FlowKey {
        self.flow
    }

    /// The parameters it was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counters since the connection was made.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Bytes that `write` would take now.
    pub fn send_space(&self) -> u64 {
        self.config.send_buffer_bytes.saturating_sub(self.sender.buffer.len())
    }

    /// Written bytes that the peer has not acknowledged, sent or not.
    #[inline]
    pub fn unacknowledged(&self) -> u64 {
        self.sender.buffer.len()
    }

    /// Bytes of sequence space sent and not acknowledged, SYN and FIN included.
    pub fn flight(&self) -> u32 {
        self.sender.flight()
    }

    /// Congestion window with Reno's inflation, bytes.
    pub fn cwnd(&self) -> u32 {
        self.controller.cwnd()
    }

    /// Slow start threshold, bytes.
    pub fn ssthresh(&self) -> u32 {
        self.controller.ssthresh()
    }

    /// In-order bytes that `peek` can see ([`crate::config::Reading::Manual`]).
    pub fn readable(&self) -> u64 {
        self.receiver.unread_bytes()
    }

    /// Up to `length` readable bytes from `offset`, which stay; fewer where pieces of different
    /// kinds meet, none past the end.
    pub fn peek(&mut self, offset: u64, length: u32) -> Payload {
        let left = self.readable().saturating_sub(offset);
        let length = u64::from(length).min(left) as u32;
        match &mut self.receiver.unread {
            Some(unread) if length > 0 => unread.slice(offset, length),
            _ => Payload::EMPTY,
        }
    }

    /// Frees `count` readable bytes, at most all; the window may open, and then the peer is told.
    pub fn consume(&mut self, count: u64, sink: &mut impl Sink, now: Instant) {
        self.receiver.unread.iter_mut().for_each(|unread| unread.take(count));
        if self.state.may_receive() && self.receiver.should_tell_window() {
            self.send_ack(sink, self.local(now));
        }
    }

    /// True once the peer's FIN came and all before it is read: there is no more to come.
    pub fn is_at_end(&self) -> bool {
        self.receiver.finished && self.receiver.unread_bytes() == 0
    }

    /// The connection's own time.
    #[inline]
    pub(crate) fn local(&self, now: Instant) -> Instant {
        Instant::from_nanos(now.as_nanos().wrapping_add(self.clock_offset))
    }

    pub(crate) fn enter(&mut self, state: State, sink: &mut impl Sink) {
        let from = self.state;
        self.state = state;
        self.report(sink, || EventKind::State { from: from.name(), to: state.name() });
    }

    /// The connection is over: nothing more is sent, nothing more fires.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) {
        if self.state != State::Closed {
            self.enter(State::Closed, sink);
        }
        self.begun = true;
        self.timers = Timers::default();
        self.sender.buffer = Buffer::default();
        self.sender.fin = Fin::Acknowledged;
        self.receiver.forget_holes();
    }

    /// The peer took its SYN back: wait for another.
    pub(crate) fn listen_again(&mut self, sink: &mut impl Sink) {
        let buffer = core::mem::take(&mut self.sender.buffer);
        let fresh = Self::server(self.config.clone(), self.flow, self.sender.una)
            .with_tick_phase(self.rtt.tick_phase);
        let (state, fin) = (self.state, self.sender.fin);
        let (statistics, clock_offset) = (self.statistics, self.clock_offset);
        *self = Endpoint { state, statistics, clock_offset, ..fresh };
        self.sender.buffer = buffer;
        self.sender.fin = fin;
        self.enter(State::Listen, sink);
    }

    #[inline]
    pub(crate) fn report(&self, sink: &mut impl Sink, kind: impl FnOnce() -> EventKind) {
        sink.report(|| Event { flow: Some(self.flow), packet: None, kind: kind() });
    }

    fn on_timer(&mut self, timer: Timer, sink: &mut impl Sink, now: Instant) {
        match timer {
            Timer::Retransmission => self.on_retransmission_timeout(sink, now),
            Timer::Persist => self.on_persist_timeout(sink, now),
            Timer::DelayedAck => self.send_ack(sink, now),
            Timer::TimeWait => self.finish(sink),
            Timer::LossProbe => self.on_loss_probe(sink, now),
            Timer::Reordering => self.on_reordering_timeout(sink, now),
            Timer::Pacing => self.on_pacing_timer(sink, now),
        }
    }
}

impl Engine for Endpoint {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let now = self.local(now);
        match input {
            Input::Arrival { packet, .. } => {
                let reason = self.on_arrival(&packet, sink, now);
                sink.discard(packet, reason);
            }
            Input::Timer => {
                while let Some(timer) = self.timers.pop_due(now) {
                    self.on_timer(timer, sink, now);
                }
            }
            // Verdicts, departures and notices are for agents on the path.
            Input::Verdict { .. } | Input::Notice(_) => {}
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        let (timer, at) = self.timers.next()?;
        let at = Instant::from_nanos(at.as_nanos().wrapping_sub(self.clock_offset));
        Some(Deadline { at, timer: timer.name() })
    }
}
