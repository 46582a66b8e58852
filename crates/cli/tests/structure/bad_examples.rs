//! Bad examples: each check finds what it is there to find.

use super::*;

fn manifest(text: &str) -> toml::Table {
    text.parse().expect("the example is TOML")
}

#[test]
fn an_arrow_to_the_right_is_found_wherever_it_stands() {
    let bad = manifest("[dependencies]\nsim.workspace = true\nwire.workspace = true");
    let broken = wrong_arrows("link", &bad);
    assert_eq!(
        broken,
        [
            "link uses sim; of our crates it may use: sansio",
            "link uses wire; of our crates it may use: sansio"
        ]
    );
    let bad = manifest("[target.'cfg(unix)'.dependencies]\nlasthop-live = { path = \"x\" }");
    assert_eq!(wrong_arrows("sim", &bad).len(), 1);
    assert_eq!(wrong_arrows("cli", &bad).len(), 0);
    assert_eq!(wrong_arrows("unheard_of", &bad).len(), 1);
    let good = manifest("[dev-dependencies]\nsim.workspace = true");
    assert_eq!(wrong_arrows("link", &good).len(), 0);
}

#[test]
fn a_crate_of_others_is_found() {
    let bad = manifest("[dependencies]\nrand = \"1\"\nbytes = \"1\"\nwire = \"1\"");
    let broken = wrong_dependencies("sim", &bad);
    assert_eq!(broken.len(), 1);
    assert!(broken[0].starts_with("sim uses rand;"), "{broken:?}");
}

#[test]
fn the_operating_system_is_found_under_every_name() {
    for bad in [
        "use std::time::Duration;",
        "let text = std::fs::read(path);",
        "use std::{collections::BTreeMap, thread};",
        "use std::{\n    io::{self, Write},\n    net::{IpAddr, UdpSocket},\n};",
        "use std::net;",
        "use ::std::env;",
        "unsafe { go() }",
    ] {
        assert_eq!(impurities("x.rs", bad).len(), 1, "{bad}");
    }
    for good in [
        "use std::net::{IpAddr, Ipv4Addr as Address};",
        "// std::fs is not for us",
        "use std::{rc::Rc, collections::{BTreeMap, VecDeque}};",
        "#![forbid(unsafe_code)]",
    ] {
        assert_eq!(impurities("x.rs", good), [""; 0], "{good}");
    }
}

#[test]
fn a_scheme_that_knows_too_much_is_found() {
    let bad = "use crate::split::Leg;\nuse mobility::Cell;\nuse super::split::Leg;";
    assert_eq!(foreign_schemes("snoop/mod.rs", bad, &["split"]).len(), 3);
    let good = "use super::ack;\n// crate::split has another way";
    assert_eq!(foreign_schemes("snoop/mod.rs", good, &["split"]), [""; 0]);
}

#[test]
fn a_long_file_and_a_long_line_are_found() {
    let long = "x\n".repeat(FILE_LINES_MAX + 1);
    assert_eq!(too_long("a.ts", &long, false).len(), 1);
    assert_eq!(too_long("a.rs", &long, true).len(), 0);
    let tested = format!("x\n#[cfg(test)]\n{long}");
    assert_eq!(too_long("a.rs", &tested, false).len(), 0);
    let wide = "ü".repeat(LINE_CHARACTERS_MAX + 1);
    assert_eq!(too_long("a.rs", &wide, true).len(), 1);
    assert_eq!(too_long("a.rs", &"ü".repeat(LINE_CHARACTERS_MAX), true).len(), 0);
}

#[test]
fn a_row_is_shown_by_a_test_of_its_name_only() {
    assert_eq!(rows_of("snoop_ack_8_and_9_as_many"), ["SNOOP-ACK-8", "SNOOP-ACK-9"]);
    assert_eq!(rows_of("mod_2_and_mod_12_acks_of_3"), ["MOD-2", "MOD-12"]);
    assert_eq!(rows_of("snoop_tmr_5_silence_of_200_ms"), ["SNOOP-TMR-5"]);
    assert_eq!(rows_of("after_10_retransmissions"), [""; 0]);
    let text = "#[test]\n#[expect(x)]\nfn mod_1_works() {}\nfn mod_2_is_no_test() {}";
    assert_eq!(tests_in(text), ["mod_1_works"]);
}

#[test]
fn leftovers_are_found() {
    for (head, tail) in FOREIGN_WORDS {
        let line = format!("ok\nlook: {head}{tail} here");
        assert_eq!(foreign_words("x.md", &line), [format!("x.md:2 holds {head}{tail}")]);
    }
}

#[test]
fn files_in_tables_are_found_and_others_are_not() {
    let tables = "| rule | where |\n|---|---|\n| it holds | `crates/a.rs`, `a::b` |\n\n`c/d`";
    assert_eq!(files_in_tables(tables), (false, vec!["crates/a.rs".into()]));
    let map = "| term | file |\n|---|---|\n| snoop_ack() | `crates/b.rs` |";
    assert_eq!(files_in_tables(map), (true, vec!["crates/b.rs".into()]));
}
