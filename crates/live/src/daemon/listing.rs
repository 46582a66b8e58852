//! What is known of the flows, for whoever asks.
//!
//! ```text
//!   loop:    packets ─▶ a piece of the flows ─▶ packets ─▶ a piece ...
//!                              │ rows
//!   asker:                     ▼ keeps the most recent ─▶ in order, in words
//! ```
//!
//! To look up ten thousand flows and put them into words takes a tenth of a second, and packets
//! would wait. So the loop only looks them up, some between two turns, and the thread that asked
//! does all else. The rows are of some milliseconds then, not of one instant.

use super::snapshot::{Interventions, OfFlow};
use sansio::{Duration, Instant};
use schemes::Scheme;
use schemes::snoop::{FlowView, Heading};
use schemes::worth::{ControlFlow, FlowReport, Measured};
use serde_json::{Value, json};

/// One flow, as it was when it was looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    view: FlowView,
    seen: Option<FlowReport>,
    counted: Option<OfFlow>,
}

/// How far the flows have been looked up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Down, up, without help; in this order.
    lists: usize,
    place: usize,
}

/// Places that are looked into at a time.
const PIECE: usize = 256;

impl Progress {
    /// The next rows; `None` if all flows were looked up.
    pub(super) fn next(
        &mut self,
        measured: &Measured<Scheme>,
        counted: &Interventions,
        now: Instant,
    ) -> Option<Vec<Row>> {
        let agent = match measured.inner() {
            Scheme::Snoop(agent) => Some(agent),
            Scheme::Plain(_) | Scheme::Window(_) => None,
        };
        let all = |heading| agent.map_or(0, |agent| agent.places(heading));
        let heading = [Heading::Down, Heading::Up].get(self.lists).copied();
        let end = match heading {
            Some(heading) => all(heading),
            None if self.lists == 2 => measured.places(),
            None => return None,
        };
        let places = self.place..self.place + PIECE;
        self.place = places.end;
        if self.place >= end {
            (self.lists, self.place) = (self.lists + 1, 0);
        }
        let row = |view: FlowView| Row {
            view,
            seen: measured.flow(&view.key),
            counted: counted.of(&view.key),
        };
        Some(match (heading, agent) {
            (Some(heading), Some(agent)) => agent.views(heading, places, now).map(row).collect(),
            (Some(_), None) => Vec::new(),
            (None, _) => {
                let flows = measured.control_flows(places);
                flows.map(|flow| row(of_control(&flow, now))).collect()
            }
        })
    }
}

/// The most recently active of the flows that were looked up.
#[derive(Debug)]
pub(super) struct Recent {
    most: usize,
    total: usize,
    rows: Vec<Row>,
}

impl Recent {
    /// None yet, and never more than so many.
    pub(super) fn new(most: usize) -> Self {
        Recent { most, total: 0, rows: Vec::new() }
    }

    /// Some more were looked up.
    pub(super) fn add(&mut self, rows: &[Row]) {
        self.total += rows.len();
        self.rows.extend(rows);
        if self.rows.len() >= 2 * self.most + PIECE {
            self.drop_others();
        }
    }

    fn drop_others(&mut self) {
        if self.most < self.rows.len() {
            self.rows.select_nth_unstable_by_key(self.most, order);
            self.rows.truncate(self.most);
        }
    }

    /// One line of JSON, the most recently active first.
    pub(super) fn text(mut self, now: Instant) -> String {
        self.drop_others();
        self.rows.sort_unstable_by_key(order);
        let shown: Vec<Value> = self.rows.iter().map(in_words).collect();
        json!({ "seconds": now.as_secs_f64(), "total": self.total, "flows": shown }).to_string()
    }
}

fn order(row: &Row) -> (Duration, sansio::FlowKey) {
    (row.view.idle, row.view.key)
}

/// A flow that the scheme never meets.
fn of_control(flow: &ControlFlow, now: Instant) -> FlowView {
    FlowView {
        key: flow.key,
        heading: Heading::Down,
        age: now.since(flow.began_at),
        idle: now.since(flow.active_at),
        doing: "left alone",
        left_alone: Some("without help, to compare with"),
        cached_segments: 0,
        cached_bytes: 0,
        round_trip: flow.round_trip,
        wired_round_trip: None,
    }
}

