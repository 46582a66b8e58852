//! Writes a page from made-up results, for the page's own tests and for whoever works on its looks.
//!
//! `cargo run -p lasthop-report --example sample_page -- FILE [SEGMENTS]`: SEGMENTS data segments
//! per panel (default 4000) make about four times as many points.

mod walk;

use core::num::NonZeroU64;
use report::page::{Axis, Lines, Page, Panel, Point, Scale, Section, Series, SeriesKind};
use report::page::{Text, TimeSequence, Tone};
use report::table::{Cell, Column, Emphasis, Kind, Row, Table};
use sansio::{Cause, Duration, Instant, PacketId, Random, StreamId};
use std::fs::File;
use std::io::{self, BufWriter};
use trace::NodeId;
use trace::metrics::TransferSpec;
use trace::story::{Deed, Segment, Step};
use trace::timeline::{self, Cached, RadioLoss, Timeline, Waiting, Window};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".to_owned());
    let segments = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(4000);
    let timelines = SCHEMES.map(|scheme| invented(scheme, segments));
    let end = Instant::ZERO + Duration::from_secs(24);
    let roaming = [(SCHEMES[0], true), (SCHEMES[3], false)].map(|(scheme, by_registration)| {
        let timeline = invented(scheme, segments.min(3000));
        (scheme.name.to_owned(), timeline.among_cells(walk::invented(by_registration, end)))
    });
    let roaming = roaming.iter().map(|(name, timeline)| Panel {
        scheme: name.clone(),
        name: name.clone(),
        timeline,
    });
    let panels = SCHEMES.iter().zip(&timelines);
    let panels = panels.map(|(scheme, timeline)| {
        let (scheme, name) = (scheme.name.to_owned(), scheme.name.to_owned());
        Panel { scheme, name, timeline }
    });
    let page = Page {
        title: "Sample: four schemes over a last hop that flickers".to_owned(),
        command: "cargo run -p lasthop-report --example sample_page".to_owned(),
        version: format!("lasthop-report {}, made-up numbers", env!("CARGO_PKG_VERSION")),
        sections: vec![
            Section::Text(advice()),
            Section::Table(table()),
            Section::Lines(goodput()),
            Section::TimeSequence(TimeSequence {
                title: "What happened on the wire, seed 1, 1/256Kbit".to_owned(),
                panels: panels.collect(),
            }),
            Section::TimeSequence(TimeSequence {
                title: "A host that goes from cell to cell, seed 1".to_owned(),
                panels: roaming.collect(),
            }),
            Section::Lines(stalls()),
            Section::Text(warning()),
        ],
    };
    report::page::write(&page, BufWriter::new(File::create(path)?))
}

/// A scheme and how it fares.
#[derive(Clone, Copy)]
struct Scheme {
    name: &'static str,
    /// Share of the losses that the base station repairs.
    repaired: f64,
    probes: bool,
}

const SCHEMES: [Scheme; 4] = [
    Scheme { name: "plain", repaired: 0.0, probes: false },
    Scheme { name: "plain-tuned", repaired: 0.0, probes: false },
    Scheme { name: "snoop", repaired: 0.8, probes: false },
    Scheme { name: "snoop-modern", repaired: 1.0, probes: true },
];

const ERROR_RATES: [&str; 7] =
    ["none", "1/2Mbit", "1/1Mbit", "1/512Kbit", "1/256Kbit", "1/128Kbit", "1/64Kbit"];

fn advice() -> Text {
    Text {
        tone: Tone::Advice,
        title: "Put snoop-modern at the base station".to_owned(),
        paragraphs: vec![
            "It keeps 97 % of what the radio can carry at every error rate, and the sender hears \
             from the mobile host within one round trip after an outage."
                .to_owned(),
        ],
    }
}

fn warning() -> Text {
    Text {
        tone: Tone::Warning,
        title: "Not validated".to_owned(),
        paragraphs: vec!["These numbers are made up.".to_owned()],
    }
}

/// Goodput in Mbit/s of a scheme at the error rate of this place, made up.
fn made_up(scheme: usize, place: usize) -> f64 {
    let harm = [0.055, 0.05, 0.02, 0.004][scheme];
    1.947 * libm::exp(-harm * ((1 << place) - 1) as f64)
}

