use std::collections::HashSet;

use super::*;
use crate::policy::PolicyConfig;
use crate::policy::tests::{Fleet, endpoint};

fn policy(size: u32, seed: u64) -> RandomSubsetting {
    RandomSubsetting::new(RandomSubsettingConfig::new(size, PolicyConfig::RoundRobin), seed)
}

fn subset(endpoints: Vec<Endpoint>, size: u32, seed: u64) -> Vec<Endpoint> {
    policy(size, seed).select(endpoints)
}

fn fleet(count: u64) -> Vec<Endpoint> {
    (0..count).map(endpoint).collect()
}

/// gRFC A68: all are used if there are not more than `subset_size`.
#[test]
fn short_list_is_kept_in_order() {
    for count in 0..=5 {
        assert_eq!(subset(fleet(count), 5, 1), fleet(count));
    }
    assert_eq!(subset(fleet(6), 5, 1).len(), 5);
    assert_eq!(subset(fleet(6), 0, 1).len(), 1);
}

#[test]
fn seed_determines_the_subset() {
    let mut shuffled = fleet(50);
    shuffled.reverse();
    assert_eq!(subset(fleet(50), 5, 1), subset(shuffled, 5, 1));
    let subsets: HashSet<Vec<Endpoint>> = (0..100).map(|seed| subset(fleet(50), 5, seed)).collect();
    assert_eq!(subsets.len(), 100);
}

/// gRFC A68: an endpoint that is added or removed changes at most one of the subset.
#[test]
fn change_of_one_endpoint_changes_at_most_one_of_the_subset() {
    for seed in 0..500 {
        let (mut fewer, all) = (fleet(20), fleet(20));
        fewer.remove((seed % 20) as usize);
        let before: HashSet<Endpoint> = subset(all, 6, seed).into_iter().collect();
        let after: HashSet<Endpoint> = subset(fewer, 6, seed).into_iter().collect();
        assert!(before.difference(&after).count() <= 1);
        assert_eq!(after.len(), 6);
    }
}

/// The child's connections: 1,000 clients with 5 of 10 servers each.
#[test]
fn servers_get_clients_evenly() {
    let mut clients = [0_u32; 10];
    for seed in 0..1000 {
        for used in subset(fleet(10), 5, seed) {
            clients[fleet(10).iter().position(|known| *known == used).unwrap()] += 1;
        }
    }
    assert!(clients.iter().all(|count| (430..570).contains(count)), "{clients:?}");
}

#[test]
fn child_decides_over_the_subset() {
    let decision = policy(2, 3).decide(&Fleet::new("IR").views(), Instant::now());
    assert_eq!(decision.connect, [0]);
}
