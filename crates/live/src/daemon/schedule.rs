//! Links whose outages keep a clock: a satellite network that changes its paths at the same seconds
//! of every minute (UTC).

use sansio::Duration;
use std::time::Duration as WallTime;

/// How long it takes from `since_epoch` (since the beginning of 1970, UTC) to the next of these
/// times within a minute; one that is now has passed. `None` if there are none.
pub(super) fn until_next(back_at: &[Duration], since_epoch: WallTime) -> Option<Duration> {
    let now = since_epoch.as_nanos() % MINUTE.as_nanos();
    let wait = |at: &Duration| {
        let at = u128::from(at.as_nanos());
        if at > now { at - now } else { at + MINUTE.as_nanos() - now }
    };
    // A minute has fewer nanoseconds than 64 bits hold.
    back_at.iter().map(wait).min().map(|nanos| Duration::from_nanos(nanos as u64))
}

const MINUTE: WallTime = WallTime::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_a_schedule_comes_round_every_minute() {
        let back_at = [12, 27, 42, 57].map(Duration::from_secs);
        let wait = |now: f64| {
            until_next(&back_at, WallTime::from_secs_f64(now)).expect("there is one").as_secs_f64()
        };
        // 1,900,000,000 s since 1970 is 46 min 40 s past an hour.
        assert_eq!(wait(1_900_000_000.0), 2.0);
        assert_eq!(wait(1_900_000_002.0), 15.0, "that one has passed");
        assert_eq!(wait(1_900_000_018.5), 13.5, "the next minute");
        assert_eq!(until_next(&[], WallTime::from_secs(5)), None);
    }
}
