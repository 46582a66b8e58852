//! The record and its observers.

use sansio::{DropReason, Event, Instant, Packet, Payload, Priority, Side};

/// A machine of the run, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// What a machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// The host on the wired side.
    FixedHost,
    /// Base station or gateway.
    BaseStation,
    /// The host behind the radio.
    MobileHost,
    /// Between fixed hosts and several base stations.
    Router,
}

impl Role {
    /// True for a machine that passes on what is for others.
    pub fn forwards(self) -> bool {
        matches!(self, Role::BaseStation | Role::Router)
    }
}

/// One thing that happened at one machine.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// When.
    pub at: Instant,
    /// Where; for a hop, the machine that sends into it.
    pub node: NodeId,
    /// What.
    pub what: What<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum What<'a> {
    /// A machine sent a packet into a hop's queue.
    Sent {
        /// On which side.
        side: Side,
        /// Into which of the two queues.
        priority: Priority,
        /// The packet.
        packet: &'a Packet,
    },
    /// The first bit of a packet went onto the hop; only hops whose machine asks for it.
    Departed {
        /// On which side.
        side: Side,
        /// The packet.
        packet: &'a Packet,
    },
    /// A packet reached a machine.
    Arrived {
        /// On which side.
        side: Side,
        /// The packet.
        packet: &'a Packet,
    },
    /// The hop lost a packet; it used its time on the air.
    Lost {
        /// The side of the sending machine.
        side: Side,
        /// The packet.
        packet: &'a Packet,
        /// The channel or outage that did it.
        cause: &'static str,
    },
    /// The hop's queue was full.
    QueueFull {
        /// The side of the sending machine.
        side: Side,
        /// The packet.
        packet: &'a Packet,
    },
    /// An engine let a packet go.
    Discarded {
        /// The packet.
        packet: &'a Packet,
        /// Why.
        reason: DropReason,
    },
    /// Payload reached an application in order.
    Delivered {
        /// The payload.
        payload: &'a Payload,
    },
    /// The link on this side went away or came back; `lasting` until when is not known here.
    LinkDown {
        /// On which side.
        side: Side,
    },
    /// The link on this side came back.
    LinkUp {
        /// On which side.
        side: Side,
    },
    /// A mobile host and the cells.
    Cell(CellChange),
    /// Bytes that the machine's scheme keeps in its caches, after it handled an input.
    Cached {
        /// Bytes.
        bytes: u64,
        /// The most it may keep.
        limit: u64,
    },
    /// What waits in the queue of a hop, from `at` on. It is found out when the hop is
    /// looked at next, so it may come after later records of others.
    Queued {
        /// The side of the sending machine.
        side: Side,
        /// Packets, without the one on the air.
        packets: u32,
        /// Their bytes.
        bytes: u64,
    },
    /// An engine's report.
    Event(&'a Event),
}

/// What becomes different between a mobile host and the cells, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellChange {
    /// From now on frames pass between it and the cell's base station.
    Reached(u16),
    /// From now on none do.
    Lost(u16),
    /// It goes from one cell to another.
    Crossed {
        /// The cell it leaves.
        from: u16,
        /// The cell it goes to.
        to: u16,
    },
}

/// Somebody who is shown every record, in order of time.
pub trait Observer {
    /// False: nothing is recorded, and the driver need not make records.
    const ON: bool;
    /// True: it is shown [`What::Queued`], which few ask for and which changes with every packet.
    const QUEUES: bool = false;

    /// Takes one record.
    fn record(&mut self, record: &Record<'_>);
}

/// Nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Observer for Nothing {
    const ON: bool = false;
    #[inline]
    fn record(&mut self, _: &Record<'_>) {}
}

/// Shows an observer what happened up to an instant, that instant included. What comes after the
/// end of a run, when its machines are stopped one by one, is no part of it.
#[derive(Clone, Copy, Debug)]
pub struct Until<O>(pub Instant, pub O);

impl<O: Observer> Observer for Until<O> {
    const ON: bool = O::ON;
    const QUEUES: bool = O::QUEUES;
    fn record(&mut self, record: &Record<'_>) {
        if record.at <= self.0 {
            self.1.record(record);
        }
    }
}

impl<O: Observer> Observer for &mut O {
    const ON: bool = O::ON;
    const QUEUES: bool = O::QUEUES;
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        (**self).record(record);
    }
}

impl<O: Observer> Observer for Option<O> {
    const ON: bool = O::ON;
    const QUEUES: bool = O::QUEUES;
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        if let Some(observer) = self {
            observer.record(record);
        }
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    const ON: bool = A::ON || B::ON;
    const QUEUES: bool = A::QUEUES || B::QUEUES;
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        self.0.record(record);
        self.1.record(record);
    }
}

impl<A: Observer, B: Observer, C: Observer> Observer for (A, B, C) {
    const ON: bool = A::ON || B::ON || C::ON;
    const QUEUES: bool = A::QUEUES || B::QUEUES || C::QUEUES;
    #[inline]
    fn record(&mut self, record: &Record<'_>) {
        self.0.record(record);
        self.1.record(record);
        self.2.record(record);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Seen(Vec<u64>);

    impl Observer for Seen {
        const ON: bool = true;
        fn record(&mut self, record: &Record<'_>) {
            self.0.push(record.at.as_nanos());
        }
    }

    #[test]
    fn what_comes_after_the_end_of_a_run_is_not_shown() {
        let mut seen = Seen(Vec::new());
        let mut until = Until(Instant::from_nanos(2), &mut seen);
        for at in 1..=3 {
            let what = What::LinkUp { side: Side::RADIO };
            until.record(&Record { at: Instant::from_nanos(at), node: NodeId(1), what });
        }
        assert_eq!(seen.0, [1, 2]);
    }
}
