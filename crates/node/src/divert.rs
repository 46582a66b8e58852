//! A sink between engines of one machine: packets go where the machine decides, notices are kept
//! for it or go on, everything else is the driver's.

use sansio::{
    Delivery, DropReason, Event, Notice, Packet, PacketId, PacketRef, Priority, Side, Sink,
};

/// One engine's outputs. `send` gets each packet, with the driver's sink at hand.
pub(crate) struct Divert<'a, S, F> {
    sink: &'a mut S,
    notices: Option<&'a mut Vec<Notice>>,
    send: F,
}

/// One whose `send` has no type that could be written.
pub(crate) type Diverted<'a, S> =
    Divert<'a, S, &'a mut dyn FnMut(&mut S, Side, Priority, PacketRef)>;

/// See [`Divert`]; without a place for them notices go on to the driver's sink.
pub(crate) fn divert<'a, S, F>(
    sink: &'a mut S,
    notices: impl Into<Option<&'a mut Vec<Notice>>>,
    send: F,
) -> Divert<'a, S, F>
where
    F: FnMut(&mut S, Side, Priority, PacketRef),
{
    Divert { sink, notices: notices.into(), send }
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
        match &mut self.notices {
            Some(notices) => notices.push(notice),
            None => self.sink.notify(notice),
        }
    }

    fn event(&mut self, event: Event) {
        self.sink.event(event);
    }
}
