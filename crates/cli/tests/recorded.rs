//! Recorded channels as users meet them: options, scenario files, bad files.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("lasthop-recorded-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder in the temporary directory");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file in the test's folder");
    }

    /// Runs the program inside the folder.
    fn lasthop(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
        command.args(arguments).current_dir(&self.0).output().expect("the program starts")
    }

    /// The rows of a comparison.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let fixed = ["--tcp", "sack", "--seeds", "2", "--quiet", "--json"];
        let arguments: Vec<&str> =
            ["compare"].iter().chain(arguments).chain(&fixed).copied().collect();
        let output = self.lasthop(&arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
        document["rows"].as_array().expect("rows").clone()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// Opportunities of 12 Mbit/s for one second, then of 3 Mbit/s for another.
fn steps() -> String {
    let fast = 1..=1000;
    let slow = (1004..=2000).step_by(4);
    fast.chain(slow).map(|at| format!("{at}\r\n")).collect()
}

#[test]
fn a_recorded_capacity_is_used_up_and_is_the_ceiling() {
    let folder = Folder::new("capacity");
    folder.file("capacity", &steps());
    let run = |way: &str| {
        let capacity = format!("--{way}-capacity");
        let more = ["--duration", "8s", "--schemes", "plain", "--queue", "60p", "--direction", way];
        let rows = folder.rows(&[&[capacity.as_str(), "capacity"][..], &more].concat());
        (rows[0]["ceiling_bps"].as_f64(), rows[0]["ceiling_share"].as_f64())
    };
    for way in ["down", "up"] {
        let (ceiling, share) = run(way);
        // Four whole rounds of 1250 opportunities in 2 s; 1448 bytes of payload in 1500.
        let expected = 1250.0 * 12_000.0 / 2.0 * 1448.0 / 1500.0;
        assert!((ceiling.expect("a ceiling") - expected).abs() < 1.0, "{way}: {ceiling:?}");
        let share = share.expect("a share");
        assert!(share > 0.9 && share <= 1.0, "{way}: {share}");
    }
}

#[test]
fn recorded_delays_and_losses_act_in_their_direction() {
    let folder = Folder::new("steps");
    folder.file("late", "300000000\n");
    folder.file("all", "1\n");
    folder.file("third", "1\n0\n0\n");
    let finish = |more: &[&str]| {
        let base = ["--rate", "10Mbit/s", "--duration", "5s", "--schemes", "plain"];
        folder.rows(&[&base[..], more].concat())[0].clone()
    };
    let goodput = |row: &Value| row["goodput_bps"]["mean"].as_f64().expect("a goodput");
    let plain = goodput(&finish(&[]));
    // The round trip is 10 + 10 + 300 + 1 ms at least: half a second of handshake and slow start.
    for way in ["--down-delay", "--up-delay"] {
        let late = goodput(&finish(&[way, "late"]));
        assert!(late > 0.0 && late < 0.8 * plain, "{way}: {late} of {plain}");
    }
    for way in ["--down-loss", "--up-loss"] {
        assert_eq!(goodput(&finish(&[way, "all"])), 0.0, "{way}");
    }
    let third = finish(&["--down-loss", "third", "--trace-step", "1s"]);
    // Lost are the seconds 0 and 3 of five.
    let ceiling = third["ceiling_bps"].as_f64().expect("a ceiling");
    assert!((ceiling - 10e6 * 1448.0 / 1500.0 * 0.6).abs() < 1.0, "{ceiling}");
    assert!(goodput(&third) > 0.0 && goodput(&third) < ceiling, "{third}");
}

#[test]
fn measured_runs_are_an_axis_of_losses() {
    let folder = Folder::new("runs");
    folder.file("good runs", "10 1\n90 3\n");
    folder.file("bad", "1 0.75\n5 0.25\n");
    let loss = "none,runs:good=good runs,bad=bad,1%";
    let rows = folder.rows(&["--loss", loss, "--size", "500kB", "--schemes", "snoop-modern"]);
    let shares: Vec<f64> = rows.iter().filter_map(|row| row["ceiling_bps"].as_f64()).collect();
    assert!((shares[1] / shares[0] - 70.0 / 72.0).abs() < 1e-9, "means 70 and 2: {shares:?}");
    assert!((shares[2] / shares[0] - 0.99).abs() < 1e-9, "{shares:?}");
    assert!(rows[1]["retransmissions_local"].as_f64() > Some(5.0), "{}", rows[1]);
    let table = folder.lasthop(&["compare", "--loss", loss, "--size", "50kB", "--quiet"]);
    let table = String::from_utf8_lossy(&table.stdout);
    assert!(table.contains(" runs:good=good runs,bad=bad "), "{table}");
}

#[test]
fn files_of_a_scenario_lie_beside_it_and_it_can_be_fed_back_from_anywhere() {
    let folder = Folder::new("beside");
    std::fs::create_dir(folder.0.join("inner")).expect("a folder");
    folder.file("inner/capacity", &steps());
    folder.file("inner/lengths", "1 1\n");
    folder.file("inner/losses", "0\n");
    let text = "down-capacity = \"capacity\"\nloss = \"runs:good=lengths,bad=./lengths\"\n\
                up-loss = \"../inner/losses\"\ntrace-step = \"5ms\"\nduration = \"1s\"\nseeds = 2";
    folder.file("inner/scenario.toml", text);
    let complete = folder.lasthop(&["scenario", "check", "inner/scenario.toml"]);
    assert_eq!(complete.status.code(), Some(0), "{}", String::from_utf8_lossy(&complete.stderr));
    let complete = String::from_utf8_lossy(&complete.stdout);
    folder.file("again.toml", &complete);
    let again = folder.lasthop(&["scenario", "check", "again.toml"]);
    assert_eq!(String::from_utf8_lossy(&again.stdout), complete);

    let first = folder.lasthop(&["compare", "inner/scenario.toml", "--json", "--quiet"]);
    let document: Value = serde_json::from_slice(&first.stdout).expect("one document");
    folder.file("again.json", &document["scenario"].to_string());
    let again = folder.lasthop(&["compare", "again.json", "--json", "--quiet"]);
    assert_eq!(first.stdout, again.stdout, "{}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn bad_files_are_refused_with_their_line_before_anything_starts() {
    let folder = Folder::new("bad");
    folder.file("empty", "");
    folder.file("text", "1\n2\nthree\n");
    folder.file("still", "0\n0\n");
    folder.file("halves", "0\n0.5\n");
    folder.file("lengths", "3 1\n3 1\n");
    for (option, value, expected) in [
        ("--down-capacity", "text", "text:3: `three`: expected a millisecond"),
        ("--up-capacity", "empty", "empty: it has no value: expected at least one line"),
        ("--down-capacity", "still", "still:2: `0`: expected a last millisecond above 0"),
        ("--down-capacity", "nowhere", "nowhere: read the recording: No such file"),
        ("--down-capacity", ".", "read the recording: Is a directory"),
        ("--up-delay", "halves", "halves:2: `0.5`: expected nanoseconds"),
        ("--down-loss", "halves", "halves:2: `0.5`: expected 0 or 1"),
        ("--loss", "runs:good=lengths,bad=lengths", "lengths:2: `3 1`: expected a length that no"),
        ("--loss", "runs:good=lengths", "--loss: `runs:good=lengths` is not a loss; expected"),
        ("--trace-step", "0ms", "--trace-step = 0s: expected more than 0s"),
    ] {
        let output = folder.lasthop(&["compare", option, value]);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{option} {value}: {stderr}");
        assert!(stderr.contains(expected), "{option} {value}: {stderr}");
        assert!(output.stdout.is_empty() && !folder.0.join("lasthop-out").exists());
    }
    folder.file("delay", "20000000\n");
    let output = folder.lasthop(&["compare", "--rtt", "50ms", "--up-delay", "delay"]);
    assert_eq!(output.status.code(), Some(2));
}
