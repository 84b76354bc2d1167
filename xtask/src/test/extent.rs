//! How much of what is long by nature is run: a bounded form, or with `--long` the whole.

use std::time::{SystemTime, UNIX_EPOCH};

const LONG: &str = "THALWEG_TEST_LONG";
/// Simulations begin with this seed.
const FIRST_SEED: &str = "THALWEG_SIM_FIRST";
const FUZZ_SEED: &str = "THALWEG_FUZZ_SEED";

/// What the processes of the steps are told. Seeds rotate: those of a run are its time, unless the environment names
/// others, so that a run can be repeated.
pub(super) fn environment(is_long: bool) -> Vec<(&'static str, String)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = |name| (name, std::env::var(name).unwrap_or_else(|_| now.to_string()));
    let mut environment = vec![seed(FIRST_SEED), seed(FUZZ_SEED)];
    if is_long {
        let long = [(LONG, "1"), ("THALWEG_SIM_SEEDS", "1000000"), ("THALWEG_FUZZ_SECONDS", "300")];
        environment.extend(long.map(|(name, value)| (name, value.to_owned())));
    }
    environment
}

/// Whether `--long` was given, in the process of a step.
pub(super) fn is_long() -> bool {
    std::env::var_os(LONG).is_some()
}
