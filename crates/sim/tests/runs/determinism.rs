//! Same plan, same seed: the same records, whatever else runs.

use crate::plans::{ROUGH, plans};
use trace::hash::TraceHash;

fn hash(plan: &node::Plan, seed: u64) -> (u64, u64) {
    let mut hash = TraceHash::default();
    let outcome = sim::run(plan, seed, &mut hash);
    assert_eq!(outcome.failures, [], "seed {seed}");
    (hash.value(), hash.records())
}

#[test]
fn the_same_seed_gives_the_same_records_and_another_seed_gives_others() {
    for (case, plan) in plans(ROUGH) {
        let first = hash(&plan, 1);
        assert!(first.1 > 1_000, "{case:?}: something happened");
        assert_eq!(first, hash(&plan, 1), "{case:?}");
        assert_ne!(first.0, hash(&plan, 2).0, "{case:?}");
    }
}

#[test]
fn threads_change_nothing() {
    let plans = plans(ROUGH);
    let alone: Vec<_> = plans.iter().map(|(_, plan)| hash(plan, 7)).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            plans.iter().map(|(_, plan)| scope.spawn(move || hash(plan, 7))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a run does not panic")).collect()
    });
    assert_eq!(alone, together);
}

/// A watched run stops at each departure, a bare one tells of departures later: nobody can tell.
#[test]
fn who_watches_changes_nothing() {
    let behind_a_device = format!("{ROUGH}\ndepartures = \"device\"");
    for (case, plan) in plans(ROUGH).into_iter().chain(plans(&behind_a_device)) {
        for seed in 1..=3 {
            let watched = sim::run(&plan, seed, &mut TraceHash::default());
            let bare = sim::run::run_bare(&plan, seed);
            assert_eq!(watched.ended_at, bare.ended_at, "{case:?}, seed {seed}");
            assert_eq!(watched.finished, bare.finished, "{case:?}, seed {seed}");
        }
    }
}

/// All schemes meet the same outages and the same bit errors: they follow from the seed and the
/// link alone.
#[test]
fn every_scheme_meets_the_same_outages() {
    let text = r#"
        outage = "every=3s,length=100ms..1s"
        schemes = ["plain", "snoop", "snoop-modern"]
        tcp = "sack"
        duration = "20s"
    "#;
    let outages = |plan: &node::Plan| {
        let spec = sim::run::transfers(plan)[0];
        let mut timeline = trace::timeline::Timeline::new(spec);
        sim::run(plan, 5, &mut timeline);
        timeline.outages
    };
    let seen: Vec<_> = plans(text).iter().map(|(_, plan)| outages(plan)).collect();
    assert!(seen[0].len() >= 6, "one in each period of 3 s: {}", seen[0].len());
    assert!(seen.windows(2).all(|two| two[0] == two[1]));
}
