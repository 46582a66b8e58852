//! The last byte that the host acknowledges is told a little later than the rest.
//!
//! What arrives during a handoff's last moments is acknowledged into nowhere, and so the first ACK
//! after it is often news to the fixed host. Held back, it always is, if the data stopped because
//! the handoff began: the hold ends in the midst of it.

use super::{before, is_ack_alone};
use sansio::{Instant, PacketRef, Sink, Transport};
use wire::tcp::Seq;

/// What one connection holds back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hold {
    /// The highest number the host has acknowledged.
    acknowledged: Option<Seq>,
    /// When the last byte of it is told.
    until: Option<Instant>,
}

impl Hold {
    /// When what is held back has to go.
    pub(super) fn at(&self) -> Option<Instant> {
        self.until
    }

    /// It goes, or is told by another ACK.
    pub(super) fn release(&mut self) {
        self.until = None;
    }

    /// A segment of the host, with an ACK that lacks the last byte if that is news. A segment that
    /// says more than that, or the same again, tells all.
    pub(super) fn shorten(
        &mut self,
        packet: PacketRef,
        until: Instant,
        sink: &mut impl Sink,
    ) -> PacketRef {
        let Some(tcp) = packet.as_tcp() else { return packet };
        let is_news = self.acknowledged.is_some_and(|seq| tcp.ack.after(seq + 1));
        if self.acknowledged.is_none_or(|seq| tcp.ack.after(seq)) {
            self.acknowledged = Some(tcp.ack);
        }
        if !is_news || !is_ack_alone(&packet) {
            self.until = None;
            return packet;
        }
        self.until = Some(until);
        let shorter = packet.rewrite(sink.new_id(), packet.cause, |shorter| {
            if let Transport::Tcp(tcp) = &mut shorter.transport {
                tcp.ack = before(tcp.ack);
            }
        });
        sink.place(shorter)
    }
}