fn table() -> Table {
    let columns = vec![
        Column::name("error rate"),
        Column::name("scheme").explained("What runs at the base station or the sender."),
        Column::value("goodput", "Mbit/s", Kind::HighestIsBest).explained(
            "Bytes delivered in order over the time of the transfer; mean of all seeds.",
        ),
        Column::value("±95 %", "Mbit/s", Kind::Value)
            .explained("Half of the 95 % interval of the mean."),
        Column::value("of ceiling", "%", Kind::HighestIsBest)
            .explained("Goodput over what the radio can carry at this error rate."),
        Column::value("stall p95", "ms", Kind::LowestIsBest)
            .explained("From the link's return to the first new ACK at the sender."),
        Column::value("end-to-end", "packets", Kind::LowestIsBest)
            .explained("Packets that the sender sent again."),
        Column::value("local", "packets", Kind::Value)
            .explained("Packets that the base station sent again."),
        Column::value("timeouts", "", Kind::LowestIsBest).explained("Retransmission timeouts."),
        Column::name("checks"),
    ];
    let mut rows = Vec::new();
    for place in [0, 4, 6] {
        for (index, scheme) in SCHEMES.iter().enumerate() {
            let goodput = made_up(index, place);
            let lost = (1 << place) as f64 * 6.0;
            let number = |value: f64, digits| Cell::number(value, format!("{value:.digits$}"));
            let failed = index == 1 && place == 6;
            rows.push(Row {
                group: place as u32,
                class: 0,
                cells: vec![
                    Cell::text(ERROR_RATES[place]),
                    Cell::text(scheme.name),
                    number(goodput, 3),
                    number(goodput * 0.01, 3),
                    number(goodput / 1.947 * 100.0, 1),
                    number([2429.0, 916.0, 420.0, 61.0][index], 0),
                    number(lost * (1.0 - scheme.repaired), 0),
                    if scheme.repaired > 0.0 { number(lost * 1.1, 0) } else { Cell::none() },
                    number(lost * (1.0 - scheme.repaired) / 9.0, 0),
                    match failed {
                        true => Cell::text("stream broken").with(Emphasis::Warning),
                        false => Cell::text("passed"),
                    },
                ],
            });
        }
    }
    Table { caption: "Every scheme at three error rates".to_owned(), columns, rows }
}

fn goodput() -> Lines {
    let mut series = vec![Series {
        name: "physical ceiling".to_owned(),
        scheme: String::new(),
        kind: SeriesKind::Reference,
        points: (0..7).map(|place| at(place as f64, made_up(3, place) * 1.02, None)).collect(),
    }];
    for (index, scheme) in SCHEMES.iter().enumerate() {
        let points = (0..7).map(|place| {
            let value = made_up(index, place);
            at(place as f64, value, Some((value * 0.96 - 0.01, value * 1.03 + 0.01)))
        });
        series.push(Series {
            name: scheme.name.to_owned(),
            scheme: scheme.name.to_owned(),
            kind: SeriesKind::Measured,
            points: points.collect(),
        });
    }
    Lines {
        title: "Goodput against error rate".to_owned(),
        x: Axis {
            label: "bit error rate".to_owned(),
            unit: String::new(),
            scale: Scale::Categories(ERROR_RATES.map(str::to_owned).to_vec()),
        },
        y: axis("goodput", "Mbit/s", Scale::Linear),
        interval: "95 % interval".to_owned(),
        series,
    }
}

fn stalls() -> Lines {
    let series = SCHEMES.iter().enumerate().map(|(index, scheme)| {
        let points = (0..12).map(|step| {
            let length = 0.1 * libm::pow(100.0, step as f64 / 11.0);
            let stall = [1.2 * length + 0.2, 0.9, 0.2 + 0.1 * length, 0.06][index];
            at(length, stall, Some((stall * 0.8, stall * 1.3)))
        });
        Series {
            name: scheme.name.to_owned(),
            scheme: scheme.name.to_owned(),
            kind: SeriesKind::Measured,
            points: points.collect(),
        }
    });
    Lines {
        title: "Stall after an outage against its length".to_owned(),
        x: axis("length of the outage", "s", Scale::Log),
        y: axis("stall, p95", "s", Scale::Log),
        interval: "95 % interval".to_owned(),
        series: series.collect(),
    }
}

fn axis(label: &str, unit: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), unit: unit.to_owned(), scale }
}

fn at(x: f64, y: f64, interval: Option<(f64, f64)>) -> Point {
    Point { x, y, interval }
}

const SEGMENT: u64 = 1460;
const ROUND_TRIP: Duration = Duration::from_millis(40);