fn in_words(Row { view, seen, counted }: &Row) -> Value {
    json!({
        "from": view.key.source.to_string(),
        "to": view.key.destination.to_string(),
        "heading": match view.heading { Heading::Down => "down", Heading::Up => "up" },
        "age_s": view.age.as_secs_f64(),
        "idle_s": view.idle.as_secs_f64(),
        "doing": view.doing,
        "left_alone": view.left_alone,
        "cached_segments": view.cached_segments,
        "cached_bytes": view.cached_bytes,
        "round_trip_s": view.round_trip.map(Duration::as_secs_f64),
        "wired_round_trip_s": view.wired_round_trip.map(Duration::as_secs_f64),
        "interventions": counted.map_or(0, |counted| counted.count),
        "last_rule": counted.map(|counted| counted.last.0),
        "last_did": counted.map(|counted| counted.last.1),
        "bytes": seen.map(|seen| seen.bytes),
        "busy_s": seen.map(|seen| seen.busy.as_secs_f64()),
        "sender_repeats": seen.map(|seen| seen.repeats),
        "would_repair": seen.map(|seen| seen.would_repair),
        "would_save_s": seen.map(|seen| seen.would_save.as_secs_f64()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sansio::{
        Delivery, DropReason, Engine, Event, Input, Packet, PacketId, PacketRef, Payload, Priority,
        Side, Sink, StreamId,
    };
    use schemes::worth::Worth;
    use std::net::IpAddr;
    use wire::ip::{self, Protocol};
    use wire::tcp;

    struct Nobody;

    impl Sink for Nobody {
        const TRACE: bool = false;

        fn new_id(&mut self) -> PacketId {
            PacketId::FIRST
        }

        fn send(&mut self, _: Side, _: Priority, _: PacketRef) {}

        fn discard(&mut self, _: PacketRef, _: DropReason) {}

        fn deliver(&mut self, _: Delivery) {}

        fn event(&mut self, _: Event) {}
    }

    fn at(number: u32) -> Instant {
        Instant::ZERO + Duration::from_micros(u64::from(number))
    }

    fn engine() -> Measured<Scheme> {
        let scheme = Scheme::named("snoop-modern").expect("a scheme");
        Measured::new(scheme, Worth::NONE, Vec::new(), 1)
    }

    /// Data of a flow comes, to the mobile host or from it.
    fn arrive(measured: &mut Measured<Scheme>, side: Side, number: u32) {
        let [_, _, c, d] = number.to_be_bytes();
        let (fixed, mobile) = (IpAddr::from([10, 9, c, d]), IpAddr::from([10, 0, 0, 1]));
        let header = tcp::Header::new(80, 4_000);
        let payload = Payload::Virtual { stream: StreamId(1), offset: 0, length: 100 };
        let (from, to) = if side == Side::WIRED { (fixed, mobile) } else { (mobile, fixed) };
        let ip = ip::Header::new(from, to, Protocol::TCP);
        let packet = Packet::tcp(PacketId::FIRST, ip, header, payload);
        let arrival = Input::Arrival { side, packet: packet.into() };
        measured.handle(arrival, &mut Nobody, at(number));
    }

    fn all(measured: &Measured<Scheme>, most: usize, now: Instant) -> Value {
        let (mut progress, mut recent) = (Progress::default(), Recent::new(most));
        while let Some(rows) = progress.next(measured, &Interventions::default(), now) {
            assert!(rows.len() <= PIECE);
            recent.add(&rows);
        }
        serde_json::from_str(&recent.text(now)).expect("JSON")
    }

    #[test]
    fn of_65_000_flows_those_that_are_asked_for_come_in_order() {
        let mut measured = engine();
        const FLOWS: u32 = 65_000;
        (0..FLOWS).for_each(|number| arrive(&mut measured, Side::WIRED, number));
        for most in [0, 3, FLOWS as usize, 70_000] {
            let said = all(&measured, most, at(FLOWS));
            assert_eq!(said["total"], FLOWS);
            let shown = said["flows"].as_array().expect("a list");
            assert_eq!(shown.len(), most.min(FLOWS as usize));
            let newest_first = (0..FLOWS).rev().map(|number| {
                let [_, _, c, d] = number.to_be_bytes();
                format!("10.9.{c}.{d}:80")
            });
            assert!(shown.iter().zip(newest_first).all(|(one, from)| one["from"] == from));
        }
    }

    #[test]
    fn flows_that_come_meanwhile_hide_and_repeat_no_other() {
        let mut measured = engine();
        const FLOWS: u32 = 2_000;
        (0..FLOWS).for_each(|number| arrive(&mut measured, Side::RADIO, number));
        let (mut progress, mut recent) = (Progress::default(), Recent::new(10_000));
        let mut number = FLOWS;
        while let Some(rows) = progress.next(&measured, &Interventions::default(), at(number)) {
            recent.add(&rows);
            for _ in 0..100 {
                arrive(&mut measured, Side::WIRED, number);
                number += 1;
            }
        }
        let said: Value = serde_json::from_str(&recent.text(at(number))).expect("JSON");
        let shown = said["flows"].as_array().expect("a list");
        let mut up: Vec<String> = shown
            .iter()
            .filter(|one| one["heading"] == "up")
            .map(|one| one["to"].to_string())
            .collect();
        up.sort();
        up.dedup();
        assert_eq!(up.len(), FLOWS as usize);
        assert_eq!(shown.iter().filter(|one| one["heading"] == "up").count(), FLOWS as usize);
    }
}
