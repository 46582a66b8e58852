//! The index of a page's plots: what the script draws, and where its numbers are.

use crate::blob::{Blob, Blobs};
use crate::page::{self, Axis, Lines, Page, Scale, Section, SeriesKind, TimeSequence};
use crate::roaming::{self, RoamingIndex};
use crate::story::{self, StoryIndex};
use serde::Serialize;
use trace::timeline::{self, Timeline, Waiting};

/// The index as JSON that can stand inside a `script` element. The numbers go into `blobs`.
pub(crate) fn index(page: &Page<'_>, blobs: &mut Blobs) -> String {
    let mut schemes = Vec::new();
    let mut plots = Vec::new();
    for section in &page.sections {
        match section {
            Section::Text(_) | Section::Table(_) => {}
            Section::Lines(lines) => plots.push(of_lines(lines, &mut schemes, blobs)),
            Section::TimeSequence(graph) => plots.push(of_graph(graph, &mut schemes, blobs)),
        }
    }
    let json = serde_json::to_string(&Index { schemes, plots });
    // A "<" occurs only inside strings; escaped, none can end the element.
    json.expect("the index holds only strings and whole numbers").replace('<', "\\u003c")
}

#[derive(Serialize)]
struct Index<'a> {
    /// In order of appearance; the place decides the colour.
    schemes: Vec<&'a str>,
    /// In the order of the places left for them.
    plots: Vec<Plot<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Plot<'a> {
    Lines {
        title: &'a str,
        x: AxisIndex<'a>,
        y: AxisIndex<'a>,
        interval: &'a str,
        series: Vec<SeriesIndex<'a>>,
    },
    TimeSequence {
        title: &'a str,
        panels: Vec<PanelIndex<'a>>,
    },
}

#[derive(Serialize)]
struct AxisIndex<'a> {
    label: &'a str,
    unit: &'a str,
    scale: &'static str,
    categories: &'a [String],
}

#[derive(Serialize)]
struct SeriesIndex<'a> {
    name: &'a str,
    /// `None` for what is only compared with: it takes no colour from the schemes.
    scheme: Option<usize>,
    x: Blob,
    y: Blob,
    low: Blob,
    high: Blob,
}

#[derive(Serialize)]
struct PanelIndex<'a> {
    scheme: usize,
    name: &'a str,
    data: Marks,
    end_to_end: Marks,
    local: Marks,
    probes: Marks,
    lost: Marks,
    acks: Marks,
    delivered: Marks,
    windows: Windows,
    timeouts: Blob,
    outages: Spans,
    fades: Spans,
    queue_down: Queue,
    queue_up: Queue,
    cache: Cache,
    radio_losses: RadioLosses,
    story: StoryIndex<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    roaming: Option<RoamingIndex<'a>>,
}

/// Seconds and stream offsets.
#[derive(Serialize)]
struct Marks {
    at: Blob,
    offset: Blob,
}

/// Seconds and bytes.
#[derive(Serialize)]
struct Windows {
    at: Blob,
    cwnd: Blob,
    ssthresh: Blob,
    flight: Blob,
}

/// Seconds; NaN for an end that did not come.
#[derive(Serialize)]
pub(crate) struct Spans {
    pub(crate) from: Blob,
    pub(crate) until: Blob,
}

/// Seconds, packets and bytes.
#[derive(Serialize)]
struct Queue {
    at: Blob,
    packets: Blob,
    bytes: Blob,
}

/// Seconds and bytes.
#[derive(Serialize)]
struct Cache {
    at: Blob,
    bytes: Blob,
    limit: u64,
}

/// Seconds, 1 for those on their way to the mobile host, and places in `causes`.
#[derive(Serialize)]
struct RadioLosses {
    at: Blob,
    toward_mobile: Blob,
    cause: Blob,
    causes: Vec<&'static str>,
}

/// The number of a scheme on this page.
fn number<'a>(schemes: &mut Vec<&'a str>, scheme: &'a str) -> usize {
    schemes.iter().position(|known| *known == scheme).unwrap_or_else(|| {
        schemes.push(scheme);
        schemes.len() - 1
    })
}

fn of_lines<'a>(lines: &'a Lines, schemes: &mut Vec<&'a str>, blobs: &mut Blobs) -> Plot<'a> {
    let series = lines.series.iter().map(|series| {
        let points = series.points.iter();
        let measured = series.kind == SeriesKind::Measured;
        SeriesIndex {
            name: &series.name,
            scheme: measured.then(|| number(schemes, &series.scheme)),
            x: blobs.floats(points.clone().map(|point| point.x)),
            y: blobs.floats(points.clone().map(|point| point.y)),
            low: blobs.floats(points.clone().map(|point| end(point, |interval| interval.0))),
            high: blobs.floats(points.map(|point| end(point, |interval| interval.1))),
        }
    });
    let series = series.collect();
    let (x, y) = (of_axis(&lines.x), of_axis(&lines.y));
    Plot::Lines { title: &lines.title, x, y, interval: &lines.interval, series }
}

