//! The trace as text: one line of fixed columns per event.
//!
//! ```text
//! seconds      node what      side packet parent  cause  segment or report
//!   1.204312345    1 sent      1.n    120      -  orig   10.0.0.1:1 > 10.2.0.1:2 . seq 1+999 ack 1
//! ```
//!
//! `side` is the machine's side, with `.h` or `.n` for the queue; sequence numbers are absolute.

use crate::{CellChange, Observer, Record, What};
use core::fmt::{self, Write as _};
use sansio::{Cause, EventKind, FlowKey, Packet, Payload, Priority, Side};

/// Heads a text trace.
pub const COLUMNS: &str =
    "#     seconds  node what      side  packet  parent cause  segment or report";

/// Hands every record to a closure as one line.
pub struct Lines<F> {
    line: String,
    take: F,
}

impl<F: FnMut(&str)> Lines<F> {
    /// Calls `take` with each line, without line feed.
    pub fn new(take: F) -> Self {
        Lines { line: String::new(), take }
    }
}

impl<F: FnMut(&str)> Observer for Lines<F> {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        if matches!(record.what, What::Cached { .. } | What::Queued { .. }) {
            return;
        }
        self.line.clear();
        if write!(self.line, "{record}").is_ok() {
            (self.take)(&self.line);
        }
    }
}

impl fmt::Display for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.at.as_nanos();
        write!(f, "{:>3}.{:09} ", nanos / 1_000_000_000, nanos % 1_000_000_000)?;
        write!(f, "{:>5} ", self.node.0)?;
        match self.what {
            What::Sent { side, priority, packet } => {
                let queue = if priority == Priority::High { ".h" } else { ".n" };
                packet_line(f, "sent", side, queue, packet)
            }
            What::Departed { side, packet } => packet_line(f, "departed", side, "", packet),
            What::Arrived { side, packet } => packet_line(f, "arrived", side, "", packet),
            What::Lost { side, packet, cause } => {
                packet_line(f, "lost", side, "", packet)?;
                write!(f, " ({cause})")
            }
            What::QueueFull { side, packet } => packet_line(f, "full", side, "", packet),
            What::Discarded { packet, reason } => {
                packet_line(f, "dropped", Side(0), "", packet)?;
                write!(f, " ({reason:?})")
            }
            What::Delivered { payload } => {
                let (offset, length) = match payload {
                    Payload::Virtual { offset, length, .. } => (*offset, *length),
                    other => (0, other.len()),
                };
                write!(f, "delivered {:>4} {:>7} {:>7} {:<6} {offset}+{length}", "", "", "", "")
            }
            What::LinkDown { side } => write!(f, "link-down {:>3}", side.0),
            What::LinkUp { side } => write!(f, "link-up   {:>3}", side.0),
            What::Cached { bytes, .. } => write!(f, "cached    {bytes}"),
            What::Queued { side, packets, bytes } => {
                write!(f, "queued    {:>4} {packets} packets, {bytes} bytes", side.0)
            }
            What::Cell(CellChange::Reached(cell)) => write!(f, "in reach  {cell:>4}"),
            What::Cell(CellChange::Lost(cell)) => write!(f, "no reach  {cell:>4}"),
            What::Cell(CellChange::Crossed { from, to }) => {
                write!(f, "crossed   {from:>4} to {to}")
            }
            What::Event(event) => {
                let packet = event.packet.map_or_else(|| "-".into(), |id| id.to_string());
                write!(f, "report    {:>4} {packet:>7} {:>7} {:<6} ", "", "", "")?;
                event_text(f, &event.kind)
            }
        }
    }
}

fn packet_line(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    side: Side,
    queue: &str,
    packet: &Packet,
) -> fmt::Result {
    let side = format!("{}{queue}", side.0);
    let parent = packet.parent.map_or_else(|| "-".into(), |id| id.to_string());
    let cause = match packet.cause {
        Cause::Original => "orig",
        Cause::EndToEndRetransmission => "e2e",
        Cause::LocalRetransmission => "local",
        Cause::Probe => "probe",
        Cause::AgentAck => "ack",
        Cause::Encapsulation => "encap",
    };
    write!(f, "{what:<9} {side:>4} {:>7} {parent:>7} {cause:<6} ", packet.id)?;
    datagram_text(f, packet)
}

/// Its addresses and what it carries, tunnels from the outermost on.
fn datagram_text(f: &mut fmt::Formatter<'_>, packet: &Packet) -> fmt::Result {
    let (Some(flow), Some(tcp)) = (FlowKey::of(packet), packet.as_tcp()) else {
        write!(f, "{} > {} {}", packet.ip.source, packet.ip.destination, packet.bytes())?;
        let Payload::Tunnel(inner) = &packet.payload else { return Ok(()) };
        f.write_str(" | ")?;
        return datagram_text(f, inner);
    };
    write!(f, "{flow} {} seq {}+{} ack {}", tcp.flags, tcp.seq, packet.payload.len(), tcp.ack)?;
    write!(f, " win {}", tcp.window)?;
    for block in tcp.options.sack_blocks() {
        write!(f, " sack {}-{}", block.start, block.end)?;
    }
    Ok(())
}

pub(crate) fn event_text(f: &mut impl fmt::Write, kind: &EventKind) -> fmt::Result {
    match *kind {
        EventKind::Window { cwnd, ssthresh, flight } => {
            write!(f, "cwnd {cwnd} ssthresh {ssthresh} flight {flight}")
        }
        EventKind::Rtt { sample, smoothed, timeout } => {
            write!(f, "rtt {sample} smoothed {smoothed} timeout {timeout}")
        }
        EventKind::Timeout { seq, attempt } => write!(f, "timeout {attempt} at {seq}"),
        EventKind::FastRetransmit { seq } => write!(f, "fast retransmit of {seq}"),
        EventKind::State { from, to } => write!(f, "{from} -> {to}"),
        EventKind::Rule { id, did, value } => write!(f, "{id}: {did} ({value})"),
        EventKind::Limit { name, value } => write!(f, "limit {name} reached: {value}"),
        EventKind::StandAside { reason } => write!(f, "stands aside: {reason}"),
        EventKind::Handoff { stage, station: Some(station) } => {
            write!(f, "handoff: {}, route over base station {station}", stage.name())
        }
        EventKind::Handoff { stage, .. } => write!(f, "handoff: {}", stage.name()),
        other => write!(f, "{other:?}"),
    }
}
