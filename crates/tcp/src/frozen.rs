//! A connection at rest: everything it is, and nothing of where it was.
//!
//! A split connection moves with its mobile host (BASE-6, BASE-7; METP): the old base station
//! freezes it, the new one restores it, and the peer sees nothing but a pause. Times are in the
//! connection's own clock, which stands still in between: a timer has as long to go as it had.

use crate::connection::Endpoint;
use sansio::Instant;

/// One end of a connection as plain data.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen {
    /// With a clock offset of zero.
    endpoint: Endpoint,
    /// The connection's own time.
    clock: Instant,
}

impl Endpoint {
    /// A copy of everything, at `now`.
    pub fn freeze(&self, now: Instant) -> Frozen {
        Frozen { endpoint: Endpoint { clock_offset: 0, ..self.clone() }, clock: self.local(now) }
    }

    /// The connection as it was frozen, going on at `now`.
    pub fn restore(frozen: Frozen, now: Instant) -> Endpoint {
        let clock_offset = frozen.clock.as_nanos().wrapping_sub(now.as_nanos());
        Endpoint { clock_offset, ..frozen.endpoint }
    }
}
