//! A table of results: what it holds, which values stand out, and its form in a terminal.
//!
//! The same value goes into the page ([`crate::page::Section::Table`]). A table too wide for the
//! terminal is cut into blocks that repeat the columns which name the rows: no number is ever
//! wrapped, and nothing is left out.

use comfy_table::{Attribute, CellAlignment, Color, LineStyle, TableStyle};

/// Rows of values under named columns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What the table shows, one sentence.
    pub caption: String,
    /// The columns, those that name a row first.
    pub columns: Vec<Column>,
    /// The rows, in the order shown. Missing cells are empty.
    pub rows: Vec<Row>,
}

/// A column's head and how its values are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Name: "goodput".
    pub name: String,
    /// Unit: "Mbit/s"; empty for a name or a count.
    pub unit: String,
    /// What the value means, one sentence; shown on the page only.
    pub explanation: String,
    /// Names the row, or holds a value.
    pub kind: Kind,
}

/// What a column is for. It decides the alignment, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Names the row; on the left, repeated where a table is cut.
    #[default]
    Name,
    /// A value, aligned to the right; none is better than another.
    Value,
    /// A value, aligned to the right; in each group the highest is best.
    HighestIsBest,
    /// A value, aligned to the right; in each group the lowest is best.
    LowestIsBest,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Neighbours with the same number stand together: rows of the same channel and sender, say. A
    /// gap parts the groups.
    pub group: u32,
    /// Within a group, rows of the same class are compared with each other: a prediction with
    /// predictions, a measurement with measurements.
    pub class: u32,
    /// One cell for each column.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// As shown, without the unit.
    pub text: String,
    /// The number behind it, for comparison; `None` for a name, or if there is no value.
    pub value: Option<f64>,
    /// Stands out or back, whatever its value.
    pub emphasis: Emphasis,
}

/// How a cell is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Emphasis {
    /// Like the others.
    #[default]
    None,
    /// The best of its group. [`Table::emphasis`] finds it where the column says what is best.
    Best,
    /// Something is wrong here: a failed check.
    Warning,
    /// Of less interest: no value, not comparable.
    Muted,
}

/// Whether escape codes may be used. The caller knows: `NO_COLOR`, a pipe, a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Styling {
    /// Text only.
    Plain,
    /// ANSI escape codes for what stands out.
    Ansi,
}

impl Column {
    /// A column that names rows.
    pub fn name(name: &str) -> Self {
        Column { name: name.to_owned(), ..Column::default() }
    }

    /// A column of values in `unit` (empty for a count).
    pub fn value(name: &str, unit: &str, kind: Kind) -> Self {
        Column { name: name.to_owned(), unit: unit.to_owned(), explanation: String::new(), kind }
    }

    /// The same column with its meaning.
    pub fn explained(mut self, explanation: &str) -> Self {
        self.explanation = explanation.to_owned();
        self
    }
}

impl Cell {
    /// A name or a remark.
    pub fn text(text: impl Into<String>) -> Self {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// A number and how it reads.
    pub fn number(value: f64, text: impl Into<String>) -> Self {
        Cell { text: text.into(), value: Some(value), emphasis: Emphasis::None }
    }

    /// No value: a dash.
    pub fn none() -> Self {
        Cell { text: "-".to_owned(), value: None, emphasis: Emphasis::Muted }
    }

    /// The same cell, shown in another way.
    pub fn with(mut self, emphasis: Emphasis) -> Self {
        self.emphasis = emphasis;
        self
    }
}

impl Table {
    /// For a file, a pipe or a snapshot: every column side by side, no escape codes.
    pub fn to_plain(&self) -> String {
        self.render(None, Styling::Plain)
    }

    /// For a terminal of `width` columns, or as wide as it comes. Ends with a line feed, if there
    /// are any columns.
    pub fn render(&self, width: Option<u16>, styling: Styling) -> String {
        let emphasis = self.emphasis();
        let mut text = String::new();
        for block in self.blocks(width) {
            if !text.is_empty() {
                text.push('\n');
            }
            let drawn = self.draw(&block, &emphasis, styling);
            for line in drawn.lines() {
                text.push_str(line.trim_end());
                text.push('\n');
            }
        }
        text
    }

    /// How each cell is shown, row by row: what the cell says itself, or best of its group and
    /// class. All cells within half a percent of the best one are best; where all are, none is.
    pub fn emphasis(&self) -> Vec<Vec<Emphasis>> {
        let shown = |row: &Row| row.cells.iter().map(|cell| cell.emphasis).collect();
        let mut emphasis: Vec<Vec<Emphasis>> = self.rows.iter().map(shown).collect();
        let mut start = 0;
        for group in self.rows.chunk_by(|a, b| a.group == b.group) {
            for (column, best) in self.columns.iter().enumerate().filter_map(better) {
                for (row, shown) in group.iter().zip(&mut emphasis[start..]) {
                    let rivals = group.iter().filter(|rival| rival.class == row.class);
                    let Some(best) = best_value(rivals, column, best) else { continue };
                    let value = row.cells.get(column).and_then(|cell| cell.value);
                    if value.is_some_and(|value| is_as_good(value, best))
                        && shown[column] == Emphasis::None
                    {
                        shown[column] = Emphasis::Best;
                    }
                }
            }
            start += group.len();
        }
        emphasis
    }

