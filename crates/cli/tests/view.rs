//! `lasthop view`: the page and the drawings of what was kept, and folders that are something else.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).output().expect("the program starts")
}

/// A small comparison: lossy, with an outage, two seeds.
fn kept(name: &str, command: &str) -> (Folder, PathBuf) {
    let path = std::env::temp_dir().join(format!("lasthop-{}-view-{name}", std::process::id()));
    let folder = Folder(path.clone());
    let out = path.display().to_string();
    let mut arguments = vec![command, "--rate", "2Mbit/s", "--ber", "1/256Kbit", "--size", "300kB"];
    arguments.extend(["--outage", "at=700ms,length=300ms", "--tcp", "sack", "--seeds", "2"]);
    arguments.extend(["--schemes", "plain,snoop", "--out", &out, "-q"]);
    if command == "run" {
        arguments.push("--trace");
    }
    let output = lasthop(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (folder, path)
}

fn run_of(out: &Path, beginning: &str) -> PathBuf {
    let entries = std::fs::read_dir(out).expect("an output folder").flatten();
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
    };
    entries.map(|entry| entry.path()).find(named).expect("a run of that name")
}

fn view(folder: &Path, more: &[&str]) -> Output {
    let name = folder.display().to_string();
    let arguments: Vec<&str> = ["view", &name].into_iter().chain(more.iter().copied()).collect();
    lasthop(&arguments)
}

/// What the program says against a folder, which is bad input.
fn refused(folder: &Path) -> String {
    let output = view(folder, &[]);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).expect("messages are UTF-8")
}

fn index(page: &Path) -> Value {
    let page = std::fs::read_to_string(page).expect("a page");
    let (_, rest) = page.split_once("id=\"plots\">").expect("an index");
    serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON")
}

#[test]
fn the_page_of_a_comparison_is_written_anew_and_is_the_same_but_for_its_command() {
    let (_folder, out) = kept("comparison", "compare");
    let page = out.join("report.html");
    let first = index(&page);
    std::fs::remove_file(&page).expect("it was written");
    let output = view(&out, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), page.display().to_string());
    assert_eq!(index(&page), first);
    let text = std::fs::read_to_string(&page).expect("a page");
    assert!(text.contains("<td class=\"value best\">"), "the table is there, too");
}

#[test]
fn the_page_of_a_run_shows_it_first_and_the_other_schemes_beside_it() {
    let (_folder, out) = kept("run", "run");
    let run = run_of(&out, "run-snoop-sack-2");
    assert_eq!(view(&run, &[]).status.code(), Some(0));
    let index = index(&run.join("report.html"));
    let panels = index["plots"][0]["panels"].as_array().expect("panels");
    let names: Vec<&str> = panels.iter().filter_map(|panel| panel["name"].as_str()).collect();
    assert_eq!(names, ["snoop", "plain"]);
    let texts = panels[0]["story"]["texts"].as_array().expect("texts");
    let names_a_rule = |text: &Value| text.as_str().is_some_and(|text| text.starts_with("SNOOP-"));
    assert!(texts.iter().any(names_a_rule), "{texts:?}");
    assert!(panels[0]["cache"]["at"]["length"].as_u64() > Some(0), "snoop keeps something");
    assert_eq!(panels[1]["cache"]["at"]["length"], 0, "plain keeps nothing");
}

