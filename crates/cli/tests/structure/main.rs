//! The structure of the workspace, checked: which crate uses which, what engines must not touch,
//! how long files and lines are, which rows of the specification have a test, and that
//! ARCHITECTURE.md names files that exist.
//!
//! Each check is a function of text that returns the broken rules as sentences; `bad_examples`
//! shows each one what it has to find.

mod bad_examples;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The arrows: a crate, and the crates of the workspace that it may use.
const ARROWS: [(&str, &[&str]); 16] = [
    ("wire", &[]),
    ("sansio", &["wire"]),
    ("tcp", &["sansio", "wire"]),
    ("schemes", &["sansio", "wire"]),
    ("mobility", &["sansio", "wire"]),
    ("link", &["sansio"]),
    ("trace", &["sansio", "wire"]),
    ("node", &["tcp", "schemes", "mobility", "link", "sansio", "wire"]),
    ("sim", &["node", "trace", "link", "schemes", "tcp", "sansio"]),
    ("study", &["sim", "node", "trace", "sansio"]),
    ("assess", &["schemes", "sansio", "wire"]),
    ("live", &["node", "link", "schemes", "sansio", "trace", "wire"]),
    ("report", &["trace", "sansio"]),
    (
        "papers",
        &["study", "sim", "node", "report", "link", "tcp", "schemes", "trace", "sansio", "wire"],
    ),
    ("cli", ANYTHING),
    ("fuzzing", &["wire", "sansio", "tcp", "schemes", "mobility", "assess"]),
];
/// In place of a list: every crate.
const ANYTHING: &[&str] = &["*"];

/// The simulator and everything it is made of: deterministic, without any operating system.
const PURE_CRATES: [&str; 9] =
    ["wire", "sansio", "tcp", "schemes", "mobility", "link", "trace", "node", "sim"];
/// Crates of others that those may use.
const PURE_DEPENDENCIES: [&str; 10] = [
    "bytes",
    "hmac",
    "libm",
    "md-5",
    "rand_chacha",
    "serde",
    "serde_json",
    "sha2",
    "thiserror",
    "toml",
];
/// Modules of `std` that those must not touch.
const IMPURE_MODULES: [&str; 6] = ["fs", "net", "thread", "time", "process", "env"];
/// Of `std::net`, what is only values.
const PURE_ADDRESSES: [&str; 6] =
    ["IpAddr", "Ipv4Addr", "Ipv6Addr", "SocketAddr", "SocketAddrV4", "SocketAddrV6"];

const FILE_LINES_MAX: usize = 500;
const LINE_CHARACTERS_MAX: usize = 100;

