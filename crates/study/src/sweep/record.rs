//! A finished run as one line of text: a checksum, the run's name, and what was measured.
//!
//! ```text
//! 9f0c1d2e3a4b5c6d 6f1c…2b-17 {"ended_ns":4321000000,"finished":true,…}
//! ```
//!
//! Times are whole nanoseconds and everything else is counted, so that what is read back is what
//! was measured, to the last bit. A line that is cut short, or altered, does not bear out its
//! checksum (FNV-1a over what follows it) and is no record.

use super::Name;
use crate::row::Sample;
use sansio::{Duration, Instant};
use serde::{Deserialize, Serialize};
use trace::handoffs::Handoffs;
use trace::metrics::{Measures, QueueDelay, Transfer};

/// The text of a run's record, with the newline at its end.
pub fn encode(name: Name, sample: &Sample) -> String {
    let body = Body::of(sample);
    let body = serde_json::to_string(&body);
    let body = body.unwrap_or_else(|error| unreachable!("counts serialise: {error}"));
    let text = format!("{name}-{} {body}", sample.seed);
    format!("{:016x} {text}\n", checksum(text.as_bytes()))
}

/// The run that a line (without its newline) is a whole record of.
pub fn name(line: &[u8]) -> Option<(Name, u64)> {
    let (name, seed, _) = parts(line)?;
    Some((name, seed))
}

/// What was measured, if a line is a whole record.
pub fn decode(line: &[u8]) -> Option<Sample> {
    let (_, seed, body) = parts(line)?;
    Some(serde_json::from_slice::<Body>(body).ok()?.sample(seed))
}