/// Drawings of the same: the signal of both cells, and the messages of the first handoff.
fn drawn_among_cells(run: &Path) {
    let output = view(run, &["--svg", "signal,handoff,windows"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let text = |plot: &str| std::fs::read_to_string(run.join(format!("{plot}.svg"))).expect(plot);
    let [signal, handoff, windows] = ["signal", "handoff", "windows"].map(text);
    for drawing in [&signal, &handoff, &windows] {
        assert!(drawing.trim_end().ends_with("</svg>") && !drawing.contains("NaN"), "{drawing}");
    }
    assert!(signal.contains(">cell 0</text>") && signal.contains(">cell 1</text>"));
    let crossings = |drawing: &str| drawing.matches("stroke-dasharray=\"3 3\"").count();
    assert_eq!(crossings(&windows), 4, "two handoffs of two schemes");
    let both = ["plain: cell 0 to 1 at 4.000 s", "multicast: cell 0 to 1 at 4.000 s"];
    for words in [&both[..], &["greeting", "joins the group", "begun", "home agent"]].concat() {
        assert!(handoff.contains(words), "{words}: {handoff}");
    }
}

/// How many numbers a column of the page has.
fn length(of: &Value) -> u64 {
    of["length"].as_u64().expect("a column")
}

#[test]
fn the_page_of_hosts_that_change_cells_has_cells_signal_messages_and_handoffs() {
    let path = std::env::temp_dir().join(format!("lasthop-{}-view-cells", std::process::id()));
    let folder = Folder(path.clone());
    let out = path.display().to_string();
    let mut arguments = vec!["run", "--rate", "10Mbit/s", "--rtt", "30ms", "--duration", "12s"];
    arguments.extend(["--handoff", "every=5s,first=4s,gap=0.1s", "--tcp", "cubic", "--seeds", "1"]);
    arguments.extend(["--schemes", "plain,multicast", "--mobiles", "2", "--trace"]);
    arguments.extend(["--out", &out, "-q"]);
    let output = lasthop(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = run_of(&folder.0, "run-plain-cubic-1");
    assert_eq!(view(&run, &[]).status.code(), Some(0));
    let index = index(&run.join("report.html"));
    let panels = index["plots"][0]["panels"].as_array().expect("panels");
    assert_eq!(panels.len(), 2);
    for panel in panels {
        let roaming = &panel["roaming"];
        assert_eq!(roaming["cells"], serde_json::json!([0, 1]));
        assert_eq!(length(&roaming["handoffs"]["begin"]), 2, "at 4 s and at 9 s");
        assert_eq!(length(&roaming["gaps"]["from"]), 2);
        assert_eq!(roaming["served"].as_array().map(Vec::len), Some(2), "two hosts");
        assert!(length(&roaming["beacons"]["at"]) >= 10, "one per second");
        assert_eq!(length(&roaming["signal"]["at"]), 121, "each 100 ms");
        assert_eq!(roaming["signal"]["of"].as_array().map(Vec::len), Some(2));
        assert_eq!(roaming["complete"], true);
    }
    drawn_among_cells(&run);
    let labels = |panel: &Value| {
        let labels = panel["roaming"]["messages"]["labels"].as_array().expect("labels").clone();
        labels.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let has = |panel, label: &str| labels(panel).iter().any(|known| known.starts_with(label));
    assert!(has(&panels[0], "greeting") && has(&panels[0], "registration reply, accepted"));
    assert!(has(&panels[1], "role: forward") && !has(&panels[1], "registration"));
}

#[test]
fn each_plot_is_drawn_into_a_file_of_its_name_elsewhere_if_asked() {
    let (_folder, out) = kept("svg", "compare");
    let elsewhere = out.join("figures");
    let name = elsewhere.display().to_string();
    let output = view(&out, &["--svg", "sequence,windows,queue,cache,link", "--out", &name]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    for plot in ["sequence", "windows", "queue", "cache", "link"] {
        let text = std::fs::read_to_string(elsewhere.join(format!("{plot}.svg"))).expect(plot);
        assert!(text.starts_with("<svg ") && text.trim_end().ends_with("</svg>"), "{plot}");
        assert!(text.contains(">time, s</text>") && !text.contains("NaN"), "{plot}");
        assert_eq!(text.matches(">plain</text>").count(), 1, "{plot} names its rows");
        assert!(text.matches("<path ").count() > 10, "{plot} shows something");
    }
    let unknown = view(&out, &["--svg", "throughput"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("expected one of sequence, windows"));
}

#[test]
fn a_folder_that_is_none_of_ours_half_written_or_foreign_is_refused_with_the_reason() {
    let (_folder, out) = kept("refused", "compare");
    let run = run_of(&out, "run-plain-sack-1");
    let manifest = run.join("manifest.json");
    let good = std::fs::read_to_string(&manifest).expect("a manifest");
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        std::fs::write(&manifest, good.replacen(from, to, 1)).expect("it can be written");
        refused(&run)
    };
    let old = format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION"));
    assert!(with(&old, "\"version\": \"0.0.1\"").contains("written by version 0.0.1"));
    assert!(with("\"program\": \"lasthop\"", "\"program\": \"other\"").contains("not of this"));
    assert!(with("\"done\"", "\"begun\"").contains("half-written"));
    assert!(with("\"done\"", "\"interrupted\"").contains("ended this run early"));
    assert!(with("\"seconds\": ", "\"seconds\": 9").contains("plays the run differently"));
    std::fs::write(&manifest, &good[..good.len() / 2]).expect("it can be written");
    assert!(refused(&run).contains("half-written"));
    std::fs::write(&manifest, &good).expect("it can be written");
    std::fs::remove_file(out.join("summary.json")).expect("it was there");
    assert!(refused(&out).contains("the comparison never ended"));
    let empty = out.join("empty");
    std::fs::create_dir(&empty).expect("a folder");
    assert!(refused(&empty).contains("no run directory"));
    assert!(refused(&empty.join("nowhere")).contains("no such folder"));
    assert!(refused(&manifest).contains("this is a file"));
}

#[test]
fn a_run_of_the_lab_without_its_packets_is_refused_with_what_was_kept_and_what_keeps_more() {
    let (_folder, out) = kept("lab", "run");
    let run = run_of(&out, "run-plain-sack-1");
    let manifest = run.join("manifest.json");
    let good = std::fs::read_to_string(&manifest).expect("a manifest");
    // As the lab writes it: its senders are the kernel's.
    let lab = good.replace("\"world\": \"sim\"", "\"world\": \"lab\"");
    assert_ne!(lab, good);
    let lab = lab.replace("\"sack\",", "\"cubic\",").replace("\"sack\"\n", "\"cubic\"\n");
    std::fs::write(&manifest, lab).expect("it can be written");
    std::fs::write(out.join("report.html"), "all runs").expect("it can be written");
    let said = refused(&run);
    assert!(said.contains("real kernels cannot be played again"), "{said}");
    assert!(said.contains("were not kept, only manifest.json, trace.txt."), "{said}");
    assert!(said.contains("With --pcap they are: lasthop run --trace"), "{said}");
    assert!(said.contains("the page of all runs is"), "{said}");
    // Captures of another program stand there, but the manifest names no port.
    for machine in ["fixed-host", "base-station", "mobile-host"] {
        std::fs::write(run.join(format!("{machine}.pcapng")), "none").expect("it can be written");
    }
    assert!(refused(&run).contains("does not name the port"));
}
