//! What an engine reports beside packets: the raw material of traces, plots and stories.

use crate::{Duration, FlowKey, PacketId};
use wire::tcp::Seq;

/// One report. The driver adds the time and the node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// The direction of the connection it is about, as its data flows.
    pub flow: Option<FlowKey>,
    /// The packet it is about.
    pub packet: Option<PacketId>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind {
    /// A TCP sender's windows, in bytes, after they changed.
    Window {
        /// Congestion window.
        cwnd: u32,
        /// Slow start threshold.
        ssthresh: u32,
        /// Bytes sent and not acknowledged.
        flight: u32,
    },
    /// A round-trip sample and what follows from it.
    Rtt {
        /// The sample.
        sample: Duration,
        /// Smoothed round-trip time.
        smoothed: Duration,
        /// Retransmission timeout.
        timeout: Duration,
    },
    /// A sender's retransmission timer fired.
    Timeout {
        /// First byte sent again.
        seq: Seq,
        /// How often in a row, from 1.
        attempt: u32,
    },
    /// A sender retransmits on duplicate ACKs or SACK blocks.
    FastRetransmit {
        /// First byte sent again.
        seq: Seq,
    },
    /// A connection or an engine went from one state to another.
    State {
        /// Before.
        from: &'static str,
        /// After.
        to: &'static str,
    },
    /// A scheme's rule acted.
    Rule {
        /// The rule's ID in the specification: "SNOOP-ACK-7".
        id: &'static str,
        /// What it did, a few words.
        did: &'static str,
        /// A number that belongs to it: a count, a sequence number, a time in nanoseconds.
        value: u64,
    },
    /// A limit was reached.
    Limit {
        /// Its name.
        name: &'static str,
        /// Its value.
        value: u64,
    },
    /// A handoff of this mobile host has come so far.
    Handoff {
        /// How far.
        stage: crate::HandoffStage,
        /// The base station over which its packets leave now, by its cell's number.
        station: Option<u16>,
    },
    /// A scheme leaves a flow alone from here on.
    StandAside {
        /// Why.
        reason: &'static str,
    },
}
