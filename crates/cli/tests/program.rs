//! The program as users and scripts meet it: exit codes, streams, JSON, bad input.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lasthop-{}-{name}", std::process::id()));
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

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments).output().expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

/// A comparison of a second or less.
const QUICK: [&str; 12] = [
    "--rate",
    "2Mbit/s",
    "--ber",
    "none,1/256Kbit",
    "--size",
    "300kB",
    "--seeds",
    "3",
    "--outage",
    "every=2s,length=100ms..500ms",
    "--tcp",
    "reno,sack",
];

fn compare(more: &[&str]) -> Output {
    let arguments: Vec<&str> = ["compare"].iter().chain(&QUICK).chain(more).copied().collect();
    lasthop(&arguments)
}

#[test]
fn the_same_command_gives_the_same_bytes_on_any_number_of_threads() {
    let folder = Folder::new("same");
    let out = folder.path("out");
    let one = compare(&["--json", "--out", &out, "--jobs", "1"]);
    let two = compare(&["--json", "--out", &out, "--jobs", "2"]);
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert_eq!(one.stdout, two.stdout);
    assert_eq!(one.stdout, std::fs::read(folder.0.join("out/summary.json")).expect("a summary"));
    assert!(folder.0.join("out/report.html").exists());
}

#[test]
fn json_has_the_fields_of_the_contract_and_its_scenario_can_be_fed_back() {
    let folder = Folder::new("json");
    let first = compare(&["--json", "--out", &folder.path("a")]);
    let document: Value = serde_json::from_slice(&first.stdout).expect("one JSON document");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 2 * 2 * 3, "senders x error rates x schemes");
    for row in rows {
        for field in [
            "scheme",
            "tcp",
            "sack",
            "direction",
            "world",
            "seeds",
            "goodput_bps",
            "ceiling_share",
            "stall_s",
            "stall_after_outage_s",
            "retransmissions_end_to_end",
            "retransmissions_local",
            "timeouts",
            "air_bytes_per_byte",
            "base_station_bytes_max",
            "checks",
            "ber",
            "loss",
        ] {
            assert!(!row[field].is_null() || field == "stall_after_outage_s", "{field} in {row}");
        }
        for field in ["mean", "ci95", "min", "max"] {
            assert!(row["goodput_bps"][field].is_number(), "{field}");
        }
        assert_eq!(row["checks"], "passed");
        assert_eq!(row["world"], "sim");
    }
    assert!(document["advice"].is_string() && document["version"].is_string());
    let validation = document["validation"].as_array().expect("a list of senders");
    let senders: Vec<_> = validation.iter().map(|sender| &sender["tcp"]).collect();
    assert_eq!(senders, ["reno", "sack"]);
    assert!(validation[1]["held"].is_null(), "no kernel has RFC 6675's sender");

    let scenario = folder.file("again.json", &document["scenario"].to_string());
    let again = lasthop(&["compare", &scenario, "--json", "--out", &folder.path("b")]);
    assert_eq!(stdout(&first), stdout(&again), "{}", stderr(&again));
}

#[test]
fn a_scenario_printed_complete_is_complete() {
    let folder = Folder::new("complete");
    let short = folder.file("short.toml", "radio = \"leo\"\nsize = \"2MB\"\nber = [\"none\"]\n");
    let complete = lasthop(&["scenario", "check", &short]);
    assert_eq!(complete.status.code(), Some(0), "{}", stderr(&complete));
    let long = folder.file("long.toml", &stdout(&complete));
    let again = lasthop(&["scenario", "check", &long]);
    assert_eq!(stdout(&complete), stdout(&again));
}

