//! A figure of a paper as one SVG: ours with intervals, the published values beside it.
//!
//! For print and for pages without a script: a figure stands alone in its file, follows the
//! reader's light or dark setting, and says in words what it shows. Colours are those of Okabe and
//! Ito, which colour-blind readers tell apart; ours and published differ by form, too.

use std::fmt::{self, Write as _};

/// A figure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Short name, for its file: "EXP-SN-F7".
    pub name: String,
    /// Title.
    pub title: String,
    /// What bars and marks mean, a sentence or two.
    pub caption: String,
    /// The level axis.
    pub x: Axis,
    /// The upright axis, from zero.
    pub y: Axis,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity and unit: "goodput, Mbit/s".
    pub label: String,
    /// Named places side by side, a value being the index of its name; empty for a linear axis from
    /// zero. Only for the level axis.
    pub places: Vec<String>,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Which colour; series of one scheme share one.
    pub colour: usize,
    /// How it is drawn.
    pub form: Form,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Ours: filled marks, joined, with intervals.
    Ours,
    /// Published: hollow marks, joined by dashes, with spans.
    Published,
    /// Ours, one mark for each place: filled marks that are not joined.
    OursApart,
    /// Published, one mark for each place: hollow ones that are not joined.
    PublishedApart,
    /// Many points: a line alone.
    Line,
}

/// One value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place on the level axis.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// Lower and upper end of the interval or span.
    pub interval: Option<(f64, f64)>,
}

