//! The page as a file: it asks for nothing from outside, hostile text stays text, and every number
//! comes out of it as it went in.

use proptest::prelude::*;
use report::page::{self, Axis, Lines, Page, Panel, Point, Scale, Section, Series, SeriesKind};
use report::page::{Text, TimeSequence, Tone};
use report::table::{Cell, Column, Kind, Row, Table};
use sansio::{Instant, StreamId};
use serde_json::Value;
use trace::NodeId;
use trace::metrics::TransferSpec;
use trace::timeline::{self, Timeline, Window};

const HOSTILE: &str = "</script><script>alert('1')</script><!-- & \"quoted\" {{data}} \\u003c ½";

fn written(sections: Vec<Section<'_>>) -> String {
    let page = Page {
        title: HOSTILE.to_owned(),
        command: HOSTILE.to_owned(),
        version: HOSTILE.to_owned(),
        sections,
    };
    let mut bytes = Vec::new();
    page::write(&page, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("the page is UTF-8")
}

fn timeline() -> Timeline {
    Timeline::new(TransferSpec {
        stream: StreamId(1),
        sender: NodeId(0),
        receiver: NodeId(2),
        base: NodeId(1),
        size: None,
        messages: None,
    })
}

fn graph(timeline: &Timeline) -> Section<'_> {
    let (scheme, name) = (HOSTILE.to_owned(), HOSTILE.to_owned());
    let panels = vec![Panel { scheme, name, timeline }];
    Section::TimeSequence(TimeSequence { title: HOSTILE.to_owned(), panels })
}

fn lines(points: Vec<Point>) -> Section<'static> {
    let axis = |scale| Axis { label: HOSTILE.to_owned(), unit: HOSTILE.to_owned(), scale };
    let series = |name: &str, kind| Series {
        name: name.to_owned(),
        scheme: HOSTILE.to_owned(),
        kind,
        points: points.clone(),
    };
    Section::Lines(Lines {
        title: HOSTILE.to_owned(),
        x: axis(Scale::Categories(vec![HOSTILE.to_owned()])),
        y: axis(Scale::Linear),
        interval: HOSTILE.to_owned(),
        series: vec![
            series("ceiling", SeriesKind::Reference),
            series(HOSTILE, SeriesKind::Measured),
        ],
    })
}

fn everything(timeline: &Timeline) -> Vec<Section<'_>> {
    let text = Text {
        tone: Tone::Warning,
        title: HOSTILE.to_owned(),
        paragraphs: vec![HOSTILE.to_owned()],
    };
    let table = Table {
        caption: HOSTILE.to_owned(),
        columns: vec![
            Column::name(HOSTILE).explained(HOSTILE),
            Column::value("goodput", HOSTILE, Kind::HighestIsBest),
        ],
        rows: vec![
            Row { group: 0, class: 0, cells: vec![Cell::text(HOSTILE), Cell::number(1.5, "1.5")] },
            Row { group: 0, class: 0, cells: vec![Cell::text("snoop"), Cell::number(1.9, "1.9")] },
        ],
    };
    let point = Point { x: 0.0, y: 1.0, interval: None };
    vec![Section::Text(text), Section::Table(table), lines(vec![point]), graph(timeline)]
}

#[test]
fn nothing_in_a_page_is_fetched_from_outside() {
    let timeline = timeline();
    let page = written(everything(&timeline)).replace(HOSTILE, "");
    for attribute in ["src=", "href=", "action=", "url(", "@import", "srcset=", "ping="] {
        for (at, _) in page.match_indices(attribute) {
            let value = &page[at + attribute.len()..];
            let value = value.trim_start_matches(['"', '\'']);
            assert!(value.starts_with("data:"), "{attribute}{}", &value[..40.min(value.len())]);
        }
    }
    for address in ["http://", "https://", "wss://"] {
        assert!(!page.contains(address), "an address: {address}");
    }
    assert!(page.contains("default-src 'none'"), "and the browser is told to refuse it");
}

#[test]
fn the_licence_of_what_the_page_contains_is_kept_in_it() {
    let page = written(Vec::new());
    assert!(page.contains("Leon Sorokin"), "uPlot's copyright");
    assert!(page.contains("The above copyright notice and this permission notice shall be"));
}

