//! A connection: its two directions, its handshake, and where on its path the capture was taken.

use crate::cause::Cause;
use crate::decode::Segment;
use crate::stream::Stream;
use sansio::{Duration, FlowKey, Instant};
use serde::Serialize;
use wire::tcp::{Flags, Seq};

/// Where a capture was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// At the host that sends most.
    Sender,
    /// Between the hosts.
    Middle,
    /// At the host that receives most.
    Receiver,
}

impl Place {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Place::Sender => "sender",
            Place::Middle => "middle",
            Place::Receiver => "receiver",
        }
    }
}

/// A connection as it is followed.
#[derive(Clone, Debug)]
pub struct Connection {
    /// The direction of its first packet, which is direction 0.
    pub key: FlowKey,
    /// The first packet.
    pub first_at: Instant,
    /// The last packet.
    pub last_at: Instant,
    /// Packets in each direction.
    pub packets: [u64; 2],
    /// Their bytes from the IP header on.
    pub bytes: [u64; 2],
    /// Both directions, by who sends.
    pub streams: Box<[Stream; 2]>,
    handshake: Handshake,
    /// The interface on which each direction is followed.
    interfaces: [Option<u32>; 2],
    recent: [[Fingerprint; RECENT]; 2],
    broken: bool,
}

/// Packets in which a second sight of the same is looked for.
const RECENT: usize = 16;

/// What the same packet has in common with itself one hop further on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fingerprint {
    seq: Seq,
    ack: Seq,
    identification: u16,
    window: u16,
    payload_bytes: u32,
    value: u32,
    hop_limit: u8,
}

/// The first three packets.
#[derive(Clone, Copy, Debug, Default)]
struct Handshake {
    syn: Option<Syn>,
    syn_ack: Option<Syn>,
    to_initiator: Option<Duration>,
    to_responder: Option<Duration>,
}

#[derive(Clone, Copy, Debug)]
struct Syn {
    direction: usize,
    seq: Seq,
    at: Instant,
    scales: bool,
    again: bool,
}

impl Connection {
    /// Begins with its first packet.
    pub fn new(key: FlowKey, at: Instant) -> Self {
        Connection {
            key,
            first_at: at,
            last_at: at,
            packets: [0; 2],
            bytes: [0; 2],
            streams: Box::default(),
            handshake: Handshake::default(),
            interfaces: [None; 2],
            recent: Default::default(),
            broken: false,
        }
    }

    /// A SYN that begins another connection between the same ports.
    pub fn is_another(&self, direction: usize, segment: &Segment) -> bool {
        let flags = segment.tcp.flags;
        let is_first = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        let seen = self.packets[0] + self.packets[1] > 0;
        let same = |syn: &Syn| syn.direction == direction && syn.seq == segment.tcp.seq;
        is_first && seen && !self.handshake.syn.as_ref().is_some_and(same)
    }

    /// The packet was seen before, on another interface or one hop earlier.
    pub fn is_seen_twice(&mut self, direction: usize, segment: &Segment) -> bool {
        let interface = *self.interfaces[direction].get_or_insert(segment.interface);
        if interface != segment.interface {
            return true;
        }
        let print = Fingerprint {
            seq: segment.tcp.seq,
            ack: segment.tcp.ack,
            identification: segment.ip.identification,
            window: segment.tcp.window,
            payload_bytes: segment.payload_bytes,
            value: segment.tcp.options.timestamps().map_or(0, |it| it.value),
            hop_limit: segment.ip.hop_limit,
        };
        let recent = &mut self.recent[direction];
        let forwarded = |hop_limit: u8| Fingerprint { hop_limit, ..print };
        let before = [forwarded(print.hop_limit.saturating_add(1))];
        if recent.iter().any(|seen| before.contains(seen)) {
            return true;
        }
        let slot = self.packets[direction] as usize % RECENT;
        recent[slot] = print;
        false
    }

    /// A packet of one direction.
    pub fn take(&mut self, direction: usize, segment: &Segment, wire_bytes: u32) {
        self.last_at = self.last_at.max(segment.at);
        self.packets[direction] += 1;
        self.bytes[direction] += u64::from(wire_bytes);
        self.broken |= segment.tcp.flags.contains(Flags::RST);
        self.shake_hands(direction, segment);
        self.streams[1 - direction].on_receiver(segment);
        self.streams[direction].on_sender(segment);
    }

    /// The capture ends.
    pub fn finish(&mut self, now: Instant) {
        for stream in self.streams.iter_mut() {
            let now = if self.broken { self.last_at } else { now };
            stream.finish(now, self.broken);
        }
    }

