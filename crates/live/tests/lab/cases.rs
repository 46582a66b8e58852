//! The cases.

use crate::support::{goodput, lab, run, setup};
use std::path::Path;

/// A case.
pub(crate) type Case = (&'static str, fn());

/// All of them, in this order.
pub(crate) const ALL: &[Case] = &[
    ("a_plain_transfer_arrives_intact", a_plain_transfer_arrives_intact),
    ("nothing_is_left_behind", nothing_is_left_behind),
];

fn a_plain_transfer_arrives_intact() {
    let mut lab = lab();
    let run = run(&mut lab, &setup("plain"));
    assert!(goodput(&run) > 7e6, "of 9.5 Mbit/s at best: {}", goodput(&run));
    assert_eq!(run.measures.transfers[0].delivered_bytes, 2_000_000, "as the radio saw it");
    assert!(run.daemon.is_none());
}

fn nothing_is_left_behind() {
    let before = namespaces();
    let names = {
        let lab = lab();
        let names = lab.network().names().clone();
        assert!(names.all().iter().all(|name| Path::new("/run/netns").join(name).exists()));
        names
    };
    assert_eq!(namespaces(), before);
    assert!(names.all().iter().all(|name| name.starts_with("lh-")));
}

fn namespaces() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/run/netns") else { return Vec::new() };
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
