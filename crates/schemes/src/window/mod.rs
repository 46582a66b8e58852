//! Control of the advertised window around a handoff ("An efficient TCP/IP hand-over control scheme
//! for next-generation mobile communication networks", Onoe, Atsumi, Sato and Mizuno, section 3.2;
//! WINC).
//!
//! Before the signal of a cell is too weak to carry data, the mobile host closes its window, so
//! that nothing is on its way when the link goes: the fixed host loses nothing and keeps its
//! congestion window. With the new cell the window opens again.
//!
//! Map: [`mobile`] (the engine at the mobile host, WINC-MH), [`station`] (the engine at the base
//! station, which holds what comes after the window was closed, WINC-BS), [`table`] (the states of
//! that: IDLE, MON, BUF, TUN, WINC-ST), `buffer` and `sequencer` (what a station holds).
//!
//! No window is interpreted, only whether it is closed; and what opens it is what the host itself
//! said last. So the shift count of a connection (RFC 7323; MOD-5) need not be known.

mod buffer;
pub mod mobile;
mod sequencer;
pub mod station;
pub mod table;

/// The parameters of both engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// At the mobile host.
    pub mobile: mobile::Config,
    /// At the base station, if there is one.
    pub station: station::Config,
}

impl Config {
    /// The paper to the letter.
    pub const fn strict() -> Config {
        Config { mobile: mobile::Config::strict(), station: station::Config::strict() }
    }

    /// What paths of today need beside it.
    pub const fn modern() -> Config {
        Config { mobile: mobile::Config::modern(), station: station::Config::modern() }
    }
}