    /// The direction with most payload: who sends is the sender of the connection.
    pub fn main(&self) -> usize {
        let [there, back] = [0, 1].map(|direction| {
            let counts = &self.streams[direction].counts;
            counts.payload_bytes.max(counts.acked_bytes)
        });
        usize::from(back > there)
    }

    /// True if both directions were seen.
    pub fn is_two_sided(&self) -> bool {
        self.packets.iter().all(|packets| *packets > 0)
    }

    /// The shortest round trips from here: to the sender of most, and to its receiver.
    pub fn floors(&self) -> (Option<Duration>, Option<Duration>) {
        let main = self.main();
        let least = |all: [Option<Duration>; 3]| all.into_iter().flatten().min();
        let handshake = |of: usize| match self.handshake.syn {
            Some(syn) if syn.direction == of => self.handshake.to_initiator,
            Some(_) => self.handshake.to_responder,
            None => None,
        };
        let (there, back) = (&self.streams[main], &self.streams[1 - main]);
        let to_sender = least([back.trips.floor, there.echo_trips.floor, handshake(main)]);
        let to_receiver = least([there.trips.floor, back.echo_trips.floor, handshake(1 - main)]);
        (to_sender, to_receiver)
    }

    /// The round trip of the handshake, here to both ends and back.
    pub fn handshake(&self) -> Option<Duration> {
        let Handshake { to_initiator, to_responder, .. } = self.handshake;
        to_initiator.zip(to_responder).map(|(near, far)| near + far)
    }

    /// Where the capture was taken: at an end if the round trip to it takes less than a
    /// millisecond and a tenth of that to the other.
    pub fn place(&self) -> Option<Place> {
        const AT_AN_END: Duration = Duration::from_millis(1);
        let (sender, receiver) = self.floors();
        let (sender, receiver) = (sender?, receiver?);
        let is_at = |near: Duration, far: Duration| near < AT_AN_END && near * 10 < far;
        Some(match () {
            () if is_at(sender, receiver) => Place::Sender,
            () if is_at(receiver, sender) => Place::Receiver,
            () => Place::Middle,
        })
    }

    /// What troubled it most: the cause of most stalled time; without stalls that of most flights
    /// with losses; without losses the receiver, if its window was all used and no queue stood.
    pub fn trouble(&self) -> Option<Cause> {
        let stream = &self.streams[self.main()];
        let by_cause = &stream.verdicts.by_cause;
        let worst = |of: fn(&crate::verdicts::OfCause) -> u64| {
            let all = Cause::ALL.into_iter().zip(by_cause).map(|(cause, it)| (of(it), cause));
            all.filter(|(amount, _)| *amount > 0).max_by_key(|(amount, _)| *amount)
        };
        let stalled = worst(|it| it.stalled.as_nanos());
        let lost = worst(|it| it.flights);
        stalled.or(lost).map(|(_, cause)| cause).or_else(|| self.is_window_limited())
    }

    fn is_window_limited(&self) -> Option<Cause> {
        let stream = &self.streams[self.main()];
        let counts = &stream.counts;
        let (long, floor) = stream.trips.quantile(0.5).zip(stream.trips.floor)?;
        let no_queue = long < floor + floor / 2 + Duration::from_millis(2);
        // An ACK of two segments lets two go, of which the second uses up the window.
        let limited = counts.window_limited * 3 > counts.data_packets;
        (limited && no_queue).then_some(Cause::Receiver)
    }

    fn shake_hands(&mut self, direction: usize, segment: &Segment) {
        let flags = segment.tcp.flags;
        let handshake = &mut self.handshake;
        if flags.contains(Flags::SYN) {
            let before = match flags.contains(Flags::ACK) {
                false => &mut handshake.syn,
                true => &mut handshake.syn_ack,
            };
            let scales = segment.tcp.options.window_scale().is_some();
            let again = before.is_some();
            let seq = segment.tcp.seq;
            *before = Some(Syn { direction, seq, at: segment.at, scales, again });
            if let (Some(syn), Some(syn_ack)) = (handshake.syn, handshake.syn_ack) {
                let is_clear = !syn.again && !syn_ack.again && syn.direction != syn_ack.direction;
                handshake.to_responder = is_clear.then(|| syn_ack.at.since(syn.at));
                if !(syn.scales && syn_ack.scales) {
                    self.streams.iter_mut().for_each(Stream::no_scale);
                }
            }
        } else if let Some(syn_ack) = handshake.syn_ack
            && handshake.to_initiator.is_none()
            && direction != syn_ack.direction
            && !syn_ack.again
        {
            let near = segment.at.since(syn_ack.at);
            handshake.to_initiator = Some(near);
            // What one direction's sender is, is the other one's receiver.
            self.streams[direction].to_sender = Some(near);
            self.streams[1 - direction].to_sender = handshake.to_responder;
        }
    }
}
