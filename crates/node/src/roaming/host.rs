//! A mobile host that changes cells: its applications and TCP, its scheme, and mobility.
//!
//! ```text
//!   Host, or host behind an engine ── mobility ──┬── side 0: the cell of base station 0
//!                                                └── side 1: ...
//! ```
//!
//! What is for a base station goes to that one's cell, all else to the one that mobility has a
//! route over.

use super::address::{station, station_number};
use crate::divert::{Diverted, divert};
use crate::{Host, MobileHost};
use mobility::beacon;
use sansio::{
    Deadline, DropReason, Engine, Event, EventKind, Handoff, HandoffStage, Input, Instant, Losses,
    Notice, PacketRef, Side, Sink,
};
use std::collections::{BTreeSet, VecDeque};

/// The machine.
#[derive(Debug)]
pub struct RoamingHost {
    inner: Inner,
    mobility: mobility::mobile::MobileHost,
    attention: Attention,
    /// Cells that no longer reach, where that decides what is to follow.
    lost: Option<BTreeSet<u16>>,
    /// Between the two; empty between two inputs.
    between: VecDeque<(To, PacketRef)>,
    notices: Vec<Notice>,
}

/// All above mobility.
#[derive(Debug)]
enum Inner {
    Host(Host),
    Engine(Box<MobileHost>),
}

#[derive(Clone, Copy, Debug)]
enum To {
    Mobility,
    Inner,
}

/// Which base stations' beacons a mobile host listens to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attention {
    /// All, and mobility chooses.
    All,
    /// One, or none until the rendezvous: the clock of an experiment chooses (CI-MOD-3).
    Only(Option<u16>),
    /// All, and the clock chooses this one, which is entered with its next beacon.
    Follows(u16),
    /// All, and the clock chooses this one, which is entered as soon as it reaches: layer 2 says
    /// so (LINK-4).
    Joins(u16),
}

impl RoamingHost {
    /// A host; `engine`: it stands behind that.
    pub fn new(
        host: Host,
        engine: Option<schemes::MobileScheme>,
        mobility: mobility::mobile::MobileHost,
        attention: Attention,
    ) -> Self {
        let inner = match engine {
            Some(engine) => Inner::Engine(Box::new(MobileHost::new(host, engine))),
            None => Inner::Host(host),
        };
        let (between, notices) = (VecDeque::new(), Vec::new());
        RoamingHost { inner, mobility, attention, lost: None, between, notices }
    }

    /// The same; an old base station is asked to send after it only what its cell can no longer
    /// bring.
    pub fn with_lost_cells(self) -> Self {
        RoamingHost { lost: Some(BTreeSet::new()), ..self }
    }

    /// Layer 2: a cell reaches the host from now on, or no more.
    pub fn set_reached(&mut self, cell: u16, is_reached: bool) {
        if let Some(lost) = &mut self.lost {
            if is_reached {
                lost.remove(&cell)
            } else {
                lost.insert(cell)
            };
        }
    }

    /// The host.
    pub fn host(&self) -> &Host {
        match &self.inner {
            Inner::Host(host) => host,
            Inner::Engine(host) => host.host(),
        }
    }

    /// Where it is, and by which messages.
    pub fn mobility(&self) -> &mobility::mobile::MobileHost {
        &self.mobility
    }

    /// The cell of the base station over which packets leave.
    pub fn attached(&self) -> Option<u16> {
        self.mobility.route().and_then(|address| station_number(address.into()))
    }

    /// Opens the connections.
    pub fn start(&mut self, sink: &mut impl Sink, now: Instant) {
        let RoamingHost { inner, between, notices, .. } = self;
        let mut outputs =
            divert(sink, notices, |_, _, _, packet| between.push_back((To::Mobility, packet)));
        match inner {
            Inner::Host(host) => host.start(&mut outputs, now),
            Inner::Engine(host) => host.start(&mut outputs, now),
        }
        self.settle(sink, now);
    }

    /// The clock of an experiment sends the host to another cell; `false`: its beacons count from
    /// the rendezvous on only.
    pub fn cross(&mut self, to: u16, is_heard: bool) {
        self.attention = match self.attention {
            Attention::All => Attention::All,
            Attention::Only(_) => Attention::Only(is_heard.then_some(to)),
            Attention::Follows(_) => Attention::Follows(to),
            Attention::Joins(_) => Attention::Joins(to),
        };
    }

    /// A cell's frames reach the host: layer 2 joins it if that is where the host has gone, and
    /// the layers above are told (LINK-4).
    pub fn join(&mut self, cell: u16, sink: &mut impl Sink, now: Instant) {
        if self.attention != Attention::Joins(cell) {
            return;
        }
        let to = station(cell);
        self.with_mobility(sink, |mobility, sink| {
            if mobility.current() != Some(to) {
                mobility.attach(to, sink, now);
            }
        });
        self.settle(sink, now);
    }

    /// The rendezvous with this cell's base station (CI-MOD-5).
    pub fn meet(&mut self, cell: u16) {
        self.cross(cell, true);
    }

