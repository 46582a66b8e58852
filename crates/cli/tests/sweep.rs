//! `lasthop sweep` as users and clusters meet it: what is stopped goes on, what is shared comes
//! together, and the results are the same bytes.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("lasthop-sweep-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder in the temporary directory");
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file in the test's folder");
        path.display().to_string()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// 2 x 2 combinations, 2 schemes, 3 seeds: 24 runs of milliseconds.
const STUDY: &str = r#"
rate = "2Mbit/s"
delay = "5ms"
tcp = "sack"
schemes = ["plain", "snoop-modern"]
outage = "at=100ms,length=200ms"
size = "50kB"
seeds = 3

[axes]
loss = ["none", "burst:mean=2%,length=3"]
rtt = ["30ms", "100ms"]
"#;
const RUNS: usize = 24;
/// What is written, and the files of it; the first three are read below.
const FORMATS: &str = if cfg!(feature = "parquet") { "csv,json,parquet" } else { "csv,json" };
const RESULTS: &[&str] = if cfg!(feature = "parquet") {
    &["runs.csv", "runs.json", "summary.json", "runs.parquet"]
} else {
    &["runs.csv", "runs.json", "summary.json"]
};

fn command(study: &str, more: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(["sweep", study]).args(more);
    command
}

fn sweep(study: &str, more: &[&str]) -> Output {
    command(study, more).output().expect("the program starts")
}

