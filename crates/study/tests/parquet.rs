//! What a sweep writes as Parquet, read by a reader of others: the values of its JSON, in every
//! row and column, nulls where there is nothing.
#![cfg(feature = "parquet")]

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use study::Stop;
use study::sweep::{Format, Journal, Matrix, Shard, Study, execute, results, store};

/// Two cases with an outage and two without; requests have latencies, and no size.
const STUDY: &str = r#"
rate = "2Mbit/s"
tcp = "sack"
schemes = ["plain", "snoop-modern"]
traffic = "request:3kB,every=50ms"
duration = "1s"
seeds = 2
[axes]
outage = ["none", "at=200ms,length=300ms"]
"#;

fn write(folder: &Path) {
    let study = Study::parse("study.toml", STUDY).expect("a study");
    let matrix = Matrix::new(study, &BTreeMap::new()).expect("runs");
    store::prepare(folder, &matrix).expect("a folder");
    let journal = Journal::open(folder, Shard::WHOLE).expect("a journal");
    let runs: Vec<u64> = (0..matrix.runs()).collect();
    execute(&matrix, &runs, 2, &journal, (&Stop::default(), || ())).expect("it runs");
    results::write(folder, &matrix, Format::BUILT, Shard::WHOLE).expect("results");
}

#[test]
fn parquet_holds_what_json_holds_and_is_the_same_bytes_each_time() {
    let folder = std::env::temp_dir().join(format!("lasthop-parquet-{}", std::process::id()));
    let [one, two] = ["one", "two"].map(|name| folder.join(name));
    write(&one);
    write(&two);
    let bytes =
        [&one, &two].map(|folder| std::fs::read(folder.join("runs.parquet")).expect("a file"));
    assert!(bytes[0] == bytes[1], "two sweeps of one study");

    // As text: a number is right if it is written in the same digits.
    let json = std::fs::read_to_string(one.join("runs.json")).expect("a file");
    let lines: Vec<&str> = json.lines().filter(|line| line.starts_with('{')).collect();
    let reader = File::open(one.join("runs.parquet")).expect("a file");
    let reader = SerializedFileReader::new(reader).expect("a Parquet file");
    let rows: Vec<_> = reader.get_row_iter(None).expect("rows").collect();
    assert_eq!((rows.len(), lines.len()), (8, 8));
    let (mut nulls, mut reals) = (0, 0);
    for (row, line) in rows.into_iter().zip(lines) {
        let row = row.expect("a row");
        let mut fields = Vec::new();
        for (name, field) in row.get_column_iter() {
            let value: Value = match field {
                Field::Null => Value::Null,
                Field::Bool(value) => (*value).into(),
                Field::Long(number) => (*number).into(),
                Field::Double(number) => (*number).into(),
                Field::Str(text) => text.as_str().into(),
                other => panic!("{name} is {other:?}"),
            };
            nulls += usize::from(value.is_null());
            reals += usize::from(value.is_f64());
            fields.push(format!("\"{name}\":{value}"));
        }
        assert_eq!(format!("{{{}}}", fields.join(",")), line.trim_end_matches(','));
    }
    assert!(nulls > 8 && reals > 80, "{nulls} nulls, {reals} reals");
    std::fs::remove_dir_all(&folder).expect("it can be removed");
}
