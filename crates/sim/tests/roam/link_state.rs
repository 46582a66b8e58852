//! Link state, prefetch and window control with real handoffs: what leaves when, and what the
//! sender and the base stations go through.

use crate::{ms, plan, roaming};
use node::Plan;
use node::movement::{Spec, dwell};
use node::roaming::{Branch, Pace, Roaming, Style};
use sansio::{Duration, EventKind, HandoffStage, Instant, Side, Signal, Transport};
use schemes::window;
use trace::handoffs::OUT_OF_CELL;
use trace::{CellChange, NodeId, Observer, Record, What};

/// What a mobile host and the base stations do.
#[derive(Default)]
struct Seen {
    crossings: Vec<Instant>,
    /// Registrations begun.
    begun: Vec<Instant>,
    /// Solicitations, by cell.
    solicited: Vec<(u16, Instant)>,
    /// Base stations' states, with the machine.
    states: Vec<(NodeId, &'static str, &'static str, Instant)>,
    /// The sender's cwnd and ssthresh.
    windows: Vec<(Instant, u32, u32)>,
    /// When windows closed and opened.
    rules: Vec<(&'static str, Instant)>,
    /// Segments lost toward the mobile host.
    lost: u64,
    fast_retransmits: u64,
}

impl Observer for Seen {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        let at = record.at;
        match record.what {
            What::Cell(CellChange::Crossed { .. }) => self.crossings.push(at),
            What::Sent { side: Side(cell), packet, .. } if is_solicitation(packet) => {
                self.solicited.push((cell, at));
            }
            What::Lost { packet, cause: OUT_OF_CELL, .. } if !packet.payload.is_empty() => {
                self.lost += u64::from(packet.as_tcp().is_some());
            }
            What::Event(event) => match event.kind {
                EventKind::Handoff { stage: HandoffStage::Begun, .. } => self.begun.push(at),
                EventKind::State { from, to } => self.states.push((record.node, from, to, at)),
                EventKind::Window { cwnd, ssthresh, .. } => {
                    self.windows.push((at, cwnd, ssthresh));
                }
                EventKind::Rule { id, .. } => self.rules.push((id, at)),
                EventKind::FastRetransmit { .. } => self.fast_retransmits += 1,
                _ => {}
            },
            _ => {}
        }
    }
}

/// ICMP of type 10 (RFC 1256).
fn is_solicitation(packet: &sansio::Packet) -> bool {
    let bytes = packet.payload.to_bytes().filter(|_| packet.transport == Transport::Opaque);
    bytes.is_some_and(|bytes| bytes.first() == Some(&10))
}

fn seen(plan: &Plan, seed: u64) -> Seen {
    let mut seen = Seen::default();
    let outcome = sim::run(plan, seed, &mut seen);
    assert_eq!(outcome.failures, [], "seed {seed}");
    seen
}

const MINUTE: &str = "rate = \"2Mbit/s\"\nrtt = \"100ms\"\nhosts = \"1995\"\nduration = \"60s\"\n";

/// Ten crossings, one each 4 s, between two cells that are heard ahead, whose agents seldom
/// advertise themselves.
fn ahead(style: Style) -> Roaming {
    let spec = dwell::Spec {
        first: Some(ms(4_000)),
        times: Some(10),
        border: dwell::Border::Ahead(ms(1_500)),
        ..dwell::Spec::every(ms(4_000))
    };
    Roaming {
        movement: Spec::Dwell(spec),
        style,
        pace: Pace::Modern,
        advertisement_period: Duration::from_secs(1_000),
        ..roaming(dwell::Border::Gap(ms(0)), None)
    }
}

#[test]
fn link_4_a_registration_leaves_at_the_instant_of_the_crossing() {
    let seen = seen(&plan(MINUTE, ahead(Style::Prefetch)), 1);
    assert_eq!(seen.crossings.len(), 10);
    assert_eq!(seen.begun, seen.crossings);
}

