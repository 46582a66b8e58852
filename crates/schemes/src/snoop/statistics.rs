//! What the agent did, counted.

/// Counters since the agent was made; each counts segments or packets unless it says otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Data segments put into a cache.
    pub cached: u64,
    /// Data segments forwarded without being cached: a limit was reached (SNOOP-CACHE-3).
    pub uncached: u64,
    /// Data segments that the sender repeated.
    pub sender_retransmissions: u64,
    /// Acknowledged repeats answered instead of forwarded (SNOOP-DATA-4).
    pub agent_acks: u64,
    /// Duplicate ACKs withheld from the sender.
    pub dupacks_suppressed: u64,
    /// Duplicate ACKs forwarded to the sender.
    pub dupacks_forwarded: u64,
    /// ACKs below the last one that were discarded (SNOOP-ACK-3).
    pub spurious_acks: u64,
    /// Local retransmissions, of all causes but probes.
    pub retransmissions: u64,
    /// Bytes of payload in them.
    pub retransmitted_bytes: u64,
    /// Those of them that a timer caused.
    pub timer_retransmissions: u64,
    /// Those of them that the return of the link caused.
    pub restart_retransmissions: u64,
    /// Those of them whose original had arrived after all, as far as the agent can tell.
    pub unneeded_retransmissions: u64,
    /// Local retransmissions that a bound forbade (MOD-14).
    pub retransmissions_refused: u64,
    /// Probes for the link's return, and ACKs repeated to a mobile host that is silent.
    pub probes: u64,
    /// Bytes of the datagrams that carried them.
    pub probe_bytes: u64,
    /// ACKs whose SACK blocks were hidden from the sender.
    pub sack_hidden: u64,
    /// Episodes of losses that the sender was let know: the link's queue was long.
    pub episodes_shown: u64,
    /// Segments that the link's own queue dropped, seen by others departing before them.
    pub queue_drops_seen: u64,
    /// Times that a mobile host was told what of its data is missing (SNOOP-NACK-2).
    pub nacks: u64,
    /// Gaps told of which the data came twice: it was only late.
    pub nacks_unneeded: u64,
    /// Flows that got state.
    pub flows_created: u64,
    /// Flows left alone from some point on.
    pub flows_left_alone: u64,
    /// Data packets of flows for which there was no room.
    pub flows_refused: u64,
}
