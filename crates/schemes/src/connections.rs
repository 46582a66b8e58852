//! What an engine at a mobile host knows of its host's TCP connections, from the packets that pass
//! between that host's own TCP and the air: which are open, what each has acknowledged last, when
//! data last came. No scheme, but what several of them at a mobile host need.
//!
//! An ACK that such an engine makes says what the host said last: number, window, SACK blocks and
//! timestamps are those of the host's last segment (MOD-3), the sequence number is the highest that
//! the host has used. So the fixed host takes it for the mobile host's own, and PAWS accepts it. Of
//! SACK blocks it repeats those above the ACK: what arrived twice is told once.

use sansio::{
    Cause, Duration, FlowIndex, FlowKey, Instant, Packet, PacketId, PacketRef, Payload, Side,
    Transport,
};
use wire::tcp::{Flags, Header, Options, SackBlock, Seq, TcpOption, kind};

/// The open connections of one mobile host, each with what a scheme keeps of it.
#[derive(Clone, Debug)]
pub(crate) struct Connections<T> {
    index: FlowIndex,
    slots: Vec<Option<Connection<T>>>,
    free: Vec<u32>,
    /// Where the search for one that gives up its place goes on.
    hand: usize,
    limit: u32,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Connection<T> {
    /// From the mobile host to the fixed host.
    pub(crate) flow: FlowKey,
    /// The host's last segment with an ACK; none before the handshake is over.
    last: Option<PacketRef>,
    /// One beyond the highest sequence number that the host has used, once it has used one.
    sent_to: Option<Seq>,
    /// When data last came for the host.
    data_at: Option<Instant>,
    heard_at: Instant,
    /// The scheme's own.
    pub(crate) own: T,
}

/// A connection of which nothing was heard for this long gives its place to a new one: far longer
/// than any round trip, so that an active one never yields to a flood (MOD-14).
const YIELDS_AFTER: Duration = Duration::from_secs(60);

impl<T: Default> Connections<T> {
    /// None yet, and never more than `limit` (MOD-14).
    pub(crate) fn new(limit: u32) -> Self {
        Connections {
            index: FlowIndex::new(0),
            slots: Vec::new(),
            free: Vec::new(),
            hand: 0,
            limit,
        }
    }

    /// Takes note of a segment that passes, and finds its connection: none if it is not TCP, if a
    /// RST ends it, or if there are too many. `side` is where it comes from.
    pub(crate) fn note(
        &mut self,
        side: Side,
        packet: &PacketRef,
        now: Instant,
    ) -> Option<&mut Connection<T>> {
        let tcp = packet.as_tcp()?;
        let key = FlowKey::of(packet)?;
        let flow = if side == Side::HOST { key } else { key.reversed() };
        if tcp.flags.intersects(Flags::RST.with(Flags::SYN)) {
            self.forget(&flow);
            if tcp.flags.contains(Flags::RST) {
                return None;
            }
        }
        let slot = match self.index.get(&flow) {
            Some(slot) => slot,
            None => self.begin(flow, now)?,
        };
        let connection = self.slots[slot as usize].as_mut()?;
        connection.heard_at = now;
        match side {
            Side::HOST => connection.on_sent(tcp, packet),
            _ if !packet.payload.is_empty() => connection.data_at = Some(now),
            _ => {}
        }
        Some(connection)
    }