/// What the Snoop engine claims of the specification: a family of rows and their numbers.
const SNOOP_ROWS: [(&str, &[u32]); 9] = [
    ("SNOOP-GEN", &[1, 2, 3, 4]),
    ("SNOOP-ST", &[1, 2, 3]),
    ("SNOOP-CACHE", &[1, 2, 3]),
    ("SNOOP-DATA", &[1, 2, 3, 4, 5, 6, 7, 8]),
    ("SNOOP-ACK", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
    ("SNOOP-TMR", &[1, 2, 3, 4, 5, 6, 7]),
    ("SNOOP-PERF", &[1]),
    ("SNHO", &[1, 2, 3, 4, 5, 6, 8, 9]),
    ("MOD", &[1, 2, 3, 5, 7, 12, 14, 17, 18, 23]),
];

/// Files of the schemes that list and stack them all.
const SCHEMES_COMPOSED_IN: [&str; 3] = ["lib", "mobile", "stack"];
/// Files of the schemes that are none, and that several of them use.
const SCHEMES_SHARED: [&str; 1] = ["connections"];

/// What no source holds, in two halves so that this file does not.
const FOREIGN_WORDS: [(&str, &str); 9] = [
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("unimplemented", "!"),
    ("todo", "!"),
    ("/ho", "me/"),
    ("/ro", "ot/"),
    ("/Us", "ers/"),
    ("/wo", "rk/"),
];
/// Folders that are made or fetched, or hold bytes.
const FOLDERS_NOT_SOURCE: [&str; 8] =
    [".git", "target", "node_modules", "lasthop-out", "dist", "corpus", "artifacts", "data"];
const SOURCE_EXTENSIONS: [&str; 14] = [
    "rs", "toml", "md", "ts", "js", "mjs", "py", "sh", "html", "css", "json", "yml", "yaml", "snap",
];

#[test]
fn crates_use_only_what_the_arrows_allow() {
    let mut broken = Vec::new();
    for (name, manifest) in manifests() {
        broken.extend(wrong_arrows(&name, &manifest));
    }
    expect_none(broken);
}

#[test]
fn the_simulator_and_its_parts_use_few_crates_of_others() {
    let mut broken = Vec::new();
    for (name, manifest) in manifests() {
        if PURE_CRATES.contains(&name.as_str()) {
            broken.extend(wrong_dependencies(&name, &manifest));
        }
    }
    expect_none(broken);
}

#[test]
fn the_simulator_and_its_parts_touch_no_operating_system() {
    let mut broken = Vec::new();
    for name in PURE_CRATES {
        for file in files(&root().join("crates").join(name).join("src"), &["rs"]) {
            broken.extend(impurities(&shown(&file), &read(&file)));
        }
    }
    expect_none(broken);
}

#[test]
fn schemes_know_neither_mobility_nor_each_other() {
    let source = root().join("crates/schemes/src");
    let folders: Vec<String> = fs::read_dir(&source)
        .expect("the schemes are there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.file_name().is_none_or(|name| name != "lib.rs"))
        .filter_map(|path| path.file_stem().map(|name| name.to_string_lossy().into_owned()))
        .collect();
    assert!(folders.len() >= 2, "schemes: {folders:?}");
    let mut broken = Vec::new();
    for file in files(&source, &["rs"]) {
        let inside = file.strip_prefix(&source).expect("the file lies below the folder");
        let own = inside.components().next().expect("a path has a first part");
        let own = Path::new(own.as_os_str()).with_extension("");
        let own = own.to_string_lossy();
        let composes = SCHEMES_COMPOSED_IN.contains(&&*own);
        let others = folders.iter().filter(|other| {
            !composes && **other != *own && !SCHEMES_SHARED.contains(&other.as_str())
        });
        let others: Vec<&str> = others.map(String::as_str).collect();
        broken.extend(foreign_schemes(&shown(&file), &read(&file), &others));
    }
    expect_none(broken);
}

#[test]
fn files_and_lines_fit() {
    let mut broken = Vec::new();
    for file in files(&root(), &["rs", "ts"]) {
        let is_test = file.components().any(|part| part.as_os_str() == "tests");
        broken.extend(too_long(&shown(&file), &read(&file), is_test));
    }
    expect_none(broken);
}

#[test]
fn every_row_that_snoop_claims_has_a_test() {
    let mut shown_rows = BTreeSet::new();
    for file in files(&root().join("crates/schemes"), &["rs"]) {
        for test in tests_in(&read(&file)) {
            shown_rows.extend(rows_of(&test));
        }
    }
    let claimed = SNOOP_ROWS.iter().flat_map(|(family, numbers)| {
        numbers.iter().map(move |number| format!("{family}-{number}"))
    });
    let missing = claimed.filter(|row| !shown_rows.contains(row));
    expect_none(missing.map(|row| format!("{row} has no test that bears its name")).collect());
}

#[test]
fn sources_hold_no_leftovers_and_no_paths_of_one_machine() {
    let mut broken = Vec::new();
    for file in files(&root(), &SOURCE_EXTENSIONS) {
        broken.extend(foreign_words(&shown(&file), &read(&file)));
    }
    expect_none(broken);
}

#[test]
fn the_tables_of_the_architecture_name_files_that_exist() {
    let file = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&file).expect("ARCHITECTURE.md maps the papers' terms to files");
    let (has_map, named) = files_in_tables(&text);
    assert!(has_map, "no table of ARCHITECTURE.md has the columns \"term\" and \"file\"");
    assert!(named.len() >= 10, "its tables name {} files", named.len());
    let missing = named.into_iter().filter(|named| !root().join(named).exists());
    expect_none(
        missing.map(|named| format!("ARCHITECTURE.md names {named}: no such file")).collect(),
    );
}

/// Fails with all sentences at once.
#[track_caller]
fn expect_none(broken: Vec<String>) {
    assert!(broken.is_empty(), "\n  {}\n", broken.join("\n  "));
}

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace is where the crate was built")
}

