//! Links whose outages keep a clock: a satellite network that changes its paths at the same seconds
//! of every minute (UTC).

use sansio::Duration;

/// How long it takes from `now`, in nanoseconds since the beginning of 1970 (UTC), to the next of
/// these times within a minute; one that is now has passed. `None` if there are none.
pub(super) fn until_next(back_at: &[Duration], now: u64) -> Option<Duration> {
    let now = Duration::from_nanos(now % MINUTE.as_nanos());
    let wait = |at: &Duration| if *at > now { *at - now } else { *at + MINUTE - now };
    back_at.iter().map(wait).min()
}

const MINUTE: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restart_a_schedule_comes_round_every_minute() {
        let back_at = [12, 27, 42, 57].map(Duration::from_secs);
        let wait = |now: f64| {
            until_next(&back_at, (now * 1e9) as u64).expect("there is one").as_secs_f64()
        };
        // 1,900,000,000 s since 1970 is 46 min 40 s past an hour.
        assert_eq!(wait(1_900_000_000.0), 2.0);
        assert_eq!(wait(1_900_000_002.0), 15.0, "that one has passed");
        assert_eq!(wait(1_900_000_018.5), 13.5, "the next minute");
        assert_eq!(until_next(&[], 5_000_000_000), None);
    }
}
