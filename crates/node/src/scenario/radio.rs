//! The radios a scenario can name, and what follows from them where nothing else is said.

use super::channel::{Outage, Told};
use super::names::{Hosts, Radio};
use super::quantity::{Queue, Rate, Time};
use link::Limit;
use link::outage::{Mode, Schedule};
use link::preset::{Pair, Preset};
use sansio::{BitRate, Duration};

/// What a radio brings along.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) rate: Rate,
    pub(crate) delay: Time,
    pub(crate) queue: Queue,
    pub(crate) outage: Outage,
    pub(crate) wired_rate: Rate,
    pub(crate) wired_delay: Time,
    pub(crate) hosts: Hosts,
}

/// The links of a radio's preset.
pub(crate) fn pair(radio: Radio) -> Pair {
    let preset = match radio {
        Radio::Plain => Preset::Plain,
        Radio::Wavelan1995 => Preset::Wavelan1995,
        Radio::WifiRoam => Preset::WifiRoam,
        Radio::Lte => Preset::Lte,
        Radio::FiveG => Preset::FiveG,
        Radio::Leo => Preset::Leo,
    };
    preset.pair()
}

/// Defaults that follow from a radio's preset.
pub(crate) fn defaults(radio: Radio) -> Defaults {
    let down = pair(radio).down;
    let (wired_mbps, wired_millis) = match radio {
        // PAR-17: the papers' Ethernet, 1 ms for a round trip of a small packet.
        Radio::Wavelan1995 => (10, 0),
        Radio::Plain => (100, 10),
        Radio::WifiRoam | Radio::Lte | Radio::FiveG | Radio::Leo => (1000, 10),
    };
    let wired_delay = match wired_millis {
        0 => Duration::from_micros(400),
        millis => Duration::from_millis(millis),
    };
    Defaults {
        rate: Rate(down.rate),
        delay: Time(down.delay),
        queue: match down.queue {
            Limit::Packets(packets) => Queue::Packets(packets),
            Limit::Bytes(bytes) => Queue::Bytes(bytes),
        },
        outage: outage(&down.outages),
        wired_rate: Rate(BitRate::from_mbps(wired_mbps)),
        wired_delay: Time(wired_delay),
        hosts: match radio {
            Radio::Wavelan1995 => Hosts::Bsd1995,
            _ => Hosts::Modern,
        },
    }
}

fn outage(spec: &link::outage::Spec) -> Outage {
    let hold = spec.mode == Mode::Hold;
    match &spec.schedule {
        Schedule::Every { every, length } => Outage::Every {
            every: Time(*every),
            length: (Time(length.shortest), Time(length.longest)),
            hold,
            told: if spec.notified { Told::Notified } else { Told::Nobody },
        },
        Schedule::Never | Schedule::At(_) => Outage::None,
    }
}
