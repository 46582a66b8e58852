//! The agent under observation, with the queues of its radio.

use sansio::{
    Cause, Delivery, DropReason, Duration, Engine, Event, FlowKey, Input, Instant, Notice, Packet,
    PacketId, PacketRef, Payload, Priority, Side, Sink, StreamId, Transport,
};
use schemes::snoop::{Agent, Config};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};
use wire::tcp::{Flags, Header, Seq, TcpOption};

/// The one stream of data.
pub(super) const STREAM: StreamId = StreamId(1);
/// A packet in a queue that nobody empties is dropped from here on.
const QUEUE_MAX: usize = 64;
/// How often one input re-sends a segment, at most: both timers of the paper may be due at once.
const RESENT_AT_ONCE_MAX: u32 = 2;
/// No window reaches farther (RFC 7323, 2.3).
const WINDOW_MAX: u32 = 1 << 30;

/// An agent, and what is known of what it was told.
pub(super) struct Station {
    agent: Agent,
    log: Log,
    now: Instant,
    /// Waiting for the air, by priority.
    queues: [VecDeque<PacketRef>; 2],
    /// The last that went onto the air, as long as the link layer has not said what became of it.
    departed: Option<PacketRef>,
    /// What each host acknowledged since the connection began, by the direction of the data.
    acknowledged: BTreeMap<FlowKey, BTreeSet<u32>>,
    /// Data that the agent may hold.
    arrived: Vec<Weak<Packet>>,
}

/// What the agent put out for one input.
struct Log {
    sent: Vec<(Side, Priority, PacketRef)>,
    discarded: Vec<(PacketRef, DropReason)>,
    next_id: PacketId,
}

impl Station {
    pub(super) fn new(config: Config) -> Self {
        Station {
            agent: Agent::new(config),
            log: Log { sent: Vec::new(), discarded: Vec::new(), next_id: PacketId::FIRST },
            now: Instant::ZERO,
            queues: Default::default(),
            departed: None,
            acknowledged: BTreeMap::new(),
            arrived: Vec::new(),
        }
    }

    pub(super) fn new_id(&mut self) -> PacketId {
        self.log.new_id()
    }

    pub(super) fn arrive(&mut self, side: Side, packet: Packet) {
        let packet = PacketRef::new(packet);
        self.note(&packet);
        if side == Side::WIRED {
            self.arrived.push(Rc::downgrade(&packet));
        }
        self.handle(Input::Arrival { side, packet: packet.clone() }, Some((side, &packet)));
    }

    /// Lets up to `count` packets go onto the air, the high priority first.
    pub(super) fn depart(&mut self, count: usize) {
        for _ in 0..count {
            let [high, normal] = &mut self.queues;
            let Some(packet) = high.pop_front().or_else(|| normal.pop_front()) else { break };
            self.departed = Some(packet.clone());
            self.agent.on_departure(Side::RADIO, &packet, &mut self.log, self.now);
            self.check(None);
        }
    }

    /// The queue drops one.
    pub(super) fn lose(&mut self, index: usize) {
        let queue = &mut self.queues[index & 1];
        queue.remove((index >> 1) % queue.len().max(1));
    }

    pub(super) fn notice(&mut self, notice: Notice) {
        self.handle(Input::Notice(notice), None);
        if notice == Notice::Forget {
            self.acknowledged.clear();
            assert_eq!((self.agent.held_bytes(), self.agent.flows()), (0, 0));
            assert_eq!(self.agent.next_deadline(), None);
        }
    }

    /// The link layer's verdict on the last packet that departed.
    pub(super) fn verdict(&mut self, acknowledged: bool) {
        let Some(packet) = self.departed.take() else { return };
        self.handle(Input::Verdict { side: Side::RADIO, packet, acknowledged }, None);
    }

    /// Time passes; timers that are due fire at its end, unless nobody `looks`.
    pub(super) fn wait(&mut self, span: Duration, looks: bool) {
        self.now += span;
        if looks {
            self.fire();
        }
    }

    /// Time goes on to the next deadline.
    pub(super) fn next_timer(&mut self) {
        if let Some(deadline) = self.agent.next_deadline() {
            self.now = self.now.max(deadline.at);
        }
        self.fire();
    }

