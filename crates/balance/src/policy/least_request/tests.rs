use std::cell::RefCell;
use std::collections::HashSet;

use super::*;
use crate::policy::tests::{Fleet, picks, tally};

fn decision(config: LeastRequestConfig, states: &str) -> Decision {
    LeastRequest::new(config).decide(&Fleet::new(states).views(), Instant::now())
}

/// gRFC A48: 2 to 10, whether set by the builder or not.
#[test]
fn choice_count_is_clamped() {
    for (count, effective) in [(0, 2), (1, 2), (2, 2), (7, 7), (10, 10), (11, 10), (u32::MAX, 10)] {
        assert_eq!(LeastRequestConfig::default().choice_count(count).choice_count, effective);
        let decision = decision(LeastRequestConfig { choice_count: count }, "RRR");
        let asked = RefCell::new(0);
        decision.picker.pick(&PickArgs::new(1, &|_| {
            *asked.borrow_mut() += 1;
            0
        }));
        assert_eq!(asked.into_inner(), effective);
    }
}

/// gRFC A48: of the sample the first with the fewest calls in flight.
#[test]
fn pick_is_the_least_loaded_of_its_sample() {
    let decision = decision(LeastRequestConfig::default().choice_count(4), "RRFRRCRRRR");
    let load = |at: usize, turn: u64| mix(turn ^ ((at as u64) << 32)) % 5;
    let mut samples = HashSet::new();
    for turn in 0..5000 {
        let sample = RefCell::new(Vec::new());
        let picked = decision.picker.pick(&PickArgs::new(turn, &|at| {
            sample.borrow_mut().push(at);
            load(at, turn)
        }));
        let sample = sample.into_inner();
        let least = sample.iter().copied().min_by_key(|&at| load(at, turn)).unwrap();
        assert_eq!(picked, Pick::Endpoint(least), "of {sample:?}");
        samples.insert(sample);
    }
    assert!(samples.len() > 2500, "samples repeat: {}", samples.len());
}

/// With two choices of n, an endpoint that is never better gets 1/n² of the calls.
#[test]
fn loaded_endpoint_is_picked_only_if_both_choices_are_it() {
    let decision = decision(LeastRequestConfig::default(), "RRRRR");
    let in_flight = |at| u64::from(at == 3);
    let picks = (0..50_000).map(|turn| decision.picker.pick(&PickArgs::new(turn, &in_flight)));
    let tally = tally(5, picks);
    assert!((1850..2150).contains(&tally[3]), "{tally:?}");
}

#[test]
fn equally_loaded_endpoints_are_picked_equally() {
    let tally = tally(5, picks(&decision(LeastRequestConfig::default(), "RRRRR"), 0..50_000));
    assert!(tally.iter().all(|calls| (9700..10_300).contains(calls)), "{tally:?}");
}

/// Calls that arrive one by one and end in order keep loads within a few calls of each other.
#[test]
fn loads_stay_close() {
    let decision = decision(LeastRequestConfig::default(), "RRRRRRRR");
    let mut in_flight = [0_u64; 8];
    let mut calls = std::collections::VecDeque::new();
    for turn in 0..20_000 {
        let Pick::Endpoint(at) = decision.picker.pick(&PickArgs::new(turn, &|at| in_flight[at])) else {
            panic!("all endpoints are ready")
        };
        in_flight[at] += 1;
        calls.push_back(at);
        if calls.len() > 80 {
            in_flight[calls.pop_front().unwrap()] -= 1;
        }
        // 15 is reached; random choices reach more than 20.
        assert!(in_flight.iter().max().unwrap() <= &17, "{in_flight:?}");
    }
}
