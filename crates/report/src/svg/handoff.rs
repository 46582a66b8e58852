//! The first handoff of each transfer as a ladder: machines are rails, messages go from one to
//! another. They are numbered; what they say stands below.
//!
//! ```text
//!   home agent   ─────────────┬─3──▶
//!   cell 0       ──▒▒▒▒▒──────┼──────   ▒ data for the mobile host
//!   cell 1       ──────┬─2────┘▒▒▒▒▒
//!   mobile host  ──◆───1────◆───────   ◆ how far its handoff has come
//! ```

use super::{FOOT, GAP, HEAD, LEFT, Plane, RIGHT, WIDTH, label, opening, ticks, upright};
use crate::html::escaped;
use crate::page::Panel;
use sansio::{Duration, Instant};
use std::fmt::Write as _;
use trace::NodeId;
use trace::roaming::{Handoff, Message, Roaming, Via};

/// From rail to rail, and from line to line of the list, in pixels.
const RAIL: f64 = 34.0;
const LINE: f64 = 14.0;
const COLUMNS: usize = 3;
/// What an entry of the list has room for, in characters.
const WORDS: usize = 40;
/// Messages that are drawn; of more nobody could read the numbers.
const MESSAGES_MAX: usize = 48;
/// Looked at before the crossing and after the last stage, at least.
const MARGIN: Duration = Duration::from_millis(20);
/// The key, and the lines that it takes.
const KEY: [&str; 2] = [
    "Bars: data for the mobile host, blue from the home agent, orange from another base station.",
    "Diamonds: how far its handoff has come. Crosses: lost. Times count from the crossing.",
];

/// All of them, one below the other.
pub(super) fn drawing(title: &str, panels: &[Panel<'_>]) -> String {
    let ladders: Vec<Option<Ladder<'_>>> =
        panels.iter().map(|panel| Ladder::of(panel.timeline.roaming.as_deref()?)).collect();
    let heights = ladders.iter().map(|ladder| ladder.as_ref().map_or(RAIL, Ladder::height));
    let below = GAP + LINE;
    let height = HEAD + heights.map(|height| height + below).sum::<f64>() + FOOT;
    let mut text = opening(height, title);
    let mut top = HEAD + GAP / 2.0;
    for (panel, ladder) in panels.iter().zip(&ladders) {
        let place = (LEFT + 4.0, top - 5.0, "start");
        match ladder {
            Some(ladder) => {
                label(&mut text, place, &format!("{}: {}", panel.name, ladder.title()));
                ladder.draw(&mut text, top);
                top += ladder.height() + below;
            }
            None => {
                label(&mut text, place, &format!("{}: no handoff", panel.name));
                top += RAIL + below;
            }
        }
    }
    for (line, words) in KEY.iter().enumerate() {
        let y = height - LINE * (KEY.len() - line) as f64;
        label(&mut text, (LEFT, y, "start"), words);
    }
    text.push_str("</svg>\n");
    text
}

/// A handoff of which something can be drawn.
struct Ladder<'a> {
    roaming: &'a Roaming,
    handoff: Handoff,
    /// Cells with a rail, ascending.
    cells: Vec<u16>,
    /// What is shown, in the order of time.
    messages: Vec<&'a Message>,
    from: Instant,
    until: Instant,
}

