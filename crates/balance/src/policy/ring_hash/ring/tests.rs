use super::*;
use crate::policy::tests::endpoint;

fn weighted(weights: &[(&str, u32)]) -> Vec<Endpoint> {
    weights.iter().map(|&(key, weight)| endpoint(1).hash_key(key).weight(weight)).collect()
}

/// XXH64 of "{key}_{i}", as in grpc-go and gRPC core: clients of all three send a key to the same endpoint. The values
/// are of an implementation in Python.
#[test]
fn ring_has_the_hashes_of_other_implementations() {
    let ring = Ring::new(&weighted(&[("a", 3), ("b", 3), ("c", 4)]), 10, 10);
    let order: String = ring.walk(0).map(|at| ['a', 'b', 'c'][at]).collect();
    assert_eq!(order, "abcbbaccca");
    assert_eq!(ring.0[0].hash, 4_148_279_810_343_392_165);
    assert_eq!(ring.0[9].hash, 18_017_992_814_255_492_179);
}

/// gRFC A42: the lightest endpoint has a whole number of entries, and the ring at least the minimum, if the maximum
/// allows.
#[test]
fn entries_are_in_proportion_to_weights() {
    let check = |weights: &[u32], min, max, expected: &[u128]| {
        let endpoints: Vec<Endpoint> = weights.iter().map(|&weight| endpoint(1).weight(weight)).collect();
        assert_eq!(
            counts(&endpoints, min, max).collect::<Vec<_>>(),
            expected,
            "{weights:?} in {min}..={max}"
        );
    };
    check(&[], 1024, 4096, &[]);
    check(&[5], 1024, 4096, &[1024]);
    check(&[1, 1, 1], 1024, 4096, &[342, 342, 342]);
    check(&[3, 3, 4], 10, 20, &[3, 3, 4]);
    check(&[3, 3, 4], 1024, 4096, &[308, 308, 411]);
    check(&[1, 9], 1, 100, &[1, 9]);
    check(&[1, 9], 11, 100, &[2, 18]);
    // The maximum applies, but every endpoint has an entry.
    check(&[1, 1, 1], 10, 6, &[2, 2, 2]);
    check(&[1, 1_000_000], 1024, 4096, &[1, 4096]);
    check(&[1, 1, 1], 1, 2, &[1, 1, 1]);
    check(&[u32::MAX, u32::MAX], 8 << 20, 8 << 20, &[4 << 20, 4 << 20]);
}

/// gRFC A42: the first entry whose hash is not less than the call's, and the first of all after the last.
#[test]
fn walk_starts_at_the_hash_and_goes_once_around() {
    let ring = Ring(vec![Entry { hash: 10, at: 0 }, Entry { hash: 20, at: 1 }, Entry { hash: 30, at: 2 }]);
    for (hash, order) in [(0, [0, 1, 2]), (10, [0, 1, 2]), (11, [1, 2, 0]), (30, [2, 0, 1]), (31, [0, 1, 2])]
    {
        assert_eq!(ring.walk(hash).collect::<Vec<_>>(), order, "from {hash}");
    }
    assert_eq!(Ring::default().walk(5).count(), 0);
}

/// gRFC A76: without a key, or with an empty one, the first address counts.
#[test]
fn empty_hash_key_is_none() {
    let ring = |endpoint: Endpoint| Ring::new(&[endpoint], 8, 8);
    assert_eq!(ring(endpoint(1).hash_key("")), ring(endpoint(1)));
    assert_eq!(ring(endpoint(1).hash_key("10.0.0.1:1")), ring(endpoint(1)));
    assert_ne!(ring(endpoint(1).hash_key("a")), ring(endpoint(1)));
}
