//! Metrics and health, as others read them: Prometheus' text format, version 0.0.4, and HTTP
//! status codes.

use super::config::Mode;
use super::snapshot::{Snapshot, Turns};
use serde_json::Value;
use std::fmt::{Display, Write};

/// Counters of the packets between the devices.
type OfPackets = (&'static str, &'static str, fn(&Snapshot) -> u64);
const PACKETS: [OfPackets; 16] = [
    ("frames_taken_total", "Frames looked at: TCP of the mobile hosts.", |s| s.packets.taken),
    ("frames_seen_total", "Frames looked at that the kernel forwards: the fast path.", |s| {
        s.packets.seen
    }),
    (
        "frames_seen_withheld_in_vain_total",
        "Of those seen, packets that the engine would have withheld.",
        |s| s.packets.forwarded_all_the_same,
    ),
    ("frames_seen_answered_in_vain_total", "Answers to those, left out.", |s| {
        s.packets.answers_left_out
    }),
    (
        "frames_seen_changed_in_vain_total",
        "Of those seen, packets that the engine would have changed.",
        |s| s.packets.forwarded_unchanged,
    ),
    ("frames_filtered_total", "Frames taken that a bridge does not pass on.", |s| {
        s.packets.filtered
    }),
    ("frames_invalid_total", "Of these, frames that a host would discard.", |s| s.packets.invalid),
    ("frames_left_total", "Frames seen that are the kernel's.", |s| s.packets.left_to_kernel),
    ("packets_sent_total", "Packets handed to a device.", |s| s.packets.sent),
    ("packets_made_total", "Of these, packets that the engine made or changed.", |s| {
        s.packets.made
    }),
    ("packets_joined_total", "Of those sent, packets that left joined with others (GSO).", |s| {
        s.packets.joined
    }),
    ("packets_routed_total", "Packets that the kernel was asked to route.", |s| s.packets.routed),
    ("packets_refused_total", "Packets that a device or the kernel refused.", |s| {
        s.packets.refused
    }),
    ("packets_discarded_total", "Packets that the engine let go of.", |s| s.packets.discarded),
    ("packets_withheld_total", "Packets of the engine that nobody sent: mode observe.", |s| {
        s.packets.withheld
    }),
    ("overruns_total", "Frames that came faster than they were taken, and were lost.", |s| {
        s.overruns
    }),
];

/// What the scheme counts, by its key in the statistics.
const OF_SCHEME: [(&str, &str, &str); 14] = [
    ("flows_created", "flows_created_total", "Flows that got state."),
    ("flows_left_alone", "flows_left_alone_total", "Flows left alone from some point on."),
    ("flows_refused", "flows_refused_packets_total", "Data packets of flows without room."),
    ("cached", "segments_cached_total", "Data segments put into the cache."),
    ("uncached", "segments_uncached_total", "Data segments for which a limit left no room."),
    ("sender_retransmissions", "sender_retransmissions_total", "Segments that senders repeated."),
    ("retransmissions", "local_retransmissions_total", "Segments re-sent on the last hop."),
    ("retransmitted_bytes", "local_retransmitted_bytes_total", "Payload bytes in them."),
    (
        "unneeded_retransmissions",
        "local_retransmissions_unneeded_total",
        "Of these, segments whose original had arrived after all.",
    ),
    (
        "retransmissions_refused",
        "local_retransmissions_refused_total",
        "Local retransmissions that a bound forbade.",
    ),
    ("dupacks_suppressed", "dupacks_suppressed_total", "Duplicate ACKs withheld from senders."),
    ("dupacks_forwarded", "dupacks_forwarded_total", "Duplicate ACKs passed on to senders."),
    ("probes", "probes_total", "Probes for the link's return."),
    ("probe_bytes", "probe_bytes_total", "Bytes of the datagrams that carried them."),
];

