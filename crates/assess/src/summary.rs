//! The result, as JSON and tables show it. Times are in seconds, bytes count from the IP header on
//! unless they are payload.

use crate::cause::Cause;
use crate::connection::{Connection, Place};
use crate::decode::Class;
use crate::estimate::Saved;
use crate::verdicts::OfCause;
use crate::{Assessor, Options, capture, replay};
use sansio::{Duration, Instant};
use serde::Serialize;

/// What a capture tells.
#[derive(Clone, Debug, Serialize)]
pub struct Assessment {
    /// The capture itself.
    pub capture: Capture,
    /// All traffic by class, the largest first.
    pub traffic: Vec<Traffic>,
    /// Share of the bytes that a base station could help: TCP, readable, both directions seen.
    pub helpable_share: f64,
    /// Where the capture was taken, by the connections with most bytes, or as it was said.
    pub place: Option<Place>,
    /// Stalls and losses by cause, over all connections, toward their receivers of most.
    pub causes: Vec<CauseTotal>,
    /// What each scheme would have saved.
    pub schemes: Vec<SchemeEstimate>,
    /// The connections with payload, those stalled longest first.
    pub connections: Vec<ConnectionSummary>,
    /// Connections without any payload, of which nothing is said.
    pub connections_empty: u64,
    /// What else has to be known.
    pub remarks: Vec<String>,
}

/// The capture itself.
#[derive(Clone, Debug, Serialize)]
pub struct Capture {
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The first packet, in seconds since 1970.
    pub began_s: f64,
    /// From the first packet to the last.
    pub duration_s: f64,
    /// Interfaces.
    pub interfaces: u32,
    /// Packets of which not all bytes were kept.
    pub snapped_packets: u64,
}

/// Traffic of one class.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Traffic {
    /// The class.
    pub class: Class,
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
    /// Share of all bytes that were not seen twice.
    pub share: f64,
}

/// Stalls and losses of one cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CauseTotal {
    /// The cause.
    pub cause: Cause,
    /// Stalls.
    pub stalls: u64,
    /// Their time.
    pub stalled_s: f64,
    /// Packets lost (sent again, whether or not that was needed).
    pub packets_lost: u64,
    /// Flights with losses.
    pub flights: u64,
}

/// What a scheme would have saved: an interval, and why it is as wide as it is.
#[derive(Clone, Debug, Serialize)]
pub struct SchemeEstimate {
    /// The scheme.
    pub scheme: &'static str,
    /// Stall time saved at least.
    pub saved_s_min: f64,
    /// Stall time saved at most.
    pub saved_s_max: f64,
    /// Stalls in which its agent sent the missing segment again before the sender's repair came.
    pub stalls_acted: u64,
    /// The sender's retransmissions before which its agent had sent the same bytes.
    pub retransmissions_before: u64,
    /// The sender's retransmissions.
    pub retransmissions: u64,
    /// Why the interval is as wide as it is.
    pub reason: String,
}

/// A connection.
#[derive(Clone, Debug, Serialize)]
pub struct ConnectionSummary {
    /// Who sends most of the payload.
    pub sender: String,
    /// Who receives it.
    pub receiver: String,
    /// Its first packet, in seconds after the capture's.
    pub began_s: f64,
    /// From its first packet to its last.
    pub duration_s: f64,
    /// Payload that was acknowledged, or seen if no ACK was.
    pub payload_bytes: u64,
    /// Whether both directions were seen.
    pub two_sided: bool,
    /// Where the capture was taken.
    pub place: Option<Place>,
    /// Round trip of the handshake.
    pub handshake_s: Option<f64>,
    /// From the place of the capture to the sender and back, at least.
    pub rtt_to_sender_s: Option<f64>,
    /// From there to the receiver and back, running.
    pub rtt_to_receiver_s: Option<Quantiles>,
    /// Retransmissions.
    pub retransmissions: Retransmissions,
    /// What troubled it most.
    pub trouble: Option<Cause>,
    /// Time stalled, of all causes.
    pub stalled_s: f64,
    /// Stalls and losses by cause.
    pub causes: Vec<CauseTotal>,
    /// The longest stalls, in order of time.
    pub stalls: Vec<StallSummary>,
}

/// Round trips.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    /// The shortest, of the path as it was last.
    pub min: f64,
    /// Half of them are shorter.
    pub p50: f64,
    /// Nineteen of twenty are.
    pub p95: f64,
}

/// Segments that the sender sent again.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Retransmissions {
    /// They had passed here before.
    pub seen_before: u64,
    /// They had not: lost before this place.
    pub not_seen_before: u64,
    /// After silence: timeouts, and probes of the tail.
    pub after_silence: u64,
    /// The receiver says that it got them twice.
    pub unneeded: u64,
    /// Segments that others overtook; no retransmissions.
    pub reordered: u64,
}

