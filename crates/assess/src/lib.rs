//! What a capture of anybody's TCP tells: how long connections stalled and why, what share of the
//! traffic a base station could help, and what the Snoop agents would have saved.
//!
//! ```text
//!   bytes ─ capture::Reader ─ decode ─┬─ other traffic, by class
//!                                     └─ connection ─ stream (each direction) ─ verdicts ─ summary
//!                                            └─ replay (the agents) ─ copies ─┘ cause, estimate
//! ```
//!
//! Map: [`capture`] (pcap, pcapng), [`decode`] (link layers, classes of traffic), [`connection`],
//! [`stream`] (what passed, what was acknowledged), [`delay`] (round trips, queues), [`cause`] (the
//! rules), [`verdicts`] (when they are applied), [`replay`] and [`estimate`] (what a scheme would
//! save), [`summary`] (the result). No I/O but through the reader that is passed in; memory grows
//! with the number of connections, not with the length of the capture.

pub mod capture;
pub mod cause;
pub mod connection;
pub mod decode;
pub mod delay;
pub mod estimate;
pub mod replay;
pub mod sent;
pub mod stream;
pub mod summary;
pub mod verdicts;

use capture::{ReadError, Reader};
use connection::{Connection, Place};
use decode::{Class, Decoded, Segment};
use replay::Replay;
use sansio::{FlowIndex, FlowKey, Host, Instant};
use std::collections::BTreeMap;
use std::io::Read;
use summary::Assessment;

/// What the capture itself does not say.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Where it was taken; inferred for each connection if not given.
    pub at: Option<Place>,
}

/// How far the reading is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Bytes of the capture.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
}

/// Reads a capture to its end. `progress` is called every few thousand packets; if it returns
/// false, the assessment is of what was read until then.
///
/// # Errors
/// [`ReadError`] if it is no capture, or broken in its middle.
pub fn assess(
    read: impl Read,
    options: Options,
    mut progress: impl FnMut(Progress) -> bool,
) -> Result<Assessment, ReadError> {
    const PACKETS_BETWEEN: u64 = 1 << 14;
    let mut reader = Reader::new(read)?;
    let mut assessor = Assessor::default();
    while let Some(()) = reader.next(|packet| {
        let (decoded, bytes) = decode::decode(&packet);
        let snapped = (packet.bytes.len() as u32) < packet.wire_bytes;
        assessor.take(&decoded, packet.at, bytes, snapped);
    })? {
        let packets = assessor.packets;
        if packets.is_multiple_of(PACKETS_BETWEEN) {
            let bytes = reader.offset();
            if !progress(Progress { bytes, packets }) {
                break;
            }
        }
    }
    Ok(assessor.finish(&reader, options))
}

/// Connections kept; packets of further ones are only counted.
pub const CONNECTIONS_MAX: usize = 1 << 20;

/// Everything known so far.
pub struct Assessor {
    packets: u64,
    bytes: u64,
    snapped: u64,
    first_at: Option<Instant>,
    last_at: Instant,
    /// Packets and bytes of what is no TCP that could be followed.
    others: BTreeMap<Class, (u64, u64)>,
    /// From either direction's key to twice the connection's number, plus the direction.
    index: FlowIndex,
    connections: Vec<Connection>,
    refused: u64,
    replay: Replay,
}

impl Default for Assessor {
    fn default() -> Self {
        Assessor {
            packets: 0,
            bytes: 0,
            snapped: 0,
            first_at: None,
            last_at: Instant::ZERO,
            others: BTreeMap::new(),
            index: FlowIndex::new(0),
            connections: Vec::new(),
            refused: 0,
            replay: Replay::default(),
        }
    }
}

impl Assessor {
    /// Takes a packet; `bytes` from its IP header on, `snapped` if not all of them were kept.
    pub fn take(&mut self, decoded: &Decoded, at: Instant, bytes: u32, snapped: bool) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.snapped += u64::from(snapped);
        self.first_at = Some(self.first_at.map_or(at, |first| first.min(at)));
        self.last_at = self.last_at.max(at);
        let class = match decoded {
            Decoded::Tcp(segment) => match self.take_segment(segment, bytes) {
                Some(class) => class,
                None => return,
            },
            Decoded::Other(class) => *class,
        };
        let (packets, total) = self.others.entry(class).or_default();
        *packets += 1;
        *total += u64::from(bytes);
    }

    /// Follows a segment; its class if it does not belong to what is followed.
    fn take_segment(&mut self, segment: &Segment, bytes: u32) -> Option<Class> {
        let key = FlowKey {
            source: Host { address: segment.ip.source, port: segment.tcp.source_port },
            destination: Host {
                address: segment.ip.destination,
                port: segment.tcp.destination_port,
            },
        };
        let slot = match self.index.get(&key) {
            Some(slot)
                if !self.connections[slot as usize / 2].is_another(slot as usize % 2, segment) =>
            {
                slot as usize
            }
            _ if self.connections.len() >= CONNECTIONS_MAX => {
                self.refused += 1;
                return Some(Class::TcpOneSided);
            }
            before => self.begin(key, before.map(|slot| slot as usize / 2), segment),
        };
        let (number, direction) = (slot / 2, slot % 2);
        let connection = &mut self.connections[number];
        if connection.is_seen_twice(direction, segment) {
            return Some(Class::SeenTwice);
        }
        connection.take(direction, segment, bytes);
        let mss = connection.streams[direction].mss();
        for copy in self.replay.take(segment, direction, mss) {
            let Some(slot) = self.index.get(&copy.flow) else { continue };
            let connection = &mut self.connections[slot as usize / 2];
            connection.streams[slot as usize % 2].on_copy(copy.scheme, copy.range, copy.at);
        }
        None
    }

    /// A connection's first packet; the one before between the same ports is over.
    fn begin(&mut self, key: FlowKey, before: Option<usize>, segment: &Segment) -> usize {
        if let Some(before) = before {
            let connection = &mut self.connections[before];
            let last_at = connection.last_at;
            connection.finish(last_at);
        }
        let number = self.connections.len() as u32;
        self.connections.push(Connection::new(key, segment.at));
        self.index.insert(key, 2 * number);
        self.index.insert(key.reversed(), 2 * number + 1);
        2 * number as usize
    }

    /// The capture ends.
    fn finish(mut self, reader: &Reader<'_>, options: Options) -> Assessment {
        for connection in &mut self.connections {
            connection.finish(self.last_at);
        }
        summary::summarise(&self, reader, options)
    }
}