    fn fire(&mut self) {
        let before = self.agent.next_deadline();
        self.handle(Input::Timer, None);
        let after = self.agent.next_deadline();
        if before.is_some_and(|deadline| deadline.at <= self.now) {
            assert!(after.is_none_or(|after| after.at > self.now), "{before:?}, then {after:?}");
        } else {
            assert_eq!(before, after, "an early call changes nothing");
        }
    }

    /// Takes note of what the mobile host acknowledges, and of connections that begin or end.
    fn note(&mut self, packet: &Packet) {
        let (Some(key), Some(tcp)) = (FlowKey::of(packet), packet.as_tcp()) else { return };
        if tcp.flags.intersects(Flags::SYN.with(Flags::RST)) {
            self.acknowledged.remove(&key);
            self.acknowledged.remove(&key.reversed());
        } else if tcp.flags.contains(Flags::ACK) {
            self.acknowledged.entry(key.reversed()).or_default().insert(tcp.ack.0);
        }
    }

    fn handle(&mut self, input: Input, arrived: Option<(Side, &PacketRef)>) {
        self.agent.handle(input, &mut self.log, self.now);
        self.check(arrived);
    }

    /// Checks what followed from what the agent was told.
    fn check(&mut self, arrived: Option<(Side, &PacketRef)>) {
        let mut passed = 0;
        let mut resent = BTreeMap::new();
        for (packet, reason) in core::mem::take(&mut self.log.discarded) {
            let Some((side, arrived)) = arrived else { panic!("{reason:?} without an arrival") };
            assert!(Rc::ptr_eq(&packet, arrived), "only what arrives is let go");
            check_discard(side, &packet, reason);
            passed += 1;
        }
        for (side, priority, packet) in core::mem::take(&mut self.log.sent) {
            let is_own = match arrived {
                Some((from, arrived)) => {
                    !(Rc::ptr_eq(&packet, arrived) || is_rewritten((from, arrived), &packet))
                }
                None => true,
            };
            if is_own {
                self.check_own(side, &packet);
                if packet.cause == Cause::LocalRetransmission {
                    let place = packet.as_tcp().map(|tcp| (FlowKey::of(&packet), tcp.seq.0));
                    let times = resent.entry(place).or_insert(0);
                    *times += 1;
                    assert!(*times <= RESENT_AT_ONCE_MAX, "{place:?} re-sent {times} times");
                }
            } else {
                assert_ne!(arrived.map(|(from, _)| from), Some(side), "it goes across");
                passed += 1;
            }
            self.enqueue(side, priority, packet);
        }
        // What another base station forwards is only heard (SNHO-2).
        let is_to_pass = arrived.is_some_and(|(side, _)| side != Side::MIRROR);
        assert_eq!(passed, usize::from(is_to_pass), "once, or a rule says why not");
        self.check_limits();
    }

    fn enqueue(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        if side == Side::RADIO {
            let queue = &mut self.queues[usize::from(priority == Priority::Normal)];
            queue.push_back(packet);
            queue.truncate(QUEUE_MAX);
        }
    }

    /// A packet that the agent made.
    fn check_own(&self, side: Side, packet: &Packet) {
        let (Some(key), Some(tcp)) = (FlowKey::of(packet), packet.as_tcp()) else {
            panic!("the agent makes TCP segments")
        };
        assert!(!tcp.flags.intersects(Flags::SYN.with(Flags::RST)), "{:?}", tcp.flags);
        match packet.cause {
            Cause::LocalRetransmission | Cause::Probe => {
                assert_eq!(side, Side::RADIO);
                let Payload::Virtual { stream, offset, length } = packet.payload else {
                    panic!("payload by name stays so")
                };
                let right = stream == STREAM && offset as u32 == tcp.seq.0;
                assert!(right || length == 0, "byte {offset} at {}", tcp.seq);
                assert!(packet.segments() <= 1, "a super-packet is re-sent in segments");
                let probe = packet.cause == Cause::Probe;
                assert!(!probe || tcp.sequence_length(length) == 1, "a probe is one byte");
            }
            Cause::AgentAck => {
                assert_eq!(packet.payload.len(), 0);
                // Toward the mobile host it tells of losses, toward the fixed host of none.
                let blocks = tcp.options.sack_blocks().count();
                assert_eq!(side == Side::RADIO, blocks > 0);
                assert!(tcp.options.sack_blocks().all(|block| block.start.after(tcp.ack)));
                let said = self.acknowledged.get(&key.reversed());
                let ack = tcp.ack;
                let covers = |&said: &u32| Seq(said).since(ack) <= WINDOW_MAX;
                let honest = said.is_some_and(|said| said.iter().any(covers));
                assert!(honest, "{ack} was never acknowledged: {said:?}");
            }
            other => panic!("the agent makes no {other:?}"),
        }
    }

