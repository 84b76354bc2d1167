//! A gRPC channel and its servers on seeded links.

/// Enough for CI; `THALWEG_SIM_SEEDS` sets more.
const SEEDS: u64 = 3000;

#[test]
fn grpc_peers() {
    thalweg_sim::seeds::check("grpc", SEEDS, thalweg_sim::grpc::simulate);
}
