//! Several mobile hosts and a link layer that repeats, from the command line: what the table and
//! the JSON say of them, how a run is repeated, and bad values.

use serde_json::Value;
use std::process::{Command, Output};

fn lasthop(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lasthop")).args(arguments).output().expect("it starts")
}

/// A comparison of two schemes on a link that a mobile host alone would fill.
fn compare(out: &str, more: &[&str]) -> Output {
    let folder = std::env::temp_dir().join(format!("lasthop-{}-{out}", std::process::id()));
    let shown = folder.display().to_string();
    let arguments =
        ["compare", "--rate", "4Mbit/s", "--loss", "1%", "--tcp", "sack", "--duration", "5s"];
    let few = ["--seeds", "2", "--schemes", "plain,snoop-modern", "--quiet", "--out", &shown];
    let output = lasthop(&[arguments.as_slice(), &few, more].concat());
    let _removed = std::fs::remove_dir_all(folder);
    output
}

fn rows(output: &Output) -> Vec<Value> {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    document["rows"].as_array().expect("rows").clone()
}

#[test]
fn rows_of_several_mobile_hosts_say_how_they_share() {
    let more = ["--mobiles", "3", "--served", "first", "--json"];
    let rows = rows(&compare("several", &more));
    for row in &rows {
        let mobiles = &row["mobiles"];
        let goodputs = mobiles["goodput_bps"].as_array().expect("one for each");
        let sum: f64 = goodputs.iter().filter_map(Value::as_f64).sum();
        let whole = row["goodput_bps"]["mean"].as_f64().expect("a mean");
        assert_eq!(goodputs.len(), 3);
        assert!((sum / whole - 1.0).abs() < 1e-9, "{sum} in parts, {whole}");
        let jain = mobiles["jain"]["mean"].as_f64().expect("an index");
        assert!((1.0 / 3.0..=1.0).contains(&jain), "{jain}");
        let neighbour = mobiles["neighbour_bps"]["mean"].as_f64().expect("a mean");
        let expected = goodputs[1..].iter().filter_map(Value::as_f64).sum::<f64>() / 2.0;
        assert!((neighbour / expected - 1.0).abs() < 1e-9);
        // A byte of payload takes at least its bits.
        assert!(row["air_s_per_byte"].as_f64().expect("air") > 8.0 / 4e6);
    }
    assert!(rows[0]["mobiles"]["neighbour_change"].is_null(), "plain is what it is held against");
    let change = rows[1]["mobiles"]["neighbour_change"]["mean"].as_f64().expect("a change");
    let typical = |row: &Value| row["mobiles"]["neighbour_bps"]["mean"].as_f64().expect("a mean");
    let expected = typical(&rows[1]) / typical(&rows[0]) - 1.0;
    // The mean of ratios is not quite the ratio of means.
    assert!((change - expected).abs() < 0.1, "{change}, {expected}");
    assert!(change < 0.0, "who is not helped backs off for who is: {change}");
}

#[test]
fn one_mobile_host_has_no_neighbours() {
    for row in rows(&compare("one", &["--json"])) {
        assert!(row.get("mobiles").is_none() && row.get("air_s_per_byte").is_none(), "{row}");
    }
    let table = compare("table", &[]);
    let table = String::from_utf8(table.stdout).expect("text");
    assert!(!table.contains("Jain") && !table.contains("neighbours"), "{table}");
}

#[test]
fn the_table_shows_neighbours_and_what_repetitions_cost() {
    let several = compare("neighbours", &["--mobiles", "2", "--arq", "frames:retries=3,ack=300us"]);
    let table = String::from_utf8(several.stdout).expect("text");
    for column in ["Jain", "neighbours", "against plain", "air time"] {
        assert!(table.contains(column), "{column} in {table}");
    }
}

#[test]
fn values_that_make_no_sense_are_named_and_nothing_starts() {
    let cases: [(&[&str], &str); 6] = [
        (&["--mobiles", "0"], "--mobiles = 0: expected 1 to 1024"),
        (&["--mobiles", "1000000000"], "--mobiles = 1000000000: expected 1 to 1024"),
        (&["--served", "first"], "--served = first: expected all, or more than one of mobiles"),
        (&["--mobiles", "2", "--served", "some"], "expected all or first"),
        (&["--arq", "frames:retries=256"], "with 0 to 255 repetitions"),
        (&["--arq", "frames"], "`frames` is not a link layer that repeats"),
    ];
    for (arguments, expected) in cases {
        let output = compare("bad", arguments);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(output.stdout.is_empty());
    }
    let file = std::env::temp_dir().join(format!("lasthop-{}-mobiles.toml", std::process::id()));
    std::fs::write(&file, "rate = \"2Mbit/s\"\nmobiles = 1025\n").expect("a file");
    let output = lasthop(&["scenario", "check", &file.display().to_string()]);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    let _removed = std::fs::remove_file(&file);
    assert!(message.contains(":2: mobiles = 1025: expected 1 to 1024"), "{message}");
}
