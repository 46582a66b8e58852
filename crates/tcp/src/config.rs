//! What one endpoint is told: every parameter with its unit, its default and where that is from.
//!
//! Three presets: [`Config::bsd_1995`] (the hosts of the papers), [`Config::modern`] (the RFCs in
//! force) and [`Config::ns2`] (the sender of ns-2's validation suite).

use core::fmt;
use core::str::FromStr;
use sansio::Duration;

/// Which sender runs congestion control and loss recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Congestion {
    /// 4.3BSD-Tahoe: fast retransmit, then slow start (Jacobson 1988; CI-TCP-1..6).
    Tahoe,
    /// 4.3BSD-Reno: fast retransmit and fast recovery (RFC 2581; BASE-2).
    Reno,
    /// Reno that stays in fast recovery until the whole window is repaired (RFC 6582; BASE-3).
    NewReno,
    /// A window by measured rates, and finer retransmissions (Brakmo and Peterson 1995; BASE-4).
    Vegas,
    /// Reno's windows with SACK and a counted pipe (Fall and Floyd 1996; BASE-5).
    Sack1,
    /// Reno's windows with a scoreboard (RFC 6675; BASE-5).
    Sack,
    /// What Linux calls `reno`: Reno's windows, with SACK and RACK-TLP if the peer agrees
    /// ([`Config::linux`]).
    LinuxReno,
    /// The sender that Linux has today: the same with CUBIC in place of Reno.
    Cubic,
    /// The same with BBR, version 1; only with SACK.
    Bbr,
}

impl Congestion {
    /// Every sender, in the order of history.
    pub const ALL: [Congestion; 9] = [
        Congestion::Tahoe,
        Congestion::Reno,
        Congestion::NewReno,
        Congestion::Vegas,
        Congestion::Sack1,
        Congestion::Sack,
        Congestion::LinuxReno,
        Congestion::Cubic,
        Congestion::Bbr,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Congestion::Tahoe => "tahoe",
            Congestion::Reno => "reno",
            Congestion::NewReno => "newreno",
            Congestion::Vegas => "vegas",
            Congestion::Sack1 => "sack1",
            Congestion::Sack => "sack",
            Congestion::LinuxReno => "linux-reno",
            Congestion::Cubic => "cubic",
            Congestion::Bbr => "bbr",
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No sender has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCongestion;

impl fmt::Display for UnknownCongestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected one of")?;
        Congestion::ALL.iter().try_for_each(|known| write!(f, " {known}"))
    }
}

impl core::error::Error for UnknownCongestion {}

impl FromStr for Congestion {
    type Err = UnknownCongestion;

    fn from_str(name: &str) -> Result<Self, UnknownCongestion> {
        Self::ALL.into_iter().find(|known| known.name() == name).ok_or(UnknownCongestion)
    }
}

/// What is halved to give ssthresh after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// The smaller of cwnd and the peer's window, in whole segments, without Reno's inflation
    /// (4.3BSD).
    Window,
    /// The same, but a fast retransmit leaves cwnd there even where that is less than the least
    /// ssthresh: one segment of three (ns-2).
    WindowOnly,
    /// The bytes in flight; a timeout that repeats leaves ssthresh alone (RFC 5681, equation 4).
    Flight,
    /// cwnd without inflation; a timeout that repeats leaves ssthresh alone (Linux,
    /// `tcp_reno_ssthresh`). Late in a long recovery far more is in flight.
    Cwnd,
}

/// What opens cwnd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Each ACK, whatever it acknowledges (RFC 2581; 4.3BSD, ns-2): delayed ACKs halve the pace.
    PerAck,
    /// The bytes acknowledged (RFC 3465, RFC 5681 section 3.1), as Linux counts them: in slow start
    /// without a limit per ACK, up to ssthresh, and the rest beyond it.
    PerByte,
    /// The same, but beyond ssthresh in whole segments: one whenever as much as cwnd has been
    /// acknowledged (RFC 3465, 2.1; Linux, `tcp_cong_avoid_ai`).
    Counted,
    /// In slow start the same; beyond it CUBIC's function (RFC 9438), which then also says what a
    /// loss leaves, whatever [`Halving`].
    Cubic,
}

/// What a partial ACK in NewReno's recovery leaves of the inflation by duplicate ACKs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deflation {
    /// Nothing (ns-2).
    Whole,
    /// All but what it acknowledged, and one segment for the one sent again (RFC 6582, 3.2).
    Acknowledged,
}

/// How many segments of its own Vegas wants to see queued on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasLimits {
    /// Fewer than these: the window opens.
    pub alpha: u32,
    /// More than these: it closes.
    pub beta: u32,
    /// More than these: slow start ends.
    pub gamma: u32,
}

