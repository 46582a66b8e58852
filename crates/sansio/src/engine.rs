//! The contract between an engine and whoever drives it.
//!
//! ```text
//!            Input, now                 send, deliver, drop, event
//!   driver ─────────────▶ Engine::handle ─────────────────────────▶ Sink (the driver's)
//!      ▲                                                              │
//!      └───────────────── Engine::next_deadline ◀─────────────────────┘
//! ```
//!
//! One input at a time; all that follows from it is in the sink when `handle` returns. Then the
//! driver asks for the next deadline and sees to it that `Input::Timer` comes no earlier.

use crate::units::Signal;
use crate::{Duration, Event, FlowKey, Instant, Packet, PacketId, PacketRef, Payload};
use core::net::IpAddr;

/// A state machine that meets packets and time.
pub trait Engine {
    /// Takes one input. It cannot fail: bad input is dropped, counted and reported with a reason.
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant);

    /// The first bit of a packet sent earlier goes onto the air of that side. Only for engines that
    /// ask for it; a packet that its queue dropped never departs. It is a note and no input: a
    /// driver may pass it on later, with the time of the departure as `now`, but before any other
    /// input. An engine neither sends nor arms a timer because of it.
    #[inline]
    fn on_departure(&mut self, side: Side, packet: &Packet, sink: &mut impl Sink, now: Instant) {
        let _ = (side, packet, sink, now);
    }

    /// The earliest armed timer, by name. It costs the same however many flows there are.
    fn next_deadline(&self) -> Option<Deadline>;

    /// The time of [`Engine::next_deadline`]; an engine that has to look for the name overrides it.
    #[inline]
    fn next_at(&self) -> Option<Instant> {
        self.next_deadline().map(|deadline| deadline.at)
    }
}

/// What can happen to an engine.
#[derive(Clone, Debug)]
pub enum Input {
    /// A packet arrives on a side.
    Arrival {
        /// Where.
        side: Side,
        /// The packet.
        packet: PacketRef,
    },
    /// The link layer's verdict on a frame: once for each (METP-LL-3). Only for engines that ask
    /// for it, from links that repeat frames.
    Verdict {
        /// Where.
        side: Side,
        /// The packet, as it was sent.
        packet: PacketRef,
        /// True: acknowledged by the other end; false: given up, it may or may not have arrived.
        acknowledged: bool,
    },
    /// The time of the deadline has come, or passed. Early calls are harmless.
    Timer,
    /// Something became known about a link or a handoff.
    Notice(Notice),
}

/// An attachment of an engine: any number, numbered by the machine that stacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Side(pub u16);

impl Side {
    /// The only side of an end host.
    pub const NETWORK: Side = Side(0);
    /// A base station's or gateway's side toward the fixed host.
    pub const WIRED: Side = Side(0);
    /// A base station's or gateway's side toward the mobile host; that of an engine at a mobile
    /// host toward its base station.
    pub const RADIO: Side = Side(1);
    /// The side of an engine at an end host toward that host's own TCP.
    pub const HOST: Side = Side(0);
    /// A base station's side toward other base stations. What is sent here goes in a tunnel to
    /// where its destination has moved, what arrives here has left one; whoever stacks the machine
    /// encapsulates.
    pub const TUNNEL: Side = Side(2);
    /// A base station's side for what it keeps while another one forwards it (SNHO-1): what arrives
    /// here is for an engine to look at and to let go; nothing is sent here.
    pub const MIRROR: Side = Side(3);
}

/// Which of a link's two queues (SNOOP-ACK-10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Served first, without preemption: local retransmissions and probes.
    High,
    /// Everything else.
    #[default]
    Normal,
}