/// Okabe and Ito's, without the yellow, which is too light on white.
const COLOURS: [&str; 6] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"];
const WIDTH: f64 = 760.0;
const PLOT_HEIGHT: f64 = 330.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 18.0;
const TOP: f64 = 40.0;
/// From the plot down to the legend: ticks and the axis' label.
const BELOW: f64 = 52.0;
const LEGEND_LINE: f64 = 20.0;
/// Beside each other where several series have a value at one place.
const DODGE: f64 = 9.0;

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#222}\
    .title{font-size:14px;font-weight:600}.grid{stroke:#d8d8d8}.axis{stroke:#555}\
    .back{fill:#fff}.hollow{fill:#fff}\
    @media(prefers-color-scheme:dark){text{fill:#ddd}.grid{stroke:#3a3a3a}.axis{stroke:#999}\
    .back{fill:#16181c}.hollow{fill:#16181c}}";

/// The figure as one SVG document.
pub fn svg(figure: &Figure) -> String {
    let mut text = String::new();
    write_svg(&mut text, figure).expect("writing into a string cannot fail");
    text
}

/// Where values are on the picture.
struct Frame {
    x: (f64, f64),
    y_max: f64,
}

impl Frame {
    fn of(figure: &Figure) -> Frame {
        let points = || figure.series.iter().flat_map(|series| &series.points);
        let top = |point: &Point| point.interval.map_or(point.y, |(_, high)| high.max(point.y));
        let y_max = points().map(top).fold(0.0, f64::max);
        let x = if figure.x.places.is_empty() {
            (0.0, points().map(|point| point.x).fold(0.0, f64::max))
        } else {
            (-0.5, figure.x.places.len() as f64 - 0.5)
        };
        let room = |most: f64| if most > 0.0 { most } else { 1.0 };
        Frame { x: (x.0, x.0 + room(x.1 - x.0)), y_max: room(y_max) * 1.04 }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + (value - self.x.0) / (self.x.1 - self.x.0) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        TOP + PLOT_HEIGHT * (1.0 - value / self.y_max)
    }
}

fn write_svg(out: &mut String, figure: &Figure) -> fmt::Result {
    let frame = Frame::of(figure);
    let legend = legend(figure);
    let lines = legend.last().map_or(0, |entry| entry.line + 1);
    let height = TOP + PLOT_HEIGHT + BELOW + LEGEND_LINE * lines as f64 + 8.0;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
         role=\"img\" aria-label=\"{}\">",
        escaped(&format!("{}. {}", figure.title, figure.caption))
    )?;
    writeln!(out, "<style>{STYLE}</style>")?;
    writeln!(out, "<rect class=\"back\" width=\"{WIDTH}\" height=\"{height}\"/>")?;
    writeln!(out, "<text class=\"title\" x=\"{LEFT}\" y=\"20\">{}</text>", escaped(&figure.title))?;
    write_axes(out, figure, &frame)?;
    let apart: Vec<usize> = (0..figure.series.len())
        .filter(|index| !matches!(figure.series[*index].form, Form::Line))
        .collect();
    for (index, series) in figure.series.iter().enumerate() {
        // Beside each other at a named place; on a linear axis a value stands where it is.
        let is_apart = matches!(series.form, Form::OursApart | Form::PublishedApart)
            && !figure.x.places.is_empty();
        let place = apart.iter().position(|one| *one == index).filter(|_| is_apart);
        let middle = (apart.len() as f64 - 1.0) / 2.0;
        let shift = place.map_or(0.0, |place| (place as f64 - middle) * DODGE);
        write_series(out, series, &frame, shift)?;
    }
    for entry in &legend {
        let y = TOP + PLOT_HEIGHT + BELOW + LEGEND_LINE * entry.line as f64 + 6.0;
        write_key(out, &figure.series[entry.series], (LEFT + entry.x, y))?;
    }
    writeln!(out, "</svg>")
}

fn write_axes(out: &mut String, figure: &Figure, frame: &Frame) -> fmt::Result {
    let (bottom, right) = (TOP + PLOT_HEIGHT, WIDTH - RIGHT);
    for (value, label) in ticks(frame.y_max) {
        let y = frame.y(value);
        writeln!(out, "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{right}\"/>")?;
        let x = LEFT - 8.0;
        writeln!(out, "<text x=\"{x}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>", y + 4.0)?;
    }
    let level: Vec<(f64, String)> = if figure.x.places.is_empty() {
        ticks(frame.x.1)
    } else {
        let places = figure.x.places.iter().enumerate();
        places.map(|(index, name)| (index as f64, escaped(name))).collect()
    };
    for (value, label) in level {
        let (x, y) = (frame.x(value), bottom + 18.0);
        writeln!(out, "<path class=\"axis\" d=\"M{x:.1} {bottom}v4\"/>")?;
        writeln!(out, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>")?;
    }
    writeln!(out, "<path class=\"axis\" fill=\"none\" d=\"M{LEFT} {TOP}V{bottom}H{right}\"/>")?;
    let (x, y) = ((LEFT + right) / 2.0, bottom + 38.0);
    let label = escaped(&figure.x.label);
    writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">{label}</text>")?;
    let (y, label) = (TOP + PLOT_HEIGHT / 2.0, escaped(&figure.y.label));
    writeln!(
        out,
        "<text transform=\"translate(16 {y}) rotate(-90)\" text-anchor=\"middle\">{label}</text>"
    )
}

fn write_series(out: &mut String, series: &Series, frame: &Frame, shift: f64) -> fmt::Result {
    let colour = colour(series);
    let at = |point: &Point| (frame.x(point.x) + shift, frame.y(point.y));
    if let Some(dashes) = joined(series.form)
        && series.points.len() > 1
    {
        write!(out, "<path fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dashes} d=\"")?;
        for (index, point) in series.points.iter().enumerate() {
            let ((x, y), verb) = (at(point), if index == 0 { 'M' } else { 'L' });
            write!(out, "{verb}{x:.1} {y:.1}")?;
        }
        writeln!(out, "\"/>")?;
    }
    if series.form == Form::Line {
        return Ok(());
    }
    for point in &series.points {
        let (x, y) = at(point);
        if let Some((low, high)) = point.interval {
            let (low, high) = (frame.y(low.max(0.0)), frame.y(high));
            let (left, right) = (x - 4.0, x + 4.0);
            writeln!(
                out,
                "<path stroke=\"{colour}\" d=\"M{x:.1} {low:.1}V{high:.1}\
                 M{left:.1} {low:.1}H{right:.1}M{left:.1} {high:.1}H{right:.1}\"/>"
            )?;
        }
        write_mark(out, series, (x, y))?;
    }
    Ok(())
}

/// The dashes of the line that joins the points; `None` if they are not joined.
fn joined(form: Form) -> Option<&'static str> {
    match form {
        Form::Ours | Form::Line => Some(""),
        Form::Published => Some(" stroke-dasharray=\"5 4\""),
        Form::OursApart | Form::PublishedApart => None,
    }
}

fn write_mark(out: &mut String, series: &Series, (x, y): (f64, f64)) -> fmt::Result {
    let colour = colour(series);
    match series.form {
        Form::Ours | Form::OursApart => {
            writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\" fill=\"{colour}\"/>")
        }
        Form::Published | Form::PublishedApart => writeln!(
            out,
            "<rect class=\"hollow\" x=\"{:.1}\" y=\"{:.1}\" width=\"7\" height=\"7\" \
             stroke=\"{colour}\" stroke-width=\"1.6\"/>",
            x - 3.5,
            y - 3.5
        ),
        Form::Line => Ok(()),
    }
}

/// An entry of the legend: which series, where.
struct Entry {
    series: usize,
    line: usize,
    x: f64,
}

/// Entries side by side, as many as fit on a line.
fn legend(figure: &Figure) -> Vec<Entry> {
    const KEY: f64 = 38.0;
    const LETTER: f64 = 6.6;
    let (mut entries, mut x, mut line) = (Vec::new(), 0.0, 0);
    for (series, one) in figure.series.iter().enumerate() {
        let wide = KEY + LETTER * one.name.chars().count() as f64 + 14.0;
        if x > 0.0 && x + wide > WIDTH - LEFT - RIGHT {
            (x, line) = (0.0, line + 1);
        }
        entries.push(Entry { series, line, x });
        x += wide;
    }
    entries
}

fn write_key(out: &mut String, series: &Series, (x, y): (f64, f64)) -> fmt::Result {
    let colour = colour(series);
    if let Some(dashes) = joined(series.form) {
        writeln!(
            out,
            "<path stroke=\"{colour}\" stroke-width=\"1.6\"{dashes} d=\"M{x:.1} {y:.1}h30\"/>"
        )?;
    }
    write_mark(out, series, (x + 15.0, y))?;
    let (x, y, name) = (x + 38.0, y + 4.0, escaped(&series.name));
    writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\">{name}</text>")
}

fn colour(series: &Series) -> &'static str {
    COLOURS[series.colour % COLOURS.len()]
}