    /// The columns of each block: those that name rows, then as many as fit.
    fn blocks(&self, width: Option<u16>) -> Vec<Vec<usize>> {
        let all = 0..self.columns.len();
        let Some(width) = width else {
            return if all.is_empty() { Vec::new() } else { vec![all.collect()] };
        };
        let widths = self.build(&all.clone().collect::<Vec<_>>(), &[], Styling::Plain);
        let widths = widths.column_max_content_widths();
        let wide = |column: &usize| usize::from(widths[*column]) + GAP;
        let names = |column: &usize| self.columns[*column].kind == Kind::Name;
        let names: Vec<usize> = all.clone().take_while(names).collect();
        let names_wide: usize = names.iter().map(wide).sum();

        let mut blocks = Vec::new();
        let mut block = names.clone();
        let mut used = names_wide;
        for column in all.skip(names.len()) {
            let full = used + wide(&column) > usize::from(width) + GAP;
            if full && block.len() > names.len() {
                blocks.push(std::mem::replace(&mut block, names.clone()));
                used = names_wide;
            }
            block.push(column);
            used += wide(&column);
        }
        if !block.is_empty() {
            blocks.push(block);
        }
        blocks
    }

    fn draw(&self, columns: &[usize], emphasis: &[Vec<Emphasis>], styling: Styling) -> String {
        self.build(columns, emphasis, styling).to_string()
    }

    fn build(
        &self,
        columns: &[usize],
        emphasis: &[Vec<Emphasis>],
        styling: Styling,
    ) -> comfy_table::Table {
        let mut drawn = comfy_table::Table::new();
        let rule = LineStyle::none().fill('-');
        drawn.load_style(TableStyle::new().header_separator(rule)).force_no_tty();
        drawn.style_text_only();
        if styling == Styling::Ansi {
            drawn.enforce_styling();
        }
        let head = |column: &usize| {
            let Column { name, unit, .. } = &self.columns[*column];
            let text = if unit.is_empty() { name.clone() } else { format!("{name}\n{unit}") };
            comfy_table::Cell::new(text)
        };
        drawn.set_header(columns.iter().map(head).collect::<Vec<_>>());
        let mut group = self.rows.first().map_or(0, |row| row.group);
        for (index, row) in self.rows.iter().enumerate() {
            if std::mem::replace(&mut group, row.group) != row.group {
                drawn.add_row(vec![""; columns.len()]);
            }
            let cell = |&column: &usize| {
                let text = row.cells.get(column).map_or("", |cell| cell.text.as_str());
                let shown = emphasis.get(index).and_then(|row| row.get(column));
                styled(text, shown.copied().unwrap_or_default())
            };
            drawn.add_row(columns.iter().map(cell).collect::<Vec<_>>());
        }
        for (place, column) in drawn.column_iter_mut().enumerate() {
            let last = place + 1 == columns.len();
            column.set_padding((0, if last { 0 } else { GAP as u16 }));
            column.set_cell_alignment(match self.columns[columns[place]].kind {
                Kind::Name => CellAlignment::Left,
                Kind::Value | Kind::HighestIsBest | Kind::LowestIsBest => CellAlignment::Right,
            });
        }
        drawn
    }
}

/// Columns of the terminal between two columns of a table.
const GAP: usize = 2;

fn styled(text: &str, emphasis: Emphasis) -> comfy_table::Cell {
    let cell = comfy_table::Cell::new(text);
    match emphasis {
        Emphasis::None => cell,
        Emphasis::Best => cell.add_attribute(Attribute::Bold).fg(Color::Green),
        Emphasis::Warning => cell.add_attribute(Attribute::Bold).fg(Color::Red),
        Emphasis::Muted => cell.add_attribute(Attribute::Dim),
    }
}

/// Says whether the second of two values is better than the first.
type Better = fn(f64, f64) -> bool;

fn better((index, column): (usize, &Column)) -> Option<(usize, Better)> {
    match column.kind {
        Kind::Name | Kind::Value => None,
        Kind::HighestIsBest => Some((index, |old, new| new > old)),
        Kind::LowestIsBest => Some((index, |old, new| new < old)),
    }
}

/// Values that differ by less than this share of the best one are as good as it.
const ALIKE: f64 = 0.005;

/// The best value of a column among rivals; `None` if all are as good.
fn best_value<'a>(
    rivals: impl Iterator<Item = &'a Row>,
    column: usize,
    better: Better,
) -> Option<f64> {
    let values: Vec<f64> = rivals.filter_map(|row| row.cells.get(column)?.value).collect();
    let better_of = |a: f64, b: f64| if better(a, b) { b } else { a };
    let best = values.iter().copied().reduce(better_of)?;
    values.iter().any(|value| !is_as_good(*value, best)).then_some(best)
}

fn is_as_good(value: f64, best: f64) -> bool {
    (value - best).abs() <= best.abs() * ALIKE
}
