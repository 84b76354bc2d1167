//! Tests the policy in isolation: samples in, decisions out.

use super::*;

const TICK: Duration = Duration::from_millis(50);

/// A policy, and a channel that follows its decisions.
struct SimulatedChannel {
    policy: Policy,
    now: Duration,
    next_id: u64,
    lanes: Vec<LaneSample>,
}

impl SimulatedChannel {
    fn new(config: PolicyConfig) -> Self {
        let mut lanes =
            Self { policy: Policy::new(config), now: Duration::ZERO, next_id: 0, lanes: Vec::new() };
        lanes.open(1);
        lanes
    }

    fn open(&mut self, count: usize) {
        for _ in 0..count {
            let id = self.next_id;
            self.next_id += 1;
            self.lanes.push(LaneSample { id, state: LaneState::Ready, ..LaneSample::default() });
        }
    }

    fn live(&self) -> usize {
        self.lanes.iter().filter(|lane| lane.state != LaneState::Draining).count()
    }

    /// Runs a tick in which `fill` sets each lane's activity.
    fn tick(&mut self, mut fill: impl FnMut(&mut LaneSample)) -> Decision {
        self.lanes.iter_mut().for_each(&mut fill);
        self.now += TICK;
        let decision = self.policy.decide(&Samples { interval: TICK, lanes: self.lanes.clone() }, self.now);
        match &decision {
            Decision::Keep => {}
            Decision::Open { count, .. } => self.open(*count),
            Decision::Close { lanes, .. } => {
                let before = self.live();
                self.lanes.retain(|lane| !lanes.contains(&lane.id));
                assert_eq!(
                    self.live() + lanes.len(),
                    before,
                    "closed lanes that were none, or drained: {lanes:?}"
                );
            }
        }
        decision
    }

    /// Returns the first decision other than `Keep` within some ticks.
    fn first_decision(&mut self, ticks: usize, fill: impl Fn(&mut LaneSample)) -> Option<String> {
        (0..ticks).find_map(|_| match self.tick(&fill) {
            Decision::Keep => None,
            Decision::Open { count, reason } => Some(format!("open {count}: {reason}")),
            Decision::Close { lanes, reason } => Some(format!("close {}: {reason}", lanes.len())),
        })
    }
}

fn config(floor: usize, cap: usize) -> PolicyConfig {
    PolicyConfig { floor, cap, ..PolicyConfig::for_cores(16) }
}

#[test]
fn each_signal_starts_a_trial() {
    let ms = Duration::from_millis;
    // 64 in flight at 12,800 calls/s: 5 ms each, all of it in the network.
    let network_bound = LaneSample {
        completed: 640,
        in_flight: 64,
        in_flight_mean: 64.0,
        round_trip: Some(ms(5)),
        ..LaneSample::default()
    };
    let check = |sample: LaneSample, expected: Option<&str>| {
        let decision = SimulatedChannel::new(config(1, 16)).first_decision(10, |lane| {
            *lane = LaneSample { id: lane.id, state: lane.state, ..sample.clone() };
        });
        assert_eq!(decision.as_deref(), expected);
    };
    check(network_bound.clone(), None);
    check(
        LaneSample { round_trip: Some(ms(1)), ..network_bound.clone() },
        Some(
            "open 1: 80 % of a call's time is not spent on the network; so far 1 with 12800 calls/s of 5.000 ms",
        ),
    );
    check(
        LaneSample { busy: ms(45), ..network_bound.clone() },
        Some("open 1: 90 % of the time the drivers are busy; so far 1 with 12800 calls/s of 5.000 ms"),
    );
    check(
        LaneSample { write_delay: ms(2), ..network_bound.clone() },
        Some(
            "open 1: 40 % of a call's time is spent waiting to be written; so far 1 with 12800 calls/s of 5.000 ms",
        ),
    );
    check(
        LaneSample { contended: 320, ..network_bound.clone() },
        Some("open 1: 50 % of the calls wait for their lane's lock; so far 1 with 12800 calls/s of 5.000 ms"),
    );
    check(
        LaneSample { flow_blocked: ms(10), ..network_bound.clone() },
        Some(
            "open 1: 20 % of the time data is blocked by flow control; so far 1 with 12800 calls/s of 5.000 ms",
        ),
    );
    // One call uses one lane, however late its response is.
    check(LaneSample { in_flight: 1, in_flight_mean: 1.0, round_trip: None, ..network_bound.clone() }, None);
    check(
        LaneSample {
            in_flight: 4,
            in_flight_mean: 4.0,
            completed: 50,
            round_trip: Some(ms(4)),
            ..network_bound
        },
        None,
    );
}

