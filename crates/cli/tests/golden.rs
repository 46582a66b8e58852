//! What the program says about one small scenario, to the last character: whoever changes an engine
//! sees here what it changes for users. A change that is meant is renewed with [`RENEW`].

use serde_json::Value;
use std::process::Command;

/// What makes new snapshots of the present output.
const RENEW: &str = "if this change is meant, renew the snapshots and commit them: \
                     INSTA_UPDATE=always cargo test -p lasthop-cli --test golden";

/// A lossy link that goes away once; a second of work.
const SCENARIO: &str = r#"
title = "Golden"
rate = "2Mbit/s"
delay = "5ms"
queue = "20p"
wired-rate = "100Mbit/s"
wired-delay = "10ms"
ber = ["none", "1/256Kbit"]
outage = "at=700ms,length=300ms"
tcp = "sack"
schemes = ["plain", "snoop", "snoop-modern"]
size = "400kB"
seeds = 3
"#;

/// Runs the program on the scenario in a folder of its own; returns what it printed, and the
/// manifests of the runs in the order of their folders.
fn lasthop(test: &str, arguments: &[&str]) -> (String, Vec<Value>) {
    let folder = std::env::temp_dir().join(format!("lasthop-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder in the temporary directory");
    std::fs::write(folder.join("golden.toml"), SCENARIO).expect("a file in it");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.arg(arguments[0]).arg("golden.toml").args(&arguments[1..]).args(["--out", "out"]);
    let output = command.current_dir(&folder).output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs = std::fs::read_dir(folder.join("out")).expect("an output folder").flatten();
    let mut runs: Vec<_> = runs.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    runs.sort();
    let manifest = |run: &std::path::PathBuf| {
        let bytes = std::fs::read(run.join("manifest.json")).expect("a manifest");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let manifests = runs.iter().map(manifest).collect();
    std::fs::remove_dir_all(&folder).expect("the folder was ours");
    (String::from_utf8(output.stdout).expect("output is UTF-8"), manifests)
}

fn golden(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_description(RENEW);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// The number of digits that is the same on any machine: Student's t comes from std's functions.
const DIGITS: usize = 9;

fn rounded(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let exact = number.as_f64().expect("it is one");
            let text = format!("{exact:.*e}", DIGITS - 1);
            *value = text.parse::<f64>().expect("a number").into();
        }
        Value::Array(values) => values.iter_mut().for_each(rounded),
        Value::Object(fields) => fields.values_mut().for_each(rounded),
        _ => {}
    }
}

#[test]
fn the_table_of_a_comparison_is_this() {
    golden("table", &lasthop("golden-table", &["compare"]).0);
}

#[test]
fn the_json_of_a_comparison_is_this() {
    let (text, _) = lasthop("golden-json", &["compare", "--json"]);
    let mut document: Value = serde_json::from_str(&text).expect("one JSON document");
    document["version"] = "of this program".into();
    rounded(&mut document);
    golden("json", &serde_json::to_string_pretty(&document).expect("JSON"));
}

/// The hash covers every record of a run: packets, timers, windows, caches, to the nanosecond.
#[test]
fn the_records_of_a_run_are_these_on_any_machine_and_any_number_of_threads() {
    let hashes = |jobs: &str| -> String {
        let name = format!("golden-trace-{jobs}");
        let (_, manifests) = lasthop(&name, &["run", "--trace", "--seeds", "2", "--jobs", jobs]);
        let line = |one: &Value| {
            let text = |field: &str| one[field].as_str().expect("text").to_owned();
            let (scheme, ber, hash) = (text("scheme"), text("ber"), text("trace_hash"));
            format!("{scheme:<12} {ber:<9} seed {} {hash}\n", one["seed"])
        };
        let mut lines: Vec<String> = manifests.iter().map(line).collect();
        lines.sort();
        lines.concat()
    };
    let alone = hashes("1");
    assert_eq!(alone, hashes("3"));
    golden("records", &alone);
}
