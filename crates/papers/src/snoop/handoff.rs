//! What of the paper cannot be repeated yet, and what it needs: above all handoff (Table 1, Figures
//! 9 to 11).

use super::not_yet;
use crate::paper::Experiment;

const HANDOFF: &str = "handoff: beacons, two base stations, multicast with buffers (MCAST, SNHO)";
const TABLE: &str = "table 1";

pub(super) const TABLE_1: [Experiment; 8] = [
    not_yet(("EXP-SN-T1-a", TABLE), "a handoff each 1 s: 1.42 Mbit/s (sd .011)", HANDOFF),
    not_yet(("EXP-SN-T1-b", TABLE), "each 2 s: 1.43 (.016)", HANDOFF),
    not_yet(("EXP-SN-T1-c", TABLE), "each 3 s: 1.43 (.012)", HANDOFF),
    not_yet(("EXP-SN-T1-d", TABLE), "each 5 s: 1.43 (.014)", HANDOFF),
    not_yet(("EXP-SN-T1-e", TABLE), "each 8 s: 1.44 (.012)", HANDOFF),
    not_yet(("EXP-SN-T1-f", TABLE), "each 10 s: 1.43 (.012)", HANDOFF),
    not_yet(("EXP-SN-T1-g", TABLE), "beacons, no handoff: 1.45 (.011)", HANDOFF),
    not_yet(("EXP-SN-T1-h", TABLE), "even frequent handoffs have very little impact", HANDOFF),
];

pub(super) const FIGURES: [Experiment; 9] = [
    not_yet(
        ("EXP-SN-F9-a", "figure 9"),
        "sequence against time, a handoff each 10 s: no interruption",
        HANDOFF,
    ),
    not_yet(("EXP-SN-F10-a", "figure 10"), "time chart of handoff events", HANDOFF),
    not_yet(("EXP-SN-F10-b", "section 7"), "idle, a handoff takes 5 to 10 ms", HANDOFF),
    not_yet(("EXP-SN-F10-c", "section 7"), "under load, 25 to 70 ms", HANDOFF),
    not_yet(
        ("EXP-SN-F10-d", "section 7"),
        "the variation comes from queueing and the MAC",
        HANDOFF,
    ),
    not_yet(("EXP-SN-F10-V", "figure 10, as plotted"), "gaps after the beacon", HANDOFF),
    not_yet(
        ("EXP-SN-F11-a", "figure 11"),
        "throughput against bit errors, a handoff each 5 s",
        HANDOFF,
    ),
    not_yet(("EXP-SN-F11-b", "figure 11"), "below 1e-6 near the peak of 1.45 Mbit/s", HANDOFF),
    not_yet(("EXP-SN-F11-c", "figure 11"), "above it as without handoff", HANDOFF),
];

pub(super) const CLAIMS: [Experiment; 8] = [
    not_yet(("EXP-SN-S-a", "section 7"), "handoff costs Snoop less than 1 %", HANDOFF),
    not_yet(
        ("EXP-SN-S-b", "abstract"),
        "handoff latency over 10 times shorter than others",
        "handoff, and another scheme's to compare with; the 20 times are EXP-SN-F7-b",
    ),
    not_yet(("EXP-SN-S-c", "abstract"), "negligible data loss in handoff", HANDOFF),
    not_yet(
        ("EXP-SN-S-e", "section 2"),
        "I-TCP's handoff takes 265 to 1430 ms",
        "a split connection whose state moves (BASE-6); an input, not a result",
    ),
    not_yet(
        ("EXP-SN-S-h", "section 7"),
        "with two-state errors throughput converged too slowly to interpret",
        "the two states' parameters, which the paper does not give (BASE-28)",
    ),
    not_yet(
        ("EXP-SN-S-i", "section 6"),
        "12 buffered packets are 24 to 72 ms of air",
        "the multicast buffer that they fill",
    ),
    not_yet(
        ("EXP-SN-S-j", "sections 1 and 9"),
        "numbers of other systems, for context",
        "a radio of several hops at about 100 kbit/s; inputs, not results",
    ),
    not_yet(
        ("EXP-SN-S-k", "section 9"),
        "announced: wide-area paths, mobile to fixed host, real interference",
        "negative acknowledgments (SNOOP-NACK) for the way up; EXP-SN-W-wide has a wide area",
    ),
];