impl<'a> Ladder<'a> {
    fn of(roaming: &'a Roaming) -> Option<Ladder<'a>> {
        let went = |handoff: &Handoff| handoff.from.is_some() && handoff.to.is_some();
        let handoff = roaming.handoffs().into_iter().find(went)?;
        let length = handoff.until.since(handoff.begin);
        let margin = (length / 4).max(MARGIN);
        let about = handoff.begin - margin..=handoff.until + margin;
        let mut messages: Vec<&Message> = roaming.messages.iter().collect();
        messages.retain(|message| about.contains(&message.sent_at));
        messages.sort_by_key(|message| message.sent_at);
        messages.truncate(MESSAGES_MAX);
        // Long before the first of them a host may hear of no other cell.
        let sent = messages.iter().map(|message| message.sent_at);
        let ended = messages.iter().filter_map(|message| message.ended_at);
        let first = sent.clone().min().unwrap_or(handoff.begin);
        let last = sent.chain(ended).max().unwrap_or(handoff.until).max(handoff.until);
        let edge = (last.since(first) / 10).max(MARGIN / 10);
        let (from, until) = (first - edge, last + edge);
        let ends = messages.iter().flat_map(|message| [message.from, message.to]);
        let mut cells: Vec<u16> = ends.filter_map(|node| roaming.cell_of(node)).collect();
        cells.extend(handoff.from.into_iter().chain(handoff.to));
        cells.sort_unstable();
        cells.dedup();
        Some(Ladder { roaming, handoff, cells, messages, from, until })
    }

    fn title(&self) -> String {
        let cell = |cell: Option<u16>| cell.map_or_else(|| "none".into(), |cell| cell.to_string());
        let at = self.handoff.begin.as_secs_f64();
        format!("cell {} to {} at {at:.3} s", cell(self.handoff.from), cell(self.handoff.to))
    }

    /// Home agent, cells, mobile host.
    fn rails(&self) -> usize {
        self.cells.len() + 2
    }

    fn rows(&self) -> usize {
        (self.messages.len() + self.stages().count()).div_ceil(COLUMNS)
    }

    fn stages(&self) -> impl Iterator<Item = &'a trace::roaming::Stage> {
        let (from, until) = (self.from, self.until);
        self.roaming.stages.iter().filter(move |stage| stage.at >= from && stage.at <= until)
    }

    fn rails_height(&self) -> f64 {
        RAIL * (self.rails() - 1) as f64 + RAIL / 2.0
    }

    fn height(&self) -> f64 {
        self.rails_height() + LINE * (self.rows() + 3) as f64
    }

    /// Seconds after the crossing.
    fn second(&self, at: Instant) -> f64 {
        at.as_secs_f64() - self.handoff.begin.as_secs_f64()
    }

    /// Rails count from below.
    fn rail(&self, node: NodeId) -> Option<f64> {
        let setting = self.roaming.setting();
        if node == setting.router {
            return Some((self.rails() - 1) as f64);
        }
        if setting.hosts.first() == Some(&node) {
            return Some(0.0);
        }
        self.rail_of(self.roaming.cell_of(node)?)
    }

    fn rail_of(&self, cell: u16) -> Option<f64> {
        let place = self.cells.binary_search(&cell).ok()?;
        Some((self.cells.len() - place) as f64)
    }

    fn draw(&self, text: &mut String, top: f64) {
        let plane = Plane {
            top,
            height: self.rails_height(),
            x: (self.second(self.from), self.second(self.until)),
            y: (-0.25, (self.rails() - 1) as f64 + 0.25),
            ended: 0.0,
        };
        self.draw_rails(text, &plane);
        self.draw_data(text, &plane);
        if plane.x.0 < 0.0 {
            upright(text, &plane, 0.0);
        }
        for (number, message) in self.messages.iter().enumerate() {
            self.draw_message(text, &plane, (number + 1, message));
        }
        for stage in self.stages() {
            let at = plane.place((self.second(stage.at), 0.0));
            let path = super::mark(super::Look::Diamond, at, 0.0);
            let _ = writeln!(text, "<path d=\"{path}\" fill=\"#008a63\"/>");
        }
        self.list(text, top + plane.height + 3.0 * LINE);
    }

    fn draw_rails(&self, text: &mut String, plane: &Plane) {
        let cells = self.cells.iter().rev().map(|cell| format!("cell {cell}"));
        let names = ["mobile host".to_owned()].into_iter().chain(cells);
        let names = names.chain(["home agent".to_owned()]);
        for (rail, name) in names.enumerate() {
            let y = plane.place((0.0, rail as f64)).1;
            let right = WIDTH - RIGHT;
            let path = format!("M{LEFT} {y:.1}H{right}");
            let _ = writeln!(text, "<path d=\"{path}\" stroke=\"#c3cad2\" fill=\"none\"/>");
            label(text, (LEFT - 3.0, y + 4.0, "end"), &name);
        }
        let bottom = plane.top + plane.height;
        for (second, name) in ticks(plane.x, plane.width() / 70.0) {
            let x = plane.place((second, 0.0)).0;
            let path = format!("M{x:.1} {bottom:.1}v4");
            let _ = writeln!(text, "<path d=\"{path}\" stroke=\"#5b6470\" fill=\"none\"/>");
            label(text, (x, bottom + LINE, "middle"), &name);
        }
        label(text, (WIDTH - RIGHT, bottom + 2.0 * LINE, "end"), "time after the crossing, s");
    }