/// The path as people write it.
fn shown(file: &Path) -> String {
    file.strip_prefix(root()).unwrap_or(file).display().to_string()
}

/// The text of a file, and nothing of one that is not text or went away in the meantime.
fn read(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

/// The source files below a folder with one of these extensions, sorted.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_named = |names: &[&str], name: Option<&std::ffi::OsStr>| {
            name.and_then(|name| name.to_str()).is_some_and(|name| names.contains(&name))
        };
        if path.is_dir() {
            if !is_named(&FOLDERS_NOT_SOURCE, path.file_name()) {
                found.extend(files(&path, extensions));
            }
        } else if is_named(extensions, path.extension()) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every crate's folder name and manifest.
fn manifests() -> Vec<(String, toml::Table)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root().join("crates")).expect("the crates are there").flatten() {
        let Ok(text) = fs::read_to_string(entry.path().join("Cargo.toml")) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        found.push((name, text.parse().expect("cargo has read it before")));
    }
    assert!(found.len() >= PURE_CRATES.len(), "{} crates", found.len());
    found
}

/// The names of all dependencies that get into a build: not those of tests.
fn dependencies(manifest: &toml::Table) -> BTreeSet<String> {
    let platforms = manifest.get("target").and_then(toml::Value::as_table);
    let platforms = platforms.into_iter().flat_map(|targets| targets.values());
    let tables = platforms.filter_map(toml::Value::as_table).chain([manifest]);
    let mut names = BTreeSet::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            let section = table.get(section).and_then(toml::Value::as_table);
            names.extend(section.into_iter().flat_map(|section| section.keys().cloned()));
        }
    }
    names
}

/// The crate of the workspace that a dependency names, by its short or its package name.
fn own_crate(dependency: &str) -> Option<&'static str> {
    let short = dependency.strip_prefix("lasthop-").unwrap_or(dependency);
    ARROWS.iter().map(|(name, _)| *name).find(|name| *name == short)
}

fn wrong_arrows(name: &str, manifest: &toml::Table) -> Vec<String> {
    let Some((_, allowed)) = ARROWS.iter().find(|(known, _)| *known == name) else {
        return vec![format!("{name} is a new crate: say in ARROWS which crates it may use")];
    };
    let used = dependencies(manifest);
    let used = used.iter().filter_map(|dependency| own_crate(dependency));
    let wrong = used.filter(|used| *allowed != ANYTHING && !allowed.contains(used));
    let rule = if allowed.is_empty() { "none".into() } else { allowed.join(", ") };
    wrong.map(|used| format!("{name} uses {used}; of our crates it may use: {rule}")).collect()
}

fn wrong_dependencies(name: &str, manifest: &toml::Table) -> Vec<String> {
    let used = dependencies(manifest);
    let foreign = used.iter().filter(|used| own_crate(used).is_none());
    let wrong = foreign.filter(|used| !PURE_DEPENDENCIES.contains(&used.as_str()));
    let rule = PURE_DEPENDENCIES.join(", ");
    wrong.map(|used| format!("{name} uses {used}; of others' crates it may use: {rule}")).collect()
}

/// A line without its comment.
fn code_of(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
}

fn impurities(file: &str, text: &str) -> Vec<String> {
    let code: String = text.lines().map(code_of).collect::<Vec<_>>().join("\n");
    let mut broken = Vec::new();
    if words(&code).any(|word| word == "unsafe") {
        broken.push(format!("{file}: unsafe code belongs into live"));
    }
    let mut paths = Vec::new();
    for (at, matched) in code.match_indices("std::") {
        let before = code[..at].chars().next_back();
        if !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
            expand(&code[at + matched.len()..], "std", &mut paths);
        }
    }
    for path in paths {
        let mut parts = path.split("::").skip(1);
        let (module, item) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let is_value = module == "net" && PURE_ADDRESSES.contains(&item);
        if IMPURE_MODULES.contains(&module) && !is_value {
            broken.push(format!("{file}: {path} is of the operating system; engines are not"));
        }
    }
    broken
}

