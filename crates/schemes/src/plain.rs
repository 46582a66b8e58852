//! A base station that only forwards: the scheme every other one is compared with.

use sansio::{Deadline, DropReason, Engine, Input, Instant, Priority, Side, Sink};

/// Sends every packet that arrives on one side out of the other, unchanged and in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Forwarder;

/// The side across the base station; `None` if it has no such side.
#[inline]
fn across(side: Side) -> Option<Side> {
    match side {
        Side::WIRED => Some(Side::RADIO),
        Side::RADIO => Some(Side::WIRED),
        _ => None,
    }
}

impl Engine for Forwarder {
    #[inline]
    fn handle(&mut self, input: Input, sink: &mut impl Sink, _now: Instant) {
        if let Input::Arrival { side, packet } = input {
            match across(side) {
                Some(side) => sink.send(side, Priority::Normal, packet),
                None => sink.discard(packet, DropReason::Rule("no such side")),
            }
        }
    }

    fn next_deadline(&self) -> Option<Deadline> {
        None
    }
}