/// A transfer that looks like one: bursts of losses, an outage every 9 seconds, recovery.
fn invented(scheme: Scheme, segments: u64) -> Timeline {
    let spec = TransferSpec {
        stream: StreamId(1),
        sender: NodeId(0),
        receiver: NodeId(2),
        base: NodeId(1),
        size: None,
        messages: None,
    };
    let mut random = Random::new(1, "sample");
    let mut timeline = Timeline::new(spec);
    let (mut now, mut cwnd, mut ssthresh) = (Instant::ZERO, 2_u32, 64_u32);
    let mut next_outage = Instant::ZERO + Duration::from_secs(4);
    for segment in 1..=segments {
        let offset = segment * SEGMENT;
        let mark = |at: Instant| timeline::Point { at, offset };
        now += Duration::from_micros(6_000 + random.below(200));
        if now >= next_outage {
            now = outage(&mut timeline, scheme, now, offset);
            next_outage = now + Duration::from_secs(9);
            (ssthresh, cwnd) = ((cwnd / 2).max(2), 2);
        }
        timeline.data.push(mark(now));
        tell(&mut timeline, Cause::Original, offset, &[(now, 0, Deed::Sent)]);
        let mut acknowledged = now + ROUND_TRIP;
        if random.below(150) == 0 {
            let lost_at = now + Duration::from_millis(10);
            timeline.fades.push((lost_at, lost_at + Duration::from_millis(20)));
            timeline.lost.push(mark(lost_at));
            timeline.radio_losses.push(RadioLoss {
                at: lost_at,
                toward_mobile: true,
                cause: "bit_error",
            });
            tell(&mut timeline, Cause::Original, offset, &[(lost_at, 1, Deed::Lost)]);
            if random.unit() < scheme.repaired {
                let again = now + Duration::from_millis(35);
                timeline.local.push(mark(again));
                let arrived = again + Duration::from_millis(12);
                let steps =
                    [(again, 1, Deed::Rule), (again, 1, Deed::Sent), (arrived, 2, Deed::Arrived)];
                tell(&mut timeline, Cause::LocalRetransmission, offset, &steps);
            } else {
                timeline.end_to_end.push(mark(now + Duration::from_millis(90)));
                acknowledged += Duration::from_millis(90);
                ssthresh = (cwnd / 2).max(2);
                cwnd = ssthresh;
            }
        } else if cwnd < ssthresh || segment % u64::from(cwnd) == 0 {
            cwnd = (cwnd + 1).min(44);
        }
        if timeline.acks.last().is_none_or(|last| last.at < acknowledged) {
            timeline.acks.push(mark(acknowledged));
            timeline.delivered.push(mark(acknowledged - Duration::from_millis(12)));
        }
        let bytes = |segments: u32| segments * SEGMENT as u32;
        let flight = bytes(cwnd.min(7 + random.below(3) as u32));
        let (cwnd, ssthresh) = (bytes(cwnd), bytes(ssthresh));
        timeline.windows.push(Window { at: now, cwnd, ssthresh, flight });
        let packets = flight / SEGMENT as u32;
        timeline.queue_down.push(Waiting { at: now, packets, bytes: u64::from(flight) });
        if scheme.repaired > 0.0 {
            timeline.cache.push(Cached { at: now, bytes: u64::from(flight) });
            timeline.cache_limit = 6 << 20;
        }
    }
    timeline.story.steps.sort_by_key(|step| step.at);
    for points in [&mut timeline.lost, &mut timeline.local, &mut timeline.end_to_end] {
        points.sort_by_key(|point| point.at);
    }
    timeline
}

/// Steps of a segment: a new packet for what is sent, the newest one for all else.
fn tell(timeline: &mut Timeline, cause: Cause, offset: u64, steps: &[(Instant, u32, Deed)]) {
    let story = &mut timeline.story;
    if story.texts.is_empty() {
        story.texts =
            ["bit_error", "SNOOP-ACK-7: suppressed: unexpected"].map(str::to_owned).to_vec();
    }
    for &(at, node, deed) in steps {
        if deed == Deed::Sent {
            let id = PacketId(NonZeroU64::MIN.saturating_add(story.segments.len() as u64));
            let parent = story.segments.last().map(|last| last.id).filter(|_| node == 1);
            let (offset, length) = (offset - SEGMENT, SEGMENT as u32);
            story.segments.push(Segment { id, parent, cause, offset, length });
        }
        let (packet, offset, text) = match deed {
            Deed::Rule => (None, Some(offset - SEGMENT), Some(1)),
            Deed::Lost => (story.segments.last().map(|last| last.id), None, Some(0)),
            _ => (story.segments.last().map(|last| last.id), None, None),
        };
        story.steps.push(Step { at, node: NodeId(node), packet, offset, deed, text });
    }
}

/// An outage of 300 ms and what follows; returns when data flows again.
fn outage(timeline: &mut Timeline, scheme: Scheme, from: Instant, offset: u64) -> Instant {
    let until = from + Duration::from_millis(300);
    timeline.outages.push((from, Some(until)));
    let mark = |at: Instant| timeline::Point { at, offset };
    for burst in 0..6 {
        timeline.lost.push(mark(from + Duration::from_millis(6 * burst)));
    }
    let step = Duration::from_millis(50);
    if scheme.probes {
        for probe in 1..=6 {
            timeline.probes.push(mark(from + step * probe));
        }
        return until + step;
    }
    let waits = if scheme.name == "plain" { 900 } else { 300 };
    let restart = until + Duration::from_millis(waits);
    timeline.timeouts.push(from + Duration::from_millis(280));
    timeline.timeouts.push(restart);
    timeline.end_to_end.push(mark(from + Duration::from_millis(281)));
    timeline.end_to_end.push(mark(restart));
    restart + ROUND_TRIP
}