/// A sweep that has to end well, with all formats.
#[track_caller]
fn done(study: &str, out: &str, more: &[&str]) -> Output {
    let output = sweep(study, &[&["--out", out, "--format", FORMATS], more].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

fn results(out: &str) -> Vec<Vec<u8>> {
    let read = |name: &&str| std::fs::read(Path::new(out).join(name));
    RESULTS.iter().map(|name| read(name).expect("results")).collect()
}

/// One of the results that are text.
fn text(out: &str, name: &str) -> String {
    std::fs::read_to_string(Path::new(out).join(name)).expect("results")
}

/// The names of the runs in a folder's table.
fn names(out: &str) -> Vec<String> {
    let text = std::fs::read(Path::new(out).join("runs.json")).expect("a table");
    let rows: Vec<Value> = serde_json::from_slice(&text).expect("JSON");
    rows.iter().map(|row| row["run"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn any_number_of_threads_and_any_order_of_shards_give_the_same_bytes() {
    let folder = Folder::new("bytes");
    let study = folder.file("study.toml", STUDY);
    let [whole, threads, shared] = ["whole", "threads", "shared"].map(|name| folder.path(name));
    let first = done(&study, &whole, &["--jobs", "1"]);
    assert!(stdout(&first).starts_with("24 of 24 runs are finished, 24 of them now\n"));
    done(&study, &threads, &["--jobs", "3"]);
    assert_eq!(results(&whole), results(&threads));

    for shard in ["3/3", "1/3", "2/3"] {
        done(&study, &shared, &["--shard", shard]);
    }
    assert_eq!(results(&whole), results(&shared), "three shards in one folder");

    let again = done(&study, &whole, &[]);
    assert!(stdout(&again).starts_with("24 of 24 runs are finished, 0 of them now\n"));
    assert_eq!(results(&whole), results(&shared), "written again from the records");
}

#[test]
fn shards_are_disjoint_together_whole_and_can_be_merged() {
    let folder = Folder::new("shards");
    let study = folder.file("study.toml", STUDY);
    let parts: Vec<String> = (1..=4).map(|part| folder.path(&format!("part-{part}"))).collect();
    let mut together = Vec::new();
    for (part, out) in parts.iter().enumerate() {
        done(&study, out, &["--shard", &format!("{}/4", part + 1)]);
        together.extend(names(out));
    }
    together.sort();
    assert_eq!(together.len(), RUNS);
    together.dedup();
    assert_eq!(together.len(), RUNS, "no run is in two shards");

    let [whole, merged] = ["whole", "merged"].map(|name| folder.path(name));
    done(&study, &whole, &[]);
    let from: Vec<&str> = parts.iter().rev().flat_map(|part| ["--merge", part]).collect();
    let output = done(&study, &merged, &from);
    assert!(stdout(&output).starts_with("24 of 24 runs are finished, 0 of them now\n"));
    assert_eq!(results(&whole), results(&merged));
}

#[test]
fn a_study_grows_and_only_what_is_new_is_run() {
    let folder = Folder::new("grows");
    let small = folder.file("small.toml", STUDY);
    let large = folder.file("large.toml", &STUDY.replace("\"100ms\"]", "\"60ms\", \"100ms\"]"));
    let [old, new, whole] = ["old", "new", "whole"].map(|name| folder.path(name));
    done(&small, &old, &[]);
    let output = done(&large, &new, &["--merge", &old]);
    assert!(stdout(&output).starts_with("36 of 36 runs are finished, 12 of them now\n"));
    done(&large, &whole, &[]);
    assert_eq!(results(&whole), results(&new));
}

#[test]
fn records_cut_short_anywhere_are_run_again_and_the_results_are_the_same() {
    let folder = Folder::new("torn");
    let study = folder.file("study.toml", STUDY);
    let out = folder.path("out");
    done(&study, &out, &[]);
    let expected = results(&out);
    let records = folder.0.join("out/records/all.records");
    let bytes = std::fs::read(&records).expect("records");
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').expect("lines") + 1;
    // Cut in the last record, even before its newline; and altered in the middle of another.
    for length in [last + 1, (last + bytes.len()) / 2, bytes.len() - 1] {
        std::fs::write(&records, &bytes[..length]).expect("the records can be written");
        let output = done(&study, &out, &[]);
        assert!(stdout(&output).contains("24 of 24 runs are finished, 1 of them now"));
        assert_eq!(results(&out), expected);
    }
    let mut altered = bytes.clone();
    altered[last / 2] ^= 4;
    std::fs::write(&records, &altered).expect("the records can be written");
    let output = done(&study, &out, &[]);
    assert!(stdout(&output).contains("24 of 24 runs are finished, 1 of them now"));
    assert!(stderr(&output).contains("1 damaged record"), "{}", stderr(&output));
    assert_eq!(results(&out), expected);
}

/// Runs of a tenth of a second, so that a signal meets a sweep at work.
fn long_study(folder: &Folder) -> String {
    let text = STUDY.replace("50kB", "4MB").replace("seeds = 3", "seeds = 40");
    folder.file("long.toml", &text)
}

/// Starts a sweep and waits until it has kept some runs.
fn at_work(study: &str, out: &str) -> std::process::Child {
    let mut command = command(study, &["--out", out, "--format", FORMATS, "--jobs", "2"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut child = child.expect("the program starts");
    let records = Path::new(out).join("records/all.records");
    while std::fs::metadata(&records).map_or(0, |file| file.len()) < 4000 {
        assert_eq!(child.try_wait().expect("its state is known"), None, "it works");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child
}

fn lines(out: &str) -> usize {
    let records = std::fs::read(Path::new(out).join("records/all.records")).expect("records");
    records.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn ctrl_c_keeps_what_is_finished_writes_its_results_and_exits_with_130() {
    let folder = Folder::new("interrupted");
    let study = long_study(&folder);
    let out = folder.path("out");
    let mut child = at_work(&study, &out);
    let pid = child.id().to_string();
    let signal = Command::new("kill").args(["-INT", &pid]).status().expect("kill is there");
    assert!(signal.success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    let finished = names(&out).len();
    assert!(finished > 0 && finished < 320, "{finished} of 320");
    assert_eq!(finished, lines(&out), "every record is in the results");
    let summary: Value = serde_json::from_str(&text(&out, "summary.json")).expect("JSON");
    assert_eq!((&summary["runs"], &summary["finished"]), (&320.into(), &finished.into()));
}

#[test]
fn a_killed_sweep_goes_on_with_what_it_had_kept() {
    let folder = Folder::new("killed");
    let study = long_study(&folder);
    let [out, whole] = ["out", "whole"].map(|name| folder.path(name));
    let mut child = at_work(&study, &out);
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    assert!(!Path::new(&out).join("runs.csv").exists(), "no results of half a sweep");
    let kept = lines(&out);
    assert!(kept > 0 && kept < 320, "{kept} of 320");
    let output = done(&study, &out, &[]);
    let now = format!("320 of 320 runs are finished, {} of them now", 320 - kept);
    assert!(stdout(&output).starts_with(&now), "{now}: {}", stdout(&output));
    done(&study, &whole, &[]);
    assert_eq!(results(&out), results(&whole));
}

#[test]
fn rows_say_what_compare_says() {
    let folder = Folder::new("compare");
    let study = folder.file("study.toml", STUDY);
    let flat = STUDY.split("[axes]").next().expect("what is above").to_owned();
    let scenario = folder
        .file("scenario.toml", &(flat + "rtt = \"100ms\"\nloss = \"burst:mean=2%,length=3\"\n"));
    let out = folder.path("out");
    done(&study, &out, &[]);
    let mut compare = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let compare = compare.args(["compare", &scenario, "--json", "--out", &folder.path("compare")]);
    let compare = compare.output().expect("the program starts").stdout;
    let compare: Value = serde_json::from_slice(&compare).expect("JSON");
    let summary: Value = serde_json::from_str(&text(&out, "summary.json")).expect("JSON");
    let rows = summary["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    let mut compared = 0;
    for theirs in compare["rows"].as_array().expect("rows") {
        let is_same = |row: &&Value| {
            row["rtt_s"] == 0.1
                && row["loss"] == theirs["loss"]
                && row["scheme"] == theirs["scheme"]
        };
        let ours = rows.iter().find(is_same).expect("the sweep has this row");
        for (field, value) in theirs.as_object().expect("a row") {
            assert_eq!(&ours[field], value, "{field}");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} fields");
}

#[test]
fn csv_and_json_hold_the_same_values() {
    let folder = Folder::new("formats");
    let study = folder.file("study.toml", STUDY);
    let out = folder.path("out");
    done(&study, &out, &[]);
    let (csv, json) = (text(&out, "runs.csv"), text(&out, "runs.json"));
    let rows: Vec<Value> = serde_json::from_str(&json).expect("JSON");
    let mut lines = csv.lines();
    let columns: Vec<&str> = lines.next().expect("a header").split(',').collect();
    assert_eq!(rows.len(), RUNS);
    for (row, line) in rows.iter().zip(lines) {
        let mut fields = Vec::new();
        let mut rest = line;
        while fields.len() < columns.len() {
            let (field, after) = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').expect("the quote ends"),
                None => rest.split_at(rest.find(',').unwrap_or(rest.len())),
            };
            fields.push(field);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        assert_eq!((rest, fields.len()), ("", row.as_object().expect("an object").len()));
        for (column, field) in columns.iter().zip(fields) {
            let value = match &row[*column] {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            assert_eq!(value, field, "{column}");
        }
        assert_eq!(row["checks"], "passed");
    }
}

#[test]
fn a_list_names_the_runs_and_runs_none() {
    let folder = Folder::new("list");
    let study = folder.file("study.toml", STUDY);
    let out = folder.path("out");
    let list = stdout(&sweep(&study, &["--list", "--out", &out]));
    assert!(list.starts_with("24 runs: 8 configurations, 0 finished\n"), "{list}");
    assert_eq!(list.lines().filter(|line| line.contains(" missing ")).count(), RUNS);
    assert!(list.contains(" loss=burst:mean=2%,length=3 rtt=100ms schemes=plain "), "{list}");
    assert!(!Path::new(&out).exists(), "nothing was written");
    done(&study, &out, &["--shard", "2/3"]);
    let list = stdout(&sweep(&study, &["--list", "--out", &out]));
    assert!(list.starts_with("24 runs: 8 configurations, 8 finished\n"), "{list}");
    let finished: Vec<&str> = list.lines().filter(|line| line.contains(" finished ")).collect();
    let named: Vec<&str> = finished.iter().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(named, names(&out));
}

#[test]
fn bad_studies_are_refused_with_line_value_and_expectation_and_nothing_is_started() {
    let folder = Folder::new("bad");
    let out = folder.path("never");
    let cases: [(&str, &[&str]); 21] = [
        ("rate = \"2Mbps\"", &[":1:", "2Mbps", "Mbit/s"]),
        ("rat = \"2Mbit/s\"", &[":1:", "rat", "rate"]),
        ("\n[axes]\nrat = [\"2Mbit/s\"]", &[":3:", "rat", "rate"]),
        ("[axes]\nrate = [\"1Mbit/s\",\n  \"2Mbps\"]", &[":3:", "2Mbps", "Mbit/s"]),
        ("[axes]\nrate = [2]", &[":2:", "`2`", "Mbit/s"]),
        ("[axes]\nrate = []", &[":2:", "axes.rate", "empty", "at least one value"]),
        ("[axes]\nrate = \"2Mbit/s\"", &[":2:", "axes.rate", "list of values"]),
        ("[axes]\ntcp = [[\"reno\", \"sack\"]]", &[":2:", "axes.tcp", "single values"]),
        ("[axes]\nseeds = [1, 2]", &[":2:", "seeds", "above [axes]"]),
        ("rate = \"1Mbit/s\"\n[axes]\nrate = [\"2Mbit/s\"]", &[":1:", "rate", "one of the two"]),
        ("[axes]\nrtt = [\"1ms\"]", &[":2:", "rtt = 1ms", "at least"]),
        ("wired-delay = \"1ms\"\n[axes]\nrtt = [\"50ms\"]", &[":1:", "wired-delay", "not both"]),
        ("[axes]\nsize = [\"1MB\", \"1000kB\"]", &["size=1000kB", "same as", "size=1MB"]),
        ("tcp = \"bbr\"\n[axes]\nsack = [\"on\", \"off\"]", &[":3:", "bbr", "no model"]),
        (
            "seeds = 1000000\n[axes]\nrate = [\"1Mbit/s\", \"2Mbit/s\"]\ntcp = [\"reno\", \"sack\"]\
          \nrtt = [\"40ms\", \"50ms\", \"60ms\"]",
            &["12000000", "at most 10000000"],
        ),
        ("seeds = 0", &[":1:", "seeds", "1 to"]),
        ("axes = 3", &[":1:", "axes", "table"]),
        (
            "[[axes.together]]\nrate = [\"1Mbit/s\"]\nqueue = [\"1p\", \"2p\"]",
            &[":3:", "2 values", "1"],
        ),
        ("[axes]\nrate = [\"1Mbit/s\"]\n[[axes.together]]\nrate = [\"2Mbit/s\"]", &["twice"]),
        ("metrics = [\"goodput\"]", &[":1:", "`goodput`", "goodput_bps"]),
        ("metrics = []", &[":1:", "metrics", "goodput_bps"]),
    ];
    for (text, expected) in cases {
        let file = folder.file("bad.toml", text);
        let output = sweep(&file, &["--out", &out]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {message}");
        for part in expected {
            assert!(message.contains(part), "{text}: {part} in {message}");
        }
        assert!(message.contains("bad.toml") && output.stdout.is_empty(), "{message}");
    }
    assert!(!Path::new(&out).exists(), "nothing was written");
}

#[test]
fn bad_options_and_folders_exit_with_2() {
    let folder = Folder::new("options");
    let study = folder.file("study.toml", STUDY);
    let file = folder.file("a-file", "");
    let out = folder.path("never");
    let below = format!("{file}/below-a-file");
    let cases: [(&[&str], &str); 9] = [
        (&["--shard", "0/4"], "0/4"),
        (&["--shard", "5/4"], "5/4"),
        (&["--shard", "1/0"], "1/0"),
        (&["--shard", "half"], "2/4"),
        (&["--shard", "-1/4"], "-1/4"),
        (&["--format", "xls"], "parquet, csv or json"),
        (&["--merge", "/does/not/exist"], "/does/not/exist"),
        (&["--jobs", "0"], "1..=1024"),
        (&["--out", &below], "a-file"),
    ];
    for (more, expected) in cases {
        let with_out = [more, &["--out", &out]].concat();
        let arguments = if more[0] == "--out" { more } else { &with_out };
        let output = sweep(&study, arguments);
        assert_eq!(output.status.code(), Some(2), "{more:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{more:?}: {}", stderr(&output));
    }
    assert_eq!(sweep(&study, &[]).status.code(), Some(2), "--out is missing");
    let missing = sweep("/does/not/exist.toml", &["--out", &out]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(!Path::new(&out).exists(), "nothing was written");
}

#[test]
fn a_folder_of_another_study_is_refused_and_the_difference_is_named() {
    let folder = Folder::new("other");
    let study = folder.file("study.toml", STUDY);
    let out = folder.path("out");
    done(&study, &out, &["--shard", "1/12"]);
    let refused = |text: &str, expected: &[&str]| {
        let other = folder.file("other.toml", text);
        let output = sweep(&other, &["--out", &out]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{message}");
        for part in expected {
            assert!(message.contains(part), "{part} in {message}");
        }
    };
    refused(&STUDY.replace("\"100ms\"]", "\"90ms\"]"), &["axes.rtt", "30ms, 100ms", "30ms, 90ms"]);
    refused(&STUDY.replace("seeds = 3", "seeds = 4"), &["seeds", "`3`", "`4`"]);
    refused(&STUDY.replace("delay = \"5ms\"\n", ""), &["delay", "`5ms`", "absent"]);
    // Another way to write the same study is the same study.
    let same = folder.file("same.toml", &STUDY.replace("50kB", "50000B").replace("30ms", "0.03s"));
    done(&same, &out, &["--shard", "1/12"]);

    let manifest = folder.0.join("out/study.json");
    let text = std::fs::read_to_string(&manifest).expect("a manifest");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let model = document["model"].as_str().expect("a model");
    let identity = document["identity"].as_str().expect("an identity");
    let old = text.replace(model, "0123456789abcdef").replace(identity, "0");
    std::fs::write(&manifest, old).expect("the manifest can be written");
    refused(STUDY, &["model 0123456789abcdef", model]);

    std::fs::remove_file(&manifest).expect("it was there");
    refused(STUDY, &["another command"]);
}

#[test]
fn a_folder_that_another_sweep_writes_to_is_refused() {
    let folder = Folder::new("locked");
    let study = long_study(&folder);
    let out = folder.path("out");
    let mut child = at_work(&study, &out);
    let output = sweep(&study, &["--out", &out]);
    child.kill().expect("it lives");
    child.wait().expect("it ends");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("another lasthop sweep"), "{}", stderr(&output));
}

#[test]
fn recorded_files_decide_by_their_content_not_by_their_name() {
    let folder = Folder::new("recorded");
    let written = "rate = \"2Mbit/s\"\nsize = \"20kB\"\nseeds = 1\n\
                   tcp = \"sack\"\nschemes = \"plain\"\n\
                [axes]\ndown-loss = [\"a.txt\", \"b.txt\"]\n";
    let study = folder.file("study.toml", written);
    folder.file("a.txt", "0\n0\n1\n");
    folder.file("b.txt", "0\n1\n1\n");
    let out = folder.path("out");
    done(&study, &out, &[]);
    let before = names(&out);
    assert_eq!(before.len(), 2);
    folder.file("b.txt", "0\n1\n1\n0\n");
    let output = sweep(&study, &["--out", &out]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("content"), "{}", stderr(&output));
    let new = folder.path("new");
    let output = done(&study, &new, &["--merge", &out]);
    assert!(stdout(&output).starts_with("2 of 2 runs are finished, 1 of them now"));
    assert_eq!(names(&new)[0], before[0]);
    folder.file("b.txt", "0\n0\n1\n");
    let output = sweep(&study, &["--out", &folder.path("same")]);
    assert!(stderr(&output).contains("same as"), "two files with one content are one run");
}

#[test]
fn chosen_metrics_are_the_measures_that_are_written() {
    let folder = Folder::new("metrics");
    let study = folder.file("study.toml", &format!("metrics = [\"stall_s\"]\n{STUDY}"));
    let plain = folder.file("plain.toml", STUDY);
    let out = folder.path("out");
    done(&plain, &out, &["--shard", "1/24"]);
    let output = done(&study, &out, &["--shard", "1/24"]);
    assert!(stdout(&output).contains(" 0 of them now"), "a choice of measures changes no run");
    let header = text(&out, "runs.csv").lines().next().expect("a header").to_owned();
    assert!(header.ends_with(",backhaul_share,stall_s"), "{header}");
}
