//! Links by name (PAR-17, PAR-18, INC-20, MOD-21).
//!
//! `wavelan-1995` carries the papers' figures. The radios of today are ours: round numbers of the
//! right size, each with its reason and, where it was measured, its source, so that a comparison
//! has something to begin with; who has recordings of their own link uses those, and who knows
//! their own link sets its values. Where a real radio's two directions share the air, these do
//! not unless asked to: a full-duplex pair with the medium's cost in the MAC efficiency.

use crate::channel::{self, arq, burst};
use crate::hop;
use crate::outage::{self, Length, Mode, Schedule};
use crate::queue::Limit;
use sansio::{BitRate, Duration};

/// Both directions of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Toward the mobile host.
    pub down: hop::Config,
    /// Toward the fixed host.
    pub up: hop::Config,
    /// True if both share the air ([`hop::half_duplex`]).
    pub half_duplex: bool,
}

/// A link by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// 2 Mbit/s, 1 ms, nothing else: what the other options of a scenario start from.
    Plain,
    /// AT&T WaveLAN as the papers used it.
    Wavelan1995,
    /// A Wi-Fi client that walks from one access point to the next.
    WifiRoam,
    /// A phone in an LTE cell.
    Lte,
    /// A phone in a mid-band 5G cell.
    FiveG,
    /// A low-orbit satellite terminal.
    Leo,
}

impl Preset {
    /// All of them.
    pub const ALL: [Preset; 6] = [
        Preset::Plain,
        Preset::Wavelan1995,
        Preset::WifiRoam,
        Preset::Lte,
        Preset::FiveG,
        Preset::Leo,
    ];

    /// Its name at the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Plain => "plain",
            Preset::Wavelan1995 => "wavelan-1995",
            Preset::WifiRoam => "wifi-roam",
            Preset::Lte => "lte",
            Preset::FiveG => "5g",
            Preset::Leo => "leo",
        }
    }

    /// The preset of this name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// The link.
    pub fn pair(self) -> Pair {
        match self {
            Preset::Plain => {
                Pair::symmetric(hop::Config::clean(BitRate::from_mbps(2), Duration::from_millis(1)))
            }
            Preset::Wavelan1995 => wavelan_1995(),
            Preset::WifiRoam => wifi_roam(),
            Preset::Lte => lte(),
            Preset::FiveG => five_g(),
            Preset::Leo => leo(),
        }
    }
}

impl Pair {
    /// Both directions alike.
    pub fn symmetric(config: hop::Config) -> Self {
        Pair { up: config.clone(), down: config, half_duplex: false }
    }

    /// The same link with these outages, in both directions.
    #[must_use]
    pub fn with_outages(mut self, outages: &outage::Spec) -> Self {
        self.down.outages = outages.clone();
        self.up.outages = outages.clone();
        self
    }
}

/// Both labs measured 1.6 Mbit/s of TCP payload at best over the 2 Mbit/s radio (Caceres and
/// Iftode, section III-D; Snoop paper, section 7) and explain it no further. So full-sized
/// packets, 1460 bytes of payload in 1500, get exactly that: the MAC efficiency is
/// 0.8 x 1500 / 1460, and IP packets are served at 1.643836 Mbit/s. Bit errors are the
/// experiment's business. The queue is 4.3BSD's `IFQ_MAXLEN`, 50 packets.
fn wavelan_1995() -> Pair {
    const PAYLOAD_SHARE_OF_RATE: f64 = 0.8;
    const PACKET_PER_PAYLOAD: f64 = 1500.0 / 1460.0;
    const IFQ_MAXLEN: u32 = 50;
    Pair::symmetric(hop::Config {
        mac_efficiency: PAYLOAD_SHARE_OF_RATE * PACKET_PER_PAYLOAD,
        queue: Limit::Packets(IFQ_MAXLEN),
        ..hop::Config::clean(BitRate::from_mbps(2), Duration::from_millis(1))
    })
}

/// Ours. 144.4 Mbit/s is the top rate of two 802.11n streams in 20 MHz (MCS 15, short guard
/// interval); two thirds of it is what aggregation and contention commonly leave. Frames fail one
/// time in ten (a rate control's usual working point), are repeated up to 7 times (MOD-21) half a
/// millisecond apart, and the receiver restores the order. What is left comes in bursts: 0.1 % of
/// packets, four in a row. Twice a minute the client roams, and nobody's frames arrive: 50 ms is a
/// good re-association, 2 s a full scan with authentication.
fn wifi_roam() -> Pair {
    let mut config = hop::Config {
        mac_efficiency: 2.0 / 3.0,
        queue: Limit::Packets(256),
        ..hop::Config::clean(BitRate::from_bps(144_400_000), Duration::from_millis(1))
    };
    config.channels = vec![
        channel::Config::Arq(arq::Config {
            try_failure: 0.1,
            retry_time: Duration::from_micros(500),
            retries_max: 7,
            order: arq::Order::InOrder,
        }),
        channel::Config::Burst(burst::Config { mean: 0.001, length: 4.0 }),
    ];
    Pair::symmetric(config).with_outages(&outage::Spec {
        schedule: Schedule::Every {
            every: Duration::from_secs(30),
            length: Length { shortest: Duration::from_millis(50), longest: Duration::from_secs(2) },
        },
        mode: Mode::Lose,
        notified: false,
    })
}