#[test]
fn hostile_text_stays_text() {
    let timeline = timeline();
    let (plain, hostile) = (written(Vec::new()), written(everything(&timeline)));
    assert!(!hostile.contains("<script>alert"), "text became a script");
    assert!(!hostile.contains("<!-- &"), "text became a comment");
    // Index and columns apart, there are as many elements of script as in an empty page.
    let scripts = |page: &str| page.matches("<script").count() - page.matches("id=\"blob-").count();
    assert_eq!(scripts(&hostile), scripts(&plain));
    assert_eq!(hostile.matches("</script>").count(), hostile.matches("<script").count());
    let index = index(&hostile);
    assert_eq!(index["plots"][0]["title"], HOSTILE, "and comes back unharmed");
    assert_eq!(index["plots"][1]["panels"][0]["name"], HOSTILE);
}

#[test]
fn a_scheme_has_one_number_on_the_whole_page_and_a_reference_has_none() {
    let timeline = timeline();
    let mut sections = everything(&timeline);
    let panel = |scheme: &str, name: &str| {
        let (scheme, name) = (scheme.to_owned(), name.to_owned());
        Panel { scheme, name, timeline: &timeline }
    };
    let (other, own) = (panel("snoop", "snoop, lab"), panel(HOSTILE, "predicted"));
    let panels = vec![other, own];
    sections.push(Section::TimeSequence(TimeSequence { title: String::new(), panels }));
    let index = index(&written(sections));
    assert_eq!(index["schemes"], serde_json::json!([HOSTILE, "snoop"]));
    assert_eq!(index["plots"][0]["series"][0]["scheme"], Value::Null);
    assert_eq!(index["plots"][0]["series"][1]["scheme"], 0);
    assert_eq!(index["plots"][1]["panels"][0]["scheme"], 0);
    assert_eq!(index["plots"][2]["panels"][0]["scheme"], 1);
    assert_eq!(index["plots"][2]["panels"][1]["scheme"], 0);
    assert_eq!(index["plots"][2]["panels"][0]["name"], "snoop, lab");
    assert_eq!(index["plots"][2]["panels"][1]["name"], "predicted");
}

#[test]
fn the_best_of_a_group_and_the_meaning_of_columns_are_in_the_html() {
    let timeline = timeline();
    let page = written(everything(&timeline));
    assert!(page.contains("<td class=\"value best\">1.9</td>"));
    assert!(page.contains("<td class=\"value\">1.5</td>"));
    assert_eq!(page.matches("<dt>").count(), 1, "one column is explained");
}