impl VegasLimits {
    /// One to three, as in the paper's Vegas-1,3 (Brakmo and Peterson 1995) and in ns-2.
    pub const ONE_TO_THREE: VegasLimits = VegasLimits { alpha: 1, beta: 3, gamma: 1 };
}

/// Whether duplicate ACKs may start fast retransmit while data sent before the last loss is still
/// unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatedFastRetransmit {
    /// Not before all that was sent by then is acknowledged (RFC 6582, section 3.2; ns-2).
    Careful,
    /// Always, as 4.3BSD and 4.4BSD did: a second hole of a window, too, is repaired so. The
    /// duplicate ACKs of a mobile host (CI-FRX-5) work on a sender that has timed out before only
    /// with this.
    Allowed,
}

/// When the receiver acknowledges data that arrives in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayedAck {
    /// Every segment at once.
    None,
    /// Every second segment, and a lone one after this time (RFC 9293, 3.8.6.3: below 0.5 s).
    Within(Duration),
}

/// How time passes for the retransmission timer (open point A3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerModel {
    /// A timer fires exactly when its time is over.
    Ideal {
        /// G of RFC 6298: the least that the deviation adds.
        granularity: Duration,
    },
    /// BSD's: timers count ticks, so one of n ticks fires after n-1 to n of them; round trips are
    /// measured in whole ticks. When they began: [`crate::Endpoint::with_tick_phase`].
    Ticks {
        /// From tick to tick; 500 ms in BSD (CI-TCP-2).
        tick: Duration,
    },
}

/// The retransmission timeout: smoothed round-trip time plus some deviations, within bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rto {
    /// Exact or in ticks.
    pub model: TimerModel,
    /// Mean deviations added to the mean: 2 in 4.3BSD-Tahoe (CI-TCP-1), 4 since (RFC 6298, 2.3).
    pub deviations: u32,
    /// Before the first sample.
    pub initial: Duration,
    /// Lower bound, before backing off.
    pub minimum: Duration,
    /// Upper bound, also when backed off.
    pub maximum: Duration,
    /// How the deviation is kept, and what the lower bound is of.
    pub spread: Spread,
}

/// The part of the retransmission timeout that stands for variation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// A multiple of the mean deviation; the lower bound is of the whole timeout (RFC 6298).
    Mean,
    /// As Linux keeps it (`tcp_rtt_estimator`): the lower bound is of this part alone; it follows
    /// the largest deviation of a round trip at once and falls slowly; a round trip that got
    /// shorter weighs little.
    Peak,
}

impl Rto {
    /// RFC 6298, with its minimum of 1 s (2.4) and a maximum of 60 s (2.5).
    pub const RFC_6298: Rto = Rto {
        model: TimerModel::Ideal { granularity: Duration::from_millis(1) },
        deviations: 4,
        initial: Duration::from_secs(1),
        minimum: Duration::from_secs(1),
        maximum: Duration::from_secs(60),
        spread: Spread::Mean,
    };

    /// BSD: 500 ms ticks, at least two of them, at most 64 s, at first 6 s (Stevens, TCP/IP
    /// Illustrated 1, 21.3).
    pub const fn bsd(deviations: u32) -> Rto {
        Rto {
            model: TimerModel::Ticks { tick: Duration::from_millis(500) },
            deviations,
            initial: Duration::from_secs(6),
            minimum: Duration::from_secs(1),
            maximum: Duration::from_secs(64),
            spread: Spread::Mean,
        }
    }
}

/// What cwnd is after nothing was sent for a retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleRestart {
    /// As before.
    Keep,
    /// The initial window, if it was larger (RFC 5681, 4.1).
    InitialWindow,
    /// Halved for each timeout that passed, down to the initial window; ssthresh remembers three
    /// quarters of it (RFC 2861).
    Decay,
}

/// How much of the receive buffer is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveWindow {
    /// All that is free.
    Whole,
    /// Of what is free, as much as Linux offers before it knows its peer, then what follows from
    /// the pace. Such a receiver also acknowledges the first segments, and those after a pause,
    /// one by one (`tuning`).
    Tuned,
}

/// What a sender does on an ACK with the mark of a mobile host whose handoff is over
/// (`wire::tcp::HANDOFF_MARK`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoffMark {
    /// The option is unknown to it.
    Ignored,
    /// It runs its fast retransmit and begins slow start (CI-FRX-4).
    Obeyed,
}

/// Who takes received bytes out of the receive buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The application is always ready: in-order bytes go to `Sink::deliver` at once.
    Immediate,
    /// The owner calls `peek` and `consume`; what it does not consume closes the window.
    Manual,
}