/// A stall.
#[derive(Clone, Debug, Serialize)]
pub struct StallSummary {
    /// The last progress before it, in seconds after the capture's first packet.
    pub from_s: f64,
    /// Its length.
    pub length_s: f64,
    /// Why.
    pub cause: Cause,
    /// What speaks for it.
    pub evidence: String,
    /// Whether each scheme would have saved something of it, by [`replay::NAMES`].
    pub saved_s: Vec<[f64; 2]>,
}

/// Connections in the list.
const CONNECTIONS_LISTED: usize = 1000;
/// What every estimate leaves out.
const OPEN_LOOP: &str = "the replay is open-loop: after a repair the sender would have behaved \
                         otherwise, which no bound contains";

pub(crate) fn summarise(
    all: &Assessor,
    reader: &capture::Reader<'_>,
    options: Options,
) -> Assessment {
    let began = all.first_at.unwrap_or(Instant::ZERO);
    let place = options.at.or_else(|| common_place(&all.connections));
    let (with_payload, empty): (Vec<&Connection>, Vec<&Connection>) =
        all.connections.iter().partition(|it| it.streams.iter().any(|stream| stream.has_data()));
    let traffic = traffic(all);
    let helped = traffic.iter().find(|it| it.class == Class::Tcp);
    let mut connections: Vec<ConnectionSummary> =
        with_payload.iter().map(|it| connection(it, began, options)).collect();
    connections.sort_by(|a, b| {
        (b.stalled_s, b.payload_bytes)
            .partial_cmp(&(a.stalled_s, a.payload_bytes))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    connections.truncate(CONNECTIONS_LISTED);
    Assessment {
        capture: Capture {
            format: reader.format(),
            packets: all.packets,
            bytes: all.bytes,
            began_s: began.as_secs_f64(),
            duration_s: all.last_at.since(began).as_secs_f64(),
            interfaces: reader.interfaces(),
            snapped_packets: all.snapped,
        },
        helpable_share: helped.map_or(0.0, |it| it.share),
        traffic,
        place,
        causes: cause_totals(&with_payload),
        schemes: schemes(&with_payload, place),
        connections,
        connections_empty: empty.len() as u64,
        remarks: remarks(all, reader, &with_payload, place),
    }
}

/// The place of most bytes.
fn common_place(connections: &[Connection]) -> Option<Place> {
    let places = [Place::Sender, Place::Middle, Place::Receiver];
    let bytes = places.map(|place| {
        let there = connections.iter().filter(|it| it.place() == Some(place));
        there.map(|it| it.bytes[0] + it.bytes[1]).sum::<u64>()
    });
    let most = places.into_iter().zip(bytes).filter(|(_, bytes)| *bytes > 0);
    most.max_by_key(|(_, bytes)| *bytes).map(|(place, _)| place)
}

fn traffic(all: &Assessor) -> Vec<Traffic> {
    let mut by_class = all.others.clone();
    for connection in &all.connections {
        let class = if connection.is_two_sided() { Class::Tcp } else { Class::TcpOneSided };
        let (packets, bytes) = by_class.entry(class).or_default();
        *packets += connection.packets.iter().sum::<u64>();
        *bytes += connection.bytes.iter().sum::<u64>();
    }
    by_class.retain(|_, (packets, _)| *packets > 0);
    let twice = by_class.get(&Class::SeenTwice).map_or(0, |(_, bytes)| *bytes);
    let once = (all.bytes - twice).max(1);
    let mut traffic: Vec<Traffic> = by_class
        .into_iter()
        .map(|(class, (packets, bytes))| {
            let counted = if class == Class::SeenTwice { 0 } else { bytes };
            Traffic { class, packets, bytes, share: counted as f64 / once as f64 }
        })
        .collect();
    traffic.sort_by_key(|it| std::cmp::Reverse((it.class != Class::SeenTwice, it.bytes)));
    traffic
}

fn total(cause: Cause, of: &OfCause) -> CauseTotal {
    CauseTotal {
        cause,
        stalls: of.stalls,
        stalled_s: of.stalled.as_secs_f64(),
        packets_lost: of.packets,
        flights: of.flights,
    }
}

fn cause_totals(connections: &[&Connection]) -> Vec<CauseTotal> {
    let sum = |cause: Cause| {
        let mut sum = OfCause::default();
        for connection in connections {
            let of = &connection.streams[connection.main()].verdicts.by_cause[cause.index()];
            sum.stalls += of.stalls;
            sum.stalled += of.stalled;
            sum.packets += of.packets;
            sum.flights += of.flights;
        }
        total(cause, &sum)
    };
    Cause::ALL.map(sum).to_vec()
}

fn schemes(connections: &[&Connection], place: Option<Place>) -> Vec<SchemeEstimate> {
    let estimate = |(scheme, name): (usize, &'static str)| {
        let mut saved = Saved::default();
        let (mut before, mut retransmissions, mut not_seen) = (0, 0, Duration::ZERO);
        for connection in connections {
            let stream = &connection.streams[connection.main()];
            saved.add(&stream.verdicts.saved[scheme]);
            before += stream.counts.repaired_before[scheme];
            retransmissions += stream.counts.again_seen + stream.counts.again_unseen;
            let of = |cause: Cause| stream.verdicts.by_cause[cause.index()].stalled;
            not_seen += of(Cause::Radio) + of(Cause::Outage) + of(Cause::Handoff);
        }
        let (upper, reason) = match place {
            Some(Place::Receiver) => (
                not_seen,
                "the capture was taken behind the losses, where no agent can be replayed: at most \
                 all stalls of radio, outage and handoff"
                    .to_owned(),
            ),
            _ => (saved.upper, reason(connections)),
        };
        SchemeEstimate {
            scheme: name,
            saved_s_min: saved.lower.as_secs_f64(),
            saved_s_max: upper.as_secs_f64(),
            stalls_acted: saved.acted,
            retransmissions_before: before,
            retransmissions,
            reason,
        }
    };
    replay::NAMES.into_iter().enumerate().map(estimate).collect()
}

/// Why the interval of a replay is as wide as it is.
fn reason(connections: &[&Connection]) -> String {
    let stalled = |cause: Cause| {
        let of = |it: &&Connection| it.streams[it.main()].verdicts.by_cause[cause.index()].stalls;
        connections.iter().map(of).sum::<u64>()
    };
    let mut reasons = Vec::new();
    if stalled(Cause::Outage) + stalled(Cause::Handoff) > 0 {
        reasons.push("when a link came back between two attempts of the sender nobody saw");
    }
    if stalled(Cause::Radio) > 0 {
        reasons.push("the agent's first copy may be lost, too");
    }
    if stalled(Cause::Congestion) + stalled(Cause::Unknown) > 0 {
        reasons.push("a full queue may drop the copy");
    }
    reasons.push(OPEN_LOOP);
    reasons.join("; ")
}

fn connection(of: &Connection, began: Instant, options: Options) -> ConnectionSummary {
    let main = of.main();
    let stream = &of.streams[main];
    let key = if main == 0 { of.key } else { of.key.reversed() };
    let counts = &stream.counts;
    let seconds = |span: Duration| span.as_secs_f64();
    let at = |share| stream.trips.quantile(share).map(seconds);
    let quantiles = stream.trips.floor.zip(at(0.5)).zip(at(0.95));
    let by_cause = &stream.verdicts.by_cause;
    let causes: Vec<CauseTotal> =
        Cause::ALL.into_iter().zip(by_cause).map(|(cause, it)| total(cause, it)).collect();
    let causes: Vec<CauseTotal> =
        causes.into_iter().filter(|it| it.stalls > 0 || it.packets_lost > 0).collect();
    let stalls = stream.verdicts.stalls.iter().map(|stall| StallSummary {
        from_s: seconds(stall.from.since(began)),
        length_s: seconds(stall.length()),
        cause: stall.cause,
        evidence: stall.evidence.clone(),
        saved_s: stall.saved.iter().map(|it| [seconds(it.lower), seconds(it.upper)]).collect(),
    });
    ConnectionSummary {
        sender: key.source.to_string(),
        receiver: key.destination.to_string(),
        began_s: seconds(of.first_at.since(began)),
        duration_s: seconds(of.last_at.since(of.first_at)),
        payload_bytes: match counts.acked_bytes {
            0 => counts.payload_bytes,
            acked => acked,
        },
        two_sided: of.is_two_sided(),
        place: options.at.or_else(|| of.place()),
        handshake_s: of.handshake().map(seconds),
        rtt_to_sender_s: of.floors().0.map(seconds),
        rtt_to_receiver_s: quantiles.map(|((min, p50), p95)| Quantiles {
            min: seconds(min),
            p50,
            p95,
        }),
        retransmissions: Retransmissions {
            seen_before: counts.again_seen,
            not_seen_before: counts.again_unseen,
            after_silence: counts.timeouts,
            unneeded: counts.unneeded,
            reordered: counts.reordered,
        },
        trouble: of.trouble(),
        stalled_s: causes.iter().fold(0.0, |sum, it| sum + it.stalled_s),
        causes,
        stalls: stalls.collect(),
    }
}

fn remarks(
    all: &Assessor,
    reader: &capture::Reader<'_>,
    connections: &[&Connection],
    place: Option<Place>,
) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(cut) = reader.cut_bytes() {
        let offset = reader.offset();
        remarks.push(format!(
            "The capture ends within a packet: {cut} bytes after offset {offset} are none."
        ));
    }
    let missed: u64 = connections.iter().map(|it| it.streams[it.main()].counts.missed_bytes).sum();
    if missed > 0 {
        remarks.push(format!(
            "{missed} bytes were acknowledged that are not in the capture: it missed packets."
        ));
    }
    if all.refused > 0 {
        remarks.push(format!(
            "More than {} connections: {} packets of others were only counted.",
            crate::CONNECTIONS_MAX,
            all.refused
        ));
    }
    if place == Some(Place::Sender) {
        remarks.push(
            "Taken at the sender: the agents of the estimate stand there, too; at a base station \
             they would be nearer to the receiver, and repair sooner."
                .to_owned(),
        );
    }
    remarks
}
