//! Every parameter of fast retransmission after a handoff, in two presets.
//!
//! *strict* is the paper, with its ambiguities resolved as each field says. *modern* works beside a
//! TCP that nobody has changed.

use sansio::Duration;

/// The engine's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// What sets it off (CI-FRX-1). Complete; the paper's text names the greeting's answer, its
    /// times fit the completion.
    pub trigger: Trigger,
    /// From a notice until the machine gives it to engine and TCP (CI-FRX-9). 0; the daemons of
    /// 1995 took about 50 ms.
    pub delay: Duration,
    /// What is done for data that the mobile host sends (CI-FRX-2). Strict its own TCP, modern a
    /// copy.
    pub sender: Sender,
    /// What is done for data that it receives. Strict three ACKs, modern four (CI-FRX-5).
    pub receiver: Receiver,
    /// Only a connection that received data within this time is signalled for (CI-FRX-6). 10 s; the
    /// paper gives none.
    pub received_within: Duration,
    /// Connections that are watched (MOD-14). 1024.
    pub connections_max: u32,
    /// Payload bytes kept of one connection for [`Sender::Copy`]; what is beyond is not kept, and
    /// the oldest stays. 64 KiB: the oldest segment alone is ever sent.
    pub kept_bytes_max: u32,
}

/// Which notice sets it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The new base station's answer to the greeting. What the fixed host then sends within the
    /// next moments may still go to the old one.
    GreetingAcknowledged,
    /// The end of the handoff.
    Complete,
    /// The link is back, where nobody hands over.
    LinkUp,
}

/// What is done for data that the mobile host sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Its own TCP is told (the paper's shared memory): it sends the oldest segment again, halves
    /// its window and begins slow start.
    OwnTcp,
    /// A copy of the oldest segment goes out, and its TCP is told nothing: what the ACK of the copy
    /// says decides. For a TCP that offers no such call.
    Copy,
}

/// What is done for data that the mobile host receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// Form A: one ACK with a mark, which the fixed host must understand (CI-FRX-4).
    Marked,
    /// Form B: so many identical ACKs (CI-FRX-5). They make a sender without SACK resend; one with
    /// SACK takes no notice of ACKs that tell of no hole (MOD-16), unless the first of them
    /// acknowledges something that the handoff kept from it.
    Repeated(u32),
    /// As before, each with a block that says that the last byte came twice (RFC 2883), which it
    /// did not. Measured, and part of no preset, as the next one.
    RepeatedWithBlock(u32),
    /// The window closes and opens again.
    ClosedAndOpened,
}

impl Config {
    /// The paper to the letter.
    pub const fn strict() -> Config {
        Config {
            trigger: Trigger::Complete,
            delay: Duration::ZERO,
            sender: Sender::OwnTcp,
            receiver: Receiver::Repeated(3),
            received_within: Duration::from_secs(10),
            connections_max: 1024,
            kept_bytes_max: 64 << 10,
        }
    }

    /// What a mobile host of today can do beside its TCP.
    pub const fn modern() -> Config {
        Config { sender: Sender::Copy, receiver: Receiver::Repeated(4), ..Config::strict() }
    }
}
