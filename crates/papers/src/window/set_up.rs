//! EXP-WINC-SET: what no scenario file says of the paper's simulation, given or assumed.
//!
//! ```text
//!   signal, dB   20 ──────╲ 12 s                  ╱──── 20
//!                     5    ╲ the window closes   ╱
//!                     4     ╲╪ 6: the new cell's, at which it opens
//!                         crossing
//! ```

use link::preset::Pair;
use link::queue::Limit;
use node::Plan;
use node::movement::Spec;
use node::roaming::Branch;
use sansio::{Duration, Signal};
use schemes::window;
use tcp::config::{Rto, TimerModel};

/// A tree (Figure 5): of each base station, behind which branch it lies, how far that is from the
/// gateway and the base station from that, each way. Assumed, but for 200 ms from the second to the
/// third base station and 500 ms of round trip in the mean.
const TREE_MS: [(u16, u64, u64); 4] = [(0, 69, 1), (0, 69, 21), (1, 109, 1), (1, 109, 21)];

/// Of those, from a router to a base station as the scenario file has it.
const LAST_IN_FILE_MS: u64 = 1;

/// The round trip in each cell, without the time that sending takes.
pub(super) const ROUND_TRIPS_MS: [f64; 4] = [440.0, 480.0, 520.0, 560.0];

/// How long the signal falls before a crossing. Assumed: so long that a window that closes at 5 dB
/// (PAR-14) closes more than a round trip before it, as WINC-MH-5 asks.
const FADING: Duration = Duration::from_secs(12);

/// Of the new cell at a crossing, dB (PAR-14).
const SIGNAL_OF_HANDOVER: f64 = 6.0;

/// The period of agent advertisements, fitted to the mean restart of the conventional version
/// (PAR-16, EXP-WINC-3). The only input that is fitted.
pub(super) const PERIOD: Duration = Duration::from_millis(5_500);

/// Below these the window closes, dB: at the mobile host alone (PAR-14), and where the base station
/// holds what still comes, the lowest at which nothing is lost (WINC-BS-10, found by
/// EXP-WINC-BS-10).
pub(super) const CLOSE_BELOW: [f64; 2] = [5.0, 4.2];

/// WINC-MH-8.
const WINDOW_BYTES: u32 = 80_000;

/// As the paper's ns-2 of the year 2000 has its hosts: ticks of 100 ms, a timeout of two of them at
/// least, one segment at first, an ACK for each segment, 80 KB of window by window scaling
/// (WINC-MH-8).
pub(super) fn hosts(plan: &mut Plan) {
    let ns2 = tcp::Config::ns2(plan.tcp.congestion);
    let tick = Duration::from_millis(100);
    plan.tcp = tcp::Config {
        mss: plan.tcp.mss,
        receive_buffer_bytes: WINDOW_BYTES,
        window_scale: Some(1),
        initial_ssthresh_bytes: WINDOW_BYTES,
        initial_window_segments: 1,
        rto: Rto { model: TimerModel::Ideal { granularity: tick }, minimum: tick * 2, ..ns2.rto },
        ..ns2
    };
}

/// Everything, with the parameters of the paper's letter.
pub(super) fn versions(plan: &mut Plan) {
    hosts(plan);
    stand(plan, TREE_MS);
    let Some(roaming) = &mut plan.roaming else { return };
    roaming.advertisement_period = PERIOD;
    if let Spec::Dwell(dwell) = &mut roaming.movement {
        dwell.fading = FADING;
        dwell.arrives_at = SIGNAL_OF_HANDOVER;
    }
    let holds = plan.scheme.contains("window-station");
    // Only where base stations hold data, one tells the other (WINC-BS-4, section 3.2).
    roaming.names_previous = holds;
    let [alone, with_station] = CLOSE_BELOW;
    close_below(plan, if holds { with_station } else { alone });
}

/// Puts the base stations into a tree.
fn stand(plan: &mut Plan, tree: [(u16, u64, u64); 4]) {
    let Some(roaming) = &mut plan.roaming else { return };
    let ms = Duration::from_millis;
    let branch = |(number, delay, _)| Branch { number, delay: ms(delay) };
    roaming.branches = tree.map(branch).to_vec();
    roaming.farther = tree.map(|(_, _, last)| ms(last - LAST_IN_FILE_MS)).to_vec();
}

/// The same with a queue of 50 packets, the default of the paper's ns-2.
pub(super) fn short_queue(plan: &mut Plan) {
    versions(plan);
    let Pair { down, up, .. } = &mut plan.radio;
    [down.queue, up.queue] = [Limit::Packets(50); 2];
}

/// The same with a tree of which the round trips are 400, 467, 533 and 600 ms: those of section 2,
/// and even steps between them.
pub(super) fn even_tree(plan: &mut Plan) {
    versions(plan);
    stand(plan, [(0, 49, 1), (0, 49, 34), (1, 116, 1), (1, 116, 34)]);
}

/// The same with base stations 10 and 30 ms from the router of their branch: none is on the way to
/// another.
pub(super) fn apart(plan: &mut Plan) {
    versions(plan);
    stand(plan, [(0, 60, 10), (0, 60, 30), (1, 100, 10), (1, 100, 30)]);
}

/// The same with another threshold, in tenths of a decibel.
pub(super) fn threshold<const DECIBELS_10: u32>(plan: &mut Plan) {
    versions(plan);
    close_below(plan, f64::from(DECIBELS_10) / 10.0);
}

/// The same with another period of advertisements.
pub(super) fn period<const MS: u64>(plan: &mut Plan) {
    versions(plan);
    if let Some(roaming) = &mut plan.roaming {
        roaming.advertisement_period = Duration::from_millis(MS);
    }
}

/// The same with the sequencer.
pub(super) fn sequencer(plan: &mut Plan) {
    versions(plan);
    if let Some(window) = &mut plan.window {
        window.station.sequencer = window::Config::modern().station.sequencer;
    }
}

/// A sender that begins where one is after a handoff of the conventional version: cwnd of one
/// segment, ssthresh of two.
pub(super) fn recovery(plan: &mut Plan) {
    hosts(plan);
    plan.tcp.initial_ssthresh_bytes = 2 * u32::from(plan.tcp.mss);
    // 160 KB/s at 600 ms need more than the paper's window.
    plan.tcp.receive_buffer_bytes = 100_000;
}

fn close_below(plan: &mut Plan, decibels: f64) {
    let strict = window::Config::strict();
    let close_below = Signal::from_centi_db(libm::round(decibels * 100.0) as i32);
    let mobile = window::mobile::Config { close_below, ..strict.mobile };
    plan.window = Some(window::Config { mobile, ..strict });
}