/// Round values from zero up to `most`, and how they read.
fn ticks(most: f64) -> Vec<(f64, String)> {
    const ABOUT: f64 = 6.0;
    let mut step = 1.0;
    while step * ABOUT > most {
        step /= 10.0;
    }
    while step * ABOUT * 10.0 <= most {
        step *= 10.0;
    }
    // The first of 1, 2, 5, 10 with few enough ticks.
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| step * f * ABOUT >= most);
    step *= factor.unwrap_or(10.0);
    let digits = (0..6).find(|digits| {
        let shifted = step * [1.0, 1e1, 1e2, 1e3, 1e4, 1e5][*digits];
        (shifted - shifted.round()).abs() < 1e-6
    });
    let count = (most / step) as usize;
    (0..=count)
        .map(|index| {
            let value = index as f64 * step;
            (value, format!("{value:.*}", digits.unwrap_or(6)))
        })
        .collect()
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let point = |x, y| Point { x, y, interval: Some((y - 0.1, y + 0.1)) };
        let series = |name: &str, form| Series {
            name: name.to_owned(),
            colour: 0,
            form,
            points: vec![point(0.0, 0.5), point(1.0, 1.5)],
        };
        Figure {
            name: "F".into(),
            title: "a < b".into(),
            caption: "bars: 95 % interval".into(),
            x: Axis { label: "error rate".into(), places: vec!["64K".into(), "none".into()] },
            y: Axis { label: "goodput, Mbit/s".into(), places: Vec::new() },
            series: vec![series("snoop", Form::Ours), series("published", Form::Published)],
        }
    }

    #[test]
    fn a_figure_is_one_well_formed_document_with_both_forms() {
        let text = svg(&figure());
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        assert!(text.contains("a &lt; b") && !text.contains("a < b"));
        assert_eq!(text.matches("<circle").count(), 3, "two values and the legend");
        assert_eq!(text.matches("class=\"hollow\"").count(), 3);
        assert_eq!(text.matches("stroke-dasharray").count(), 2);
    }

    #[test]
    fn values_stand_where_the_axes_say() {
        let figure = figure();
        let frame = Frame::of(&figure);
        assert_eq!(frame.y(0.0), TOP + PLOT_HEIGHT);
        assert!((frame.y(1.6 * 1.04) - TOP).abs() < 1e-9, "the highest bar end fits");
        assert!(frame.x(0.0) > LEFT && frame.x(1.0) < WIDTH - RIGHT);
    }

    #[test]
    fn ticks_are_round() {
        let labels = |most| ticks(most).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(1.65), ["0.0", "0.5", "1.0", "1.5"]);
        assert_eq!(labels(0.9), ["0.0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(labels(210.0), ["0", "50", "100", "150", "200"]);
        assert_eq!(labels(1e7).len(), 6);
    }
}
