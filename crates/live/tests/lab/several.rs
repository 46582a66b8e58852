//! Several mobile hosts, and a daemon that looks on.

use crate::support::{lab, run, setup};
use link::channel::{Config as Channel, packet_loss};
use live::lab::{Direction, LabRun, RunSetup};

/// A radio that loses one packet in a hundred.
fn lossy(scheme: &str) -> RunSetup {
    let mut setup = setup(scheme);
    let loss = Channel::PacketLoss(packet_loss::Config { probability: 0.01 });
    setup.air.radio.down.channels.push(loss);
    setup
}

fn counted(run: &LabRun, what: &str) -> u64 {
    let daemon = run.daemon.as_ref().expect("a daemon");
    daemon["scheme"][what].as_u64().unwrap_or_else(|| panic!("{what} in {daemon}"))
}

/// Two mobile hosts, data both ways: four transfers from and to the right addresses, of which the
/// daemon serves those of the first host, or of both.
pub(crate) fn the_first_is_served() {
    let mut lab = lab();
    for (serves_first, flows) in [(true, 1), (false, 2)] {
        let mut setup = lossy("snoop-modern");
        (setup.mobiles, setup.serves_first) = (2, serves_first);
        setup.direction = Direction::Both;
        let run = run(&mut lab, &setup);
        let accepted: Vec<String> =
            run.streams.iter().map(|stream| stream.accepted_at.address.to_string()).collect();
        assert_eq!(accepted, ["10.78.2.1", "10.78.1.1", "10.78.2.2", "10.78.1.1"]);
        assert_eq!(counted(&run, "flows_created"), flows, "of those with data down");
        let delivered = run.measures.transfers.iter().map(|transfer| transfer.delivered_bytes);
        assert_eq!(delivered.collect::<Vec<_>>(), [2_000_000; 4], "as the radio saw it");
        let spent = run.daemon_processor.expect("it was there all the while").as_secs_f64();
        assert!(spent > 0.0 && spent < run.ended_at.as_secs_f64(), "{spent} s");
    }
}

/// Beside the same losses a daemon that helps sends again what one that looks on does not.
pub(crate) fn a_daemon_that_looks_on() {
    let mut lab = lab();
    let helped = run(&mut lab, &lossy("snoop-modern"));
    let looked_on = run(&mut lab, &lossy(RunSetup::OBSERVE));
    assert!(helped.measures.retransmissions_local > 0);
    assert_eq!(looked_on.measures.retransmissions_local + looked_on.measures.probes, 0);
    let daemon = looked_on.daemon.expect("a daemon");
    assert_eq!(daemon["mode"], "observe", "{daemon}");
    assert!(daemon["packets"]["taken"].as_u64() > Some(1_000), "{daemon}");
}