/// Everything as Prometheus reads it.
pub fn text(snapshot: &Snapshot) -> String {
    let mut page = Page::default();
    page.head("build_info", "gauge", "Always 1; the version is a label.");
    page.value("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.head("uptime_seconds", "gauge", "Time since the daemon began.");
    page.value("uptime_seconds", &[], snapshot.seconds);
    page.head("mode", "gauge", "1 for the mode that is on, 0 for the others.");
    for mode in Mode::ALL {
        page.value("mode", &[("mode", &mode.to_string())], u8::from(mode == snapshot.mode));
    }
    page.head("path_info", "gauge", "Always 1; labels say how packets pass.");
    let back_end = snapshot.back_end.as_ref();
    let back_end = back_end.map_or_else(|| "none".to_owned(), |chosen| chosen.name.to_string());
    let forwarding = snapshot.forwarding.to_string();
    page.value("path_info", &[("forwarding", &forwarding), ("back_end", &back_end)], 1);
    page.head("healthy", "gauge", "1 if nothing is wrong; /health says what is.");
    page.value("healthy", &[], u8::from(snapshot.problem.is_none()));
    for (name, help, value) in PACKETS {
        page.head(name, "counter", help);
        page.value(name, &[], value(snapshot));
    }
    page.head("held_bytes", "gauge", "Payload bytes that the scheme holds.");
    page.value("held_bytes", &[], snapshot.held_bytes);
    page.head("held_bytes_max", "gauge", "The most that it held at once.");
    page.value("held_bytes_max", &[], snapshot.held_bytes_max);
    of_scheme(&mut page, snapshot);
    of_classes(&mut page, &snapshot.classes);
    page.head("interventions_total", "counter", "What the scheme did, by rule and deed.");
    for one in &snapshot.interventions {
        page.value("interventions_total", &[("rule", one.rule), ("did", one.did)], one.count);
    }
    of_turns(&mut page, &snapshot.turns);
    page.0
}

fn of_scheme(page: &mut Page, snapshot: &Snapshot) {
    let counted = |key: &str| snapshot.scheme[key].as_u64();
    if let Some(flows) = counted("flows") {
        page.head("flows", "gauge", "Flows to mobile hosts that have state.");
        page.value("flows", &[], flows);
    }
    for (key, name, help) in OF_SCHEME {
        if let Some(value) = counted(key) {
            page.head(name, "counter", help);
            page.value(name, &[], value);
        }
    }
}

/// What is measured of a class: name, help, key in the snapshot, and a further label.
type OfClass =
    (&'static str, &'static str, &'static [(&'static str, (&'static str, &'static str))]);
const OF_CLASS: [OfClass; 6] = [
    (
        "class_flows",
        "Flows that counted, lately.",
        &[("flows_helped", ("group", "helped")), ("flows_control", ("group", "control"))],
    ),
    (
        "class_goodput_bits_per_second",
        "Geometric mean of their goodput while busy.",
        &[
            ("goodput_helped_bps", ("group", "helped")),
            ("goodput_control_bps", ("group", "control")),
        ],
    ),
    (
        "class_gain_ratio",
        "Goodput with help over without, less one: 95 % bounds.",
        &[("gain_low", ("bound", "low")), ("gain_high", ("bound", "high"))],
    ),
    (
        "class_would_repair",
        "Repairs that help would have made while observing.",
        &[("would_repair", ("mode", "observe"))],
    ),
    (
        "class_would_save_seconds",
        "Waiting that it would have saved at most.",
        &[("would_save_s", ("mode", "observe"))],
    ),
    (
        "class_observed_busy_seconds",
        "Time in which observed flows were busy.",
        &[("observed_busy_s", ("mode", "observe"))],
    ),
];

fn of_classes(page: &mut Page, classes: &[Value]) {
    for (name, help, keys) in OF_CLASS {
        page.head(name, "gauge", help);
        for class in classes {
            let of = class["name"].as_str().unwrap_or_default();
            for (key, label) in keys {
                if let Some(value) = class[*key].as_f64() {
                    page.value(name, &[("class", of), *label], value);
                }
            }
        }
    }
    page.head("class_verdict", "gauge", "Always 1; the label says what follows for the class.");
    for class in classes {
        let text = |key: &str| class[key].as_str().unwrap_or_default();
        page.value("class_verdict", &[("class", text("name")), ("verdict", text("verdict"))], 1);
    }
}

fn of_turns(page: &mut Page, turns: &Turns) {
    page.head("turn_seconds", "histogram", "How long the loop was busy between two waits.");
    let mut below = 0;
    for (index, count) in turns.counts.iter().enumerate() {
        below += count;
        let bound = Turns::BOUNDS_US.get(index).map(|bound| *bound as f64 / 1e6);
        let bound = bound.map_or_else(|| "+Inf".to_owned(), |bound| bound.to_string());
        page.value("turn_seconds_bucket", &[("le", &bound)], below);
    }
    page.value("turn_seconds_sum", &[], turns.busy_ns as f64 / 1e9);
    page.value("turn_seconds_count", &[], below);
}

