//! Every parameter of window control at a base station, in two presets.

use super::Waits;
use crate::window::table::State;
use sansio::Duration;

/// The engine's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload bytes held of one flow. 80 000: the largest window of the paper's simulation
    /// (WINC-MH-8, WINC-BS-11).
    pub buffer_bytes_max: u32,
    /// Payload bytes held of all flows together (MOD-14). 16 MiB.
    pub held_bytes_max: u64,
    /// Mobile hosts with state (MOD-14); the packets of others pass. 65536.
    pub mobiles_max: usize,
    /// Flows of which something is held (MOD-14); the data of others passes. 4096.
    pub flows_max: usize,
    /// What is held is let go when the mobile host was not heard on its flow for this long
    /// (WINC-ST-9). 30 s; the paper gives none.
    pub silence: Duration,
    /// The sequencer; none as in the paper.
    pub sequencer: Option<Waits>,
    /// The state of a mobile host that has not registered. IDLE; MON where nobody registers since
    /// there is one base station.
    pub unregistered: State,
}

impl Config {
    /// The paper to the letter.
    pub const fn strict() -> Config {
        Config {
            buffer_bytes_max: 80_000,
            held_bytes_max: 16 << 20,
            mobiles_max: 1 << 16,
            flows_max: 4096,
            silence: Duration::from_secs(30),
            sequencer: None,
            unregistered: State::Idle,
        }
    }

    /// The same with the sequencer.
    pub const fn modern() -> Config {
        let waits = Waits {
            at_most: Duration::from_millis(200),
            armed: Duration::from_secs(10),
            drained_after: Duration::from_millis(50),
            bytes_max: 80_000,
        };
        Config { sequencer: Some(waits), ..Config::strict() }
    }
}
