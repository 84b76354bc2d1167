use super::*;
use crate::policy::tests::{Fleet, endpoint};

fn decide(policy: &mut RingHash, fleet: &Fleet) -> Decision {
    policy.decide(&fleet.views(), Instant::now())
}

/// Returns the endpoint that calls with each of `hashes` get.
fn owners(fleet: &Fleet, hashes: u64) -> Vec<u64> {
    let decision = decide(&mut RingHash::new(RingHashConfig::default()), fleet);
    let pick = |number| {
        let call = PickArgs { hash: Some(mix(number)), ..PickArgs::new(0, &|_| 0) };
        match decision.picker.pick(&call) {
            Pick::Endpoint(at) => fleet.0[at].id,
            pick => panic!("{pick:?} with ready endpoints"),
        }
    };
    (0..hashes).map(pick).collect()
}

#[test]
fn ring_is_kept_while_only_states_change() {
    let mut policy = RingHash::new(RingHashConfig::default());
    let mut fleet = Fleet::new("IIII");
    decide(&mut policy, &fleet);
    let ring = policy.ring.clone();
    fleet.0[2].state = ConnectivityState::Ready;
    decide(&mut policy, &fleet);
    assert!(Arc::ptr_eq(&ring, &policy.ring));
    // gRFC A76: a changed key moves the endpoint.
    fleet.0[2].endpoint.hash_key = Some("a".to_owned());
    decide(&mut policy, &fleet);
    assert_ne!(ring, policy.ring);
    fleet.0.swap(0, 1);
    let ring = policy.ring.clone();
    decide(&mut policy, &fleet);
    assert_ne!(ring, policy.ring);
}

/// Keys are spread in proportion to weights.
#[test]
fn endpoints_own_keys_in_proportion_to_their_weights() {
    let mut fleet = Fleet::new("RRRRR");
    fleet.0[3].endpoint.weight = 3;
    let owners = owners(&fleet, 20_000);
    for member in &fleet.0 {
        let owned = owners.iter().filter(|&&id| id == member.id).count() as f64;
        let share = owned / 20_000.0 / (f64::from(member.endpoint.weight) / 7.0);
        assert!((0.8..1.2).contains(&share), "endpoint {} has {share} of its share", member.id);
    }
}

/// An endpoint that fails gives its keys to its successors; no other key moves (gRFC A61).
#[test]
fn keys_of_a_failed_endpoint_move_alone() {
    let fleet = Fleet::new("RRRRRRRRRR");
    let mut failed = fleet.clone();
    failed.0[4].state = ConnectivityState::TransientFailure;
    let (before, after) = (owners(&fleet, 20_000), owners(&failed, 20_000));
    let mut heirs = std::collections::HashSet::new();
    for (before, after) in before.iter().zip(after) {
        if *before == 4 {
            assert_ne!(after, 4);
            heirs.insert(after);
        } else {
            assert_eq!(*before, after);
        }
    }
    assert_eq!(heirs.len(), 9);
}

/// When an endpoint leaves, its own keys move (1/n). About as many move to entries that the others gain, because the
/// ring keeps its size (gRFC A42): 103 entries each with 10 endpoints, 114 with 9.
#[test]
fn few_keys_move_when_an_endpoint_leaves() {
    for count in [4, 10, 30] {
        let fleet = Fleet::new(&"R".repeat(count));
        for leaving in 0..3 {
            let mut rest = fleet.clone();
            let left = rest.0.remove(leaving * count / 3).id;
            let (before, after) = (owners(&fleet, 10_000), owners(&rest, 10_000));
            let moved =
                before.iter().zip(&after).filter(|(before, after)| before != after).count() as f64 / 10_000.0;
            let owned = before.iter().filter(|&&id| id == left).count() as f64 / 10_000.0;
            let share = 1.0 / count as f64;
            assert!((0.7 * share..1.4 * share).contains(&owned), "{owned} of {count} endpoints");
            assert!(moved - owned < 1.3 * share, "{} beside the {owned} of {count} endpoints", moved - owned);
        }
    }
}

/// gRFC A42: a list may have an endpoint several times, which adds to its weight.
#[test]
fn repeated_endpoint_is_one_of_more_weight() {
    let listed = vec![endpoint(1), endpoint(2).weight(2), endpoint(1), endpoint(1).weight(u32::MAX)];
    let merged = RingHash::new(RingHashConfig::default()).select(listed);
    assert_eq!(merged, [endpoint(1).weight(u32::MAX), endpoint(2).weight(2)]);
}

/// A call without a hash triggers no connection while one is under way, and otherwise one (gRFC A76).
#[test]
fn random_calls_spread_over_ready_endpoints() {
    let fleet = Fleet::new("RRFRR");
    let decision = decide(&mut RingHash::new(RingHashConfig::default()), &fleet);
    let tally = crate::policy::tests::tally(5, crate::policy::tests::picks(&decision, 0..10_000));
    assert!([0, 1, 3, 4].iter().all(|&at: &usize| tally[at] > 1500) && tally[2] == 0, "{tally:?}");
}

/// XXH64 with seed 0, as other implementations compute it.
#[test]
fn header_is_hashed_with_xxh64() {
    assert_eq!(RingHash::hash(b""), 0xef46_db37_51d8_e999);
    assert_eq!(RingHash::hash(b"abc"), 0x44bc_2cf5_ad77_0999);
}

#[test]
fn sizes_are_capped() {
    let size = |config: RingHashConfig| {
        let mut policy = RingHash::new(config);
        decide(&mut policy, &Fleet::new("II"));
        policy.ring.walk(0).count()
    };
    let config = RingHashConfig::default;
    assert_eq!(size(config()), 1024);
    assert_eq!(size(config().min_ring_size(10)), 10);
    assert_eq!(size(config().min_ring_size(5000).max_ring_size(100_000)), 4096);
    assert_eq!(size(config().min_ring_size(5000).max_ring_size(100_000).ring_size_cap(8192)), 5000);
    assert_eq!(size(config().max_ring_size(100)), 100);
    assert_eq!(size(config().min_ring_size(0)), 2);
    assert_eq!(size(config().min_ring_size(0).max_ring_size(0).ring_size_cap(0)), 2);
    assert_eq!(config().min_ring_size(u64::MAX).max_ring_size(u64::MAX).max_ring_size, RING_SIZE_MAX);
}