/// A page in the making.
#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _written =
            writeln!(self.0, "# HELP lasthop_{name} {help}\n# TYPE lasthop_{name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
        let labels: Vec<String> =
            labels.iter().map(|(key, text)| format!("{key}=\"{}\"", quoted(text))).collect();
        let labels = match labels.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", labels.join(",")),
        };
        let _written = writeln!(self.0, "lasthop_{name}{labels} {value}");
    }
}

/// The status code and the text of /health. `age` is how long ago the snapshot was made, in
/// seconds.
pub fn health(snapshot: &Snapshot, age: f64) -> (u16, String) {
    if age > AGE_MAX_SECONDS {
        return (503, format!("the loop has not come round for {age:.0} s\n"));
    }
    match &snapshot.problem {
        Some(problem) => (503, format!("{problem}\n")),
        None => (200, format!("ok: mode {}\n", snapshot.mode)),
    }
}

/// The loop comes round once a second.
const AGE_MAX_SECONDS: f64 = 5.0;

#[cfg(test)]
mod tests {
    use super::super::config::Forwarding;
    use super::super::snapshot::Intervention;
    use super::super::station::Counters;
    use super::*;
    use prometheus_parse::{Scrape, Value};
    use serde_json::json;

    fn snapshot() -> Snapshot {
        let mut turns = Turns::default();
        for micros in [5, 10, 11, 50_000] {
            turns.note(sansio::Duration::from_micros(micros));
        }
        let scheme = schemes::Scheme::named("snoop-modern").expect("a scheme");
        Snapshot {
            seconds: 12.5,
            mode: Mode::Help,
            forwarding: Forwarding::Routed,
            back_end: None,
            problem: None,
            held_bytes: 7,
            held_bytes_max: 9,
            overruns: 3,
            packets: Counters { joined: 5, ..Counters::default() },
            scheme: super::super::snapshot::of_scheme(&scheme),
            classes: vec![json!({
                "name": "trains", "verdict": "gain", "flows_helped": 70, "flows_control": 9,
                "goodput_helped_bps": 8e6, "goodput_control_bps": 4e6,
                "gain_low": 0.5, "gain_high": 1.5,
                "would_repair": 3, "would_save_s": 1.25, "observed_busy_s": 60.0,
            })],
            interventions: vec![Intervention { rule: "MOD-1", did: "said \"no\"", count: 4 }],
            turns,
        }
    }

    #[test]
    fn an_outside_parser_reads_every_metric() {
        let text = text(&snapshot());
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let read = Scrape::parse(lines).expect("Prometheus' format");
        let value = |name: &str, label: &str| {
            let found = read.samples.iter().find(|sample| {
                sample.metric == name
                    && (label.is_empty() || sample.labels.values().any(|v| v == label))
            });
            found.unwrap_or_else(|| panic!("{name} {label}")).value.clone()
        };
        assert_eq!(value("lasthop_mode", "help"), Value::Gauge(1.0));
        assert_eq!(value("lasthop_mode", "off"), Value::Gauge(0.0));
        assert_eq!(value("lasthop_overruns_total", ""), Value::Counter(3.0));
        assert_eq!(value("lasthop_packets_joined_total", ""), Value::Counter(5.0));
        assert_eq!(value("lasthop_held_bytes", ""), Value::Gauge(7.0));
        assert_eq!(value("lasthop_interventions_total", "MOD-1"), Value::Counter(4.0));
        assert_eq!(value("lasthop_class_gain_ratio", "low"), Value::Gauge(0.5));
        assert_eq!(value("lasthop_class_verdict", "gain"), Value::Gauge(1.0));
        let Value::Histogram(turns) = value("lasthop_turn_seconds", "") else {
            panic!("a histogram")
        };
        let counts: Vec<f64> = turns.iter().map(|bucket| bucket.count).collect();
        assert_eq!(counts, [2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0]);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(line.starts_with("lasthop_"), "{line}");
        }
        for (key, name, _) in OF_SCHEME {
            assert_eq!(value(&format!("lasthop_{name}"), ""), Value::Counter(0.0), "{key}");
        }
    }

    #[test]
    fn health_tells_what_is_wrong() {
        let well = snapshot();
        assert_eq!(health(&well, 0.9), (200, "ok: mode help\n".into()));
        assert_eq!(health(&well, 6.2).0, 503);
        let ill = Snapshot { problem: Some("eth1 is gone".into()), ..well };
        assert_eq!(health(&ill, 0.9), (503, "eth1 is gone\n".into()));
    }
}