/// All paths of a `use` tree or expression that goes on with `rest` after `prefix::`; returns what
/// follows it.
fn expand<'a>(rest: &'a str, prefix: &str, paths: &mut Vec<String>) -> &'a str {
    let rest = rest.trim_start();
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            inside = expand(inside, prefix, paths).trim_start();
            // An alias, or whatever else stands before the next path.
            let end = inside.find([',', '}']).unwrap_or(inside.len());
            match inside[end..].strip_prefix(',') {
                Some(next) => inside = next,
                None => return inside.get(end + 1..).unwrap_or(""),
            }
        }
    }
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
    let path = format!("{prefix}::{}", &rest[..end]);
    match rest[end..].strip_prefix("::") {
        Some(rest) => expand(rest, &path, paths),
        None => {
            paths.push(path);
            &rest[end..]
        }
    }
}

fn foreign_schemes(file: &str, text: &str, others: &[&str]) -> Vec<String> {
    let mut broken = Vec::new();
    for code in text.lines().map(code_of) {
        if words(code).any(|word| word == "mobility") {
            broken.push(format!("{file}: a scheme sees notices, never mobility"));
        }
        for other in others {
            let leads_there = [format!("crate::{other}"), format!("super::{other}::")];
            if leads_there.iter().any(|path| code.contains(path)) {
                broken.push(format!("{file} imports {other}: one scheme never uses another"));
            }
        }
    }
    broken
}

/// Only Rust has a bound for lines; tests may be as long as they like.
fn too_long(file: &str, text: &str, is_test: bool) -> Vec<String> {
    let mut broken = Vec::new();
    let lines = text.lines().take_while(|line| line.trim() != "#[cfg(test)]").count();
    if !is_test && lines > FILE_LINES_MAX {
        broken.push(format!("{file} has {lines} lines without tests; {FILE_LINES_MAX} at most"));
    }
    for (number, line) in text.lines().enumerate().filter(|_| file.ends_with(".rs")) {
        let length = line.chars().count();
        if length > LINE_CHARACTERS_MAX {
            let number = number + 1;
            broken.push(format!("{file}:{number} has {length} characters"));
        }
    }
    broken
}

/// The names of the test functions in a source.
fn tests_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_marked = false;
    for line in text.lines().map(str::trim) {
        is_marked |= line == "#[test]";
        if let Some(rest) = line.strip_prefix("fn ")
            && core::mem::take(&mut is_marked)
        {
            names.extend(rest.split('(').next().map(str::to_string));
        }
    }
    names
}

/// The rows of the specification in a test's name: `snoop_ack_8_and_9_as_many…` has two.
fn rows_of(test: &str) -> Vec<String> {
    let parts: Vec<&str> = test.split('_').collect();
    let mut rows = Vec::new();
    let mut family: Option<String> = None;
    let mut at = 0;
    while at < parts.len() {
        let number = parts[at].parse::<u32>().ok();
        match (parts[at], number, &family) {
            ("snoop", _, _) if at + 1 < parts.len() => {
                family = Some(format!("SNOOP-{}", parts[at + 1].to_uppercase()));
                at += 1;
            }
            ("mod" | "snho", _, _) => family = Some(parts[at].to_uppercase()),
            ("and", _, _) => {}
            (_, Some(number), Some(family)) => rows.push(format!("{family}-{number}")),
            _ => family = None,
        }
        at += 1;
    }
    rows
}

fn foreign_words(file: &str, text: &str) -> Vec<String> {
    let needles = FOREIGN_WORDS.map(|(head, tail)| format!("{head}{tail}"));
    let mut broken = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for needle in needles.iter().filter(|needle| line.contains(needle.as_str())) {
            broken.push(format!("{file}:{} holds {needle}", number + 1));
        }
    }
    broken
}

/// The table that maps terms to files, and the paths between backticks in it and every other table.
fn files_in_tables(text: &str) -> (bool, Vec<String>) {
    let mut has_map = false;
    let mut found = Vec::new();
    for row in text.lines().filter_map(|line| line.trim().strip_prefix('|')) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        has_map |= cells.contains(&"term") && cells.contains(&"file");
        let quoted = row.split('`').skip(1).step_by(2);
        found.extend(quoted.filter(|quoted| quoted.contains('/')).map(str::to_string));
    }
    (has_map, found)
}