    /// Which way data for the mobile host came.
    fn draw_data(&self, text: &mut String, plane: &Plane) {
        for way in &self.roaming.ways {
            let Some(rail) = self.rail_of(way.cell) else { continue };
            let (from, until) = (way.from.max(self.from), way.until.min(self.until));
            if from > until {
                continue;
            }
            let colour = match way.via {
                Via::HomeAgent => "#0072b2",
                Via::BaseStation => "#c98500",
            };
            let (left, y) = plane.place((self.second(from), rail));
            let width = (plane.place((self.second(until), rail)).0 - left).max(1.5);
            let place = format!("x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\"", y - 4.0);
            let look = format!("height=\"8\" fill=\"{colour}\" fill-opacity=\"0.35\"");
            let _ = writeln!(text, "<rect {place} {look}/>");
        }
    }

    fn draw_message(&self, text: &mut String, plane: &Plane, (number, message): (usize, &Message)) {
        let Some((from, to)) = self.rail(message.from).zip(self.rail(message.to)) else { return };
        let ended_at = message.ended_at.unwrap_or(self.until).min(self.until);
        let (x0, y0) = plane.place((self.second(message.sent_at), from));
        let (x1, y1) = plane.place((self.second(ended_at), to));
        let is_lost = message.lost.is_some();
        // What is lost does not get there.
        let share = if is_lost { 0.7 } else { 1.0 };
        let (x1, y1) = (x0 + (x1 - x0) * share, y0 + (y1 - y0) * share);
        let colour = if is_lost { "#cc3311" } else { "#3b4654" };
        let end = match is_lost {
            true => format!("M{:.1} {:.1}l6 6m0 -6l-6 6", x1 - 3.0, y1 - 3.0),
            false => head((x0, y0), (x1, y1)),
        };
        let path = format!("M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}{end}");
        let _ = writeln!(text, "<path d=\"{path}\" stroke=\"{colour}\" fill=\"none\"/>");
        // Messages that follow each other at once have their numbers at different heights.
        let at = [0.3, 0.45, 0.6][number % 3];
        let (x, y) = (x0 + (x1 - x0) * at + 2.0, y0 + (y1 - y0) * at + 3.0);
        let look = "font-size=\"9\" stroke=\"#ffffff\" stroke-width=\"2\" paint-order=\"stroke\"";
        let _ = writeln!(
            text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" {look} fill=\"{colour}\">{number}</text>"
        );
    }

    /// What the numbers and the diamonds mean, in the order of time, column by column.
    fn list(&self, text: &mut String, top: f64) {
        let numbered = self.messages.iter().zip(1..).map(|(message, number): (_, usize)| {
            let what = &self.roaming.labels[message.label as usize];
            let lost = message.lost.map(|cause| format!(", lost: {cause}")).unwrap_or_default();
            (message.sent_at, format!("{number}"), format!("{what}{lost}"))
        });
        let stages =
            self.stages().map(|stage| (stage.at, "◆".to_owned(), stage.stage.name().into()));
        let mut entries: Vec<(Instant, String, String)> = numbered.chain(stages).collect();
        entries.sort_by_key(|(at, ..)| *at);
        let width = (WIDTH - LEFT - RIGHT) / COLUMNS as f64;
        for (place, (at, sign, what)) in entries.iter().enumerate() {
            let (column, row) = (place / self.rows(), place % self.rows());
            let x = LEFT + width * column as f64;
            let y = top + LINE * (row as f64 + 0.5);
            let words: String = format!("{sign}  {:.3} s  {what}", self.second(*at));
            let words = escaped(&shortened(&words));
            let look = "font-size=\"10\" fill=\"#1c2026\"";
            let _ = writeln!(text, "<text x=\"{x:.1}\" y=\"{y:.1}\" {look}>{words}</text>");
        }
    }
}

/// Two strokes at the end of a line.
fn head((x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> String {
    let length = libm::hypot(x1 - x0, y1 - y0).max(1e-6);
    let (dx, dy) = ((x1 - x0) / length * 5.0, (y1 - y0) / length * 5.0);
    let back =
        |side: f64| format!("{:.1} {:.1}", x1 - dx - side * dy / 2.0, y1 - dy + side * dx / 2.0);
    format!("M{}L{x1:.1} {y1:.1}L{}", back(1.0), back(-1.0))
}

fn shortened(words: &str) -> String {
    if words.chars().count() <= WORDS {
        return words.to_owned();
    }
    let kept: String = words.chars().take(WORDS - 1).collect();
    format!("{kept}…")
}
