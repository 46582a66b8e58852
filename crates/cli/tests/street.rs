//! The example of a walk through a map runs, and what contradicts it is refused with file, line,
//! value and what was expected.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn street() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/street.toml")
}

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).output().expect("the program starts")
}

#[test]
fn the_street_is_compared_and_hosts_change_cells_on_it() {
    let folder = std::env::temp_dir().join(format!("lasthop-{}-street", std::process::id()));
    let (out, file) = (folder.display().to_string(), street().display().to_string());
    let mut arguments = vec!["compare", &file, "--seeds", "2", "--duration", "30s", "--json"];
    arguments.extend(["--out", &out, "-q"]);
    let output = lasthop(&arguments);
    let _removed = std::fs::remove_dir_all(&folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!((&row["handoff"], &row["checks"]), (&"walk".into(), &"passed".into()));
        let handoffs = row["handoffs"]["handoffs"].as_u64();
        assert!(handoffs >= Some(2), "{handoffs:?} of {}", row["scheme"]);
    }
    // The document is a scenario that can be fed back.
    assert_eq!(document["scenario"]["map"]["stations"].as_array().map(Vec::len), Some(4));
}

#[test]
fn what_contradicts_the_street_is_refused_with_file_and_line() {
    let good = std::fs::read_to_string(street()).expect("the example");
    let refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let name = format!("lasthop-{}-street.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        let bad = good.replacen(from, to, 1);
        std::fs::write(&path, &bad).expect("a file");
        let output = lasthop(&["scenario", "check", &path.display().to_string()]);
        let _removed = std::fs::remove_file(&path);
        assert_eq!(output.status.code(), Some(2), "{to}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = bad.lines().position(|line| line.contains(to)).expect("it is there") + 1;
        assert!(said.contains(&format!("street.toml:{line}: ")), "line {line} of {to}: {said}");
        said
    };
    let said = refused("600m,20m", "6000m,20m");
    assert!(said.contains("stations = 6000m,20m: expected a place that covers the walk"), "{said}");
    assert!(refused("15m/s", "-15m/s").contains("`-15m/s` is not a speed"));
    assert!(refused("hysteresis", "patience").contains("unknown field `patience`"));
    assert!(refused("seeds = 6", "handoff = \"at=3s,gap=0s\"").contains("expected walk"));
    assert!(refused("seeds = 6", "cells = 3").contains("expected 4, as many as"));
}