#[test]
fn waiting_calls_get_lanes_without_a_trial() {
    let eight_slow_calls = |lanes: usize| {
        move |lane: &mut LaneSample| {
            lane.in_flight = 8 / lanes;
            lane.waiting_for_stream = lane.in_flight.saturating_sub(2);
        }
    };
    let mut lanes = SimulatedChannel::new(config(1, 16));
    assert_eq!(
        lanes.first_decision(1, eight_slow_calls(1)).as_deref(),
        Some("open 3: 6 calls are waiting for a stream")
    );
    assert_eq!(
        lanes.first_decision(200, eight_slow_calls(4)),
        None,
        "they are kept for as long as they are needed"
    );
    let mut lanes = SimulatedChannel::new(config(1, 3));
    assert_eq!(
        lanes.first_decision(1, eight_slow_calls(1)).as_deref(),
        Some("open 2: 6 calls are waiting for a stream")
    );
}

#[test]
fn idle_channel_returns_to_its_floor() {
    let mut lanes = SimulatedChannel::new(config(2, 16));
    assert_eq!(lanes.first_decision(1, |_| {}).as_deref(), Some("open 1: fewer lanes than the floor of 2"));
    lanes.open(5);
    assert_eq!(lanes.first_decision(100, |_| {}).as_deref(), Some("close 5: no calls for a while"));
    lanes.open(20);
    assert_eq!(lanes.first_decision(1, |_| {}).as_deref(), Some("close 6: more lanes than the cap of 16"));
}

#[test]
fn unconnected_lanes_are_given_up() {
    let mut lanes = SimulatedChannel::new(config(1, 16));
    let decisions: Vec<_> = (0..100)
        .filter_map(|_| {
            let decision = lanes.tick(|lane| {
                lane.state = if lane.id == 0 { LaneState::Ready } else { LaneState::Connecting };
                lane.completed = if lane.id == 0 { 1_000 } else { 0 };
                lane.in_flight = if lane.id == 0 { 64 } else { 0 };
            });
            (decision != Decision::Keep).then(|| format!("{decision:?}"))
        })
        .collect();
    assert!(decisions[0].starts_with("Open { count: 1"), "{decisions:#?}");
    assert!(decisions[1].starts_with("Close { lanes: [1], reason: NotConnected"), "{decisions:#?}");
    assert!(decisions.len() <= 4, "it is not tried again at once: {decisions:#?}");
}

/// For any samples, bounds are kept, nothing panics, and the same samples give the same decisions.
#[test]
fn lane_count_stays_within_bounds_for_any_samples() {
    let run = |seed: u64| {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let (floor, cap) = (1 + random(3) as usize, 3 + random(14) as usize);
        let mut lanes = SimulatedChannel::new(config(floor, cap));
        let mut log = Vec::new();
        for _ in 0..600 {
            let is_extreme = random(4) == 0;
            let decision = lanes.tick(|lane| {
                let mut number = |typical_max: u64| {
                    if is_extreme { random(u64::MAX) >> random(64) } else { random(typical_max) }
                };
                lane.completed = number(5_000);
                lane.in_flight = number(100) as usize;
                lane.in_flight_mean = number(100) as f64 - 1.0;
                lane.waiting_for_stream = (number(100) / 90) as usize;
                lane.busy = Duration::from_micros(number(50_000));
                lane.write_delay = Duration::from_micros(number(1_000));
                lane.flow_blocked = Duration::from_micros(number(5_000));
                lane.contended = number(1_000);
                lane.round_trip = (number(2) == 0).then(|| Duration::from_micros(100));
                if number(20) == 0 {
                    lane.state = LaneState::Connecting;
                } else if lane.state == LaneState::Connecting {
                    lane.state = LaneState::Ready;
                }
            });
            assert!(
                (floor..=cap).contains(&lanes.live()),
                "{} lanes; {floor} to {cap}: {decision:?}",
                lanes.live()
            );
            log.push(decision);
        }
        log
    };
    for seed in 0..200 {
        assert_eq!(run(seed), run(seed), "seed {seed}");
    }
}
