//! What of the paper cannot be repeated yet, and what it needs.

use super::not_yet;
use crate::paper::Experiment;

pub(super) const CLAIMS: [Experiment; 4] = [
    not_yet(
        ("EXP-SN-S-e", "section 2"),
        "I-TCP's handoff takes 265 to 1430 ms",
        "a split connection whose state moves (BASE-6); an input, which EXP-SN-S-b takes",
    ),
    not_yet(
        ("EXP-SN-S-h", "section 7"),
        "with two-state errors throughput converged too slowly to interpret",
        "the two states' parameters, which the paper does not give (BASE-28)",
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