#[test]
fn an_outage_without_end_and_an_interval_without_ends_are_not_numbers() {
    let mut timeline = timeline();
    timeline.outages = vec![(Instant::from_nanos(5), None)];
    let point = Point { x: 1.0, y: 2.0, interval: None };
    let page = written(vec![graph(&timeline), lines(vec![point])]);
    let index = index(&page);
    let panel = &index["plots"][0]["panels"][0];
    assert_eq!(column(&page, &panel["outages"]["from"]), [5e-9]);
    assert!(column(&page, &panel["outages"]["until"])[0].is_nan());
    let series = &index["plots"][1]["series"][0];
    assert!(column(&page, &series["low"])[0].is_nan());
    assert!(column(&page, &series["high"])[0].is_nan());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_timeline_comes_out_of_the_page_as_it_went_in(
        nanos in prop::collection::vec(0_u64..4_000_000_000_000_000, 0..20),
        offsets in prop::collection::vec(
            prop_oneof![0_u64..1 << 52, 0_u64..1 << 32, Just(u64::from(u32::MAX))], 20),
        windows in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>()), 20),
    ) {
        let mut timeline = timeline();
        for (i, at) in nanos.iter().map(|nanos| Instant::from_nanos(*nanos)).enumerate() {
            timeline.local.push(timeline::Point { at, offset: offsets[i] });
            let (cwnd, ssthresh, flight) = windows[i];
            timeline.windows.push(Window { at, cwnd, ssthresh, flight });
            timeline.timeouts.push(at);
        }
        let page = written(vec![graph(&timeline)]);
        let index = index(&page);
        let panel = &index["plots"][0]["panels"][0];
        // To the nanosecond: the page's seconds, rounded back.
        let back = |values: &Value| -> Vec<u64> {
            column(&page, values).iter().map(|seconds| (seconds * 1e9).round() as u64).collect()
        };
        prop_assert_eq!(&back(&panel["local"]["at"]), &nanos);
        prop_assert_eq!(&back(&panel["windows"]["at"]), &nanos);
        prop_assert_eq!(&back(&panel["timeouts"]), &nanos);
        let count = nanos.len();
        let whole = |values: &Value| -> Vec<u64> {
            column(&page, values).iter().map(|value| *value as u64).collect()
        };
        prop_assert_eq!(whole(&panel["local"]["offset"]), &offsets[..count]);
        let of = |which: fn(&(u32, u32, u32)) -> u32| -> Vec<u64> {
            windows[..count].iter().map(|window| u64::from(which(window))).collect()
        };
        prop_assert_eq!(whole(&panel["windows"]["cwnd"]), of(|window| window.0));
        prop_assert_eq!(whole(&panel["windows"]["ssthresh"]), of(|window| window.1));
        prop_assert_eq!(whole(&panel["windows"]["flight"]), of(|window| window.2));
    }

    #[test]
    fn a_series_comes_out_of_the_page_to_the_last_bit(
        values in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..20),
    ) {
        let points = values.iter();
        let points = points.map(|(x, y, z)| Point { x: *x, y: *y, interval: Some((*y, *z)) });
        let page = written(vec![lines(points.collect())]);
        let index = index(&page);
        let series = &index["plots"][0]["series"][1];
        let bits = |name: &str| -> Vec<u64> {
            column(&page, &series[name]).iter().map(|value| value.to_bits()).collect()
        };
        let of = |which: fn(&(f64, f64, f64)) -> f64| -> Vec<u64> {
            values.iter().map(|value| which(value).to_bits()).collect()
        };
        prop_assert_eq!(bits("x"), of(|value| value.0));
        prop_assert_eq!(bits("y"), of(|value| value.1));
        prop_assert_eq!(bits("low"), of(|value| value.1));
        prop_assert_eq!(bits("high"), of(|value| value.2));
    }
}

/// The text of the element with this `id`.
fn element<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("id=\"{id}\">")).expect("an element with this id");
    rest.split_once("</script>").expect("it ends").0
}

fn index(page: &str) -> Value {
    serde_json::from_str(element(page, "plots")).expect("the index is JSON")
}

/// A column, decoded as the page's script does.
fn column(page: &str, blob: &Value) -> Vec<f64> {
    let bytes = decoded(element(page, &format!("blob-{}", blob["id"])));
    let values: Vec<f64> = match blob["kind"].as_str() {
        Some("whole") => differences(&bytes),
        Some("nanos") => differences(&bytes).iter().map(|nanos| nanos / 1e9).collect(),
        Some("f64") => bytes.as_chunks().0.iter().map(|word| f64::from_le_bytes(*word)).collect(),
        kind => panic!("a column of {kind:?}"),
    };
    assert_eq!(blob["length"], values.len());
    values
}

/// Whole numbers from differences; NaN for one that is missing.
fn differences(bytes: &[u8]) -> Vec<f64> {
    let (mut values, mut previous) = (Vec::new(), 0_i64);
    let (mut token, mut shift) = (0_u64, 0);
    for byte in bytes {
        token |= u64::from(byte & 0x7F) << shift;
        shift += 7;
        if byte & 0x80 == 0 {
            let sign = if token & 1 == 1 { 1 } else { -1 };
            previous += sign * (token / 2) as i64;
            values.push(if token == 0 { f64::NAN } else { previous as f64 });
            (token, shift) = (0, 0);
        }
    }
    values
}

/// Base64 without a table: each sign from its place in the alphabet (RFC 4648, table 1).
fn decoded(text: &str) -> Vec<u8> {
    let mut bits = 0_u32;
    let mut known = 0;
    let mut bytes = Vec::new();
    for sign in text.trim_end_matches('=').bytes() {
        let sextet = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            other => panic!("not in the alphabet: {other}"),
        };
        bits = bits << 6 | u32::from(sextet);
        known += 6;
        if known >= 8 {
            known -= 8;
            bytes.push((bits >> known) as u8);
        }
    }
    bytes
}
