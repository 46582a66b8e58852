//! Plots of transfers as SVG files for a paper: one row for each scheme, one below the other, on
//! the same axes; light colours, told apart by shape and dash as well.
//!
//! A drawing has at most one mark for each few pixels and, of a line, at most the lowest and the
//! highest value for each pixel, so it stays small whatever it shows.

mod handoff;
mod layers;

use crate::html::escaped;
use crate::page::Panel;
use layers::{LANES, layers, nothing};
use sansio::{Duration, Instant};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{self, Write};
use trace::roaming::Roaming;
use trace::timeline::Timeline;

/// What is drawn against time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plot {
    /// Stream offsets of segments, losses, retransmissions and ACKs.
    Sequence,
    /// The sender's cwnd, ssthresh and bytes in flight.
    Windows,
    /// Packets that wait for the air at both ends of the radio.
    Queue,
    /// Bytes that the base station keeps.
    Cache,
    /// What the link lost, and when it was away.
    Link,
    /// How strong each cell is where the mobile host is.
    Signal,
    /// The messages of the first handoff.
    Handoff,
}

impl Plot {
    /// All of them.
    pub const ALL: [Plot; 7] = [
        Plot::Sequence,
        Plot::Windows,
        Plot::Queue,
        Plot::Cache,
        Plot::Link,
        Plot::Signal,
        Plot::Handoff,
    ];

    /// Its name, for options and files.
    pub fn name(self) -> &'static str {
        match self {
            Plot::Sequence => "sequence",
            Plot::Windows => "windows",
            Plot::Queue => "queue",
            Plot::Cache => "cache",
            Plot::Link => "link",
            Plot::Signal => "signal",
            Plot::Handoff => "handoff",
        }
    }

    fn axis(self) -> &'static str {
        match self {
            Plot::Sequence => "stream offset, kB",
            Plot::Windows => "window, kB",
            Plot::Queue => "queue, packets",
            Plot::Cache => "cache, kB",
            Plot::Link => "lost on the link",
            Plot::Signal => "signal, dB",
            Plot::Handoff => "machines",
        }
    }

    fn height(self) -> f64 {
        match self {
            Plot::Sequence => 240.0,
            Plot::Windows | Plot::Queue | Plot::Cache | Plot::Signal => 140.0,
            Plot::Link | Plot::Handoff => 90.0,
        }
    }
}

