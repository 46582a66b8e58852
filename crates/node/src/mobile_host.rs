//! A mobile host with an engine between its TCP and the air.
//!
//! ```text
//!   Host (endpoints, applications) ── HOST ── engine ── RADIO ── the one side of the machine
//! ```
//!
//! What a mobile host without such an engine is, [`Host`] is.

use crate::Host;
use sansio::{
    Deadline, Delivery, DropReason, Engine, Event, Input, Instant, Packet, PacketId, PacketRef,
    Priority, Side, Sink,
};
use schemes::MobileScheme;
use std::collections::VecDeque;

/// The two of them.
#[derive(Debug)]
pub struct MobileHost {
    host: Host,
    engine: MobileScheme,
    /// From one to the other; empty between two inputs.
    between: Between,
}

/// Packets between host and engine, with the side of the one that they come from: HOST, or RADIO
/// for those that the engine lets in.
type Between = VecDeque<(Side, PacketRef)>;

impl MobileHost {
    /// A host behind an engine.
    pub fn new(host: Host, engine: MobileScheme) -> Self {
        MobileHost { host, engine, between: Between::new() }
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
        self.host.start(&mut OfHost { sink, between: &mut self.between }, now);
        self.settle(sink, now);
    }

    /// Hands on what lies between the two until nothing does.
    fn settle(&mut self, sink: &mut impl Sink, now: Instant) {
        while let Some((side, packet)) = self.between.pop_front() {
            let between = &mut self.between;
            if side == Side::HOST {
                let input = Input::Arrival { side: Side::HOST, packet };
                self.engine.handle(input, &mut OfEngine { sink, between }, now);
            } else {
                let input = Input::Arrival { side: Side::NETWORK, packet };
                self.host.handle(input, &mut OfHost { sink, between }, now);
            }
        }
    }
}

impl Engine for MobileHost {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let between = &mut self.between;
        match input {
            Input::Arrival { packet, .. } => {
                let input = Input::Arrival { side: Side::RADIO, packet };
                self.engine.handle(input, &mut OfEngine { sink, between }, now);
            }
            Input::Timer => {
                if self.engine.next_at().is_some_and(|at| at <= now) {
                    self.engine.handle(Input::Timer, &mut OfEngine { sink, between }, now);
                }
                if self.host.next_at().is_some_and(|at| at <= now) {
                    self.host.handle(Input::Timer, &mut OfHost { sink, between }, now);
                }
            }
            Input::Notice(notice) => {
                if self.engine.asks_own_tcp(&notice) {
                    self.host.fast_retransmit(&mut OfHost { sink, between }, now);
                }
                self.engine.handle(input, &mut OfEngine { sink, between }, now);
            }
            Input::Verdict { .. } => {}
        }
        self.settle(sink, now);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.host.next_deadline(), self.engine.next_deadline())
    }
}

/// Where the host's packets go: to the engine.
struct OfHost<'a, S> {
    sink: &'a mut S,
    between: &'a mut Between,
}

/// Where the engine's packets go: to the host, or out of the machine.
struct OfEngine<'a, S> {
    sink: &'a mut S,
    between: &'a mut Between,
}

/// All but `send` is the machine's.
macro_rules! sink_with {
    ($type:ident, $send:expr) => {
        impl<S: Sink> Sink for $type<'_, S> {
            const TRACE: bool = S::TRACE;

            fn new_id(&mut self) -> PacketId {
                self.sink.new_id()
            }

            fn place(&mut self, packet: Packet) -> PacketRef {
                self.sink.place(packet)
            }

            fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
                let send: fn(&mut Self, Side, Priority, PacketRef) = $send;
                send(self, side, priority, packet);
            }

            fn discard(&mut self, packet: PacketRef, reason: DropReason) {
                self.sink.discard(packet, reason);
            }

            fn release(&mut self, packet: PacketRef) {
                self.sink.release(packet);
            }

            fn deliver(&mut self, delivery: Delivery) {
                self.sink.deliver(delivery);
            }

            fn event(&mut self, event: Event) {
                self.sink.event(event);
            }
        }
    };
}

sink_with!(OfHost, |of, _, _, packet| of.between.push_back((Side::HOST, packet)));
sink_with!(OfEngine, |of, side, priority, packet| match side {
    Side::RADIO => of.sink.send(Side::NETWORK, priority, packet),
    _ => of.between.push_back((Side::RADIO, packet)),
});
