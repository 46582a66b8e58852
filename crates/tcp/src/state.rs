//! The states of a connection (RFC 9293, 3.3.2).
//!
//! ```text
//!   CLOSED ── open ─▶ SYN-SENT ──────┐            LISTEN ── SYN ─▶ SYN-RECEIVED
//!                        │           │ SYN, ACK                       │ ACK
//!                        └── SYN ────┼────────────────────────────────┤
//!                                    ▼                                ▼
//!                                ESTABLISHED ◀────────────────────────┘
//!                        close │            │ FIN
//!                              ▼            ▼
//!                         FIN-WAIT-1     CLOSE-WAIT ── close ─▶ LAST-ACK ── ACK ─▶ CLOSED
//!                    ACK │         │ FIN
//!                        ▼         ▼
//!                 FIN-WAIT-2     CLOSING
//!                    FIN │         │ ACK
//!                        ▼         ▼
//!                         TIME-WAIT ── 2 MSL ─▶ CLOSED
//! ```
//!
//! A FIN in FIN-WAIT-1 that also acknowledges ours leads to TIME-WAIT at once. RST, an abort or too
//! many timeouts lead from anywhere to CLOSED.

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// No connection: not yet opened, or over.
    Closed,
    /// Waits for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Closed here, FIN not acknowledged.
    FinWait1,
    /// Closed here, FIN acknowledged.
    FinWait2,
    /// The peer closed.
    CloseWait,
    /// Both closed at once, our FIN not acknowledged.
    Closing,
    /// The peer closed first, our FIN not acknowledged.
    LastAck,
    /// Both closed; late segments die out.
    TimeWait,
}

impl State {
    /// The name in RFC 9293.
    pub const fn name(self) -> &'static str {
        match self {
            State::Closed => "CLOSED",
            State::Listen => "LISTEN",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
        }
    }

    /// True if the handshake is over and the connection is not.
    pub const fn is_synchronized(self) -> bool {
        !matches!(self, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// True if data or a FIN may still be sent, for the first time or again.
    #[inline]
    pub(crate) const fn may_transmit(self) -> bool {
        matches!(
            self,
            State::Established
                | State::CloseWait
                | State::FinWait1
                | State::Closing
                | State::LastAck
        )
    }

    /// True if the peer may still send data.
    #[inline]
    pub(crate) const fn may_receive(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}
