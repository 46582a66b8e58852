//! What one endpoint counts.

/// Counters since the connection was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments sent with payload, first or again.
    pub data_segments_sent: u64,
    /// Payload bytes sent, first or again.
    pub bytes_sent: u64,
    /// Segments sent without payload: ACKs, SYN, FIN, RST.
    pub control_segments_sent: u64,
    /// Written bytes that the peer acknowledged.
    pub bytes_acknowledged: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Segments with payload sent again.
    pub segments_retransmitted: u64,
    /// Payload bytes sent again.
    pub bytes_retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Recoveries begun by duplicate ACKs or SACK blocks.
    pub fast_retransmits: u64,
    /// Duplicate ACKs received.
    pub dupacks_received: u64,
    /// Segments received with payload of which nothing was new.
    pub duplicate_segments_received: u64,
    /// Segments received beyond a hole.
    pub out_of_order_segments_received: u64,
    /// Segments let go: outside the window, failed PAWS (RFC 7323, 5.3), not valid in the state.
    pub segments_unacceptable: u64,
}
