//! Every parameter of the agent, with unit, default and source, in two presets.
//!
//! *strict* is the paper to the letter, with the published ambiguities resolved as each field says.
//! *modern* is the default of a deployment: senders with SACK, RACK and CUBIC, radios that vanish.

use sansio::{BitRate, Duration, Priority};

/// The agent's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Segments in the cache of one flow. Strict 128: a window of 64 KB in segments of 536 bytes
    /// (SNOOP-CACHE-2; the paper gives no number). Modern 8192: 4 MB in segments of 512 bytes.
    pub cache_segments_max: u32,
    /// Payload bytes in the cache of one flow. Strict 256 KB. Modern 8 MB, of which 6 MB are below
    /// the mark: the largest receive buffer of a Linux host (`tcp_rmem`).
    pub cache_bytes_max: u32,
    /// Payload bytes in the caches of all flows (MOD-14). Reaching it is a `Limit` event, and data
    /// is forwarded without being cached.
    pub cache_bytes_total_max: u64,
    /// High-water mark in percent of `cache_segments_max` and `cache_bytes_max`: above it only data
    /// older than the newest is cached (SNOOP-CACHE-3). 75; the paper gives no number.
    pub cache_mark_percent: u8,
    /// Flows with state (MOD-14). Data of further flows is forwarded untouched.
    pub flows_max: u32,
    /// A flow gives up its place to a new one if nothing was heard of it for this long. Strict and
    /// modern 10 s: far above any round trip, so that an active flow never yields to a flood.
    pub flow_yields_after: Duration,
    /// A flow is forgotten if nothing was heard of it for this long. 300 s.
    pub flow_idle: Duration,
    /// Which duplicate ACK triggers the local retransmission (SNOOP-ACK-7). 1: the first.
    pub dupack_threshold: u32,
    /// Local retransmissions of one segment until its duplicate ACKs pass and local effort ends
    /// (SNOOP-TMR-7). 10; the paper names the counter but no limit.
    pub retransmissions_max: u8,
    /// Which retransmissions of the sender are marked as such (SNOOP-DATA-6).
    pub mark: Mark,
    /// Lower bound of the round-trip timer. Strict 40 ms (paper, section 6). Modern 10 ms: the
    /// timer resolution of a base station is no longer 10 ms, and 2 srtt still bounds it.
    pub round_trip_floor: Duration,
    /// Silence after which the persist timer acts. Strict 200 ms, counted from the last packet of
    /// either host (paper, section 6). Modern 60 ms or 2 srtt if longer, counted from the last
    /// packet of the mobile host: the 40 ms for which Linux delays an ACK, and half of it as
    /// margin.
    pub persist: Duration,
    /// How a loss is recognised.
    pub repair: Repair,
    /// What the sender sees of SACK blocks while the agent repairs the holes they show.
    pub sack_toward_sender: SackTowardSender,
    /// Whether the sender learns of losses while the link's queue is long.
    pub congestion: Congestion,
    /// What to do when nothing is heard of the mobile host.
    pub restart: Restart,
    /// How the agent learns what really went onto the air.
    pub departures: Departures,
    /// What a verdict of the link layer is good for (METP-LL-3).
    pub verdicts: Verdicts,
    /// The TSval of local retransmissions (MOD-3).
    pub copy_timestamps: CopyTimestamps,
    /// The queue of local retransmissions (SNOOP-ACK-10). High; Normal measures what that gains.
    pub retransmission_priority: Priority,
    /// Whether the agent leaves flows alone that it cannot help.
    pub stand_aside: StandAside,
    /// From when on a flow is helped.
    pub help_from: HelpFrom,
    /// When mobile hosts are told what of their data was lost on the air.
    pub nack: Nack,
    /// What becomes of a mobile host's cache when it is with another base station.
    pub when_moved: WhenMoved,
    /// Bounds against misuse (MOD-14).
    pub bounds: Bounds,
}

/// What becomes of the cache of a mobile host that is with another base station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMoved {
    /// It is forgotten (SNHO-7, SNHO-9). Strict and modern.
    Forget,
    /// What the mobile host has not acknowledged follows it through the tunnel, once and in order:
    /// the buffer of CI-SMOOTH-2, less all that is known to have arrived.
    Follow,
}

/// When a mobile host is told what of its data was lost on the air (SNOOP-NACK-2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Segments that came from beyond a gap. 3, the duplicates that tell of a loss (RFC 5681); the
    /// paper gives no number.
    pub threshold_segments: u32,
    /// Or silence of the mobile host while there is a gap. 40 ms; the paper gives no number.
    pub silence: Duration,
    /// How often one gap is told, at most (MOD-14). 10, as local retransmissions.
    pub times_max: u8,
    /// With a shorter wired round trip nothing is told: that is all that can be won. Strict 0,
    /// modern 20 ms.
    pub wired_rtt_min: Duration,
    /// Which gaps are told.
    pub reach: Reach,
}

