//! What a base station knows of its queue: all of it, or nothing behind a device.

use crate::plans::plans;
use sansio::EventKind;
use trace::{Observer, Record, What};

/// A queue that a sender without SACK overflows.
const OVERFLOW: &str = r#"
    rate = "2Mbit/s"
    delay = "5ms"
    queue = "50p"
    wired-rate = "100Mbit/s"
    wired-delay = "10ms"
    tcp = "reno"
    schemes = "snoop-modern"
    size = "1MB"
"#;

/// What the queue dropped, and what the agent noticed of it.
#[derive(Default)]
struct Drops {
    happened: u64,
    noticed: u64,
}

impl Observer for &mut Drops {
    const ON: bool = true;

    fn record(&mut self, record: &Record<'_>) {
        match record.what {
            What::QueueFull { .. } => self.happened += 1,
            What::Event(event) => {
                let text = "dropped by the queue";
                if let EventKind::Rule { did, value, .. } = event.kind
                    && did == text
                {
                    self.noticed += value;
                }
            }
            _ => {}
        }
    }
}

fn drops(departures: &str) -> Drops {
    let (_, plan) = plans(&format!("{OVERFLOW}\ndepartures = \"{departures}\"")).swap_remove(0);
    let mut drops = Drops::default();
    let outcome = sim::run(&plan, 1, &mut drops);
    assert_eq!((outcome.failures.as_slice(), outcome.finished), (&[][..], true));
    drops
}

#[test]
fn a_device_hides_its_queue_from_the_base_station() {
    let air = drops("air");
    assert!(air.happened > 20 && air.noticed > 20, "{} {}", air.happened, air.noticed);
    let device = drops("device");
    assert!(device.happened > 20, "{}", device.happened);
    assert_eq!(device.noticed, 0);
}