/// The parameters of one endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The sender's algorithm.
    pub congestion: Congestion,
    /// Largest payload of a segment without options, bytes, also offered to the peer; 1460 for
    /// Ethernet (RFC 9293, 3.7.1). Options shorten a segment's payload (RFC 6691).
    pub mss: u16,
    /// Room for received bytes, which is the largest window offered. 64 KiB less one is the most
    /// without window scaling.
    pub receive_buffer_bytes: u32,
    /// How much of it is offered.
    pub receive_window: ReceiveWindow,
    /// Most bytes that [`crate::Endpoint::write`] keeps. No limit by default: payload by name
    /// takes no room.
    pub send_buffer_bytes: u64,
    /// Shift count offered on the SYN (RFC 7323, 2), at most 14, and less if the receive buffer
    /// needs less; `None`: not offered.
    pub window_scale: Option<u8>,
    /// Timestamps and PAWS (RFC 7323) offered.
    pub timestamps: bool,
    /// SACK (RFC 2018) offered.
    pub sack: bool,
    /// Most SACK blocks of an ACK; more than 4 never fit, more than 3 not beside timestamps
    /// (RFC 2018, 3). ns-2 has 3.
    pub sack_blocks_max: usize,
    /// With SACK, what arrives twice is reported (RFC 2883). Of the senders here Linux's alone
    /// takes note.
    pub dsack: bool,
    /// When data is acknowledged.
    pub delayed_ack: DelayedAck,
    /// Retransmission timeout.
    pub rto: Rto,
    /// First cwnd, segments: 1 in 4.3BSD, 10 in RFC 6928.
    pub initial_window_segments: u32,
    /// First ssthresh, bytes; 65535 in 4.3BSD, "arbitrarily high" in RFC 5681, 3.1.
    pub initial_ssthresh_bytes: u32,
    /// Least ssthresh, segments: 2 (RFC 5681, equation 4; CI-TCP-4 lets it be 1).
    pub ssthresh_min_segments: u32,
    /// What ssthresh is half of.
    pub halving: Halving,
    /// What opens cwnd.
    pub growth: Growth,
    /// What a partial ACK takes from the inflation.
    pub deflation: Deflation,
    /// Most new segments that one ACK lets out during NewReno's recovery: 2 in ns-2 (`maxburst`,
    /// after Fall and Floyd 1996), without bound in RFC 6582.
    pub recovery_burst_max: u32,
    /// Vegas' alpha, beta and gamma.
    pub vegas: VegasLimits,
    /// Fast retransmit soon after a loss.
    pub repeated_fast_retransmit: RepeatedFastRetransmit,
    /// A new segment on each of the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// cwnd after idleness.
    pub idle_restart: IdleRestart,
    /// While something is unacknowledged, less than a full segment waits, unless the stream ends
    /// with it (Nagle; RFC 1122, 4.2.3.4; 4.3BSD). Off in every preset: there is no application
    /// here that writes byte by byte.
    pub nagle: bool,
    /// Whether a mobile host's mark says anything to the sender. Ignored: it is ours alone.
    pub handoff_mark: HandoffMark,
    /// Timeouts of one segment in a row before the connection is given up: 12 in 4.3BSD.
    pub timeouts_max: u32,
    /// How long TIME-WAIT lasts: 2 MSL; RFC 9293, 3.4.2 has 4 min, today's systems 60 s.
    pub time_wait: Duration,
    /// Who reads.
    pub reading: Reading,
}

impl Config {
    /// Hosts of the papers: 4.3BSD's timers and windows, no options but MSS, 64 KiB windows, an
    /// ACK for every second segment or after 200 ms. `congestion` also sets the number of
    /// deviations (INC-1) and, for BSD's own Tahoe and Reno, allows repeated fast retransmits:
    /// 4.4BSD had no check (Stevens, TCP/IP Illustrated 2, figure 29.4).
    pub const fn bsd_1995(congestion: Congestion) -> Config {
        let (deviations, repeated_fast_retransmit) = match congestion {
            Congestion::Tahoe => (2, RepeatedFastRetransmit::Allowed),
            Congestion::Reno => (4, RepeatedFastRetransmit::Allowed),
            _ => (4, RepeatedFastRetransmit::Careful),
        };
        Config {
            congestion,
            mss: 1460,
            receive_buffer_bytes: 65_535,
            receive_window: ReceiveWindow::Whole,
            send_buffer_bytes: u64::MAX,
            window_scale: None,
            timestamps: false,
            sack: matches!(congestion, Congestion::Sack1 | Congestion::Sack),
            sack_blocks_max: 4,
            dsack: false,
            delayed_ack: DelayedAck::Within(Duration::from_millis(200)),
            rto: Rto::bsd(deviations),
            initial_window_segments: 1,
            initial_ssthresh_bytes: 65_535,
            ssthresh_min_segments: 2,
            halving: Halving::Window,
            growth: Growth::PerAck,
            deflation: Deflation::Whole,
            recovery_burst_max: u32::MAX,
            vegas: VegasLimits::ONE_TO_THREE,
            repeated_fast_retransmit,
            limited_transmit: false,
            idle_restart: IdleRestart::InitialWindow,
            nagle: false,
            handoff_mark: HandoffMark::Ignored,
            timeouts_max: 12,
            time_wait: Duration::from_secs(60),
            reading: Reading::Immediate,
        }
    }

