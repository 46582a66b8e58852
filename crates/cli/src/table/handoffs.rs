//! The columns of handoffs.

use super::{ColumnOf, Needed, number, triple, value};
use report::table::{Cell, Kind};
use study::Row;
use study::handoffs::HandoffCost;
use study::statistics::Quantiles;

/// What a handoff costs, where there are any.
pub(super) fn columns() -> Vec<ColumnOf> {
    use Kind::{LowestIsBest, Value};
    use Needed::IfKnown;
    let sender = "longest time without a new ACK that begins within 2 s after a crossing";
    let receiver = "the same without the next byte at the receiver";
    let consistent = "from the crossing until routes are consistent, as the mobile host knows it";
    let first = "from a handoff's first message to the first packet through the new cell";
    let registered = "from the crossing until the home agent's answer is at the mobile host";
    let lost = "TCP segments lost per handoff";
    let messages = "messages of mobility per handoff, beacons included, once for each hop";
    vec![
        value(("after handoff p50/p95/max", "s"), LowestIsBest, sender, IfKnown, |row, _| {
            times(row, |cost| cost.stall_s)
        }),
        value(("receiver p50/p95/max", "s"), LowestIsBest, receiver, IfKnown, |row, _| {
            times(row, |cost| cost.receiver_stall_s)
        }),
        value(("routes p50/p95/max", "s"), Value, consistent, IfKnown, |row, _| {
            times(row, |cost| cost.until_consistent_s)
        }),
        value(("first packet p50/p95/max", "s"), Value, first, IfKnown, |row, _| {
            times(row, |cost| cost.until_first_packet_s)
        }),
        value(("registered p50/p95/max", "s"), Value, registered, IfKnown, |row, _| {
            times(row, |cost| cost.until_registered_s)
        }),
        value(("lost", "/handoff"), LowestIsBest, lost, IfKnown, |row, _| {
            number(row.handoffs.as_ref().map(|cost| cost.lost), 1)
        }),
        value(("messages", "/handoff"), Value, messages, IfKnown, |row, _| {
            number(row.handoffs.as_ref().map(|cost| cost.messages), 0)
        }),
    ]
}

fn times(row: &Row, of: fn(&HandoffCost) -> Option<Quantiles>) -> Cell {
    triple(row.handoffs.as_ref().and_then(of))
}
