//! `lasthop papers` as users and scripts meet it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn lasthop(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lasthop"));
    command.arg("papers").args(arguments).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).expect("output is UTF-8")
}

/// A folder of one test, removed at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Folder(std::env::temp_dir().join(format!("lasthop-{}-{name}", std::process::id())))
    }

    fn name(&self) -> &str {
        self.0.to_str().expect("a name in UTF-8")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_list_says_what_cannot_be_repeated_yet_and_runs_nothing() {
    let output = lasthop(&["--list", "EXP-SN-T1", "EXP-SN-W-split"]);
    assert_eq!(output.status.code(), Some(0));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 10, "each of eight rows, one more, and what that needs");
    assert!(lines[0].starts_with("EXP-SN-T1-a "));
    assert!(lines[8].starts_with("EXP-SN-W-split "));
    assert!(lines[9].trim_start().starts_with("not yet: needs a TCP endpoint"));
    assert!(!Path::new("lasthop-out").exists());
}

#[test]
fn an_unknown_id_starts_nothing() {
    let output = lasthop(&["EXP-NONE"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("EXP-NONE: no experiment's ID begins so"));
    assert_eq!(lasthop(&["--seeds", "1"]).status.code(), Some(2), "one run has no interval");
}

#[test]
fn json_has_the_fields_of_the_contract_and_is_the_same_again() {
    let folder = Folder::new("papers-json");
    let run =
        || lasthop(&["EXP-SN-S-f", "EXP-SN-S-e", "--seeds", "4", "--json", "--out", folder.name()]);
    let output = run();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(run().stdout, output.stdout);
    let entries: Vec<Value> = serde_json::from_slice(&output.stdout).expect("one document");
    assert_eq!(entries.len(), 2);
    let [waiting, judged] = [&entries[0], &entries[1]];
    assert_eq!((&waiting["id"], &waiting["verdict"]), (&"EXP-SN-S-e".into(), &"not yet".into()));
    assert!(waiting["reason"].as_str().expect("a reason").contains("needs a split connection"));
    assert_eq!((&judged["id"], &judged["verdict"]), (&"EXP-SN-S-f".into(), &"shape holds".into()));
    for field in ["title", "setup", "ours", "ci95", "tolerance", "calibrated"] {
        assert!(!judged[field].is_null(), "{field}");
    }
    assert!(judged["theirs"].is_null() && judged.get("theirs").is_some(), "none was published");
    assert_eq!(judged["setup"]["multiple-losses"]["seeds"], "1 to 4");
    let page = std::fs::read_to_string(folder.0.join("papers.html")).expect("a page");
    assert!(page.contains("EXP-SN-S-f") && !page.contains("<script"));
    assert!(folder.0.join("papers.json").exists());
}

#[test]
fn the_table_and_markdown_show_the_verdict() {
    let folder = Folder::new("papers-table");
    let run = |option: &[&str]| {
        let fixed = ["EXP-SN-S-f", "--seeds", "4", "--out", folder.name()];
        lasthop(&[&fixed[..], option].concat())
    };
    let table = run(&[]);
    assert_eq!(table.status.code(), Some(0));
    let row = text(&table.stdout).lines().find(|line| line.starts_with("EXP-SN-S-f "));
    assert!(row.expect("its row").contains("shape holds"));
    assert!(text(&table.stdout).contains("MAC efficiency 0.8219"), "the set-up is printed");
    let markdown = run(&["--markdown"]);
    assert!(text(&markdown.stdout).contains("| EXP-SN-S-f | shape holds | "));
}