/// Writes a drawing as one SVG file.
///
/// # Errors
/// When `out` does.
pub fn write(plot: Plot, title: &str, panels: &[Panel<'_>], mut out: impl Write) -> io::Result<()> {
    let text = match plot {
        Plot::Handoff => handoff::drawing(title, panels),
        _ => drawing(plot, title, panels),
    };
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn drawing(plot: Plot, title: &str, panels: &[Panel<'_>]) -> String {
    let rows: Vec<Vec<Layer>> = panels.iter().map(|panel| layers(plot, panel.timeline)).collect();
    let ends = panels.iter().map(|panel| last_second(panel.timeline));
    let until = ends.fold(1e-3, f64::max) * 1.01;
    let top = match plot {
        Plot::Link => LANES.len() as f64 - 0.4,
        _ => rows.iter().flatten().map(Layer::top).fold(1.0, f64::max) * 1.05,
    };
    let bottom = if plot == Plot::Link { -0.6 } else { 0.0 };
    let row = plot.height() + GAP;
    let height = HEAD + row * panels.len() as f64 + FOOT;
    let mut text = opening(height, title);
    for (index, (panel, layers)) in panels.iter().zip(&rows).enumerate() {
        let place = Plane {
            top: HEAD + row * index as f64 + GAP / 2.0,
            height: plot.height(),
            x: (0.0, until),
            y: (bottom, top),
            ended: last_second(panel.timeline),
        };
        let is_last = index + 1 == panels.len();
        axes(&mut text, &place, plot, is_last);
        let name_at = (LEFT + 4.0, place.top - 5.0, "start");
        label(&mut text, name_at, &panel.name);
        let _ = writeln!(text, "<svg {} overflow=\"hidden\">", place.viewport());
        spans(&mut text, &place, panel.timeline);
        if layers.iter().all(|layer| layer.points.is_empty()) {
            let middle = (LEFT + place.width() / 2.0, place.top + place.height / 2.0, "middle");
            label(&mut text, middle, nothing(plot, panel.timeline));
        }
        layers.iter().for_each(|layer| layer.draw(&mut text, &place));
        text.push_str("</svg>\n");
    }
    legend(&mut text, &rows, height - 12.0);
    text.push_str("</svg>\n");
    text
}

/// The beginning of a file, and what it shows.
fn opening(height: f64, title: &str) -> String {
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    label(&mut text, (8.0, 16.0, "start"), title);
    text
}

/// In pixels.
const WIDTH: f64 = 760.0;
const LEFT: f64 = 68.0;
const RIGHT: f64 = 14.0;
const HEAD: f64 = 22.0;
const GAP: f64 = 30.0;
const FOOT: f64 = 62.0;

/// Where a row lies, and which values it spans.
struct Plane {
    top: f64,
    height: f64,
    x: (f64, f64),
    y: (f64, f64),
    /// When the transfer had ended; lines do not go on.
    ended: f64,
}

impl Plane {
    fn width(&self) -> f64 {
        WIDTH - LEFT - RIGHT
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let share = |value: f64, (low, high): (f64, f64)| (value - low) / (high - low);
        let across = LEFT + share(x, self.x) * self.width();
        (across, self.top + self.height * (1.0 - share(y, self.y)))
    }

    /// What cuts off whatever leaves the row, in the coordinates of the whole.
    fn viewport(&self) -> String {
        let (top, width, height) = (self.top, self.width(), self.height);
        format!(
            "x=\"{LEFT}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"{LEFT} {top} {width} {height}\""
        )
    }
}

/// One kind of marks or one line.
struct Layer {
    name: Cow<'static, str>,
    colour: &'static str,
    look: Look,
    /// Seconds, and what the axis counts; NaN ends a line.
    points: Vec<(f64, f64)>,
    /// False for what may be far above all else.
    scales: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    /// A step line with this dash.
    Line(&'static str),
    Dot,
    Cross,
    Triangle,
    Diamond,
    Ring,
    /// An upright bar of a lane.
    Tick,
}

impl Layer {
    fn new(
        name: impl Into<Cow<'static, str>>,
        colour: &'static str,
        look: Look,
        points: Vec<(f64, f64)>,
    ) -> Self {
        Layer { name: name.into(), colour, look, points, scales: true }
    }

    fn top(&self) -> f64 {
        if !self.scales {
            return 0.0;
        }
        self.points.iter().map(|point| point.1).fold(0.0, f64::max)
    }

    fn draw(&self, text: &mut String, plane: &Plane) {
        let path = match self.look {
            Look::Line(_) => self.steps(plane),
            look => self.marks(look, plane),
        };
        if !path.is_empty() {
            let _ = writeln!(text, "<path d=\"{path}\" {}/>", self.paint());
        }
    }

    fn paint(&self) -> String {
        let colour = self.colour;
        match self.look {
            Look::Line(dash) => {
                format!(
                    "fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\" \
                     stroke-dasharray=\"{dash}\""
                )
            }
            Look::Cross | Look::Ring => {
                format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.3\"")
            }
            _ => format!("fill=\"{colour}\""),
        }
    }

    /// From value to value, at most two places for each pixel.
    fn steps(&self, plane: &Plane) -> String {
        let mut path = String::new();
        let mut column: Option<(f64, f64, f64, f64)> = None;
        for point in &self.points {
            let (x, y) = plane.place(*point);
            if y.is_nan() {
                leave(&mut path, column.take());
                continue;
            }
            match &mut column {
                Some((at, low, high, last)) if (x - *at).abs() < 1.0 => {
                    (*low, *high, *last) = (low.min(y), high.max(y), y);
                }
                _ => {
                    leave(&mut path, column);
                    let verb = if column.is_none() { 'M' } else { 'H' };
                    let _ = match verb {
                        'M' => write!(path, "M{x:.1} {y:.1}"),
                        _ => write!(path, "H{x:.1}V{y:.1}"),
                    };
                    column = Some((x, y, y, y));
                }
            }
        }
        leave(&mut path, column);
        if column.is_some() {
            // What is in force stays so until the end.
            let _ = write!(path, "H{:.1}", plane.place((plane.ended, 0.0)).0);
        }
        path
    }

    fn marks(&self, look: Look, plane: &Plane) -> String {
        let mut path = String::new();
        let mut taken = BTreeSet::new();
        let lane = 0.36 * plane.height / LANES.len() as f64;
        for point in &self.points {
            let (x, y) = plane.place(*point);
            let cell = if look == Look::Dot { 1.0 } else { 2.5 };
            if taken.insert(((x / cell) as i64, (y / cell) as i64)) {
                path.push_str(&mark(look, (x, y), lane));
            }
        }
        path
    }
}

fn leave(path: &mut String, column: Option<(f64, f64, f64, f64)>) {
    if let Some((_, low, high, last)) = column.filter(|(_, low, high, _)| high - low > 0.1) {
        let _ = write!(path, "V{low:.1}V{high:.1}V{last:.1}");
    }
}

fn mark(look: Look, (x, y): (f64, f64), lane: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{:.1} {:.1}", x + dx, y + dy);
    match look {
        Look::Line(_) => String::new(),
        Look::Dot => format!("M{}h1.6v1.6h-1.6Z", at(-0.8, -0.8)),
        Look::Cross => format!("M{}l6 6m0 -6l-6 6", at(-3.0, -3.0)),
        Look::Triangle => format!("M{}l3.4 6h-6.8Z", at(0.0, -3.6)),
        Look::Diamond => format!("M{}l3.4 3.4l-3.4 3.4l-3.4 -3.4Z", at(0.0, -3.4)),
        Look::Ring => format!("M{}a3 3 0 1 0 6 0a3 3 0 1 0 -6 0", at(-3.0, 0.0)),
        Look::Tick => format!("M{}h1.4v{:.1}h-1.4Z", at(-0.7, -lane), 2.0 * lane),
    }
}

fn last_second(timeline: &Timeline) -> f64 {
    let points =
        [&timeline.data, &timeline.acks, &timeline.local, &timeline.lost, &timeline.delivered];
    let last = points.iter().filter_map(|points| points.last()).map(|point| point.at);
    last.max().map_or(0.0, sansio::Instant::as_secs_f64)
}

/// Outages, when the air was bad or no cell reached the mobile host, and its handoffs.
fn spans(text: &mut String, plane: &Plane, timeline: &Timeline) {
    let end = Instant::ZERO + Duration::from_secs_f64(plane.ended);
    let roaming = timeline.roaming.as_deref();
    let gaps = roaming.map(|roaming| roaming.gaps(end)).unwrap_or_default();
    let gaps = gaps.iter().map(|(from, until)| (*from, Some(*until), "#5b6470"));
    let fades = timeline.fades.iter().map(|(from, until)| (*from, Some(*until), "#c98500"));
    let outages = timeline.outages.iter().map(|(from, until)| (*from, *until, "#5b6470"));
    for (from, until, colour) in fades.chain(outages).chain(gaps) {
        let (left, _) = plane.place((from.as_secs_f64(), 0.0));
        let end = until.map_or(plane.x.1, sansio::Instant::as_secs_f64).min(plane.x.1);
        let width = (plane.place((end, 0.0)).0 - left).max(1.0);
        let (top, height) = (plane.top, plane.height);
        let place = format!("x=\"{left:.1}\" y=\"{top}\" width=\"{width:.1}\" height=\"{height}\"");
        let _ = writeln!(text, "<rect {place} fill=\"{colour}\" fill-opacity=\"0.15\"/>");
    }
    for handoff in roaming.map(Roaming::handoffs).unwrap_or_default() {
        upright(text, plane, handoff.begin.as_secs_f64());
    }
}

/// A dashed line from the top to the bottom.
fn upright(text: &mut String, plane: &Plane, second: f64) {
    let (x, top, bottom) = (plane.place((second, 0.0)).0, plane.top, plane.top + plane.height);
    let look = "stroke=\"#5b6470\" stroke-dasharray=\"3 3\" fill=\"none\"";
    let _ = writeln!(text, "<path d=\"M{x:.1} {top:.1}V{bottom:.1}\" {look}/>");
}

fn axes(text: &mut String, plane: &Plane, plot: Plot, is_last: bool) {
    let (right, bottom) = (WIDTH - RIGHT, plane.top + plane.height);
    let mut rule = |from: (f64, f64), to: (f64, f64)| {
        let ((x0, y0), (x1, y1)) = (from, to);
        let path = format!("M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}");
        let _ = writeln!(text, "<path d=\"{path}\" stroke=\"#e0e4e9\" fill=\"none\"/>");
    };
    let level: Vec<(f64, String)> = match plot {
        Plot::Link => {
            LANES.iter().enumerate().map(|(i, name)| (i as f64, (*name).into())).collect()
        }
        _ => ticks(plane.y, plane.height / 28.0),
    };
    let times = ticks(plane.x, plane.width() / 70.0);
    for (value, _) in &level {
        let y = plane.place((0.0, *value)).1;
        rule((LEFT, y), (right, y));
    }
    for (value, _) in &times {
        let x = plane.place((*value, 0.0)).0;
        rule((x, plane.top), (x, bottom));
    }
    for (value, name) in &level {
        label(text, (LEFT - 5.0, plane.place((0.0, *value)).1 + 4.0, "end"), name);
    }
    let middle = plane.top + plane.height / 2.0;
    if plot != Plot::Link {
        let turned = format!("rotate(-90 12 {middle})");
        let name = plot.axis();
        let _ = writeln!(
            text,
            "<text x=\"12\" y=\"{middle}\" text-anchor=\"middle\" \
             transform=\"{turned}\">{name}</text>"
        );
    }
    if is_last {
        for (value, name) in &times {
            label(text, (plane.place((*value, 0.0)).0, bottom + 14.0, "middle"), name);
        }
        label(text, (LEFT + plane.width() / 2.0, bottom + 30.0, "middle"), "time, s");
    }
}

/// Round numbers within a span, at most so many.
fn ticks((low, high): (f64, f64), most: f64) -> Vec<(f64, String)> {
    let least = (high - low) / most.max(1.0);
    let power = libm::floor(libm::log10(least));
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * libm::pow(10.0, power));
    let step = steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(steps[3]);
    let digits = (-libm::floor(libm::log10(step) + 1e-9)).max(0.0) as usize;
    let first = libm::ceil(low / step) as i64;
    let values = (first..).map(|i| i as f64 * step).take_while(|value| *value <= high);
    values.map(|value| (value, format!("{value:.digits$}"))).collect()
}

fn legend(text: &mut String, rows: &[Vec<Layer>], y: f64) {
    let mut x = LEFT;
    for (index, layer) in rows.first().into_iter().flatten().enumerate() {
        if rows.iter().filter_map(|row| row.get(index)).all(|layer| layer.points.is_empty()) {
            continue;
        }
        let path = match layer.look {
            Look::Line(_) => format!("M{x} {}h20", y - 4.0),
            look => mark(look, (x + 10.0, y - 4.0), 5.0),
        };
        let _ = writeln!(text, "<path d=\"{path}\" {}/>", layer.paint());
        label(text, (x + 25.0, y, "start"), &layer.name);
        x += 42.0 + 6.4 * layer.name.len() as f64;
    }
}

fn label(text: &mut String, (x, y, anchor): (f64, f64, &str), words: &str) {
    let words = escaped(words);
    let place = format!("x=\"{x:.1}\" y=\"{y:.1}\"");
    let _ =
        writeln!(text, "<text {place} text-anchor=\"{anchor}\" fill=\"#1c2026\">{words}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_no_more_than_asked_for() {
        let names = |span, most| -> Vec<String> {
            ticks(span, most).into_iter().map(|(_, name)| name).collect()
        };
        assert_eq!(names((0.0, 10.0), 5.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(names((0.0, 0.5), 5.0), ["0.0", "0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(names((3.2, 4.9), 4.0), ["3.5", "4.0", "4.5"]);
    }
}
