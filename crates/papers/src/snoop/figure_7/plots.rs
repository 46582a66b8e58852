//! Figure 7 drawn: ours, and the published points beside them.

use super::{PLOTTED, Pair, pairs};
use crate::runs::Results;
use report::figure::{self, Axis, Figure, Form, Series};

/// Ours and the plotted points.
pub(crate) fn figure(results: &Results) -> Option<Figure> {
    let pairs = pairs(results);
    if pairs.is_empty() {
        return None;
    }
    let mut series = Vec::new();
    for (colour, name) in ["snoop", "plain"].into_iter().enumerate() {
        let points = pairs.iter().enumerate().map(|(place, pair)| {
            let outcome = if name == "snoop" { pair.snoop } else { pair.plain };
            let (y, ci95) = outcome.mbps();
            figure::Point { x: place as f64, y, interval: ci95.map(|ci| (y - ci, y + ci)) }
        });
        let ours = points.collect();
        let published = PLOTTED.iter().filter_map(|&(at, snoop, plain)| {
            let place = pairs.iter().position(|pair| pair.at == at)?;
            let (y, interval) = if name == "snoop" { snoop } else { plain };
            Some(figure::Point { x: place as f64, y, interval })
        });
        let published = published.collect();
        let label = if name == "snoop" { "snoop" } else { "regular TCP" };
        let one = |name, form, points| Series { name, colour, form, points };
        series.push(one(format!("{label}, ours"), Form::Ours, ours));
        series.push(one(format!("{label}, published"), Form::Published, published));
    }
    let places = pairs.iter().map(|pair| pair.at.to_owned()).collect();
    Some(Figure {
        name: "EXP-SN-F7".into(),
        title: "Figure 7: throughput at the mobile host against the bit error rate".into(),
        caption: "Filled: our mean with its 95 % interval. Hollow: the published mean, and the \
                  span of its bar (standard deviation of ten runs). K = 1024, M = 1024 K."
            .into(),
        x: Axis { label: "one bit error in so many bits".into(), places },
        y: Axis { label: "throughput, Mbit/s".into(), places: Vec::new() },
        series,
    })
}

/// The speed-up as a curve (SHAPE-5).
pub(crate) fn speed_up_figure(results: &Results) -> Option<Figure> {
    let pairs = pairs(results);
    let shown: Vec<&Pair<'_>> =
        pairs.iter().filter(|pair| PLOTTED.iter().any(|(at, ..)| *at == pair.at)).collect();
    if shown.is_empty() {
        return None;
    }
    let ours = shown.iter().enumerate().map(|(place, pair)| {
        let (y, ci95) = pair.ratio();
        figure::Point { x: place as f64, y, interval: ci95.map(|ci| (y - ci, y + ci)) }
    });
    let published = PLOTTED.iter().enumerate().map(|(place, (_, (snoop, _), (plain, _)))| {
        figure::Point { x: place as f64, y: snoop / plain, interval: None }
    });
    let one = |name: &str, form, points| Series { name: name.into(), colour: 0, form, points };
    Some(Figure {
        name: "EXP-SN-F7-b".into(),
        title: "Figure 7 as a speed-up: Snoop over regular TCP".into(),
        caption: "Filled: the ratio of our means with its 95 % interval. Hollow: the ratio of the \
                  published means."
            .into(),
        x: Axis {
            label: "one bit error in so many bits".into(),
            places: shown.iter().map(|pair| pair.at.to_owned()).collect(),
        },
        y: Axis { label: "speed-up".into(), places: Vec::new() },
        series: vec![
            one("ours", Form::Ours, ours.collect()),
            one("published", Form::Published, published.collect()),
        ],
    })
}
