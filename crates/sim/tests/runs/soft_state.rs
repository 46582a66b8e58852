//! SNOOP-GEN-3: all state of the base station is soft. Forgetting it at random instants harms no
//! connection: every byte arrives, every invariant holds.

use crate::plans::{ROUGH, plans};
use sansio::Duration;

#[test]
fn snoop_gen_3_forgetting_at_random_instants_harms_no_connection() {
    for (case, mut plan) in plans(ROUGH) {
        if case.scheme == "plain" {
            continue;
        }
        plan.forget_every = Some(Duration::from_millis(70));
        for seed in 1..=5 {
            let outcome = sim::run(&plan, seed, trace::Nothing);
            assert_eq!(outcome.failures, [], "{case:?} seed {seed}");
            assert!(outcome.finished, "{case:?} seed {seed}: every byte arrives");
        }
    }
}
