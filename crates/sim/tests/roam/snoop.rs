//! Snoop at base stations among which a mobile host moves (SNHO-*).

use crate::{ms, plan, roaming};
use node::Plan;
use node::movement::dwell;
use node::roaming::{Pace, Roaming, Style, address};
use sansio::{Cause, EventKind, HandoffStage, Instant, Packet, Payload, Side};
use trace::handoffs::OUT_OF_CELL;
use trace::{CellChange, Observer, Record, What};

const TEN_MB: &str = "rate = \"2Mbit/s\"\nsize = \"10MB\"\ntcp = \"reno\"\nsack = \"off\"\n";

/// A crossing each so many milliseconds.
fn moving(every: u64, border: dwell::Border, style: Style) -> Roaming {
    let dwell = dwell::Spec { border, ..dwell::Spec::every(ms(every)) };
    Roaming {
        movement: node::movement::Spec::Dwell(dwell),
        style,
        pace: Pace::Modern,
        ..roaming(border, None)
    }
}

fn of_scheme(scheme: &str, roaming: Roaming) -> Plan {
    plan(&format!("{TEN_MB}schemes = \"{scheme}\"\n"), roaming)
}

fn run(plan: &Plan, seed: u64, observer: impl Observer) -> sim::Outcome {
    let outcome = sim::run(plan, seed, observer);
    assert_eq!(outcome.failures, [], "seed {seed}");
    assert!(outcome.finished, "seed {seed}");
    outcome
}

/// What base stations say and do.
#[derive(Default)]
struct Stations {
    /// Messages from one base station to another.
    among: u64,
    /// When the mobile host knew that the new one forwards, since it last crossed.
    greeted_at: Option<Instant>,
    /// Segments sent into a cell that did not reach the host any more, at least 60 ms after that.
    late: u64,
    /// First ACKs after a handoff.
    synchronised: u64,
}

/// What an order to the old base station may take, over the new one.
const ORDER_MS: u64 = 60;

impl Observer for &mut Stations {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        match record.what {
            What::Sent { packet, .. } => {
                let between = |packet: &Packet| {
                    let [from, to] = [packet.ip.source, packet.ip.destination];
                    let numbers = [from, to].map(address::station_number);
                    numbers.iter().all(Option::is_some)
                };
                let inner = match &packet.payload {
                    Payload::Tunnel(inner) => between(inner),
                    _ => false,
                };
                self.among += u64::from(between(packet) || inner);
            }
            What::Lost { side: Side::RADIO, packet, cause: OUT_OF_CELL } => {
                let is_late = |at: Instant| record.at > at + ms(ORDER_MS) + queue();
                let late = packet.as_tcp().is_some() && self.greeted_at.is_some_and(is_late);
                self.late += u64::from(late);
            }
            What::Cell(CellChange::Crossed { .. }) => self.greeted_at = None,
            What::Event(event) => match event.kind {
                EventKind::Handoff { stage: HandoffStage::Greeted, .. } => {
                    self.greeted_at = Some(record.at);
                }
                EventKind::Rule { id: "SNHO-5", .. } => self.synchronised += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

/// What waits in a base station's queue goes on air, though it is told to forward no more: 20
/// packets.
fn queue() -> sansio::Duration {
    ms(150)
}

/// SNHO-7: the mirror is made of what the group brings, and of the first ACK (SNHO-5).
#[test]
fn snho_5_and_7_base_stations_tell_each_other_nothing() {
    for scheme in ["snoop", "snoop-modern"] {
        let roaming = moving(2_000, dwell::Border::Overlap(None), Style::Multicast);
        let mut stations = Stations::default();
        run(&of_scheme(scheme, roaming), 1, &mut stations);
        assert_eq!(stations.among, 0, "{scheme}");
        assert!(stations.synchronised >= 10, "{scheme}: {}", stations.synchronised);
    }
}

/// MCAST-12: where cells do not overlap, the old base station learns over the new one that it is to
/// end, and not from the end of its role, 3.5 s later.
#[test]
fn mcast_12_an_old_base_station_that_is_not_heard_is_told_over_the_new_one() {
    for scheme in ["plain", "snoop", "snoop-modern"] {
        for (gap, rendezvous) in [(0, Some(1_000)), (500, None)] {
            let border = dwell::Border::Gap(ms(gap));
            let dwell = dwell::Spec {
                border,
                rendezvous: rendezvous.map(ms),
                ..dwell::Spec::every(ms(8_000))
            };
            let movement = node::movement::Spec::Dwell(dwell);
            let roaming = Roaming { movement, ..moving(8_000, border, Style::Multicast) };
            let text = format!("{TEN_MB}queue = \"20p\"\nschemes = \"{scheme}\"\n");
            let plan = plan(&text, roaming);
            for seed in 1..=3 {
                let mut stations = Stations::default();
                run(&plan, seed, &mut stations);
                assert_eq!(stations.late, 0, "{scheme}, gap {gap} ms, seed {seed}");
            }
        }
    }
}

/// SNHO-1: what a short gap takes, the mirror repairs; without it the sender waits for its timer.
#[test]
fn snho_1_the_mirror_repairs_what_a_short_gap_took() {
    let timeouts = |scheme: &str, style| {
        let border = dwell::Border::Gap(ms(200));
        let plan = of_scheme(scheme, moving(3_000, border, style));
        (1..=6).map(|seed| run(&plan, seed, trace::Nothing).measures.timeouts).sum::<u64>()
    };
    for scheme in ["snoop", "snoop-modern"] {
        let mirrored = timeouts(scheme, Style::Multicast);
        let without = timeouts("plain", Style::Multicast);
        assert!(2 * mirrored < without, "{scheme}: {mirrored} timeouts, {without} without Snoop");
    }
}

/// NACKs that base stations send into the air.
#[derive(Default)]
struct Nacks(u64);

impl Observer for &mut Nacks {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if let What::Sent { side: Side::RADIO, packet, .. } = record.what {
            self.0 += u64::from(packet.cause == Cause::AgentAck);
        }
    }
}

/// MOD-4: a NACK follows the data of which it tells, among cells, too.
#[test]
fn mod_4_a_nack_tells_of_no_data_that_has_not_gone_on() {
    let text = "rate = \"10Mbit/s\"\nrtt = \"50ms\"\nsize = \"1MB\"\nber = \"1/1Mbit\"\n\
                tcp = \"cubic\"\nschemes = \"snoop\"\ndirection = \"up\"\n";
    let mut nacks = Nacks::default();
    for style in [Style::Registration, Style::Greeting, Style::Multicast] {
        let plan = plan(text, moving(1_000, dwell::Border::Overlap(None), style));
        (1..=3).for_each(|seed| drop(run(&plan, seed, &mut nacks)));
    }
    assert!(nacks.0 > 20, "{} NACKs", nacks.0);
}
