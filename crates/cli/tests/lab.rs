//! `lasthop lab` as users and scripts meet it: its JSON, its folders, what a killed run leaves.
//!
//! Needs what the lab needs: root, or user namespaces.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A folder of this test's own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("lasthop-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder in the temporary directory");
        Folder(path)
    }

    fn path(&self) -> String {
        self.0.display().to_string()
    }

    /// The manifests of its runs.
    fn manifests(&self) -> Vec<Value> {
        let read = |run: PathBuf| -> Option<Value> {
            serde_json::from_slice(&std::fs::read(run.join("manifest.json")).ok()?).ok()
        };
        self.runs().into_iter().filter_map(read).collect()
    }

    fn runs(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

/// Set for a test that has a `/run` of its own.
const ISOLATED: &str = "LASTHOP_TEST_ISOLATED";

/// Runs a test once more with a `/run` of its own: no other lab on this machine then sees, or
/// cleans up, its network namespaces. Who is not root becomes root of a user namespace.
fn isolated(test: &str, body: fn()) {
    if std::env::var_os(ISOLATED).is_some() {
        return body();
    }
    let mut command = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user", "--net"]);
    }
    let script = "mount -t tmpfs tmpfs /run && exec \"$0\" --exact \"$1\" --nocapture";
    command.args(["--mount", "sh", "-c", script]).env(ISOLATED, "1");
    command.arg(std::env::current_exe().expect("the path of this program")).arg(test);
    let output = command.output().expect("unshare runs");
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success() && said[0].contains("1 passed"), "{}\n{}", said[0], said[1]);
}

fn lasthop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.args(arguments);
    command
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("output is UTF-8")
}

/// Until something is so; not for ever.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("waited in vain until {what}");
}

const LINK: [&str; 11] = [
    "lab",
    "--rate",
    "5Mbit/s",
    "--ber",
    "1/1Mbit",
    "--outage",
    "at=300ms,length=200ms",
    "--tcp",
    "reno,cubic",
    "--quiet",
    "--out",
];

#[test]
fn a_lab_keeps_every_run_and_says_how_far_it_can_be_trusted() {
    isolated("a_lab_keeps_every_run_and_says_how_far_it_can_be_trusted", records);
}

fn records() {
    let out = Folder::new("lab-keeps");
    let more = ["--duration", "1s", "--seeds", "2", "--jobs", "2", "--trace", "--json"];
    let mut command = lasthop(&LINK);
    command.arg(out.path()).args(more).args(["--schemes", "plain,snoop-modern"]);
    let output = command.output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    assert_eq!(output.stdout, std::fs::read(out.0.join("summary.json")).expect("a summary"));
    check_rows(document["rows"].as_array().expect("rows"));

    assert_eq!(out.runs().len(), 2 * 2 * 2, "senders x schemes x seeds");
    for run in out.runs() {
        let manifest = std::fs::read(run.join("manifest.json")).expect("a manifest");
        let manifest: Value = serde_json::from_slice(&manifest).expect("JSON");
        assert_eq!(manifest["state"], "done", "{manifest}");
        assert_eq!((&manifest["world"], &manifest["checks"]), (&"lab".into(), &"passed".into()));
        assert_eq!(manifest["streams"][0]["sha256"], "same");
        assert!(manifest["streams"][0]["received_bytes"].as_u64() > Some(0), "{manifest}");
        assert!(manifest["radio_late_s"]["max"].as_f64() > Some(0.0), "{manifest}");
        assert!(manifest["trace_hash"].is_string() && manifest["scenario"].is_object());
        assert_eq!(manifest["daemon"].is_object(), manifest["scheme"] == "snoop-modern");
        let trace = std::fs::read_to_string(run.join("trace.txt")).expect("a trace");
        let command = manifest["command"].as_str().expect("a command");
        assert!(trace.starts_with(&format!("# {command}\n")), "{trace:.200}");
        assert!(trace.contains("link-down") && trace.contains("delivered"));
    }
    let report = std::fs::read_to_string(out.0.join("report.html")).expect("a report");
    for panel in ["plain, lab", "plain, predicted", "snoop-modern, lab"] {
        assert!(report.contains(&format!("\"name\":\"{panel}\"")), "{panel}");
    }
    assert!(report.contains("Radio late, in the worst run, by "));
}

fn check_rows(rows: &[Value]) {
    let of = |world: &str| rows.iter().filter(|row| row["world"] == world).count();
    assert_eq!((of("lab"), of("sim")), (4, 4), "both senders have a model");
    for row in rows {
        for field in ["mean", "ci95", "min", "max", "p50"] {
            assert!(row["goodput_bps"][field].is_number(), "{field} in {row}");
        }
        // Of two runs, the median is the mean.
        let goodput = |field: &str| row["goodput_bps"][field].as_f64().expect("a number");
        assert!((goodput("mean") - goodput("p50")).abs() < 1.0, "{row}");
        let share = row["probe_air_share"].as_f64().expect("a share");
        assert!((0.0..0.002).contains(&share), "the bound of the probes: {row}");
        assert_eq!(row["unfinished"], 0);
        let late = &row["radio_late_s"];
        if row["world"] == "sim" {
            assert!(late.is_null(), "{row}");
            continue;
        }
        let [p50, p99, max] =
            ["p50", "p99", "max"].map(|field| late[field].as_f64().expect("a number"));
        assert!(0.0 <= p50 && p50 <= p99 && p99 <= max && max > 0.0, "{row}");
        assert!(late["real_time"].is_boolean());
    }
}