/// What the driver learned from outside the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The link on this side is gone (carrier, schedule, signal).
    LinkDown(Side),
    /// The link on this side is back.
    LinkUp(Side),
    /// If the link on this side was gone, it is probably back: a schedule or a hint says so. Who
    /// was not gone takes no notice.
    LinkMayBeUp(Side),
    /// One mobile host of several is out of reach.
    MobileDown(IpAddr),
    /// It is back.
    MobileUp(IpAddr),
    /// The signal of this mobile host's base station, now.
    Signal(Signal),
    /// A handoff of this mobile host has come so far.
    Handoff(Handoff, Losses),
    /// A mobile host has registered with this base station, or has renewed that (WINC-ST-2, 9).
    Registered(IpAddr),
    /// A mobile host has left this base station, and nobody says where to.
    Deregistered(IpAddr),
    /// A mobile host is with another base station now: a binding update came (WINC-ST-5, 6).
    Moved(IpAddr),
    /// A mobile host is with another base station now, and this one keeps what comes for it, in
    /// case it comes back (MCAST-5, SNHO-9). [`Notice::Registered`] ends it, or [`Notice::Moved`].
    Buffering(IpAddr),
    /// It is no longer known where a mobile host has moved to (WINC-ST-7).
    BindingExpired(IpAddr),
    /// What a mobile host's last base station holds for it will come through the tunnel
    /// (WINC-BS-6); told after [`Notice::Registered`], and again when that one has answered.
    TunnelOpened(IpAddr),
    /// Forget everything that is soft state (SNOOP-GEN-3); the drill of the soft-state checker.
    Forget,
    /// Forget what is known of one connection, data either way.
    ForgetFlow(FlowKey),
    /// The strength of what was just heard of a base station.
    Heard {
        /// Its address.
        station: IpAddr,
        /// Signal to noise, in tenths of a decibel.
        decibels_10: i16,
    },
    /// A mobile host's handoff went on.
    HandoffStage {
        /// Which mobile host, by its home address.
        mobile: IpAddr,
        /// How far.
        stage: HandoffStage,
    },
    /// The machine joins a multicast group, or leaves it.
    Group {
        /// Which.
        group: IpAddr,
        /// True: joins.
        is_member: bool,
    },
}

/// How far a handoff has gone, as the mobile host sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandoffStage {
    /// Another base station is chosen.
    Begun,
    /// The route to the fixed hosts leads over the new base station (CI-HO-3).
    RouteChanged,
    /// The new base station has answered (CI-HO-4).
    Greeted,
    /// Routes are consistent (CI-HO-6).
    Complete,
    /// The home agent has accepted the registration.
    Registered,
    /// Nobody answered as often as was asked.
    Failed,
}

impl HandoffStage {
    /// A few words.
    pub const fn name(self) -> &'static str {
        match self {
            HandoffStage::Begun => "begun",
            HandoffStage::RouteChanged => "route changed",
            HandoffStage::Greeted => "greeted",
            HandoffStage::Complete => "complete",
            HandoffStage::Registered => "registered",
            HandoffStage::Failed => "failed",
        }
    }
}

/// How far a mobile host's handoff has come (CI-HO-3 to 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handoff {
    /// The new base station has answered the greeting: what the mobile host sends arrives. What is
    /// sent to it may still go to the old base station.
    GreetingAcknowledged,
    /// The old base station knows, too: both ways lead through the new one.
    Complete,
}

/// Whether a handoff may have lost packets (CI-FRX-8): configured for each attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Losses {
    /// It may.
    Possible,
    /// The network guarantees that it has not.
    None,
}

/// The earliest armed timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Instant,
    /// The timer's name.
    pub timer: &'static str,
}

/// Payload that reached its application in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The next bytes of the stream.
    pub payload: Payload,
}

/// Why an engine let a packet go instead of sending it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DropReason {
    /// The scheme's rule says so; the rule's ID.
    Rule(&'static str),
    /// No connection of this host.
    NoConnection,
    /// Outside the receive window, or all of it received before.
    NotAcceptable,
    /// No room in a queue or buffer; its name.
    Full(&'static str),
    /// A connection's end host consumed the packet: nothing is wrong.
    Consumed,
}

/// Where an engine puts what follows from an input. The driver implements it.
pub trait Sink {
    /// False: events are thrown away, and an engine need not build them.
    const TRACE: bool;

    /// A fresh packet identity.
    fn new_id(&mut self) -> PacketId;

    /// Gives a packet its place in memory. A driver may take that of one that was let go.
    #[inline]
    fn place(&mut self, packet: Packet) -> PacketRef {
        PacketRef::new(packet)
    }

    /// Sends a packet on a side.
    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef);

    /// Lets a packet go.
    fn discard(&mut self, packet: PacketRef, reason: DropReason);

    /// Lets go of a share of a packet that another owner has handled; nobody is told.
    #[inline]
    fn release(&mut self, packet: PacketRef) {
        drop(packet);
    }

    /// Hands in-order payload to the application.
    fn deliver(&mut self, delivery: Delivery);

    /// Tells the other engines of the same machine.
    #[inline]
    fn notify(&mut self, notice: Notice) {
        let _ = notice;
    }

    /// Reports what happened; call it through [`Sink::report`].
    fn event(&mut self, event: Event);

    /// Reports what `event` makes, and makes it only if somebody listens.
    #[inline]
    fn report(&mut self, event: impl FnOnce() -> Event) {
        if Self::TRACE {
            let event = event();
            self.event(event);
        }
    }
}

impl Deadline {
    /// The earlier of two.
    #[inline]
    pub fn earlier(a: Option<Deadline>, b: Option<Deadline>) -> Option<Deadline> {
        match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        }
    }

    /// Time left at `now`.
    pub fn left(&self, now: Instant) -> Duration {
        self.at.since(now)
    }
}