/// Which retransmissions of the sender are marked, so that their duplicate ACKs pass (SNOOP-ACK-6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Only those that the cache did not hold: the paper's text.
    Uncached,
    /// All: the reason that the text gives fits both. Default.
    Both,
}

/// How a loss on the radio is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// By duplicate ACKs beyond the number expected (SNOOP-ACK-7 to 9).
    Counted,
    /// By evidence: something that departed later has arrived, as SACK blocks show (MOD-1; the idea
    /// of RFC 8985 applied to the last hop). Duplicate ACKs without blocks count as in `Counted`.
    Evidence,
}

/// What the sender sees of SACK blocks while the agent repairs the holes they show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackTowardSender {
    /// Everything: a RACK sender retransmits what the agent is repairing, and halves its window.
    Pass,
    /// Nothing: the option becomes padding in ACKs that must pass, if the cache holds every hole.
    /// SACK is advisory (RFC 2018, section 8), so that the sender loses nothing but a hint.
    Hide,
}

/// Whether the sender learns of losses while the link's queue is long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congestion {
    /// Never: the paper takes every loss on the last hop for one on the air.
    Hide,
    /// While the queue that the time from departure to ACK tells of is longer than the round trip
    /// of the empty path, or as long as it ever is and near enough to that or dropping many: a
    /// window cut in half keeps the link busy then, so that hiding a loss wins nothing. Departures
    /// seen when they happen leave no queue to be measured.
    Show {
        /// A shorter queue is never shown. 10 ms: four segments at 5 Mbit/s, and beyond the jitter
        /// of most radios.
        queue_min: Duration,
        /// The wired round trip as long as no timestamps tell. 50 ms.
        wired_rtt_assumed: Duration,
    },
}

/// What to do when nothing is heard of the mobile host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The lowest unacknowledged segment again at every expiry of the persist timer (SNOOP-TMR-5).
    Persist,
    /// One byte of it until the link answers, then what the mobile host misses.
    Probe(Probe),
}

impl Restart {
    /// True if the link's rate has to be learned from departures.
    #[inline]
    pub(super) fn asks_for_rate(&self) -> bool {
        matches!(self, Restart::Probe(Probe { link_rate: None, .. }))
    }
}

/// Which gaps a mobile host is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All: the paper.
    Anywhere,
    /// Those of messages, on connections where the mobile host sends some and pauses: as far as the
    /// message before reached. Such a message gets through a wired round trip sooner. In a long
    /// transfer a stock sender halves its window for a loss, and if it learns sooner, it halves a
    /// smaller one: measured 10 Mbit/s, 100 ms, one bit error in 512 Kbit: 5 to 10 % less.
    Message {
        /// The longest. 64 KiB: beyond it slow start, which an early halving ends too soon, is what
        /// counts.
        bytes_max: u32,
    },
}

/// Probing for the link's return and restarting after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Time between the probes of a flow. 20 ms, measured: stall p95 70 ms at a round trip of
    /// 31 ms, against 113 ms with 100 ms.
    pub interval: Duration,
    /// Share of the air that all probes together may use, in parts per million of the link rate.
    /// 2,000: 0.2 %.
    pub air_share_ppm: u32,
    /// Rate of the link, if it is known; otherwise the fastest pair of departures tells.
    pub link_rate: Option<BitRate>,
    /// Rate to assume as long as nothing tells. 2 Mbit/s: probes then come every 0.1 s.
    pub link_rate_assumed: BitRate,
    /// Between probes while a notice says that the link is down: in case the notice of its return
    /// is lost. 1 s.
    pub interval_while_down: Duration,
    /// Wired round trip from which the whole cached window is re-sent at once when the link is
    /// back. 40 ms: below it the sender's own recovery comes in between and both collide (measured
    /// without wired delay: 649 ms instead of 350 ms to 500 kB; with 80 ms: 265 instead of 673 ms).
    pub flush_from_wired_rtt: Duration,
}

/// How the agent learns what really went onto the air.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departures {
    /// The driver reports each packet when its first bit is sent.
    Reported,
    /// A packet counts as departed when the agent sends it: for links that report nothing.
    AssumedWhenSent,
}

/// What a verdict of the link layer on a frame is good for (METP-LL-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdicts {
    /// Nothing: the agent does not ask for any. The paper's link has none.
    Ignored,
    /// A segment whose frame was given up is re-sent at once, once; what is lost again waits for
    /// ACKs or timers, as everything else does.
    Repair,
}

/// The TSval of a local retransmission and of a probe (MOD-3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyTimestamps {
    /// As the sender sent it.
    AsSent,
    /// The same, but no older than the last TSval that the mobile host echoed: it discards what is
    /// older (PAWS; RFC 7323, section 5). That is so once the sender has repaired a hole below: its
    /// repair carries a newer TSval than what it had sent before beyond the hole.
    Acceptable,
}

/// Whether the agent leaves flows alone that it cannot help, with a `StandAside` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandAside {
    /// Never: the paper knows no such flows.
    Never,
    /// If no ACK passes here (MOD-23) or most repairs were not needed.
    IfUseless,
}

