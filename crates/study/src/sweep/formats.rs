//! Rows as files: CSV, JSON, Parquet. All three hold the same columns and the same values.

use super::columns::{Cell, Column};
use core::fmt;
use core::str::FromStr;
use std::fs::File;
use std::io::{self, BufWriter, Write};

#[cfg(feature = "parquet")]
mod parquet;

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Format {
    /// RFC 4180, with a line of names; lines end in a newline alone, absent values are empty.
    Csv,
    /// An array with an object per line; absent values are null.
    Json,
    /// Apache Parquet, compressed with Snappy.
    Parquet,
}

impl Format {
    /// Those that this build can write.
    pub const BUILT: &[Format] = &[
        Format::Csv,
        Format::Json,
        #[cfg(feature = "parquet")]
        Format::Parquet,
    ];

    /// The name, which is also the end of the file's.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Parquet => "parquet",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Format::Csv, Format::Json, Format::Parquet];
        let found = known.into_iter().find(|known| known.name() == text.trim());
        let found =
            found.ok_or_else(|| format!("`{text}` is no format; expected parquet, csv or json"))?;
        if Format::BUILT.contains(&found) {
            return Ok(found);
        }
        Err(format!("{found}: not in this build; cargo build with --features parquet has it"))
    }
}

/// A file of rows that is being written.
pub(super) enum Table<'a> {
    Csv(&'a mut BufWriter<File>),
    Json(&'a mut BufWriter<File>, Vec<&'static Column>, u64),
    #[cfg(feature = "parquet")]
    Parquet(parquet::Table<'a>),
}

impl<'a> Table<'a> {
    /// Begins a file.
    pub(super) fn begin(
        format: Format,
        file: &'a mut BufWriter<File>,
        columns: &[&'static Column],
    ) -> io::Result<Self> {
        match format {
            Format::Csv => {
                let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
                writeln!(file, "{}", names.join(","))?;
                Ok(Table::Csv(file))
            }
            Format::Json => {
                file.write_all(b"[")?;
                Ok(Table::Json(file, columns.to_vec(), 0))
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => parquet::Table::begin(file, columns).map(Table::Parquet),
            #[cfg(not(feature = "parquet"))]
            Format::Parquet => Err(io::Error::other("this build cannot write Parquet")),
        }
    }

    /// Writes a row.
    pub(super) fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        match self {
            Table::Csv(file) => csv_row(file, cells),
            Table::Json(file, columns, rows) => {
                file.write_all(if *rows == 0 { b"\n" } else { b",\n" })?;
                *rows += 1;
                json_row(file, columns, cells)
            }
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.row(cells),
        }
    }

    /// Ends the file.
    pub(super) fn end(self) -> io::Result<()> {
        match self {
            Table::Csv(_) => Ok(()),
            Table::Json(file, _, _) => file.write_all(b"\n]\n"),
            #[cfg(feature = "parquet")]
            Table::Parquet(table) => table.end(),
        }
    }
}

fn csv_row(file: &mut impl Write, cells: &[Cell]) -> io::Result<()> {
    for (place, cell) in cells.iter().enumerate() {
        if place > 0 {
            file.write_all(b",")?;
        }
        match cell {
            Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => {
                write!(file, "\"{}\"", text.replace('"', "\"\""))?;
            }
            Cell::Text(text) => file.write_all(text.as_bytes())?,
            Cell::Empty => {}
            number => json_cell(file, number)?,
        }
    }
    file.write_all(b"\n")
}

fn json_row(file: &mut impl Write, columns: &[&Column], cells: &[Cell]) -> io::Result<()> {
    for (place, (column, cell)) in columns.iter().zip(cells).enumerate() {
        write!(file, "{}\"{}\":", if place == 0 { "{" } else { "," }, column.name)?;
        json_cell(file, cell)?;
    }
    file.write_all(b"}")
}

/// A value as JSON writes it: numbers in the fewest digits that give them back.
fn json_cell(file: &mut impl Write, cell: &Cell) -> io::Result<()> {
    match cell {
        Cell::Empty => file.write_all(b"null"),
        Cell::Text(text) => Ok(serde_json::to_writer(file, text)?),
        Cell::Integer(number) => write!(file, "{number}"),
        Cell::Real(number) => Ok(serde_json::to_writer(file, number)?),
        Cell::Boolean(value) => write!(file, "{value}"),
    }
}
