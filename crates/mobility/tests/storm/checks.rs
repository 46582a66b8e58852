//! What holds in a storm and after it, whatever happens.

use super::{MOBILES, PERIOD, STATIONS, Storm, common};
use common::{mobile, station};
use mobility::refusal::Refusal;
use sansio::{Duration, Packet, Payload, StreamId};
use std::net::Ipv4Addr;

impl Storm {
    /// What all engines have refused for this reason.
    pub(super) fn refused(&self, reason: Refusal) -> u64 {
        let stations = self.stations.iter().map(|station| station.refused(reason));
        let mobiles = self.mobiles.iter().map(|mobile| mobile.refused(reason));
        self.home.refusals().of(reason) + stations.chain(mobiles).sum::<u64>()
    }

    /// Which datagram of whom a packet is; none of a message.
    pub(super) fn data(packet: &Packet) -> Option<(u32, u64)> {
        match packet.payload {
            Payload::Virtual { stream: StreamId(stream), offset, .. } => Some((stream, offset)),
            _ => None,
        }
    }

    /// A base station sends a packet to a mobile host.
    pub(super) fn on_air(&mut self, station: u8, to: u8, packet: &Packet) {
        let Some((stream, offset)) = Self::data(packet) else { return };
        assert_eq!(stream, u32::from(to), "seed {}: to the wrong mobile host", self.seed);
        let watched = &mut self.watched[usize::from(to) - 1];
        let Some(flying) = watched.flying.get_mut(&offset) else { return };
        let moved = watched.epoch - flying.epoch;
        // Each tunnel takes a hop of the 64: the home agent's, one from each base station to the
        // next, and one more for each handoff that has begun since.
        let hops = u64::from(64 - packet.ip.hop_limit);
        assert!(
            hops <= u64::from(STATIONS) + 1 + moved,
            "seed {}, {}: {hops} tunnels, {moved} handoffs",
            self.seed,
            self.now
        );
        flying.stations.insert(station);
        // Sent after completion, and no other handoff has begun since.
        if moved == 0 && flying.was_settled && watched.is_settled {
            watched.checked += 1;
            let stations = &flying.stations;
            assert_eq!(
                stations.len(),
                1,
                "seed {}, {}: mobile {to}'s datagram {offset} on the air at {stations:?}",
                self.seed,
                self.now
            );
        }
    }

    pub(super) fn on_received(&mut self, number: u8, packet: &Packet) {
        let Some((stream, offset)) = Self::data(packet) else {
            // A changed advertisement, which is ICMP to the host for all that we know.
            return assert!(self.forged > 0, "only data goes to the host: {packet:?}");
        };
        assert_eq!(stream, u32::from(number), "seed {}: at the wrong mobile host", self.seed);
        self.watched[usize::from(number) - 1].received.insert(offset);
    }

    pub(super) fn check_bounds(&self) {
        for station in &self.stations {
            let keeper = station.keeper().expect("modern ones keep");
            assert!(keeper.bytes() <= keeper.bytes_max());
            for number in 1..=MOBILES {
                assert!(station.member().kept(mobile(number)) <= 12, "seed {}", self.seed);
            }
            assert!(station.handover().len() <= usize::from(MOBILES));
        }
    }

    /// The storm is over: nothing is lost any more, everybody comes to rest, and then each datagram
    /// reaches its mobile host once, over the base station of its choice.
    pub(super) fn calm_down(&mut self) {
        self.loss = 0.0;
        self.overheard_max = 0;
        self.run_until(self.now + Duration::from_secs(70));
        let seed = self.seed;
        for number in 1..=MOBILES {
            let registrar = self.mobiles[usize::from(number) - 1].registrar().expect("it has one");
            assert!(!registrar.is_asking(), "seed {seed}: a registration is still open");
            assert!(registrar.registered(self.now).is_some(), "seed {seed}: mobile {number}");
        }
        for number in 1..=MOBILES {
            let before = self.watched[usize::from(number) - 1].sent;
            for _ in 0..20 {
                self.send_datagram(number);
                self.run_until(self.now + PERIOD);
            }
            let watched = &self.watched[usize::from(number) - 1];
            let current = self.mobiles[usize::from(number) - 1].current().expect("attached");
            for offset in before + 1..=before + 20 {
                let at = &watched.flying[&offset].stations;
                let at: Vec<Ipv4Addr> = at.iter().map(|number| station(*number)).collect();
                assert_eq!(at, [current], "seed {seed}: mobile {number}, datagram {offset}");
                assert!(watched.received.contains(&offset), "seed {seed}: mobile {number}");
            }
        }
    }
}
