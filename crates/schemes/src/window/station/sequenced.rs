//! When a mobile host's sequencer begins and ends (WINC-BS-12).

use super::{Agent, Waiting};
use crate::window::sequencer::Sequencer;
use crate::window::table::State;
use core::net::IpAddr;
use sansio::{Instant, PacketRef, Sink};
use std::collections::{BTreeSet, VecDeque};

impl Agent {
    pub(super) fn begin_sequencer(&mut self, address: IpAddr, now: Instant) {
        let Some(waits) = self.config.sequencer else { return };
        let Some(mobile) = self.mobiles.get_mut(&address) else { return };
        if let Some(sequencer) = &mut mobile.sequencer {
            sequencer.on_tunnelled(&waits, now);
            arm(&mut self.timers, address, sequencer);
        } else if mobile.state == State::Mon {
            let sequencer = Sequencer::new(&waits, now);
            self.timers.insert((sequencer.timer_at, Waiting::Mobile(address)));
            mobile.sequencer = Some(sequencer);
        }
    }

    pub(super) fn take_sequencer(&mut self, address: IpAddr) -> VecDeque<PacketRef> {
        let mobile = self.mobiles.get_mut(&address);
        let Some(sequencer) = mobile.and_then(|mobile| mobile.sequencer.take()) else {
            return VecDeque::new();
        };
        self.timers.remove(&(sequencer.timer_at, Waiting::Mobile(address)));
        self.held_bytes -= u64::from(sequencer.bytes());
        sequencer.into_packets()
    }

    pub(super) fn end_sequencer(&mut self, address: IpAddr, sink: &mut impl Sink) {
        let waited = self.take_sequencer(address);
        waited.into_iter().for_each(|packet| self.toward_mobile(packet, sink));
    }

    pub(super) fn on_sequencer_timer(
        &mut self,
        address: IpAddr,
        sink: &mut impl Sink,
        now: Instant,
    ) {
        let mobile = self.mobiles.get_mut(&address);
        let Some(sequencer) = mobile.and_then(|mobile| mobile.sequencer.as_mut()) else { return };
        sequencer.timer_at = sequencer.ends_at();
        if sequencer.timer_at > now {
            self.timers.insert((sequencer.timer_at, Waiting::Mobile(address)));
        } else {
            self.end_sequencer(address, sink);
        }
    }
}

/// Enters a sequencer's end if it became earlier.
pub(super) fn arm(
    timers: &mut BTreeSet<(Instant, Waiting)>,
    address: IpAddr,
    sequencer: &mut Sequencer,
) {
    if sequencer.ends_at() < sequencer.timer_at {
        timers.remove(&(sequencer.timer_at, Waiting::Mobile(address)));
        sequencer.timer_at = sequencer.ends_at();
        timers.insert((sequencer.timer_at, Waiting::Mobile(address)));
    }
}
