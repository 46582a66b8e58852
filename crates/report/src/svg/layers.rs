//! What each plot shows of one transfer.

use super::{Layer, Look, Plot};
use trace::timeline::{Point, QUEUE_FULL, Timeline};

/// Lanes of the link's plot, from below.
pub(super) const LANES: [&str; 3] = ["queue full", "up", "down"];

/// The marks and lines of a plot, in the order in which it is painted. The colours are those
/// of the page in the light.
pub(super) fn layers(plot: Plot, timeline: &Timeline) -> Vec<Layer> {
    match plot {
        Plot::Sequence => sequence(timeline),
        Plot::Windows => windows(timeline),
        Plot::Queue => {
            let of = |queue: &[trace::timeline::Waiting]| {
                queue.iter().map(|one| (one.at.as_secs_f64(), f64::from(one.packets))).collect()
            };
            let (down, up) = (of(&timeline.queue_down), of(&timeline.queue_up));
            vec![
                Layer::new("toward the mobile host", "#0072b2", Look::Line(""), down),
                Layer::new("toward the base station", "#b0508a", Look::Line("5 3"), up),
            ]
        }
        Plot::Cache => {
            let points = timeline.cache.iter();
            let points = points.map(|one| (one.at.as_secs_f64(), one.bytes as f64 / 1e3));
            vec![Layer::new("kept", "#008a63", Look::Line(""), points.collect())]
        }
        Plot::Link => link(timeline),
        Plot::Signal => signal(timeline),
        Plot::Handoff => Vec::new(),
    }
}

/// A line for each cell; none where it does not reach.
fn signal(timeline: &Timeline) -> Vec<Layer> {
    const COLOURS: [&str; 6] = ["#0072b2", "#c98500", "#008a63", "#b0508a", "#cc3311", "#3b4654"];
    const DASHES: [&str; 3] = ["", "5 3", "2 2"];
    let Some(course) = timeline.roaming.as_ref().map(|roaming| &roaming.course) else {
        return Vec::new();
    };
    let of = |(place, (cell, values)): (usize, (&u16, &Vec<Option<i32>>))| {
        let decibels = |value: &Option<i32>| value.map_or(f64::NAN, |centi| f64::from(centi) / 1e2);
        let values = course.sampled_at.iter().zip(values);
        let points = values.map(|(at, value)| (at.as_secs_f64(), decibels(value))).collect();
        let dash = DASHES[place / COLOURS.len() % DASHES.len()];
        let colour = COLOURS[place % COLOURS.len()];
        Layer::new(format!("cell {cell}"), colour, Look::Line(dash), points)
    };
    course.signals.iter().enumerate().map(of).collect()
}

fn sequence(timeline: &Timeline) -> Vec<Layer> {
    let of = |points: &[Point]| {
        points.iter().map(|point| (point.at.as_secs_f64(), point.offset as f64 / 1e3)).collect()
    };
    vec![
        Layer::new("ACKs", "#1b93c4", Look::Line(""), of(&timeline.acks)),
        Layer::new("data", "#3b4654", Look::Dot, of(&timeline.data)),
        Layer::new("sent again end to end", "#c98500", Look::Diamond, of(&timeline.end_to_end)),
        Layer::new("sent again locally", "#008a63", Look::Triangle, of(&timeline.local)),
        Layer::new("probes", "#b0508a", Look::Ring, of(&timeline.probes)),
        Layer::new("losses", "#cc3311", Look::Cross, of(&timeline.lost)),
    ]
}

fn windows(timeline: &Timeline) -> Vec<Layer> {
    let of = |which: fn(&trace::timeline::Window) -> u32| {
        let points = timeline.windows.iter();
        points.map(|one| (one.at.as_secs_f64(), f64::from(which(one)) / 1e3)).collect::<Vec<_>>()
    };
    let threshold = Layer::new("ssthresh", "#b0508a", Look::Line("5 4"), of(|one| one.ssthresh));
    vec![
        Layer::new("in flight", "#8b95a1", Look::Line(""), of(|one| one.flight)),
        // Before the first loss it may be the largest window there is.
        Layer { scales: false, ..threshold },
        Layer::new("cwnd", "#0072b2", Look::Line(""), of(|one| one.cwnd)),
    ]
}

fn link(timeline: &Timeline) -> Vec<Layer> {
    let of = |lane: usize| {
        let losses = timeline.radio_losses.iter().filter(move |loss| {
            let own = match (loss.cause == QUEUE_FULL, loss.toward_mobile) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) => 2,
            };
            own == lane
        });
        losses.map(|loss| (loss.at.as_secs_f64(), lane as f64)).collect::<Vec<_>>()
    };
    vec![
        Layer::new("dropped by a full queue", "#c98500", Look::Tick, of(0)),
        Layer::new("lost on the air", "#cc3311", Look::Tick, [of(1), of(2)].concat()),
    ]
}

pub(super) fn nothing(plot: Plot, timeline: &Timeline) -> &'static str {
    // Whoever sees no sender's windows looks from outside, into no base station either.
    let inside = !timeline.windows.is_empty();
    match plot {
        Plot::Sequence => "nothing was sent",
        Plot::Windows => "the sender's windows are not seen from outside",
        Plot::Queue if inside => "nothing ever waited",
        Plot::Queue => "queues are not seen from outside",
        Plot::Cache if inside => "this base station keeps nothing",
        Plot::Cache => "the cache is not seen from outside",
        Plot::Link => "the link lost nothing",
        Plot::Signal | Plot::Handoff => "no mobile host moves",
    }
}