    /// The RFCs in force: timestamps, SACK, window scaling, 4 MiB of receive buffer, delayed ACKs
    /// of at most 40 ms, RFC 6298, RFC 6928, RFC 3042.
    pub const fn modern(congestion: Congestion) -> Config {
        Config {
            congestion,
            mss: 1460,
            receive_buffer_bytes: 4 << 20,
            receive_window: ReceiveWindow::Whole,
            send_buffer_bytes: u64::MAX,
            window_scale: Some(7),
            timestamps: true,
            sack: true,
            sack_blocks_max: 4,
            dsack: false,
            delayed_ack: DelayedAck::Within(Duration::from_millis(40)),
            rto: Rto::RFC_6298,
            initial_window_segments: 10,
            initial_ssthresh_bytes: u32::MAX,
            ssthresh_min_segments: 2,
            halving: Halving::Flight,
            growth: Growth::PerByte,
            deflation: Deflation::Acknowledged,
            recovery_burst_max: u32::MAX,
            vegas: VegasLimits::ONE_TO_THREE,
            repeated_fast_retransmit: RepeatedFastRetransmit::Careful,
            limited_transmit: true,
            idle_restart: IdleRestart::InitialWindow,
            nagle: false,
            handoff_mark: HandoffMark::Ignored,
            timeouts_max: 15,
            time_wait: Duration::from_secs(60),
            reading: Reading::Immediate,
        }
    }

    /// Linux hosts since 6.12: the modern ones, with its retransmission timeout of at least 200 ms
    /// beyond the mean (TCP_RTO_MIN), ssthresh from cwnd, cwnd in whole segments.
    pub const fn linux(congestion: Congestion) -> Config {
        let modern = Config::modern(congestion);
        Config {
            rto: Rto {
                minimum: Duration::from_millis(200),
                maximum: Duration::from_secs(120),
                spread: Spread::Peak,
                ..Rto::RFC_6298
            },
            halving: Halving::Cwnd,
            growth: match congestion {
                Congestion::Cubic => Growth::Cubic,
                _ => Growth::Counted,
            },
            receive_window: ReceiveWindow::Tuned,
            dsack: matches!(
                congestion,
                Congestion::LinuxReno | Congestion::Cubic | Congestion::Bbr
            ),
            idle_restart: match congestion {
                // It paces what it sends after a pause (`tcp_slow_start_after_idle_check`).
                Congestion::Bbr => IdleRestart::Keep,
                _ => modern.idle_restart,
            },
            ..modern
        }
    }

    /// The one-way TCP of ns-2's `tcpVariants` suite: 1000-byte packets, a window of 28 of them,
    /// first ssthresh the same, two packets after the SYN, RTO from 1 s, at first 6 s, an ACK for
    /// every packet.
    pub const fn ns2(congestion: Congestion) -> Config {
        let window_bytes = 28 * 1000;
        Config {
            congestion,
            mss: 1000,
            receive_buffer_bytes: window_bytes,
            receive_window: ReceiveWindow::Whole,
            send_buffer_bytes: u64::MAX,
            window_scale: None,
            timestamps: false,
            sack: matches!(congestion, Congestion::Sack1 | Congestion::Sack),
            sack_blocks_max: 3,
            dsack: false,
            delayed_ack: DelayedAck::None,
            rto: Rto {
                model: TimerModel::Ideal { granularity: Duration::from_millis(10) },
                deviations: 4,
                initial: Duration::from_secs(6),
                minimum: Duration::from_secs(1),
                maximum: Duration::from_secs(64),
                spread: Spread::Mean,
            },
            initial_window_segments: 2,
            initial_ssthresh_bytes: window_bytes,
            ssthresh_min_segments: 2,
            halving: Halving::WindowOnly,
            growth: Growth::PerAck,
            deflation: Deflation::Whole,
            recovery_burst_max: 2,
            vegas: VegasLimits::ONE_TO_THREE,
            repeated_fast_retransmit: RepeatedFastRetransmit::Careful,
            limited_transmit: false,
            idle_restart: IdleRestart::Keep,
            nagle: false,
            handoff_mark: HandoffMark::Ignored,
            timeouts_max: 12,
            time_wait: Duration::ZERO,
            reading: Reading::Immediate,
        }
    }
}
