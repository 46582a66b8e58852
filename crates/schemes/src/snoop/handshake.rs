//! The window scale (RFC 7323, section 2; MOD-5) and whether SACK is permitted (RFC 2018,
//! section 2), from the SYNs of both hosts.
//!
//! A connection gets state with its first data (MOD-14), and its SYNs come before that. So the
//! latest SYNs are remembered in a short list, whoever sent them: a flood displaces what others
//! offered, and costs nothing else. A flow of which not both SYNs were seen, since it was picked up
//! on the way or displaced, has no known scale: its windows are not interpreted.

use sansio::{FlowKey, Packet};
use std::collections::VecDeque;
use wire::tcp::{Flags, Header};

/// The SYNs seen last.
#[derive(Clone, Debug, Default)]
pub(super) struct Handshakes {
    recent: VecDeque<Handshake>,
}

/// What the hosts of a connection offered; `None` before a host's SYN.
#[derive(Clone, Debug)]
struct Handshake {
    flow: FlowKey,
    fixed: Option<Offer>,
    mobile: Option<Offer>,
    /// Which flows have asked: the one from the fixed host, the one from the mobile host.
    asked: (bool, bool),
}

/// What a SYN offers.
#[derive(Clone, Copy, Debug)]
struct Offer {
    /// The window scale option: `None` if it had none.
    scale: Option<u8>,
    sack: bool,
}

/// What both hosts say of SACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SackUse {
    /// Both permit it.
    Agreed,
    /// Not both.
    Refused,
}

/// Which host sent a SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    Fixed,
    Mobile,
}

impl Origin {
    /// The flow of a packet that it sent: its data travels from the fixed host.
    pub(super) fn flow_of(self, packet: &Packet) -> Option<FlowKey> {
        let key = FlowKey::of(packet)?;
        match self {
            Origin::Fixed => Some(key),
            Origin::Mobile => Some(key.reversed()),
        }
    }
}

/// Connections that may be between their SYN and their first data: 14 KB.
const HANDSHAKES_MAX: usize = 256;
/// The largest shift; a larger one counts as this (RFC 7323, section 2.3).
const SHIFT_MAX: u8 = 14;

impl Handshakes {
    /// Takes note of a segment if it is a SYN. `flow` is the way from the fixed to the mobile host.
    pub(super) fn note(&mut self, flow: FlowKey, origin: Origin, header: &Header) {
        if !header.flags.contains(Flags::SYN) {
            return;
        }
        let known = self.take(&flow).filter(|_| header.flags.contains(Flags::ACK));
        let new = Handshake { flow, fixed: None, mobile: None, asked: (false, false) };
        let mut handshake = known.unwrap_or(new);
        let options = &header.options;
        let scale = options.window_scale().map(|shift| shift.min(SHIFT_MAX));
        let offer = Some(Offer { scale, sack: options.sack_permitted() });
        match origin {
            Origin::Fixed => handshake.fixed = offer,
            Origin::Mobile => handshake.mobile = offer,
        }
        if self.recent.len() >= HANDSHAKES_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(handshake);
    }

    /// The shift of the mobile host's windows, if both SYNs were seen; zero if not both offered it.
    pub(super) fn take_scale(&mut self, flow: &FlowKey) -> Option<u8> {
        let (fixed, mobile) = self.ask(flow, |asked| core::mem::replace(&mut asked.0, true))?;
        Some(fixed.scale.and(mobile.scale).unwrap_or(0))
    }

    /// Whether SACK is permitted, if both SYNs were seen: for the flow from the mobile host.
    pub(super) fn take_sack(&mut self, flow: &FlowKey) -> Option<SackUse> {
        let (fixed, mobile) = self.ask(flow, |asked| core::mem::replace(&mut asked.1, true))?;
        Some(if fixed.sack && mobile.sack { SackUse::Agreed } else { SackUse::Refused })
    }

    /// The offers of both, once for each direction; `has_asked` says whether that was before.
    fn ask(
        &mut self,
        flow: &FlowKey,
        has_asked: impl FnOnce(&mut (bool, bool)) -> bool,
    ) -> Option<(Offer, Offer)> {
        let index = self.recent.iter().rposition(|handshake| handshake.flow == *flow)?;
        let handshake = &mut self.recent[index];
        let is_again = has_asked(&mut handshake.asked);
        let offers = handshake.fixed.zip(handshake.mobile).filter(|_| !is_again);
        if offers.is_none() || handshake.asked == (true, true) {
            self.recent.remove(index);
        }
        offers
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.recent.clear();
    }

    fn take(&mut self, flow: &FlowKey) -> Option<Handshake> {
        let index = self.recent.iter().rposition(|handshake| handshake.flow == *flow)?;
        self.recent.remove(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{IpAddr, Ipv4Addr};
    use sansio::Host;
    use wire::tcp::kind;

    fn flow(port: u16) -> FlowKey {
        let host = |address, port| Host { address: IpAddr::V4(address), port };
        FlowKey {
            source: host(Ipv4Addr::new(10, 0, 0, 1), 80),
            destination: host(Ipv4Addr::new(10, 0, 1, 2), port),
        }
    }

    fn syn(flags: Flags, shift: Option<u8>) -> Header {
        let mut header = Header::new(80, 5000);
        header.flags = flags;
        if let Some(shift) = shift {
            header.options.push(&[kind::WINDOW_SCALE, 3, shift, kind::NOP]).expect("room");
        }
        header
    }

    #[test]
    fn mod_5_the_scale_needs_both_syns_and_is_the_mobile_hosts() {
        let both = Flags::SYN.with(Flags::ACK);
        for (fixed, mobile, scale) in [
            (Some(7), Some(3), 3),
            (Some(7), Some(200), 14),
            (Some(7), None, 0),
            (None, Some(3), 0),
        ] {
            let mut handshakes = Handshakes::default();
            handshakes.note(flow(1), Origin::Mobile, &syn(Flags::SYN, mobile));
            handshakes.note(flow(1), Origin::Fixed, &syn(both, fixed));
            assert_eq!(handshakes.take_scale(&flow(1)), Some(scale));
            assert_eq!(handshakes.take_scale(&flow(1)), None, "taken");
            handshakes.note(flow(1), Origin::Fixed, &syn(both, fixed));
            assert_eq!(handshakes.take_scale(&flow(1)), None, "one SYN tells nothing");
        }
        // The next connection of the four-tuple does not inherit.
        let mut handshakes = Handshakes::default();
        handshakes.note(flow(1), Origin::Fixed, &syn(Flags::SYN, Some(7)));
        handshakes.note(flow(1), Origin::Mobile, &syn(Flags::SYN, Some(3)));
        assert_eq!(handshakes.take_scale(&flow(1)), None);
    }

    #[test]
    fn mod_14_a_flood_of_syns_takes_no_more_than_the_list_and_displaces_the_oldest() {
        let mut handshakes = Handshakes::default();
        for port in 0..10_000 {
            handshakes.note(flow(port), Origin::Fixed, &syn(Flags::SYN, Some(7)));
            let answer = syn(Flags::SYN.with(Flags::ACK), Some(7));
            handshakes.note(flow(port), Origin::Mobile, &answer);
        }
        assert_eq!(handshakes.recent.len(), HANDSHAKES_MAX);
        assert!(size_of::<Handshake>() * HANDSHAKES_MAX <= 14 << 10);
        assert_eq!(handshakes.take_scale(&flow(9_999 - 256)), None);
        assert_eq!(handshakes.take_scale(&flow(9_999 - 255)), Some(7));
    }
}
