//! An end host: TCP endpoints, and the applications on them.

use sansio::{
    Deadline, DropReason, Duration, Engine, FlowIndex, FlowKey, Input, Instant, Packet, Payload,
    Side, Sink, StreamId, TimerQueue,
};
use tcp::{Endpoint, State};

/// What an application does with its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Sends so many bytes, then closes.
    Bulk {
        /// Bytes.
        size: u64,
    },
    /// Sends as much as TCP takes.
    Endless,
    /// Sends a message of so many bytes each `every`, the first at once.
    Request {
        /// Bytes of one message.
        size: u64,
        /// Time between messages.
        every: Duration,
    },
}

/// An end host with any number of connections.
#[derive(Debug, Default)]
pub struct Host {
    connections: Vec<Connection>,
    /// None while there is one connection at most, as in most hosts of a simulation.
    several: Option<Box<Several>>,
}

/// What a host with several connections needs.
#[derive(Debug)]
struct Several {
    index: FlowIndex,
    /// One slot per connection: its endpoint's deadline or its application's, never later than
    /// true; asking for the earliest is O(1) whatever their number.
    timers: TimerQueue,
}

/// In whole cache lines: what every packet needs of an endpoint is ordered by them.
#[derive(Debug)]
#[repr(C, align(64))]
struct Connection {
    endpoint: Endpoint,
    /// None: only receives.
    source: Option<Source>,
}

/// The sending application of a connection.
#[derive(Debug)]
struct Source {
    application: Application,
    stream: StreamId,
    written_bytes: u64,
    next_message_at: Option<Instant>,
    /// All is written, and the connection is not closed yet: a close during the handshake would
    /// throw away what is queued (RFC 9293, 3.10.4).
    closes: bool,
}

impl Host {
    /// Bytes written at once by an endless sender; more than any run carries.
    const ENDLESS_BYTES: u64 = 1 << 42;
    /// Payload is named in pieces of this size: the length of one is a `u32`.
    const PIECE_BYTES: u64 = 1 << 31;

    /// Adds a connection that this host opens when it starts, to send on.
    pub fn connect(&mut self, client: Endpoint, application: Application, stream: StreamId) {
        let source =
            Source { application, stream, written_bytes: 0, next_message_at: None, closes: false };
        self.add(client, Some(source));
    }

    /// Adds a connection that this host accepts, to receive on.
    pub fn listen(&mut self, server: Endpoint) {
        self.add(server, None);
    }

    fn add(&mut self, endpoint: Endpoint, source: Option<Source>) {
        match self.connections.as_slice() {
            [] => self.connections.reserve_exact(1),
            [only] => self.several = Some(Box::new(Several::beginning_with(only.endpoint.flow()))),
            _ => {}
        }
        if let Some(several) = &mut self.several {
            several.index.insert(endpoint.flow(), self.connections.len() as u32);
        }
        self.connections.push(Connection { endpoint, source });
    }

    /// Opens the connections and lets the applications write.
    pub fn start(&mut self, sink: &mut impl Sink, now: Instant) {
        for slot in 0..self.connections.len() as u32 {
            let connection = &mut self.connections[slot as usize];
            if connection.source.is_some() {
                connection.endpoint.open(sink, now);
                connection.write(sink, now);
                self.rearm(slot);
            }
        }
    }

    /// A handoff is over: every endpoint with something in flight sends its oldest segment again
    /// (CI-FRX-2, CI-FRX-7).
    pub fn fast_retransmit(&mut self, sink: &mut impl Sink, now: Instant) {
        for slot in 0..self.connections.len() as u32 {
            self.connections[slot as usize].endpoint.fast_retransmit_on_handoff(sink, now);
            self.rearm(slot);
        }
    }

    /// The endpoints, in the order in which they were added.
    pub fn endpoints(&self) -> impl Iterator<Item = &Endpoint> {
        self.connections.iter().map(|connection| &connection.endpoint)
    }

    #[inline]
    fn slot_of(&self, packet: &Packet) -> Option<u32> {
        // Most hosts here have one connection, and an endpoint looks for itself whose a packet is.
        match self.connections.as_slice() {
            [_] => Some(0),
            _ => self.several.as_ref()?.index.get(&FlowKey::of(packet)?.reversed()),
        }
    }