    fn check_limits(&self) {
        let config = self.agent.config();
        let (flows, held) = (self.agent.flows() as u64, self.agent.held_bytes());
        assert!(flows <= u64::from(config.flows_max), "{flows} flows");
        // A FIN counts one, and comes on top of the last payload that had room.
        assert!(held <= config.cache_bytes_total_max + 1, "{held} bytes");
        assert!(held <= flows * (u64::from(config.cache_bytes_max) + 1), "{held} bytes");
    }

    /// What the agent really keeps from being freed, once the queues are empty.
    pub(super) fn check_memory(mut self) {
        (self.queues, self.departed) = Default::default();
        let kept = self.arrived.iter().filter_map(Weak::upgrade);
        let kept: u64 = kept.map(|packet| u64::from(packet.payload.len())).sum();
        let flows = self.agent.flows() as u64;
        let most = flows * u64::from(self.agent.config().cache_bytes_max);
        assert!(kept <= most * 2, "{kept} bytes kept, {} counted", self.agent.held_bytes());
        self.notice(Notice::Forget);
        let left = self.arrived.iter().filter(|packet| packet.strong_count() > 0).count();
        assert_eq!(left, 0, "nothing is kept once all is forgotten");
    }
}

/// SNOOP-ACK-3 and following: only pure ACKs; SNOOP-DATA-4: what was acknowledged and is answered.
fn check_discard(side: Side, packet: &Packet, reason: DropReason) {
    let DropReason::Rule(rule) = reason else { panic!("let go for {reason:?}") };
    match (side, packet.as_tcp()) {
        (Side::WIRED, Some(_)) => assert_eq!(rule, "SNOOP-DATA-4"),
        (Side::RADIO, Some(tcp)) => {
            let speaks = Flags::SYN.with(Flags::FIN).with(Flags::RST).with(Flags::URG);
            let pure = packet.payload.is_empty() && !tcp.flags.intersects(speaks);
            assert!(pure && tcp.flags.contains(Flags::ACK), "{rule}: {tcp:?}");
        }
        _ => assert_eq!(rule, "no such side"),
    }
}

/// True if `packet` is the ACK that arrived, with padding in place of its SACK blocks (MOD-1).
fn is_rewritten((from, arrived): (Side, &Packet), packet: &Packet) -> bool {
    let (Some(before), Some(after)) = (arrived.as_tcp(), packet.as_tcp()) else { return false };
    if packet.parent != Some(arrived.id) || packet.cause != arrived.cause || from != Side::RADIO {
        return false;
    }
    let others = |header: &Header| -> Vec<String> {
        let kept = header
            .options
            .iter()
            .filter(|option| !matches!(option, TcpOption::Nop | TcpOption::Sack(_)));
        kept.map(|option| format!("{option:?}")).collect()
    };
    assert_eq!(others(before), others(after), "SACK blocks at most are taken out");
    assert_eq!(before.options.as_bytes().len(), after.options.as_bytes().len());
    let options = before.options;
    let same = Packet {
        id: packet.id,
        parent: packet.parent,
        transport: Transport::Tcp(Header { options, ..*after }),
        ..packet.clone()
    };
    let expected = Packet { id: packet.id, parent: packet.parent, ..arrived.clone() };
    assert_eq!(same, expected, "nothing else is changed");
    true
}

impl Sink for Log {
    const TRACE: bool = true;

    fn new_id(&mut self) -> PacketId {
        let id = self.next_id;
        self.next_id = id.next();
        id
    }

    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        self.sent.push((side, priority, packet));
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.discarded.push((packet, reason));
    }

    fn deliver(&mut self, _: Delivery) {
        panic!("an agent on the path delivers nothing");
    }

    fn event(&mut self, _: Event) {}
}
