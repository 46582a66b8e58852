//! The papers' machines, stacked from engines; and the scenario they stand in.