fn end(point: &page::Point, which: impl Fn((f64, f64)) -> f64) -> f64 {
    point.interval.map_or(f64::NAN, which)
}

fn of_axis(axis: &Axis) -> AxisIndex<'_> {
    let (scale, categories) = match &axis.scale {
        Scale::Linear => ("linear", &[][..]),
        Scale::Log => ("log", &[][..]),
        Scale::Categories(names) => ("categories", &names[..]),
    };
    AxisIndex { label: &axis.label, unit: &axis.unit, scale, categories }
}

fn of_graph<'a>(
    graph: &'a TimeSequence<'a>,
    schemes: &mut Vec<&'a str>,
    blobs: &mut Blobs,
) -> Plot<'a> {
    let panels = graph.panels.iter().map(|panel| {
        let scheme = number(schemes, &panel.scheme);
        of_timeline(&panel.name, scheme, panel.timeline, blobs)
    });
    Plot::TimeSequence { title: &graph.title, panels: panels.collect() }
}

fn of_timeline<'a>(
    name: &'a str,
    scheme: usize,
    timeline: &'a Timeline,
    blobs: &mut Blobs,
) -> PanelIndex<'a> {
    let windows = timeline.windows.iter();
    let outages = timeline.outages.iter();
    let fades = timeline.fades.iter();
    PanelIndex {
        scheme,
        name,
        data: marks(&timeline.data, blobs),
        end_to_end: marks(&timeline.end_to_end, blobs),
        local: marks(&timeline.local, blobs),
        probes: marks(&timeline.probes, blobs),
        lost: marks(&timeline.lost, blobs),
        acks: marks(&timeline.acks, blobs),
        delivered: marks(&timeline.delivered, blobs),
        windows: Windows {
            at: blobs.instants(windows.clone().map(|window| window.at)),
            cwnd: blobs.whole(windows.clone().map(|window| window.cwnd.into())),
            ssthresh: blobs.whole(windows.clone().map(|window| window.ssthresh.into())),
            flight: blobs.whole(windows.map(|window| window.flight.into())),
        },
        timeouts: blobs.instants(timeline.timeouts.iter().copied()),
        outages: Spans {
            from: blobs.instants(outages.clone().map(|(from, _)| *from)),
            until: blobs.some_instants(outages.map(|(_, until)| *until)),
        },
        fades: Spans {
            from: blobs.instants(fades.clone().map(|(from, _)| *from)),
            until: blobs.instants(fades.map(|(_, until)| *until)),
        },
        queue_down: queue(&timeline.queue_down, blobs),
        queue_up: queue(&timeline.queue_up, blobs),
        cache: Cache {
            at: blobs.instants(timeline.cache.iter().map(|cached| cached.at)),
            bytes: blobs.whole(timeline.cache.iter().map(|cached| cached.bytes)),
            limit: timeline.cache_limit,
        },
        radio_losses: radio_losses(timeline, blobs),
        story: story::index(timeline, blobs),
        roaming: timeline.roaming.as_ref().map(|roaming| roaming::index(roaming, blobs)),
    }
}

fn queue(lengths: &[Waiting], blobs: &mut Blobs) -> Queue {
    Queue {
        at: blobs.instants(lengths.iter().map(|length| length.at)),
        packets: blobs.whole(lengths.iter().map(|length| length.packets.into())),
        bytes: blobs.whole(lengths.iter().map(|length| length.bytes)),
    }
}

fn radio_losses(timeline: &Timeline, blobs: &mut Blobs) -> RadioLosses {
    let losses = timeline.radio_losses.iter();
    let mut causes = Vec::new();
    for loss in losses.clone() {
        if !causes.contains(&loss.cause) {
            causes.push(loss.cause);
        }
    }
    let place = |cause| causes.iter().position(|one| *one == cause).map(|place| place as u64);
    RadioLosses {
        at: blobs.instants(losses.clone().map(|loss| loss.at)),
        toward_mobile: blobs.whole(losses.clone().map(|loss| loss.toward_mobile.into())),
        cause: blobs.some_whole(losses.map(|loss| place(loss.cause))),
        causes,
    }
}

fn marks(points: &[timeline::Point], blobs: &mut Blobs) -> Marks {
    Marks {
        at: blobs.instants(points.iter().map(|point| point.at)),
        offset: blobs.whole(points.iter().map(|point| point.offset)),
    }
}
