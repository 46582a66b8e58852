//! A sink between engines of one machine: packets go where the machine decides, notices are kept
//! for it, everything else is the driver's.

use sansio::{
    Delivery, DropReason, Event, Notice, Packet, PacketId, PacketRef, Priority, Side, Sink,
};

/// One engine's outputs. `send` gets each packet, with the driver's sink at hand.
pub(super) struct Divert<'a, S, F> {
    sink: &'a mut S,
    notices: &'a mut Vec<Notice>,
    send: F,
}

/// See [`Divert`].
pub(super) fn divert<'a, S, F>(
    sink: &'a mut S,
    notices: &'a mut Vec<Notice>,
    send: F,
) -> Divert<'a, S, F>
where
    F: FnMut(&mut S, Side, Priority, PacketRef),
{
    Divert { sink, notices, send }
}

impl<S: Sink, F: FnMut(&mut S, Side, Priority, PacketRef)> Sink for Divert<'_, S, F> {
    const TRACE: bool = S::TRACE;

    fn new_id(&mut self) -> PacketId {
        self.sink.new_id()
    }

    fn place(&mut self, packet: Packet) -> PacketRef {
        self.sink.place(packet)
    }

    fn send(&mut self, side: Side, priority: Priority, packet: PacketRef) {
        (self.send)(self.sink, side, priority, packet);
    }

    fn discard(&mut self, packet: PacketRef, reason: DropReason) {
        self.sink.discard(packet, reason);
    }

    fn release(&mut self, packet: PacketRef) {
        self.sink.release(packet);
    }

    fn deliver(&mut self, delivery: Delivery) {
        self.sink.deliver(delivery);
    }

    fn notify(&mut self, notice: Notice) {
        self.notices.push(notice);
    }

    fn event(&mut self, event: Event) {
        self.sink.event(event);
    }
}
