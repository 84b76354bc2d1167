//! Any bytes as the choices of a world: settings, the drivers' actions, and the order of events.

use super::features::{Features, feature};
use crate::http2::play;
use crate::random::Random;
use crate::trace::Trace;

/// Bytes in an input of the corpus; the choices after them derive from the input, too.
const LEN: usize = 400;

pub(super) fn corpus() -> Vec<Vec<u8>> {
    let bytes = |seed| {
        let mut random = Random::new(seed);
        (0..LEN).map(|_| random.number() as u8).collect()
    };
    (1000..1010).map(bytes).collect()
}

pub(super) fn target(data: &[u8]) -> Features {
    let mut trace = Trace::quiet();
    play(Random::of_bytes(data), &mut trace);
    // Order of magnitude of the world's length.
    Features::from([feature(trace.steps().ilog2())])
}
