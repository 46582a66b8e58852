//! Whole transfers over a pipe without faults.

use crate::pair::{Fate, Pair, bulk};
use sansio::{Duration, Instant, Random};
use tcp::{Config, Congestion, State};

#[test]
fn every_preset_delivers_what_was_written_and_closes() {
    for congestion in Congestion::ALL {
        for config in [Config::bsd_1995(congestion), Config::modern(congestion)] {
            let mut pair = Pair::connected(config, config);
            assert_eq!(pair.write(bulk(1_000_000)), 1_000_000);
            pair.close_both();
            pair.run_for(Duration::from_secs(200));
            assert_eq!(Pair::delivered(&pair.server_log), 1_000_000);
            assert_eq!(pair.client.state(), State::Closed);
            assert_eq!(pair.server.state(), State::Closed);
            assert_eq!(pair.client.statistics().segments_retransmitted, 0);
            assert!(pair.server.is_at_end());
        }
    }
}

#[test]
fn a_bulk_transfer_survives_one_loss_in_ten() {
    for congestion in Congestion::ALL {
        let mut pair = Pair::connected(Config::modern(congestion), Config::modern(congestion));
        pair.write(bulk(1_000_000));
        pair.close_both();
        let mut random = Random::new(1, "loss");
        pair.run_until(Instant::ZERO + Duration::from_secs(1000), |_, _| {
            if random.chance(0.1) { Fate::Lost } else { Fate::Arrives }
        });
        assert_eq!(Pair::delivered(&pair.server_log), 1_000_000);
        assert_eq!(pair.client.state(), State::Closed);
    }
}
