//! Sample studies with made-up figures.

pub(crate) mod alone;
pub(crate) mod channels;
pub(crate) mod codec;
pub(crate) mod comparison;
pub(crate) mod connections;
pub(crate) mod json;
pub(crate) mod published;

use std::sync::LazyLock;

use thalweg_measure::size::ByteSize;

use crate::load::{Kind, LabResults, PointResult, Transport};
use crate::stack::Pair;

/// Returns a quick sizes study.
pub(crate) fn sizes() -> LabResults {
    static SIZES: LazyLock<LabResults> = LazyLock::new(|| {
        serde_json::from_str(include_str!("sample/results.json")).expect("the sample is what a study saves")
    });
    SIZES.clone()
}

/// Returns a window with this rate; its median latency is the inverse.
pub(crate) fn window(
    pair: Option<Pair>,
    (kind, transport, size): (Kind, Transport, ByteSize),
    round: u32,
    rate_per_s: f64,
) -> PointResult {
    static MEASURED: LazyLock<PointResult> = LazyLock::new(|| sizes().points.swap_remove(0));
    let mut window = MEASURED.clone().in_round(round);
    window.pair = pair;
    let point = &mut window.point;
    (point.work, point.in_flight, point.connections) = (kind.work, kind.in_flight, kind.connections);
    (point.transport, point.size_bytes) = (transport, size);
    let measured = window.measured_mut().expect("the sample was measured");
    (measured.rate_per_s, measured.messages) = (rate_per_s, 100);
    measured.latency_ns.as_mut().expect("the sample has latencies").p50 = (1e9 / rate_per_s).round() as u64;
    window
}