fn parts(line: &[u8]) -> Option<(Name, u64, &[u8])> {
    let (sum, text) = line.split_at_checked(16)?;
    let text = text.strip_prefix(b" ")?;
    let sum = u64::from_str_radix(str::from_utf8(sum).ok()?, 16).ok()?;
    if sum != checksum(text) {
        return None;
    }
    let space = text.iter().position(|byte| *byte == b' ')?;
    let (name, seed) = str::from_utf8(&text[..space]).ok()?.split_once('-')?;
    let name = Name(u128::from_str_radix(name, 16).ok()?);
    Some((name, seed.parse().ok()?, &text[space + 1..]))
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

#[derive(Serialize, Deserialize)]
struct Body {
    ended_ns: u64,
    finished: bool,
    transfers: Vec<TransferBody>,
    retransmissions_end_to_end: u64,
    retransmissions_local: u64,
    probes: u64,
    probe_bytes: u64,
    timeouts: u64,
    air_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    air_time_ns: Option<u64>,
    lost: u64,
    queue_full: u64,
    base_station_bytes_max: u64,
    dupacks: u64,
    base_station_packets: u64,
    /// p50 and p99.
    queue_delay_ns: Option<[u64; 2]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handoffs: Option<HandoffsBody>,
    failures: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct HandoffsBody {
    crossings: u64,
    until_consistent_ns: Vec<u64>,
    until_first_packet_ns: Vec<u64>,
    until_registered_ns: Vec<u64>,
    lost: u64,
    messages: u64,
    message_bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct TransferBody {
    delivered_bytes: u64,
    last_delivered_ns: u64,
    complete: bool,
    stall_ns: u64,
    stalls_after_outage_ns: Vec<u64>,
    receiver_stalls_after_outage_ns: Vec<u64>,
    recoveries_ns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stalls_after_handoff_ns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    receiver_stalls_after_handoff_ns: Vec<u64>,
    latencies_ns: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    latencies_around_handoff_ns: Vec<u64>,
}

impl HandoffsBody {
    fn of(handoffs: &Handoffs) -> HandoffsBody {
        let Handoffs {
            crossings,
            until_consistent,
            until_first_packet,
            until_registered,
            lost,
            messages,
            message_bytes,
        } = handoffs;
        HandoffsBody {
            crossings: *crossings,
            until_consistent_ns: nanos(until_consistent),
            until_first_packet_ns: nanos(until_first_packet),
            until_registered_ns: nanos(until_registered),
            lost: *lost,
            messages: *messages,
            message_bytes: *message_bytes,
        }
    }

    fn handoffs(self) -> Handoffs {
        Handoffs {
            crossings: self.crossings,
            until_consistent: times(self.until_consistent_ns),
            until_first_packet: times(self.until_first_packet_ns),
            until_registered: times(self.until_registered_ns),
            lost: self.lost,
            messages: self.messages,
            message_bytes: self.message_bytes,
        }
    }
}

fn nanos(times: &[Duration]) -> Vec<u64> {
    times.iter().map(|time| time.as_nanos()).collect()
}

fn times(nanos: Vec<u64>) -> Vec<Duration> {
    nanos.into_iter().map(Duration::from_nanos).collect()
}

impl Body {
    fn of(sample: &Sample) -> Body {
        let Measures {
            transfers,
            retransmissions_end_to_end,
            retransmissions_local,
            probes,
            probe_bytes,
            timeouts,
            air_bytes,
            air_time,
            lost,
            queue_full,
            base_station_bytes_max,
            dupacks,
            base_station_packets,
            queue_delay,
            handoffs,
        } = &sample.measures;
        Body {
            ended_ns: Duration::from_secs_f64(sample.seconds).as_nanos(),
            finished: sample.finished,
            transfers: transfers.iter().map(TransferBody::of).collect(),
            retransmissions_end_to_end: *retransmissions_end_to_end,
            retransmissions_local: *retransmissions_local,
            probes: *probes,
            probe_bytes: *probe_bytes,
            timeouts: *timeouts,
            air_bytes: *air_bytes,
            air_time_ns: air_time.map(Duration::as_nanos),
            lost: *lost,
            queue_full: *queue_full,
            base_station_bytes_max: *base_station_bytes_max,
            dupacks: *dupacks,
            base_station_packets: *base_station_packets,
            queue_delay_ns: queue_delay
                .map(|QueueDelay { p50, p99 }| [p50, p99].map(Duration::as_nanos)),
            handoffs: handoffs.as_ref().map(HandoffsBody::of),
            failures: sample.failures.clone(),
        }
    }

    fn sample(self, seed: u64) -> Sample {
        Sample {
            seed,
            seconds: Instant::from_nanos(self.ended_ns).as_secs_f64(),
            finished: self.finished,
            measures: Measures {
                transfers: self.transfers.into_iter().map(TransferBody::transfer).collect(),
                retransmissions_end_to_end: self.retransmissions_end_to_end,
                retransmissions_local: self.retransmissions_local,
                probes: self.probes,
                probe_bytes: self.probe_bytes,
                timeouts: self.timeouts,
                air_bytes: self.air_bytes,
                air_time: self.air_time_ns.map(Duration::from_nanos),
                lost: self.lost,
                queue_full: self.queue_full,
                base_station_bytes_max: self.base_station_bytes_max,
                dupacks: self.dupacks,
                base_station_packets: self.base_station_packets,
                queue_delay: self.queue_delay_ns.map(|delays| {
                    let [p50, p99] = delays.map(Duration::from_nanos);
                    QueueDelay { p50, p99 }
                }),
                handoffs: self.handoffs.map(HandoffsBody::handoffs),
            },
            failures: self.failures,
            radio_late: None,
            radio_mishaps: 0,
        }
    }
}

impl TransferBody {
    fn of(transfer: &Transfer) -> TransferBody {
        let Transfer {
            delivered_bytes,
            last_delivered_at,
            complete,
            stall,
            stalls_after_outage,
            receiver_stalls_after_outage,
            recoveries,
            stalls_after_handoff,
            receiver_stalls_after_handoff,
            latencies,
            latencies_around_handoff,
        } = transfer;
        TransferBody {
            delivered_bytes: *delivered_bytes,
            last_delivered_ns: last_delivered_at.as_nanos(),
            complete: *complete,
            stall_ns: stall.as_nanos(),
            stalls_after_outage_ns: nanos(stalls_after_outage),
            receiver_stalls_after_outage_ns: nanos(receiver_stalls_after_outage),
            recoveries_ns: nanos(recoveries),
            stalls_after_handoff_ns: nanos(stalls_after_handoff),
            receiver_stalls_after_handoff_ns: nanos(receiver_stalls_after_handoff),
            latencies_ns: nanos(latencies),
            latencies_around_handoff_ns: nanos(latencies_around_handoff),
        }
    }

    fn transfer(self) -> Transfer {
        Transfer {
            delivered_bytes: self.delivered_bytes,
            last_delivered_at: Instant::from_nanos(self.last_delivered_ns),
            complete: self.complete,
            stall: Duration::from_nanos(self.stall_ns),
            stalls_after_outage: times(self.stalls_after_outage_ns),
            receiver_stalls_after_outage: times(self.receiver_stalls_after_outage_ns),
            recoveries: times(self.recoveries_ns),
            stalls_after_handoff: times(self.stalls_after_handoff_ns),
            receiver_stalls_after_handoff: times(self.receiver_stalls_after_handoff_ns),
            latencies: times(self.latencies_ns),
            latencies_around_handoff: times(self.latencies_around_handoff_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which everything differs from everything, ended at an odd nanosecond.
    fn sample() -> Sample {
        let times = |from: u64| -> Vec<_> { (from..from + 3).map(Duration::from_nanos).collect() };
        let transfer = Transfer {
            delivered_bytes: 1,
            last_delivered_at: Instant::from_nanos(86_399_999_999_999),
            complete: true,
            stall: Duration::from_nanos(2),
            stalls_after_outage: times(10),
            receiver_stalls_after_outage: times(20),
            recoveries: times(30),
            stalls_after_handoff: times(50),
            receiver_stalls_after_handoff: times(60),
            latencies: times(40),
            latencies_around_handoff: times(100),
        };
        let measures = Measures {
            transfers: vec![transfer, Transfer::default()],
            retransmissions_end_to_end: 3,
            retransmissions_local: 4,
            probes: 5,
            probe_bytes: 6,
            timeouts: 7,
            air_time: Some(Duration::from_nanos(77_000_001)),
            air_bytes: 8,
            lost: 9,
            queue_full: 10,
            base_station_bytes_max: 11,
            dupacks: 12,
            base_station_packets: 13,
            queue_delay: Some(QueueDelay {
                p50: Duration::from_nanos(14),
                p99: Duration::from_nanos(15),
            }),
            handoffs: Some(Handoffs {
                crossings: 16,
                until_consistent: times(70),
                until_first_packet: times(80),
                until_registered: times(90),
                lost: 17,
                messages: 18,
                message_bytes: 19,
            }),
        };
        Sample {
            seed: 17,
            seconds: Instant::from_nanos(86_399_999_999_997).as_secs_f64(),
            finished: false,
            measures,
            failures: vec!["a \"broken\"\ninvariant".to_owned()],
            radio_late: None,
            radio_mishaps: 0,
        }
    }

    #[test]
    fn a_record_is_one_line_and_gives_back_what_was_measured() {
        let line = encode(Name(u128::MAX - 5), &sample());
        let line = line.strip_suffix('\n').expect("a newline at the end");
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(name(line.as_bytes()), Some((Name(u128::MAX - 5), 17)));
        assert_eq!(decode(line.as_bytes()), Some(sample()));
    }

    #[test]
    fn a_line_cut_short_anywhere_or_altered_anywhere_is_no_record() {
        let line = encode(Name(0), &sample());
        let line = line.trim_end().as_bytes();
        for length in 0..line.len() {
            assert_eq!(name(&line[..length]), None, "{length} bytes of {}", line.len());
        }
        for place in 0..line.len() {
            let mut altered = line.to_vec();
            altered[place] ^= 1;
            assert_eq!(decode(&altered), None, "byte {place} altered");
        }
    }
}
