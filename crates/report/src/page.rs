//! One HTML file that shows results: text, tables, plots. It opens from the disk, without network.
//!
//! Text and tables are written as plain HTML, readable without a script. Plots travel as data
//! (columns of numbers in base64, little-endian) and are drawn by the script inside the page,
//! whose source is in `web/`.

use crate::blob::Blobs;
use crate::table::Table;
use crate::{html, plot};
use std::io::{self, Write};
use trace::timeline::Timeline;

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page<'a> {
    /// Title, for the window and on top.
    pub title: String,
    /// The command that makes this page again.
    pub command: String,
    /// The version of the program that wrote it.
    pub version: String,
    /// What it shows, from top to bottom.
    pub sections: Vec<Section<'a>>,
}

/// One part of a page.
#[derive(Clone, Debug)]
pub enum Section<'a> {
    /// Words.
    Text(Text),
    /// A table.
    Table(Table),
    /// A plot of values against a parameter.
    Lines(Lines),
    /// What happened on the wire, one panel for each scheme.
    TimeSequence(TimeSequence<'a>),
}

/// Paragraphs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// What they are.
    pub tone: Tone,
    /// Heading; empty for none.
    pub title: String,
    /// Plain text, one entry for each paragraph.
    pub paragraphs: Vec<String>,
}

/// What a text is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Explains.
    #[default]
    Note,
    /// Says what to do.
    Advice,
    /// Says what is wrong.
    Warning,
}

/// Values of several series against one parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Title.
    pub title: String,
    /// The parameter.
    pub x: Axis,
    /// The value.
    pub y: Axis,
    /// What the intervals around points are: "95 % interval".
    pub interval: String,
    /// The series, in the order of the legend.
    pub series: Vec<Series>,
}

/// What an axis measures.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity: "goodput".
    pub label: String,
    /// Unit: "Mbit/s"; empty for none.
    pub unit: String,
    /// How values are placed.
    pub scale: Scale,
}

/// How values are placed on an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// Evenly; as an upright axis, from zero.
    #[default]
    Linear,
    /// By their logarithm; values up to zero are not shown.
    Log,
    /// Named places side by side; a value is the index of its name. For error rates that include
    /// "none". Only for the level axis; an upright one is linear.
    Categories(Vec<String>),
}

/// One line of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// The scheme it belongs to. All that belongs to one scheme has one colour on the whole page.
    pub scheme: String,
    /// What it stands for.
    pub kind: SeriesKind,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// What a series stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SeriesKind {
    /// Something measured: marks, joined.
    #[default]
    Measured,
    /// Something to compare with, such as a physical ceiling: a grey dashed line.
    Reference,
}

/// One value of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place on the level axis.
    pub x: f64,
    /// Value.
    pub y: f64,
    /// The interval around it ([`Lines::interval`]), lower and upper end, if it is known.
    pub interval: Option<(f64, f64)>,
}

/// Time-sequence graphs of the same transfer under several schemes. Time, zoom and scales are
/// common to all panels.
#[derive(Clone, Debug)]
pub struct TimeSequence<'a> {
    /// Title.
    pub title: String,
    /// Met by the same channel, one for each scheme, or for each scheme in each world.
    pub panels: Vec<Panel<'a>>,
}

/// What one scheme did.
#[derive(Clone, Debug)]
pub struct Panel<'a> {
    /// The scheme; it decides the colour.
    pub scheme: String,
    /// Heads the panel: the scheme, and what else tells panels of one scheme apart.
    pub name: String,
    /// What happened.
    pub timeline: &'a Timeline,
}

/// Writes a page as one HTML file.
///
/// # Errors
/// When `out` does.
pub fn write(page: &Page<'_>, mut out: impl Write) -> io::Result<()> {
    let mut blobs = Blobs::default();
    let index = plot::index(page, &mut blobs);
    let [before_title, before_content, before_data, rest] = template();
    out.write_all(before_title.as_bytes())?;
    out.write_all(html::escaped(&page.title).as_bytes())?;
    out.write_all(before_content.as_bytes())?;
    out.write_all(html::content(page).as_bytes())?;
    out.write_all(before_data.as_bytes())?;
    writeln!(out, "<script type=\"application/json\" id=\"plots\">{index}</script>")?;
    blobs.write(&mut out)?;
    out.write_all(rest.as_bytes())?;
    out.flush()
}

/// The page around the content, built from `web/`; cut where title, content and data go.
fn template() -> [&'static str; 4] {
    const TEMPLATE: &str = include_str!("../assets/report-template.html");
    let cut = |text: &'static str, mark| {
        text.split_once(mark).expect("the template has each of its marks")
    };
    let (before_title, rest) = cut(TEMPLATE, "{{title}}");
    let (before_content, rest) = cut(rest, "{{content}}");
    let (before_data, rest) = cut(rest, "{{data}}");
    [before_title, before_content, before_data, rest]
}