/// Measured: 13 Mbit/s down and 6 up, the medians of 3000 users (Huang et al., "A close examination
/// of performance and power characteristics of 4G LTE networks", MobiSys 2012). From the design of
/// LTE: 20 ms for a small packet's round trip between phone and core, scheduling included, 8 ms for
/// a repetition on layer 1, one block in ten failing, at which link adaptation aims (Holma and
/// Toskala, "LTE for UMTS", section on user plane latency).
///
/// Assumed: what layer 1 gives up RLC in acknowledged mode repeats, which is modelled as further
/// repetitions, eight tries in all, so practically nothing is lost and order is kept. The queues
/// hold about a second, the size that made bufferbloat known in such networks. Every 30 s the phone
/// changes the cell, for 30 to 100 ms, and the old cell forwards what it holds: the lossless
/// handover, which delays segments where the seamless one loses them (Nguyen et al., "Towards
/// understanding TCP performance on LTE/EPC mobile networks", 2014).
fn lte() -> Pair {
    cellular(Cell {
        down: (BitRate::from_mbps(13), Limit::Bytes(1_600_000)),
        up: (BitRate::from_mbps(6), Limit::Bytes(750_000)),
        delay: Duration::from_millis(10),
        repetition: Duration::from_millis(8),
        handover: Length {
            shortest: Duration::from_millis(30),
            longest: Duration::from_millis(100),
        },
    })
}

/// Measured: a link that can approach 1 Gbit/s of which TCP uses less than a third (Xu et al.,
/// "Understanding operational 5G", SIGCOMM 2020), and latencies that are not much better than those
/// of LTE as long as the core is shared (Narayanan et al., "A first look at commercial 5G
/// performance on smartphones", WWW 2020). From the design of NR: one block in ten fails at the
/// working point of link adaptation (3GPP TS 38.214, 5.2.2.1).
///
/// Assumed, with a loaded cell in mind: 300 Mbit/s down and 50 up; 8 ms one way; a repetition after
/// 5 ms, two periods of a common TDD pattern; eight tries in all and order kept, as for LTE; queues
/// of about 100 ms; every 30 s a handover of 50 to 150 ms that forwards what the old cell holds.
fn five_g() -> Pair {
    cellular(Cell {
        down: (BitRate::from_mbps(300), Limit::Bytes(4_000_000)),
        up: (BitRate::from_mbps(50), Limit::Bytes(600_000)),
        delay: Duration::from_millis(8),
        repetition: Duration::from_millis(5),
        handover: Length {
            shortest: Duration::from_millis(50),
            longest: Duration::from_millis(150),
        },
    })
}

/// What cellular radios differ in.
struct Cell {
    down: (BitRate, Limit),
    up: (BitRate, Limit),
    delay: Duration,
    repetition: Duration,
    handover: Length,
}

/// A cellular radio: repetitions in parallel, order restored, handovers that hold.
fn cellular(cell: Cell) -> Pair {
    let hop = |(rate, queue): (BitRate, Limit)| hop::Config {
        queue,
        channels: vec![channel::Config::Arq(arq::Config {
            try_failure: 0.1,
            retry_time: cell.repetition,
            retries_max: 7,
            order: arq::Order::InOrder,
        })],
        ..hop::Config::clean(rate, cell.delay)
    };
    let pair = Pair { down: hop(cell.down), up: hop(cell.up), half_duplex: false };
    pair.with_outages(&outage::Spec {
        schedule: Schedule::Every { every: Duration::from_secs(30), length: cell.handover },
        mode: Mode::Hold,
        notified: false,
    })
}

/// Ours. Rates and delay of the order such terminals advertise: 100 Mbit/s down, 10 up, 15 ms one
/// way (2 ms for each leg at 550 km, the rest frames and scheduling). Queues of about 80 ms at
/// those rates. The radio repeats in parallel without restoring the order: one try in twenty
/// fails, 5 ms for each of at most three repetitions; what is left comes in bursts, 0.2 % of
/// packets, five in a row. Every 15 s satellites are assigned anew, at an instant that is not
/// announced; what is on the air in the 20 to 200 ms around it is lost.
fn leo() -> Pair {
    let down = hop::Config {
        queue: Limit::Bytes(1_000_000),
        channels: vec![
            channel::Config::Arq(arq::Config {
                try_failure: 0.05,
                retry_time: Duration::from_millis(5),
                retries_max: 3,
                order: arq::Order::AsReceived,
            }),
            channel::Config::Burst(burst::Config { mean: 0.002, length: 5.0 }),
        ],
        ..hop::Config::clean(BitRate::from_mbps(100), Duration::from_millis(15))
    };
    let up =
        hop::Config { rate: BitRate::from_mbps(10), queue: Limit::Bytes(100_000), ..down.clone() };
    Pair { down, up, half_duplex: false }.with_outages(&outage::Spec {
        schedule: Schedule::Every {
            every: Duration::from_secs(15),
            length: Length {
                shortest: Duration::from_millis(20),
                longest: Duration::from_millis(200),
            },
        },
        mode: Mode::Lose,
        notified: false,
    })
}