#[test]
fn pre_2_and_5_an_agent_is_asked_once_ahead_of_the_crossing_however_often_the_host_returns() {
    let seen = seen(&plan(MINUTE, ahead(Style::Prefetch)), 1);
    let &[(1, asked_at)] = &seen.solicited[..] else { panic!("{:?}", seen.solicited) };
    assert!(asked_at < seen.crossings[0] && asked_at > seen.crossings[0] - ms(1_500));
}

/// The first beacon of the new cell comes after the crossing: it is asked for as soon as layer 2 is
/// there.
#[test]
fn pre_2_an_agent_that_could_not_be_asked_ahead_is_asked_at_the_crossing() {
    let mut roaming = ahead(Style::Prefetch);
    let Spec::Dwell(spec) = &mut roaming.movement else { unreachable!() };
    spec.border = dwell::Border::Gap(ms(100));
    let seen = seen(&plan(MINUTE, roaming), 1);
    assert_eq!(seen.solicited, [(1, seen.crossings[0] + ms(100))]);
    let first = seen.begun[0].since(seen.crossings[0] + ms(100));
    assert!(first > Duration::ZERO && first < ms(20), "an exchange on the air: {first}");
    // The second cell is known from then on.
    assert_eq!(seen.begun[1], seen.crossings[1] + ms(100));
}

#[test]
fn pre_7_without_prefetch_the_wait_is_half_of_the_period_in_the_mean_in_every_cell_anew() {
    for period in [1_000, 3_000] {
        let mut waits = Vec::new();
        for seed in 1..=20 {
            let advertisement_period = ms(period);
            let roaming = Roaming { advertisement_period, ..ahead(Style::Registration) };
            let seen = seen(&plan(MINUTE, roaming), seed);
            assert_eq!(seen.solicited, []);
            let after = seen.begun.iter().zip(&seen.crossings).map(|(begun, at)| begun.since(*at));
            waits.extend(after.map(Duration::as_secs_f64));
        }
        let mean = waits.iter().sum::<f64>() / waits.len() as f64;
        let longest = waits.iter().copied().fold(0.0, f64::max);
        let period = period as f64 / 1e3;
        assert!((mean / period - 0.5).abs() < 0.1, "{mean} s of {period} s");
        assert!(longest > 0.9 * period && longest < period + 0.1, "{longest} s");
    }
}

/// Window control by the letter, closing below so many tenths of a decibel.
fn window(scheme: &str, closes_below: i32, sequencer: bool) -> Plan {
    let spec = dwell::Spec {
        first: Some(ms(8_000)),
        times: Some(3),
        border: dwell::Border::Ahead(ms(4_000)),
        fading: ms(8_000),
        arrives_at: 6.0,
        ..dwell::Spec::every(ms(16_000))
    };
    // 200 ms from each base station to the next, of which a branch is none.
    let branch = |number| Branch { number, delay: ms(60) };
    let roaming = Roaming {
        cells: 4,
        movement: Spec::Dwell(spec),
        style: Style::Prefetch,
        branches: (0..4).map(branch).collect(),
        ..roaming(dwell::Border::Gap(ms(0)), None)
    };
    let text = format!("{MINUTE}queue = \"100p\"\ntcp = \"reno\"\nschemes = \"{scheme}\"\n");
    let mut plan = plan(&text, roaming);
    plan.tcp.receive_window = tcp::config::ReceiveWindow::Whole;
    let strict = window::Config::strict();
    let close_below = Signal::from_centi_db(closes_below * 10);
    let mobile = window::mobile::Config { close_below, ..strict.mobile };
    let waits = window::Config::modern().station.sequencer.filter(|_| sequencer);
    let station = window::station::Config { sequencer: waits, ..strict.station };
    plan.window = Some(window::Config { mobile, station });
    plan
}