#[test]
fn bad_input_is_refused_with_line_value_and_expectation_and_nothing_is_started() {
    let folder = Folder::new("bad");
    let out = folder.path("never");
    let cases: [(&str, &[&str]); 14] = [
        ("rate = \"2Mbps\"", &[":1:", "2Mbps", "Mbit/s"]),
        ("\nrate = 2", &[":2:", "`2`", "Mbit/s"]),
        ("rat = \"2Mbit/s\"", &[":1:", "rat", "rate"]),
        ("delay = \"5\"", &[":1:", "`5`", "ms"]),
        ("delay = \"300s\"", &[":1:", "300s", "10s"]),
        ("ber = [\"none\", \"1/1mbit\"]", &[":1:", "1/1mbit", "1/64Kbit"]),
        ("loss = \"100%\"", &[":1:", "100%", "burst"]),
        ("outage = \"every=1s,length=2s\"", &[":1:", "every=1s,length=2s", "every=15s"]),
        ("schemes = [\"snop\"]", &[":1:", "snop", "snoop-modern"]),
        ("tcp = \"renoo\"", &[":1:", "renoo", "tahoe"]),
        ("size = \"1MB\"\nduration = \"3s\"", &[":2:", "duration", "not both"]),
        ("rtt = \"1ms\"\ndelay = \"10ms\"", &[":1:", "rtt", "20ms"]),
        ("seeds = 0", &[":1:", "seeds", "1 to"]),
        ("rate = \"2Mbit/s", &[":1:"]),
    ];
    for (text, expected) in cases {
        let file = folder.file("bad.toml", text);
        let output = lasthop(&["compare", &file, "--out", &out]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{text}: {message}");
        for part in expected {
            assert!(message.contains(part), "{text}: {part} in {message}");
        }
        assert!(message.contains("bad.toml") && output.stdout.is_empty(), "{message}");
    }
    assert!(!folder.0.join("never").exists(), "nothing was written");
}

#[test]
fn bad_options_and_files_exit_with_2() {
    let folder = Folder::new("options");
    let out = folder.path("out");
    let file = folder.file("a-file", "");
    let csv = folder.file("bad.csv", "time_s,event,packet\n1.0,data,zero\n");
    let cases: [&[&str]; 20] = [
        &["compare", "--rate", "2Mbps", "--out", &out],
        &["compare", "--nonsense"],
        &["compare", "--tcp", "bbr", "--sack", "off", "--out", &out],
        &["compare", "--tcp", "cubic", "--hosts", "1995", "--out", &out],
        &["lab", "--tcp", "sack1", "--out", &out],
        &["compare", "--schemes", "plain-tuned", "--out", &out],
        &["compare", "--sack", "off", "--tcp", "sack", "--out", &out],
        &["compare", "/does/not/exist.toml", "--out", &out],
        &["compare", "--out", &format!("{file}/below-a-file")],
        &["scenario", "check", "/does/not/exist.toml"],
        &["oracle", "ns2-tcp", "--tcp", "reno", "--drops", "14", "/does/not/exist.csv"],
        &["oracle", "ns2-tcp", "--tcp", "rino", "--drops", "14", &csv],
        &["oracle", "ns2-tcp", "--tcp", "reno", "--drops", "14", &csv],
        &["bench", "sim", "--flows", "0"],
        &["bench", "handoffs", "--schemes", "plain", "--tcp", "cubic"],
        &["bench", "handoffs", "--handoff", "every=8s,overlap", "--schemes", "plain,snoop"],
        &["compare", "--mobiles", "1025", "--out", &out],
        &["compare", "--mobiles", "262145", "--handoff", "every=8s,gap=0s", "--out", &out],
        &["compare", "--mobiles", "100000", "--handoff", "none,every=8s,gap=0s", "--out", &out],
        &[
            "compare",
            "--mobiles",
            "100000",
            "--cells",
            "500",
            "--handoff",
            "every=8s,overlap",
            "--out",
            &out,
        ],
    ];
    for arguments in cases {
        let output = lasthop(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(!stderr(&output).is_empty(), "{arguments:?} says why");
    }
    assert!(!folder.0.join("out").exists(), "nothing was written");
}

#[test]
fn absurd_values_of_options_are_answered_by_what_was_expected() {
    let cases: [([&str; 2], &[&str]); 4] = [
        (["--delay", "-3ms"], &["--delay", "`-3ms`", "as in 300ms"]),
        (["--queue", "--json"], &["--queue", "`--json`", "as in 100p"]),
        (["--jobs", "100000"], &["--jobs", "100000", "1..=1024"]),
        (["--jobs", "0"], &["--jobs", "1..=1024"]),
    ];
    for (option, expected) in cases {
        let output = compare(&option);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{option:?}: {message}");
        for part in expected {
            assert!(message.contains(part), "{option:?}: {part} in {message}");
        }
    }
}

#[test]
fn the_oracle_says_where_traces_part_and_exits_with_1() {
    let trace =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../tcp/tests/data/ns2-tcp-variants/onedrop_reno.csv");
    let same = lasthop(&["oracle", "ns2-tcp", "--tcp", "reno", "--drops", "14", trace]);
    assert_eq!(same.status.code(), Some(0), "{}", stdout(&same));
    assert!(stdout(&same).contains(" of ") && stdout(&same).contains("rows"));
    let other = lasthop(&["oracle", "ns2-tcp", "--tcp", "tahoe", "--drops", "14", trace]);
    assert_eq!(other.status.code(), Some(1));
    assert!(stdout(&other).contains("first"), "{}", stdout(&other));
}

#[test]
fn a_run_leaves_its_records_and_the_command_that_repeats_it() {
    let folder = Folder::new("run");
    let arguments = [
        "run",
        "--size",
        "50kB",
        "--seeds",
        "1",
        "--tcp",
        "reno",
        "--schemes",
        "snoop",
        "--ber",
        "1/64Kbit",
        "--trace",
        "--out",
    ];
    let out = folder.path("out");
    let output = lasthop(&[&arguments[..], &[&out]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = std::fs::read_dir(&out).expect("the output folder").flatten();
    let run = runs.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a run's folder");
    let manifest = std::fs::read_to_string(run.join("manifest.json")).expect("a manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["checks"], "passed");
    let trace = std::fs::read_to_string(run.join("trace.txt")).expect("a trace");
    assert!(trace.starts_with("# lasthop run") && trace.contains("SNOOP-ACK-7"));

    let command = manifest["command"].as_str().expect("a command");
    let again = folder.path("again");
    let words: Vec<&str> = command.split_whitespace().skip(1).collect();
    let output = lasthop(&[&words[..], &["--out", &again]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = std::fs::read_dir(&again).expect("the output folder").flatten();
    let run = runs.map(|entry| entry.path()).find(|path| path.is_dir()).expect("a run's folder");
    let repeated = std::fs::read_to_string(run.join("manifest.json")).expect("a manifest");
    let repeated: Value = serde_json::from_str(&repeated).expect("JSON");
    assert_eq!(repeated["trace_hash"], manifest["trace_hash"]);
}

#[test]
fn the_lab_says_which_module_a_sender_is_missing() {
    let file = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(file).expect("Linux lists them");
    if available.split_whitespace().any(|name| name == "vegas") {
        return;
    }
    let folder = Folder::new("no-vegas");
    let output = lasthop(&["lab", "--tcp", "vegas", "--out", &folder.path("out")]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("modprobe tcp_vegas"), "{}", stderr(&output));
    assert!(!folder.0.join("out").exists(), "nothing was written");
}

#[test]
fn what_does_not_go_together_or_only_simulated_is_refused_with_the_reason() {
    for (arguments, wanted) in [
        (["compare", "--schemes", "snoop+window-station"], "takes for lost on the air"),
        (["compare", "--schemes", "snoop+split"], "several of those joined by +"),
        (["compare", "--outage", "at=1s,length=1s,notified,warned=1s"], "warned=100ms"),
        (["lab", "--schemes", "window-mobile"], "runs in the simulator only"),
        (["lab", "--outage", "at=1s,length=1s,warned=1s"], "nobody in the lab is warned"),
    ] {
        let folder = Folder::new("refused");
        let out = folder.path("out");
        let output = lasthop(&[&arguments[..], &["--tcp", "cubic", "--out", &out]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(wanted), "{arguments:?}: {}", stderr(&output));
        assert!(!folder.0.join("out").exists(), "nothing was written");
    }
}

#[test]
fn schemes_and_bench_print_what_the_contract_says() {
    let schemes = lasthop(&["schemes", "--json"]);
    let schemes: Value = serde_json::from_slice(&schemes.stdout).expect("JSON");
    let names: Vec<&str> =
        schemes.as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    let mut known: Vec<&str> = node::composition::Part::all().map(|part| part.name()).collect();
    known.extend(["best", "plain-tuned", "observe"]);
    assert_eq!(names, known);
    let text = lasthop(&["schemes"]);
    let text = String::from_utf8(text.stdout).expect("text");
    let line = |begin: &str| text.lines().find(|line| line.starts_with(begin)).map(str::to_owned);
    for (begin, wanted) in [
        (
            "fast-retransmit-marked  sim        mobile host",
            "which the fixed host has to understand",
        ),
        ("window-mobile           with snoop, snoop-modern, mobile-ip", "multicast, smooth"),
        ("forwarding              with snoop, snoop-modern", "window-station"),
        ("best                    is", "smooth"),
        ("window-station          and multicast", "a tunnel to another"),
        ("prefetch                and multicast", "at a time"),
        ("snoop                   and window-station", "the other takes for lost on the air"),
    ] {
        let line = line(begin).unwrap_or_else(|| panic!("{begin:?} in\n{text}"));
        assert!(line.ends_with(wanted), "{line}");
    }
    for sender in node::scenario::Sender::ALL {
        let listed =
            text.lines().filter(|line| line.split_whitespace().next() == Some(sender.name()));
        assert_eq!(listed.count(), 1, "{sender} has one line in\n{text}");
    }

    let bench = lasthop(&["bench", "sim", "--flows", "3", "--size", "100kB", "--json"]);
    let bench: Value = serde_json::from_slice(&bench.stdout).expect("JSON");
    for field in [
        "flows",
        "size_bytes",
        "scheme",
        "tcp",
        "data_packets",
        "cpu_s",
        "data_packets_per_cpu_s",
        "events",
        "ns_per_event",
        "peak_rss_bytes",
    ] {
        assert!(!bench[field].is_null(), "{field}");
    }
    assert_eq!(bench["data_packets"], 3 * 69, "100 kB are 69 segments of 1460 bytes");

    let options = "--mobiles 30 --cells 3 --handoff every=8s,first=4s,gap=100ms --schemes plain \
                   --tcp cubic --traffic request:500B,every=1s --duration 10s --json";
    let options: Vec<&str> = ["bench", "handoffs"].into_iter().chain(options.split(' ')).collect();
    let bench = lasthop(&options);
    let bench: Value = serde_json::from_slice(&bench.stdout).expect("JSON");
    for field in ["cpu_s", "real_time_factor", "events", "ns_per_event", "peak_rss_bytes"] {
        assert!(bench[field].as_f64().is_some_and(|value| value > 0.0), "{field}");
    }
    assert_eq!(bench["handoffs"], 30, "each host crosses once in 10 s");
    assert_eq!((&bench["simulated_s"], &bench["checks"]), (&10.0.into(), &"passed".into()));
}

#[test]
fn a_run_writes_captures_and_assess_says_what_troubled_them() {
    let folder = Folder::new("assess");
    let out = folder.path("out");
    let arguments =
        ["--rate", "5Mbit/s", "--rtt", "40ms", "--size", "1MB", "--loss", "2%", "--seeds", "1"];
    let run = [&["run", "--pcap", "--quiet", "--out", &out][..], &arguments].concat();
    let run = [&run[..], &["--schemes", "plain", "--tcp", "linux"]].concat();
    assert_eq!(lasthop(&run).status.code(), Some(0));
    let runs: Vec<PathBuf> = std::fs::read_dir(&out)
        .expect("the output")
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_dir())
        .collect();
    for (machine, place) in
        [("fixed-host", "sender"), ("base-station", "middle"), ("mobile-host", "receiver")]
    {
        let capture = runs[0].join(format!("{machine}.pcapng")).display().to_string();
        let output = lasthop(&["assess", &capture, "--json", "--out", &out]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let document: Value = serde_json::from_str(&stdout(&output)).expect("one document");
        assert_eq!(document["place"], place);
        assert_eq!(document["helpable_share"], 1.0);
        let connection = &document["connections"][0];
        assert_eq!(connection["trouble"], "radio", "{machine}");
        // The run ends with the last delivery: its ACK, and those on their way, never come here.
        let acknowledged = connection["payload_bytes"].as_u64().unwrap_or(0);
        assert!((950_000..=1_000_000).contains(&acknowledged), "{machine}: {acknowledged}");
        let kept = std::fs::read_to_string(folder.path("out/assessment.json")).expect("kept");
        assert_eq!(kept, stdout(&output));
        let table = stdout(&lasthop(&["assess", &capture]));
        assert!(table.contains("100.0 % of the bytes can be helped"), "{table}");
        assert!(table.contains("snoop-modern"), "{table}");
    }
}

#[test]
fn what_is_no_capture_ends_with_2_and_says_where_and_what() {
    let folder = Folder::new("no-capture");
    let file = folder.file("page.pcap", "<!doctype html>");
    let output = lasthop(&["assess", &file]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains(&file) && message.contains("offset 0: found the bytes"), "{message}");
    assert!(message.contains("expected a capture"), "{message}");
    assert_eq!(lasthop(&["assess", &folder.path("none.pcap")]).status.code(), Some(2));
    assert_eq!(lasthop(&["assess", &file, "--at", "moon"]).status.code(), Some(2));
}

#[test]
fn a_reader_that_goes_ends_the_program_in_silence() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_lasthop"))
        .args(["schemes"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}

#[test]
fn what_cannot_be_written_is_said() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a full device");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    let output = command.arg("schemes").stdout(full).output().expect("the program starts");
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).starts_with("lasthop: cannot write to stdout: "), "{output:?}");
}