    /// Lets mobility act, and sends what it sends: to a base station in that one's cell, all else
    /// over the route.
    fn with_mobility<S: Sink>(
        &mut self,
        sink: &mut S,
        act: impl FnOnce(&mut mobility::mobile::MobileHost, &mut Diverted<'_, S>),
    ) {
        let RoamingHost { mobility, between, notices, .. } = self;
        let route = mobility.route().and_then(|address| station_number(address.into()));
        let mut send = |sink: &mut S, side, priority, packet: PacketRef| {
            let cell = match side {
                mobility::mobile::MobileHost::ROUTE => route,
                Side::NETWORK => station_number(packet.ip.destination).or(route),
                _ => return between.push_back((To::Inner, packet)),
            };
            match cell {
                Some(number) => sink.send(Side(number), priority, packet),
                None => sink.discard(packet, DropReason::Rule("no route")),
            }
        };
        act(mobility, &mut divert(sink, notices, &mut send));
    }

    fn give_to_inner(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        let RoamingHost { inner, between, notices, .. } = self;
        let mut outputs =
            divert(sink, notices, |_, _, _, packet| between.push_back((To::Mobility, packet)));
        match inner {
            Inner::Host(host) => host.handle(input, &mut outputs, now),
            Inner::Engine(host) => host.handle(input, &mut outputs, now),
        }
    }

    fn next_of_inner(&self) -> Option<Deadline> {
        match &self.inner {
            Inner::Host(host) => host.next_deadline(),
            Inner::Engine(host) => host.next_deadline(),
        }
    }

    /// Hands on what lies between the two until nothing does.
    fn settle(&mut self, sink: &mut impl Sink, now: Instant) {
        loop {
            while let Some((to, packet)) = self.between.pop_front() {
                match to {
                    To::Mobility => {
                        let side = mobility::mobile::MobileHost::HOST;
                        let input = Input::Arrival { side, packet };
                        self.with_mobility(sink, |mobility, sink| {
                            mobility.handle(input, sink, now)
                        });
                    }
                    To::Inner => {
                        let input = Input::Arrival { side: Side::NETWORK, packet };
                        self.give_to_inner(input, sink, now);
                    }
                }
            }
            if self.notices.is_empty() {
                return;
            }
            for notice in core::mem::take(&mut self.notices) {
                self.on_notice(notice, sink, now);
            }
        }
    }

    /// What mobility says of its handoffs.
    fn on_notice(&mut self, notice: Notice, sink: &mut impl Sink, now: Instant) {
        let Notice::HandoffStage { stage, .. } = notice else { return };
        let kind = EventKind::Handoff { stage, station: self.attached() };
        sink.report(|| Event { flow: None, packet: None, kind });
        let handoff = match stage {
            HandoffStage::Greeted => Handoff::GreetingAcknowledged,
            HandoffStage::Complete => Handoff::Complete,
            HandoffStage::Begun
            | HandoffStage::RouteChanged
            | HandoffStage::Registered
            | HandoffStage::Failed => return,
        };
        self.give_to_inner(Input::Notice(Notice::Handoff(handoff, Losses::Possible)), sink, now);
    }

    fn on_arrival(&mut self, side: Side, packet: PacketRef, sink: &mut impl Sink, now: Instant) {
        let is_beacon = beacon::read(&packet).is_some();
        let chosen = match self.attention {
            Attention::Only(chosen) if is_beacon && chosen != Some(side.0) => {
                return sink.discard(packet, DropReason::Rule("CI-MOD-3"));
            }
            Attention::All | Attention::Joins(_) => None,
            Attention::Only(chosen) => chosen,
            Attention::Follows(chosen) => Some(chosen),
        };
        let input = Input::Arrival { side: Side::NETWORK, packet };
        let is_lost = self
            .lost
            .as_ref()
            .map(|lost| self.attached().is_none_or(|attached| lost.contains(&attached)));
        self.with_mobility(sink, |mobility, sink| {
            mobility.handle(input, sink, now);
            let from = station(side.0);
            if is_beacon && chosen == Some(side.0) && mobility.current() != Some(from) {
                if let Some(is_lost) = is_lost {
                    mobility.set_wants_buffer(is_lost);
                }
                mobility.attach(from, sink, now);
            }
        });
    }
}

impl Engine for RoamingHost {
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { side, packet } => self.on_arrival(side, packet, sink, now),
            Input::Timer => {
                if self.mobility.next_at().is_some_and(|at| at <= now) {
                    self.with_mobility(sink, |mobility, sink| {
                        mobility.handle(Input::Timer, sink, now);
                    });
                }
                if self.next_of_inner().is_some_and(|deadline| deadline.at <= now) {
                    self.give_to_inner(Input::Timer, sink, now);
                }
            }
            Input::Notice(Notice::Heard { .. }) => {
                self.with_mobility(sink, |mobility, sink| mobility.handle(input, sink, now));
            }
            Input::Notice(_) => self.give_to_inner(input, sink, now),
            Input::Verdict { .. } => {}
        }
        self.settle(sink, now);
    }

    fn next_deadline(&self) -> Option<Deadline> {
        Deadline::earlier(self.mobility.next_deadline(), self.next_of_inner())
    }
}