/// WINC-MH-6: what the sender had when the window closed it has when data comes again, through
/// three handoffs.
#[test]
fn winc_mh_6_cwnd_and_ssthresh_outlast_the_pause() {
    let seen = seen(&window("window-mobile", 56, false), 1);
    let times = |id| seen.rules.iter().filter(move |rule| rule.0 == id).map(|rule| rule.1);
    let pauses: Vec<_> = times("WINC-MH-1").zip(times("WINC-MH-4")).collect();
    assert_eq!(pauses.len(), 3);
    for (closed_at, opened_at) in pauses {
        assert!(opened_at > closed_at + ms(500));
        let at = |at: Instant| seen.windows.iter().rfind(|window| window.0 <= at).copied();
        let (_, cwnd, ssthresh) = at(closed_at).expect("it has sent");
        let during = |window: &&(Instant, u32, u32)| {
            window.0 > closed_at && window.0 < opened_at + ms(1_000)
        };
        for (at, cwnd_then, ssthresh_then) in seen.windows.iter().filter(during) {
            assert!(*cwnd_then >= cwnd && *ssthresh_then == ssthresh, "{at:?}");
        }
    }
    assert_eq!((seen.lost, seen.fast_retransmits), (0, 0));
}

/// WINC-BS-10: the lowest threshold at which nothing is lost.
#[test]
fn winc_bs_10_a_base_station_that_holds_data_lets_the_window_close_at_a_weaker_signal() {
    let lowest = |scheme| {
        let thresholds = (0..=8).rev().map(|step| 42 + 2 * step);
        let is_lossless = |threshold: &i32| seen(&window(scheme, *threshold, false), 1).lost == 0;
        thresholds.take_while(is_lossless).last().expect("one is high enough")
    };
    let (alone, with) = (lowest("window-mobile"), lowest("window-station"));
    assert!(with + 4 <= alone, "{with} and {alone} tenths of a decibel");
}

/// WINC-BS-5, 6 and 12: binding updates and tunnels reach the engines of both base stations, and
/// the sequencer puts in order what comes by two ways.
#[test]
fn winc_bs_12_the_sequencer_learns_of_the_tunnel_and_keeps_the_order() {
    let without = seen(&window("window-station", 46, false), 1);
    assert!(without.fast_retransmits > 0, "what comes straight overtakes");
    let with = seen(&window("window-station", 46, true), 1);
    assert_eq!((with.fast_retransmits, with.lost), (0, 0));
    let went = |from, to| with.states.iter().filter(move |it| (it.1, it.2) == (from, to)).count();
    assert_eq!((went("MON", "BUF"), went("BUF", "TUN"), went("IDLE", "MON")), (3, 3, 3));
}

/// WINC-BS-12: what base stations of one branch send each other does not come up to the home agent,
/// so it is there before what comes straight from that.
#[test]
fn winc_bs_12_behind_one_branch_the_tunnel_is_short_and_keeps_the_order() {
    let mut plan = window("window-station", 46, false);
    let roaming = plan.roaming.as_mut().expect("it has cells");
    roaming.branches.iter_mut().for_each(|branch| branch.number = 0);
    let seen = seen(&plan, 1);
    assert_eq!((seen.fast_retransmits, seen.lost), (0, 0));
    assert_eq!(seen.states.iter().filter(|it| it.2 == "TUN").count(), 6, "flow and host, thrice");
}

/// WINC-ST-7: what was told of a mobile host that has moved on is forgotten with its binding, 10 s
/// after it (PAR-15).
#[test]
fn winc_st_7_a_binding_that_expires_ends_the_tunnel() {
    let seen = seen(&window("window-station", 46, false), 1);
    let of = |from, to| seen.states.iter().filter(move |it| (it.1, it.2) == (from, to));
    let opened: Vec<_> = of("MON", "TUN").map(|it| (it.0, it.3)).collect();
    let ended: Vec<_> = of("TUN", "IDLE").map(|it| (it.0, it.3)).collect();
    assert_eq!(opened.len(), 3);
    let expected: Vec<_> =
        opened.iter().map(|(node, at)| (*node, *at + Duration::from_secs(10))).collect();
    assert_eq!(ended, expected);
}