/// From when on a flow is helped. Before, it is left alone: nothing is kept, sent or withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelpFrom {
    /// Its first packet: the last hop is known to be a radio. Strict and modern.
    FirstPacket,
    /// Evidence, for who does not know that: so many bytes of the flow are acknowledged, or the
    /// agent has cached so many segments of all flows, and so many repairs were needed.
    Evidence {
        /// 14,600: an initial window (RFC 6928).
        acknowledged_bytes: u32,
        /// 10,000.
        segments: u64,
        /// 8: with fewer, less than one segment in a thousand is lost, if it is one.
        repairs: u64,
    },
}

impl HelpFrom {
    /// Evidence, with its defaults.
    pub const EVIDENCE: HelpFrom =
        HelpFrom::Evidence { acknowledged_bytes: 14_600, segments: 10_000, repairs: 8 };
}

/// Bounds against misuse (MOD-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of local retransmissions that a flow may send, in percent of the payload forwarded in
    /// it. Modern 100: enough for every second packet lost; forged ACKs can at most double the air
    /// a flow uses.
    pub retransmission_percent: u32,
    /// Bytes that may be re-sent beyond that share, and the most that can be saved up is this plus
    /// the cache limit of a flow.
    pub retransmission_floor_bytes: u32,
    /// ACKs that the agent makes for one flow (SNOOP-DATA-4), per second; beyond it the segment is
    /// forwarded instead.
    pub agent_acks_per_second: u32,
    /// How long duplicate ACKs of one hole may be withheld: this or 6 srtt if longer. Modern 200
    /// ms, the minimum retransmission timeout of Linux: a sender that would time out anyway shall
    /// know before. Strict: for ever, as the paper has it.
    pub patience: Duration,
    /// How long the sender may be kept from learning of losses until all that had departed at the
    /// first of them has arrived, however many holes are repaired one after the other. Modern 1 s,
    /// the least retransmission timeout by RFC 6298 (section 2). Strict: for ever.
    pub episode: Duration,
}

impl Config {
    /// The paper to the letter.
    pub fn strict() -> Self {
        Config {
            cache_segments_max: 128,
            cache_bytes_max: 256 << 10,
            cache_bytes_total_max: 1 << 30,
            cache_mark_percent: 75,
            flows_max: 1 << 17,
            flow_yields_after: Duration::from_secs(10),
            flow_idle: Duration::from_secs(300),
            dupack_threshold: 1,
            retransmissions_max: 10,
            mark: Mark::Both,
            round_trip_floor: Duration::from_millis(40),
            persist: Duration::from_millis(200),
            repair: Repair::Counted,
            sack_toward_sender: SackTowardSender::Pass,
            congestion: Congestion::Hide,
            restart: Restart::Persist,
            departures: Departures::Reported,
            verdicts: Verdicts::Ignored,
            copy_timestamps: CopyTimestamps::AsSent,
            retransmission_priority: Priority::High,
            stand_aside: StandAside::Never,
            help_from: HelpFrom::FirstPacket,
            nack: Nack {
                threshold_segments: 3,
                silence: Duration::from_millis(40),
                times_max: 10,
                wired_rtt_min: Duration::ZERO,
                reach: Reach::Anywhere,
            },
            when_moved: WhenMoved::Forget,
            bounds: Bounds {
                retransmission_percent: u32::MAX,
                retransmission_floor_bytes: u32::MAX,
                agent_acks_per_second: u32::MAX,
                patience: Duration::MAX,
                episode: Duration::MAX,
            },
        }
    }

    /// What a deployment of today needs.
    pub fn modern() -> Self {
        Config {
            cache_segments_max: 8192,
            cache_bytes_max: 8 << 20,
            round_trip_floor: Duration::from_millis(10),
            persist: Duration::from_millis(60),
            repair: Repair::Evidence,
            sack_toward_sender: SackTowardSender::Hide,
            congestion: Congestion::Show {
                queue_min: Duration::from_millis(10),
                wired_rtt_assumed: Duration::from_millis(50),
            },
            restart: Restart::Probe(Probe {
                interval: Duration::from_millis(20),
                air_share_ppm: 2_000,
                link_rate: None,
                link_rate_assumed: BitRate::from_mbps(2),
                interval_while_down: Duration::from_secs(1),
                flush_from_wired_rtt: Duration::from_millis(40),
            }),
            verdicts: Verdicts::Repair,
            copy_timestamps: CopyTimestamps::Acceptable,
            stand_aside: StandAside::IfUseless,
            nack: Nack {
                wired_rtt_min: Duration::from_millis(20),
                reach: Reach::Message { bytes_max: 64 << 10 },
                ..Config::strict().nack
            },
            bounds: Bounds {
                retransmission_percent: 100,
                retransmission_floor_bytes: 256 << 10,
                agent_acks_per_second: 100,
                patience: Duration::from_millis(200),
                episode: Duration::from_secs(1),
            },
            ..Config::strict()
        }
    }
}