    fn begin(&mut self, flow: FlowKey, now: Instant) -> Option<u32> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.limit as usize => {
                self.slots.push(None);
                self.slots.len() as u32 - 1
            }
            None => self.make_room(now)?,
        };
        self.index.insert(flow, slot);
        self.slots[slot as usize] = Some(Connection {
            flow,
            last: None,
            sent_to: None,
            data_at: None,
            heard_at: now,
            own: T::default(),
        });
        Some(slot)
    }

    /// Looks at one place, the next in turn, so that a flood costs no search.
    fn make_room(&mut self, now: Instant) -> Option<u32> {
        self.hand = (self.hand + 1) % self.slots.len().max(1);
        let old = self.slots.get(self.hand)?.as_ref()?;
        if now.since(old.heard_at) < YIELDS_AFTER {
            return None;
        }
        self.index.remove(&old.flow);
        Some(self.hand as u32)
    }

    fn forget(&mut self, flow: &FlowKey) {
        if let Some(slot) = self.index.remove(flow) {
            self.slots[slot as usize] = None;
            self.free.push(slot);
        }
    }

    /// Forgets all: the state is soft.
    pub(crate) fn clear(&mut self) {
        *self = Connections::new(self.limit);
    }

    /// Forgets one, whichever direction names it.
    pub(crate) fn forget_connection(&mut self, flow: &FlowKey) {
        self.forget(flow);
        self.forget(&flow.reversed());
    }

    /// All of them, always in the same order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Connection<T>> {
        self.slots.iter().flatten()
    }

    /// The same, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection<T>> {
        self.slots.iter_mut().flatten()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }
}

impl<T> Connection<T> {
    fn on_sent(&mut self, tcp: &Header, packet: &PacketRef) {
        let end = tcp.seq + tcp.sequence_length(packet.payload.len());
        if self.sent_to.is_none_or(|highest| end.after(highest)) {
            self.sent_to = Some(end);
        }
        if tcp.flags.contains(Flags::ACK) && !tcp.flags.contains(Flags::SYN) {
            self.last = Some(packet.clone());
        }
    }

    /// The header of the host's last segment with an ACK.
    pub(crate) fn last(&self) -> Option<&Header> {
        self.last.as_ref().and_then(|packet| packet.as_tcp())
    }

    /// True if data came within `span`.
    pub(crate) fn has_received_within(&self, span: Duration, now: Instant) -> bool {
        self.data_at.is_some_and(|at| now.since(at) <= span)
    }

    /// An ACK without data that says what the host said last, with `change` applied. None before
    /// the host has acknowledged anything, and none if the host signs its segments or splits its
    /// stream over several paths, where only its own TCP can make one (MOD-13, MOD-20).
    pub(crate) fn ack(&self, id: PacketId, change: impl FnOnce(&mut Header)) -> Option<Packet> {
        let (last, seq) = (self.last.as_ref()?, self.sent_to?);
        let header = last.as_tcp()?;
        let is_foreign = |option: TcpOption<'_>| {
            matches!(
                option,
                TcpOption::Unknown { kind: kind::MD5 | kind::AUTHENTICATION | kind::MPTCP, .. }
            )
        };
        if header.options.iter().any(is_foreign) {
            return None;
        }
        let mut ack = Header { seq, flags: Flags::ACK, urgent: 0, ..*header };
        ack.options = only_timestamps(header);
        change(&mut ack);
        let blocks = header.options.sack_blocks().filter(|block| block.start.after(ack.ack));
        let blocks: Vec<SackBlock> = blocks.collect();
        ack.options.push_sack(&blocks);
        Some(last.rewrite(id, Cause::AgentAck, |packet| {
            packet.transport = Transport::Tcp(ack);
            packet.payload = Payload::EMPTY;
            packet.segment_bytes = None;
            // An ACK alone is never marked (RFC 3168, 6.1.4).
            packet.ip.traffic_class &= !ECN_BITS;
        }))
    }
}

/// The side across an engine at a mobile host; `None` if it has no such side.
#[inline]
pub(crate) fn across(side: Side) -> Option<Side> {
    match side {
        Side::HOST => Some(Side::RADIO),
        Side::RADIO => Some(Side::HOST),
        _ => None,
    }
}

/// The ECN field of the IP header (RFC 3168, section 5).
const ECN_BITS: u8 = 0b11;

/// The timestamps of a header alone, as options.
fn only_timestamps(header: &Header) -> Options {
    let mut options = Options::default();
    if let Some(timestamps) = header.options.timestamps() {
        let pushed = options.push_timestamps(timestamps);
        debug_assert!(pushed.is_ok(), "there are no other options");
    }
    options
}