    #[inline]
    fn on_arrival(&mut self, packet: sansio::PacketRef, sink: &mut impl Sink, now: Instant) {
        let Some(slot) = self.slot_of(&packet) else {
            sink.discard(packet, DropReason::NoConnection);
            return;
        };
        let input = Input::Arrival { side: Side::NETWORK, packet };
        let connection = &mut self.connections[slot as usize];
        connection.endpoint.handle(input, sink, now);
        if let Some(source) = connection.source.as_mut().filter(|source| source.closes)
            && connection.endpoint.state() == State::Established
        {
            source.closes = false;
            connection.endpoint.close(sink, now);
        }
        self.rearm(slot);
    }

    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if let [only] = self.connections.as_mut_slice() {
            return only.on_timer(sink, now);
        }
        while let Some(slot) = self.several.as_mut().and_then(|several| several.timers.pop_due(now))
        {
            self.connections[slot as usize].on_timer(sink, now);
            self.rearm(slot);
        }
    }

    /// Enters a connection's deadline if it is earlier than the one entered: a retransmission
    /// timer moves with every ACK, its entry only when it comes.
    #[inline]
    fn rearm(&mut self, slot: u32) {
        if self.several.is_some() {
            self.rearm_several(slot);
        }
    }

    #[inline(never)]
    fn rearm_several(&mut self, slot: u32) {
        let Some(several) = &mut self.several else { return };
        let Some(at) = self.connections[slot as usize].next_deadline() else { return };
        if several.timers.get(slot).is_none_or(|entered| at < entered) {
            several.timers.set(slot, at);
        }
    }
}

impl Several {
    /// For a host whose first connection is this.
    fn beginning_with(first: FlowKey) -> Self {
        let mut index = FlowIndex::new(0);
        index.insert(first, 0);
        Several { index, timers: TimerQueue::new() }
    }
}

impl Connection {
    #[inline]
    fn next_deadline(&self) -> Option<Instant> {
        let endpoint = self.endpoint.next_deadline().map(|deadline| deadline.at);
        let message = self.source.as_ref().and_then(|source| source.next_message_at);
        match (endpoint, message) {
            (Some(endpoint), Some(message)) => Some(endpoint.min(message)),
            (endpoint, message) => endpoint.or(message),
        }
    }

    fn on_timer(&mut self, sink: &mut impl Sink, now: Instant) {
        if self.endpoint.next_deadline().is_some_and(|deadline| deadline.at <= now) {
            self.endpoint.handle(Input::Timer, sink, now);
        }
        self.write(sink, now);
    }

    /// Lets the application write what it has to write by now.
    fn write(&mut self, sink: &mut impl Sink, now: Instant) {
        let Some(source) = &mut self.source else { return };
        match source.application {
            Application::Bulk { size } if source.written_bytes == 0 => {
                source.write(size, &mut self.endpoint, sink, now);
                source.closes = true;
            }
            Application::Endless if source.written_bytes == 0 => {
                source.write(Host::ENDLESS_BYTES, &mut self.endpoint, sink, now);
            }
            Application::Request { size, every } => {
                let mut at = source.next_message_at.unwrap_or(now);
                while at <= now {
                    source.write(size, &mut self.endpoint, sink, now);
                    at += every;
                }
                source.next_message_at = Some(at);
            }
            _ => {}
        }
    }
}

impl Source {
    fn write(&mut self, bytes: u64, to: &mut Endpoint, sink: &mut impl Sink, now: Instant) {
        let end = self.written_bytes + bytes;
        while self.written_bytes < end {
            let length = (end - self.written_bytes).min(Host::PIECE_BYTES) as u32;
            let payload =
                Payload::Virtual { stream: self.stream, offset: self.written_bytes, length };
            let accepted = to.write(payload, sink, now);
            self.written_bytes += u64::from(accepted);
            if accepted < length {
                return;
            }
        }
    }
}

impl Engine for Host {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, now: Instant) {
        match input {
            Input::Arrival { packet, .. } => self.on_arrival(packet, sink, now),
            Input::Timer => self.on_timer(sink, now),
            Input::Verdict { .. } | Input::Notice(_) => {}
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Deadline> {
        let at = match self.connections.as_slice() {
            [only] => only.next_deadline(),
            _ => self.several.as_ref().and_then(|several| several.timers.next().map(|(_, at)| at)),
        };
        at.map(|at| Deadline { at, timer: "host" })
    }
}
