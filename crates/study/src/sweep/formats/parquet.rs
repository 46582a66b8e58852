//! Parquet without Arrow: a column writer per column, row groups of fixed length.
//!
//! Every column is optional, so that an absent value is null in every format. Text is UTF-8.

use super::super::MODEL;
use super::super::columns::{Cell, Column, Values};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// Rows of a row group: what is kept in memory before it is written.
const GROUP_ROWS: usize = 1 << 16;

/// A Parquet file that is being written.
pub(in super::super) struct Table<'a> {
    writer: SerializedFileWriter<&'a mut BufWriter<File>>,
    columns: Vec<Buffer>,
    rows: usize,
}

/// The present values of a column in a row group, and for each row whether it has one.
struct Buffer {
    values: Kind,
    present: Vec<i16>,
}

enum Kind {
    Text(Vec<ByteArray>),
    Integer(Vec<i64>),
    Real(Vec<f64>),
    Boolean(Vec<bool>),
}

impl<'a> Table<'a> {
    pub(super) fn begin(
        file: &'a mut BufWriter<File>,
        columns: &[&'static Column],
    ) -> io::Result<Self> {
        let schema = schema(columns).map_err(io::Error::other)?;
        let metadata = [("lasthop.version", env!("CARGO_PKG_VERSION")), ("lasthop.model", MODEL)];
        let metadata = metadata.map(|(key, value)| KeyValue::new(key.to_owned(), value.to_owned()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by("lasthop".to_owned())
            .set_key_value_metadata(Some(metadata.to_vec()))
            .build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties));
        let columns = columns.iter().map(|column| Buffer::of(column)).collect();
        Ok(Table { writer: writer.map_err(io::Error::other)?, columns, rows: 0 })
    }

    pub(super) fn row(&mut self, cells: &[Cell]) -> io::Result<()> {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS { self.flush().map_err(io::Error::other) } else { Ok(()) }
    }

    pub(super) fn end(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.flush().map_err(io::Error::other)?;
        }
        self.writer.close().map(|_| ()).map_err(io::Error::other)
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for Buffer { values, present } in &mut self.columns {
            let Some(mut column) = group.next_column()? else { break };
            match values {
                Kind::Text(values) => {
                    column.typed::<ByteArrayType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Kind::Integer(values) => {
                    column.typed::<Int64Type>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Kind::Real(values) => {
                    column.typed::<DoubleType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
                Kind::Boolean(values) => {
                    column.typed::<BoolType>().write_batch(values, Some(present), None)?;
                    values.clear();
                }
            }
            present.clear();
            column.close()?;
        }
        self.rows = 0;
        group.close().map(|_| ())
    }
}

impl Buffer {
    fn of(column: &Column) -> Buffer {
        let values = match column.values {
            Values::Text(_) => Kind::Text(Vec::new()),
            Values::Integer(_) => Kind::Integer(Vec::new()),
            Values::Real(_) => Kind::Real(Vec::new()),
            Values::Boolean(_) => Kind::Boolean(Vec::new()),
        };
        Buffer { values, present: Vec::new() }
    }

    fn push(&mut self, cell: &Cell) {
        self.present.push(i16::from(*cell != Cell::Empty));
        match (&mut self.values, cell) {
            (_, Cell::Empty) => {}
            (Kind::Text(values), Cell::Text(text)) => values.push(text.as_str().into()),
            (Kind::Integer(values), Cell::Integer(number)) => values.push(*number),
            (Kind::Real(values), Cell::Real(number)) => values.push(*number),
            (Kind::Boolean(values), Cell::Boolean(value)) => values.push(*value),
            _ => unreachable!("a column's values are of one kind"),
        }
    }
}

fn schema(columns: &[&Column]) -> Result<Type, ParquetError> {
    let fields: Result<Vec<_>, ParquetError> = columns
        .iter()
        .map(|column| {
            let (physical, logical) = match column.values {
                Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
                Values::Integer(_) => (Physical::INT64, None),
                Values::Real(_) => (Physical::DOUBLE, None),
                Values::Boolean(_) => (Physical::BOOLEAN, None),
            };
            let field = Type::primitive_type_builder(column.name, physical);
            let field = field.with_repetition(Repetition::OPTIONAL).with_logical_type(logical);
            Ok(Arc::new(field.build()?))
        })
        .collect();
    Type::group_type_builder("run").with_fields(fields?).build()
}
