//! A pair of endpoints, a pipe between them that loses what it is told to, and what they said.

use sansio::{
    Delivery, DropReason, Duration, Engine, Event, EventKind, FlowKey, Host, Input, Instant,
    Packet, PacketId, PacketRef, Payload, Priority, Side, Sink, StreamId,
};
use std::collections::VecDeque;
use tcp::{Config, Endpoint, Frozen};
use wire::tcp::Seq;

/// Keeps all that an endpoint puts out.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) sent: Vec<PacketRef>,
    pub(crate) delivered: Vec<Payload>,
    pub(crate) dropped: Vec<DropReason>,
    pub(crate) events: Vec<EventKind>,
    next_id: PacketId,
}

impl Default for Log {
    fn default() -> Self {
        Log {
            sent: Vec::new(),
            delivered: Vec::new(),
            dropped: Vec::new(),
            events: Vec::new(),
            next_id: PacketId::FIRST,
        }
    }
}

impl Sink for Log {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    fn send(&mut self, side: Side, _: Priority, packet: PacketRef) {
        assert_eq!(side, Side::NETWORK);
        self.sent.push(packet);
    }

    fn discard(&mut self, _: PacketRef, reason: DropReason) {
        self.dropped.push(reason);
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.delivered.push(delivery.payload);
    }

    fn event(&mut self, event: Event) {
        self.events.push(event.kind);
    }
}

/// From the client to the server.
pub(crate) fn flow() -> FlowKey {
    FlowKey {
        source: Host { address: [10, 0, 0, 1].into(), port: 40_000 },
        destination: Host { address: [10, 0, 0, 2].into(), port: 80 },
    }
}

/// `length` bytes of the test stream from its beginning.
pub(crate) fn bulk(length: u32) -> Payload {
    Payload::Virtual { stream: StreamId(7), offset: 0, length }
}

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) const CLIENT_ISN: Seq = Seq(1000);
pub(crate) const SERVER_ISN: Seq = Seq(5000);

/// What happens to a packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Arrives,
    /// After this much more than the others.
    Late(Duration),
    Lost,
    Twice,
}

/// Two endpoints and the packets between them.
pub(crate) struct Pair {
    pub(crate) now: Instant,
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) client_log: Log,
    pub(crate) server_log: Log,
    pub(crate) one_way: Duration,
    /// Everything that was put on the wire: when, by whom, and what became of it.
    pub(crate) wire: Vec<(Instant, End, PacketRef, Fate)>,
    in_flight: VecDeque<(Instant, End, PacketRef)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Client,
    Server,
}

impl Pair {
    pub(crate) fn new(client: Config, server: Config) -> Self {
        Self::with_isn(client, server, CLIENT_ISN, SERVER_ISN)
    }

    pub(crate) fn with_isn(
        client: Config,
        server: Config,
        client_isn: Seq,
        server_isn: Seq,
    ) -> Self {
        Pair {
            now: Instant::ZERO,
            client: Endpoint::client(client, flow(), client_isn),
            server: Endpoint::server(server, flow().reversed(), server_isn),
            client_log: Log::default(),
            server_log: Log::default(),
            one_way: ms(5),
            wire: Vec::new(),
            in_flight: VecDeque::new(),
        }
    }

    /// Opens and waits for the handshake.
    pub(crate) fn connected(client: Config, server: Config) -> Self {
        let mut pair = Pair::new(client, server);
        pair.open();
        pair.run_for(ms(100));
        pair
    }

    pub(crate) fn open(&mut self) {
        self.client.open(&mut self.client_log, self.now);
    }

    pub(crate) fn write(&mut self, payload: Payload) -> u32 {
        self.client.write(payload, &mut self.client_log, self.now)
    }

    pub(crate) fn server_write(&mut self, payload: Payload) -> u32 {
        self.server.write(payload, &mut self.server_log, self.now)
    }

    pub(crate) fn close_both(&mut self) {
        self.client.close(&mut self.client_log, self.now);
        self.server.close(&mut self.server_log, self.now);
    }

    pub(crate) fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span, |_, _| Fate::Arrives);
    }

    /// Runs until nothing more happens or `end`; `fate` judges every packet as it is sent.
    pub(crate) fn run_until(&mut self, end: Instant, mut fate: impl FnMut(End, &Packet) -> Fate) {
        loop {
            self.collect(&mut fate);
            let Some(next) = self.next_at().filter(|at| *at <= end) else { break };
            self.now = self.now.max(next);
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Freezes both ends and restores them.
    pub(crate) fn freeze_and_restore(&mut self) {
        let frozen: Frozen = self.client.freeze(self.now);
        self.client = Endpoint::restore(frozen, self.now);
        let frozen: Frozen = self.server.freeze(self.now);
        self.server = Endpoint::restore(frozen, self.now);
    }

    /// Freezes everything, packets on their way too, for `span`.
    pub(crate) fn rest(&mut self, span: Duration) {
        let (client, server) = (self.client.freeze(self.now), self.server.freeze(self.now));
        self.now += span;
        self.client = Endpoint::restore(client, self.now);
        self.server = Endpoint::restore(server, self.now);
        self.in_flight.iter_mut().for_each(|(at, _, _)| *at += span);
    }

    /// When anything happens next.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        let deadlines = [self.client.next_deadline(), self.server.next_deadline()];
        let timers = deadlines.into_iter().flatten().map(|deadline| deadline.at);
        self.in_flight.iter().map(|(at, _, _)| *at).chain(timers).min()
    }

    pub(crate) fn collect(&mut self, fate: &mut impl FnMut(End, &Packet) -> Fate) {
        let ends = [(End::Client, &mut self.client_log), (End::Server, &mut self.server_log)];
        for (end, log) in ends {
            for packet in log.sent.drain(..) {
                let fate = fate(end, &packet);
                let at = self.now + self.one_way;
                match fate {
                    Fate::Arrives => self.in_flight.push_back((at, end, packet.clone())),
                    Fate::Late(more) => self.in_flight.push_back((at + more, end, packet.clone())),
                    Fate::Lost => {}
                    Fate::Twice => {
                        self.in_flight.push_back((at, end, packet.clone()));
                        self.in_flight.push_back((at, end, packet.clone()));
                    }
                }
                self.wire.push((self.now, end, packet, fate));
            }
        }
    }

    /// Lets one thing happen that is due.
    pub(crate) fn step(&mut self) {
        let due = self
            .in_flight
            .iter()
            .enumerate()
            .filter(|(_, (at, _, _))| *at <= self.now)
            .min_by_key(|(index, (at, _, _))| (*at, *index));
        if let Some((index, _)) = due {
            let (_, from, packet) = self.in_flight.remove(index).expect("the index was found");
            let input = Input::Arrival { side: Side::NETWORK, packet };
            match from {
                End::Client => self.server.handle(input, &mut self.server_log, self.now),
                End::Server => self.client.handle(input, &mut self.client_log, self.now),
            }
            return;
        }
        self.client.handle(Input::Timer, &mut self.client_log, self.now);
        self.server.handle(Input::Timer, &mut self.server_log, self.now);
    }

    /// Checks that what was delivered is the test stream from its beginning; returns its length.
    pub(crate) fn delivered(log: &Log) -> u64 {
        let mut next = 0;
        for payload in &log.delivered {
            match payload {
                Payload::Virtual { stream: StreamId(7), offset, length } if *offset == next => {
                    next += u64::from(*length);
                }
                other => panic!("expected offset {next} of the stream, delivered {other:?}"),
            }
        }
        next
    }
}
