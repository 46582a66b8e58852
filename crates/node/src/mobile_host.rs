//! A mobile host with an engine between its TCP and the air.
//!
//! ```text
//!   Host (endpoints, applications) ── HOST ── engine ── RADIO ── the one side of the machine
//! ```
//!
//! What a mobile host without such an engine is, [`Host`] is.

use crate::Host;
use crate::divert::{Diverted, divert};
use sansio::{Deadline, Engine, Input, Instant, Notice, PacketRef, Priority, Side, Sink};
use schemes::MobileScheme;
use std::collections::VecDeque;

/// The two of them.
#[derive(Debug)]
pub struct MobileHost {
    host: Host,
    engine: MobileScheme,
    /// From one to the other; empty between two inputs.
    between: Between,
    /// Notices that the machine still works on, and when each is done.
    heard: VecDeque<(Notice, Instant)>,
}

/// Packets between host and engine, with the side of the one that they come from: HOST, or RADIO
/// for those that the engine lets in.
type Between = VecDeque<(Side, PacketRef)>;

impl MobileHost {
    /// A host behind an engine.
    pub fn new(host: Host, engine: MobileScheme) -> Self {
        MobileHost { host, engine, between: Between::new(), heard: VecDeque::new() }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// The engine.
    pub fn engine(&self) -> &MobileScheme {
        &self.engine
    }

    /// See [`Host::start`].
    pub fn start(&mut self, sink: &mut impl Sink, now: Instant) {
        self.with_host(sink, |host, sink| host.start(sink, now));
        self.settle(sink, now);
    }

    /// Lets the host act; its packets go to the engine.
    fn with_host<S: Sink>(
        &mut self,
        sink: &mut S,
        act: impl FnOnce(&mut Host, &mut Diverted<'_, S>),
    ) {
        let MobileHost { host, between, .. } = self;
        let mut send = |_: &mut S, _, _, packet| between.push_back((Side::HOST, packet));
        act(host, &mut divert(sink, None, &mut send));
    }

    /// Gives the engine an input; its packets go to the host, or out of the machine.
    fn give_to_engine(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let MobileHost { engine, between, .. } = self;
        let mut outputs = divert(sink, None, |sink, side, priority: Priority, packet| match side {
            Side::RADIO => sink.send(Side::NETWORK, priority, packet),
            _ => between.push_back((Side::RADIO, packet)),
        });
        engine.handle(input, &mut outputs, now);
    }

    /// The machine's own TCP and its engine learn of a notice.
    fn tell(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        if self.engine.asks_own_tcp(&notice) {
            self.with_host(sink, |host, sink| host.fast_retransmit(sink, now));
        }
        self.give_to_engine(Input::Notice(notice), sink, now);
    }

    /// Hands on what lies between the two until nothing does.
    fn settle(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some((side, packet)) = self.between.pop_front() {
            if side == Side::HOST {
                self.give_to_engine(Input::Arrival { side: Side::HOST, packet }, sink, now);
            } else {
                let input = Input::Arrival { side: Side::NETWORK, packet };
                self.with_host(sink, |host, sink| host.handle(input, sink, now));
            }
        }
    }
}

impl Engine for MobileHost {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { packet, .. } => {
                self.give_to_engine(Input::Arrival { side: Side::RADIO, packet }, sink, now);
            }
            Input::Timer => {
                while self.heard.front().is_some_and(|(_, at)| *at <= now)
                    && let Some((notice, _)) = self.heard.pop_front()
                {
                    self.tell(notice, sink, now);
                }
                if self.engine.next_at().is_some_and(|at| at <= now) {
                    self.give_to_engine(Input::Timer, sink, now);
                }
                if self.host.next_at().is_some_and(|at| at <= now) {
                    self.with_host(sink, |host, sink| host.handle(Input::Timer, sink, now));
                }
            }
            Input::Notice(notice) => {
                let after = self.engine.told_after();
                match after.is_zero() {
                    true => self.tell(notice, sink, now),
                    false => self.heard.push_back((notice, now + after)),
                }
            }
            Input::Verdict { .. } => {}
        }
        self.settle(sink, now);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        let timer = "notice";
        let heard = self.heard.front().map(|(_, at)| Deadline { at: *at, timer });
        let engines = Deadline::earlier(self.host.next_deadline(), self.engine.next_deadline());
        Deadline::earlier(engines, heard)
    }
}