#[test]
fn messages_beside_a_bulk_transfer_have_possible_latencies_in_both_worlds() {
    isolated("messages_beside_a_bulk_transfer_have_possible_latencies_in_both_worlds", messages);
}

fn messages() {
    let out = Folder::new("lab-messages");
    let link = ["lab", "--rate", "5Mbit/s", "--delay", "20ms", "--wired-delay", "10ms"];
    let load =
        ["--traffic", "bulk+request:2kB,every=100ms", "--direction", "both", "--tcp", "cubic"];
    let runs = ["--schemes", "plain,snoop-modern", "--duration", "2s", "--seeds", "1", "--json"];
    let mut command = lasthop(&link);
    command.args(load).args(runs).args(["--quiet", "--out"]).arg(out.path());
    let output = command.output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{message}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("one JSON document");
    let rows = document["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 4, "each scheme and its prediction");
    // Both hops' delays, and 2 packets of 2000 bytes and their headers at 5 Mbit/s.
    let least = 0.030 + 8.0 * 2_080.0 / 5e6;
    for row in rows {
        let latency = |field: &str| row["latency_s"][field].as_f64().expect("a latency");
        assert!(latency("p50") >= least && latency("max") < 2.0, "{row}");
        assert_eq!((&row["checks"], &row["unfinished"]), (&"passed".into(), &0.into()), "{row}");
        // A message needs its connection first: a round trip more for the first of each.
        assert!(latency("max") >= least + 0.060, "{row}");
    }
    for manifest in out.manifests() {
        let streams = manifest["streams"].as_array().expect("streams");
        assert_eq!(streams.len(), 4, "bulk and messages, each way: {manifest}");
        for (number, stream) in streams.iter().enumerate() {
            assert_eq!(stream["sha256"], "same", "{manifest}");
            assert!(stream["received_bytes"].as_u64() >= Some(10 * 2_000), "{manifest}");
            assert_eq!(stream["messages_late_s"].is_number(), number >= 2, "{manifest}");
        }
    }
}

#[test]
fn a_run_kept_with_its_packets_is_shown_as_the_lab_showed_it() {
    isolated("a_run_kept_with_its_packets_is_shown_as_the_lab_showed_it", packets);
}

/// The panels of a page's last plot.
fn panels(page: &Path) -> Vec<Value> {
    let page = std::fs::read_to_string(page).expect("a page");
    let (_, rest) = page.split_once("id=\"plots\">").expect("an index");
    let index: Value =
        serde_json::from_str(rest.split_once("</script>").expect("its end").0).expect("JSON");
    let plots = index["plots"].as_array().expect("plots");
    plots.last().expect("a plot")["panels"].as_array().expect("panels").clone()
}

fn packets() {
    let out = Folder::new("lab-packets");
    let mut command = lasthop(&LINK[..LINK.len() - 4]);
    let more = ["--tcp", "cubic", "--schemes", "plain,snoop-modern", "--duration", "1s"];
    command.args(more).args(["--seeds", "1", "--pcap", "--quiet", "--out"]).arg(out.path());
    let output = command.output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let report = out.0.join("report.html");
    let then = panels(&report);
    let run = out.runs().into_iter().find(|run| run.display().to_string().contains("-snoop-"));
    let run = run.expect("a run of that scheme");
    let name = run.display().to_string();
    let output = lasthop(&["view", &name]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page = run.join("report.html");
    assert_eq!(stdout(&output).trim(), page.display().to_string());
    let now = panels(&page);
    let names: Vec<&str> = now.iter().filter_map(|panel| panel["name"].as_str()).collect();
    let measured = ["snoop-modern, lab", "plain, lab"];
    assert_eq!(names, [measured[0], "snoop-modern, predicted", measured[1], "plain, predicted"]);
    for (name, now) in names.iter().zip(&now).filter(|(name, _)| measured.contains(name)) {
        let then = then.iter().find(|panel| panel["name"] == **name).expect("the same panel");
        let count = |of: &Value| of["at"]["length"].as_i64().expect("a length");
        for marks in ["data", "end_to_end", "local", "probes", "acks", "delivered"] {
            assert_eq!(count(&now[marks]), count(&then[marks]), "{name}: {marks}");
        }
        assert!(count(&now["data"]) > 100 && count(&now["lost"]) > 0, "{name}");
        assert_eq!(now["outages"]["from"]["length"], 1, "{name}");
        // What is lost shortly before the end may, by its captures, still be under way.
        let unknown = count(&then["lost"]) - count(&now["lost"]);
        assert!((0..=3).contains(&unknown), "{name}: {unknown} losses are not seen");
    }

    let drawn = lasthop(&["view", &name, "--svg", "sequence"]).output().expect("it runs");
    assert_eq!(drawn.status.code(), Some(0), "{}", String::from_utf8_lossy(&drawn.stderr));
    let svg = std::fs::read_to_string(run.join("sequence.svg")).expect("a drawing");
    assert!(svg.contains(">snoop-modern, lab</text>") && svg.matches("<path ").count() > 10);
    let text = std::fs::read_to_string(&report).expect("a page");
    assert!(text.contains(&format!("lasthop view {name}")), "the page of all names the run");
    let all = lasthop(&["view", &out.path()]).output().expect("it runs");
    assert_eq!(stdout(&all).trim(), report.display().to_string());
    assert_eq!(std::fs::read_to_string(&report).expect("a page"), text, "it is left as it was");
}

/// A lab in the middle of its first run.
fn running_lab(out: &Folder) -> Child {
    let long = ["--duration", "60s", "--seeds", "1", "--schemes", "snoop-modern"];
    let mut command = lasthop(&LINK);
    command.arg(out.path()).args(long).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().expect("it runs");
    wait_until("a run has begun", || out.manifests().iter().any(|one| one["state"] == "begun"));
    child
}

#[test]
fn clean_removes_what_a_killed_run_left_and_nothing_of_a_live_one() {
    isolated("clean_removes_what_a_killed_run_left_and_nothing_of_a_live_one", cleaning);
}

fn clean() -> String {
    let output = lasthop(&["lab", "clean"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    stdout(&output)
}

fn ip(arguments: &[&str]) -> Command {
    let mut command = Command::new("ip");
    command.arg("netns").args(arguments);
    command
}

fn cleaning() {
    assert_eq!(clean(), "nothing to remove\n");
    // No process has this number: it is above every possible one.
    let orphan = "lh-9999999-mh";
    assert!(ip(&["add", orphan]).status().expect("ip runs").success());
    let mut inside = ip(&["exec", orphan, "sleep", "60"]).spawn().expect("ip runs");
    let name = format!("/proc/{}/comm", inside.id());
    wait_until("it runs inside", || std::fs::read_to_string(&name).is_ok_and(|n| n == "sleep\n"));
    let kept = format!("kept {orphan}: process {} (sleep) runs in it\n", inside.id());
    assert_eq!(clean(), format!("{kept}nothing to remove\n"));
    inside.kill().expect("it can be killed");
    inside.wait().expect("it ends");
    assert_eq!(clean(), format!("removed {orphan}\n"));

    let out = Folder::new("lab-killed");
    let mut child = running_lab(&out);
    let base = format!("lh-{}-bs", child.id());
    let is_there = || Path::new("/run/netns").join(&base).exists();
    let said = clean();
    let number = child.id();
    let kept = format!("kept lh-{number}-air and 3 more: process {number} (lasthop) runs\n");
    assert!(said.contains(&kept) && is_there(), "{said}");

    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(out.manifests()[0]["state"], "begun");
    let note = out.manifests()[0]["note"].to_string();
    assert!(note.contains("killed") && note.contains(&child.id().to_string()), "{note}");
    assert!(!out.0.join("summary.json").exists(), "nothing passes for a result");
    // The daemon ends with its input, a moment after the lab.
    let mut said = String::new();
    wait_until("it is removed", || {
        said += &clean();
        !is_there()
    });
    assert!(said.contains(&format!("removed {base}\n")), "{said}");
}

#[test]
fn an_interrupted_run_says_so_in_its_folder() {
    isolated("an_interrupted_run_says_so_in_its_folder", interruption);
}

fn interruption() {
    let out = Folder::new("lab-interrupted");
    let mut child = running_lab(&out);
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(asked.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(out.manifests()[0]["state"], "interrupted");
    assert!(!Path::new(&format!("/run/netns/lh-{}-bs", child.id())).exists());
}

#[test]
fn a_failed_run_says_why_in_its_folder() {
    isolated("a_failed_run_says_why_in_its_folder", failure);
}

fn failure() {
    let out = Folder::new("lab-failed");
    let mut child = running_lab(&out);
    let number = child.id().to_string();
    let mut daemon = String::new();
    wait_until("the daemon runs", || {
        let found = Command::new("pgrep").args(["-P", &number, "-f", "base-station"]).output();
        daemon = stdout(&found.expect("pgrep runs")).trim().to_owned();
        !daemon.is_empty()
    });
    // Until the transfer runs: a daemon that ends before that is no failed run.
    std::thread::sleep(std::time::Duration::from_millis(1_500));
    assert!(Command::new("kill").args(["-KILL", &daemon]).status().expect("kill runs").success());
    // The next run of the lab is not disturbed: it has a daemon of its own.
    let states = || out.manifests().iter().map(|one| one["state"].clone()).collect::<Vec<_>>();
    wait_until("the run has failed", || states().contains(&"failed".into()));
    let failed = out.manifests().into_iter().find(|one| one["state"] == "failed");
    let checks = failed.expect("it is there")["checks"].to_string();
    assert!(checks.contains("the daemon ended"), "{checks}");
    wait_until("the next run has begun", || states().contains(&"begun".into()));
    assert!(Command::new("kill").args(["-INT", &number]).status().expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}
