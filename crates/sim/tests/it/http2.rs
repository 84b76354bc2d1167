//! Two HTTP/2 connections on a seeded link.

/// Enough for CI; `THALWEG_SIM_SEEDS` sets more.
const SEEDS: u64 = 4000;

#[test]
fn http2_peers() {
    thalweg_sim::seeds::check("http2", SEEDS, thalweg_sim::http2::simulate);
}
