//! States of endpoints in, state of the channel, picks and connects out. And what the tests of policies share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::endpoint::{Address, ConnectivityState, Endpoint};

/// Endpoints of a test, with their states and measurements.
#[derive(Clone, Debug)]
pub(super) struct Fleet(pub(super) Vec<Member>);

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: u64,
    pub(super) endpoint: Endpoint,
    pub(super) state: ConnectivityState,
    pub(super) outcomes: Outcomes,
    pub(super) report: Option<LoadReport>,
}

impl Fleet {
    /// Creates a fleet from a letter per endpoint: Idle, Connecting, Ready, Failed, Shutdown.
    pub(super) fn new(states: &str) -> Self {
        Self((0..).zip(states.chars()).map(|(id, state)| Member::new(id, state_named(state))).collect())
    }

    pub(super) fn views(&self) -> Vec<EndpointView<'_>> {
        self.0.iter().map(Member::view).collect()
    }

    pub(super) fn endpoints(&self) -> Vec<Endpoint> {
        self.0.iter().map(|member| member.endpoint.clone()).collect()
    }
}

impl Member {
    pub(super) fn new(id: u64, state: ConnectivityState) -> Self {
        Self { id, endpoint: endpoint(id), state, outcomes: Outcomes::default(), report: None }
    }

    fn view(&self) -> EndpointView<'_> {
        let view = EndpointView::new(self.id, &self.endpoint, self.state);
        EndpointView { outcomes: self.outcomes, report: self.report.as_ref(), ..view }
    }
}

/// Returns the endpoint of a number: 10.x.x.x:1.
pub(super) fn endpoint(number: u64) -> Endpoint {
    let [_, b, c, d] = (number as u32).to_be_bytes();
    Endpoint::new(Address::Tcp(([10, b, c, d], 1).into()))
}

fn state_named(letter: char) -> ConnectivityState {
    match letter {
        'I' => ConnectivityState::Idle,
        'C' => ConnectivityState::Connecting,
        'R' => ConnectivityState::Ready,
        'F' => ConnectivityState::TransientFailure,
        'S' => ConnectivityState::Shutdown,
        _ => unreachable!("no state has the letter {letter}"),
    }
}

/// Returns what a picker does with calls of these turns, at endpoints without calls in flight.
pub(super) fn picks(decision: &Decision, turns: std::ops::Range<u64>) -> impl Iterator<Item = Pick> {
    turns.map(|turn| decision.picker.pick(&PickArgs::new(turn, &|_| 0)))
}

/// Returns the calls that each of `count` endpoints takes. All calls must find one.
pub(super) fn tally(count: usize, picks: impl IntoIterator<Item = Pick>) -> Vec<u64> {
    let mut tally = vec![0; count];
    for pick in picks {
        let Pick::Endpoint(at) = pick else { panic!("{pick:?} instead of an endpoint") };
        tally[at] += 1;
    }
    tally
}

pub(super) fn describe(pick: &Pick) -> String {
    match pick {
        Pick::Endpoint(at) => format!("{at}"),
        Pick::EndpointAndConnect { ready, connect } => format!("{ready} and connect {connect}"),
        Pick::Connect(at) => format!("connect {at}"),
        Pick::Queue => "queue".to_owned(),
        Pick::QueueUntil(_) => "queue until".to_owned(),
        Pick::Fail(_) => "fail".to_owned(),
    }
}

/// Checks, for endpoints in `states`, the channel's state, all results of picks, and the endpoints to connect.
fn check(config: &PolicyConfig, hash: bool, rows: &[(&str, &str, &str, &[usize])]) {
    for &(states, state, expected, connect) in rows {
        let fleet = Fleet::new(states);
        let decision = config.build(7).decide(&fleet.views(), Instant::now());
        let pick = |turn: u64| {
            let call = PickArgs { hash: hash.then(|| mix(turn)), ..PickArgs::new(turn, &|_| 0) };
            describe(&decision.picker.pick(&call))
        };
        let picked =
            (0..200).map(pick).collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join(", ");
        let got = (decision.state.name(), picked.as_str(), decision.connect.as_slice());
        assert_eq!(got, (state, expected, connect), "{states} of {config:?}");
    }
}

#[test]
fn pick_first_connects_for_a_call() {
    check(
        &PolicyConfig::default(),
        false,
        &[
            ("", "TRANSIENT_FAILURE", "fail", &[]),
            ("I", "IDLE", "connect 0", &[]),
            ("C", "CONNECTING", "queue", &[]),
            ("R", "READY", "0", &[]),
            ("F", "TRANSIENT_FAILURE", "fail", &[]),
            ("S", "TRANSIENT_FAILURE", "fail", &[]),
        ],
    );
}

#[test]
fn policies_over_ready_endpoints_connect_all() {
    let subset = PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(9, PolicyConfig::RoundRobin));
    for config in [
        PolicyConfig::RoundRobin,
        PolicyConfig::LeastRequest(LeastRequestConfig::default()),
        PolicyConfig::WeightedRoundRobin(WeightedRoundRobinConfig::default()),
        subset.clone(),
        PolicyConfig::OutlierDetection(OutlierDetectionConfig::new(subset)),
    ] {
        check(
            &config,
            false,
            &[
                ("", "TRANSIENT_FAILURE", "fail", &[]),
                ("I", "CONNECTING", "queue", &[0]),
                ("C", "CONNECTING", "queue", &[]),
                ("R", "READY", "0", &[]),
                ("F", "TRANSIENT_FAILURE", "fail", &[]),
                ("S", "TRANSIENT_FAILURE", "fail", &[]),
                ("II", "CONNECTING", "queue", &[0, 1]),
                ("RR", "READY", "0, 1", &[]),
                ("IRCRF", "READY", "1, 3", &[0]),
                ("FI", "CONNECTING", "queue", &[1]),
                ("FC", "CONNECTING", "queue", &[]),
                ("FFS", "TRANSIENT_FAILURE", "fail", &[]),
            ],
        );
    }
}

/// gRFC A42's aggregation, and gRFC A61's picks and proactive connects.
#[test]
fn ring_hash_connects_the_endpoint_of_the_hash() {
    check(
        &PolicyConfig::RingHash(RingHashConfig::default()),
        true,
        &[
            ("", "TRANSIENT_FAILURE", "fail", &[]),
            ("I", "IDLE", "connect 0", &[]),
            ("C", "CONNECTING", "queue", &[]),
            ("R", "READY", "0", &[]),
            ("F", "TRANSIENT_FAILURE", "fail", &[]),
            ("II", "IDLE", "connect 0, connect 1", &[]),
            ("IR", "READY", "1, connect 0", &[]),
            ("CR", "READY", "1, queue", &[]),
            ("FR", "READY", "1", &[]),
            ("FFR", "READY", "2", &[]),
            ("CI", "CONNECTING", "connect 1, queue", &[]),
            ("FC", "CONNECTING", "queue", &[]),
            ("FI", "CONNECTING", "connect 1", &[1]),
            ("FII", "CONNECTING", "connect 1, connect 2", &[1]),
            ("FFI", "TRANSIENT_FAILURE", "connect 2", &[2]),
            ("FFC", "TRANSIENT_FAILURE", "queue", &[]),
            ("FFCI", "TRANSIENT_FAILURE", "connect 3, queue", &[]),
            ("FF", "TRANSIENT_FAILURE", "fail", &[]),
        ],
    );
}

/// gRFC A76.
#[test]
fn ring_hash_without_a_hash_prefers_ready_endpoints() {
    check(
        &PolicyConfig::RingHash(RingHashConfig::default().request_hash_header("x-user")),
        false,
        &[
            ("II", "IDLE", "connect 0, connect 1", &[]),
            ("IR", "READY", "1, 1 and connect 0", &[]),
            ("IFR", "READY", "2, 2 and connect 0", &[]),
            ("CR", "READY", "1", &[]),
            ("CIR", "READY", "2", &[]),
            ("RR", "READY", "0, 1", &[]),
            ("CI", "CONNECTING", "queue", &[]),
            ("FI", "CONNECTING", "connect 1", &[1]),
            ("FFI", "TRANSIENT_FAILURE", "connect 2", &[2]),
            ("FFCI", "TRANSIENT_FAILURE", "queue", &[]),
            ("FF", "TRANSIENT_FAILURE", "fail", &[]),
        ],
    );
}

#[test]
fn failure_is_known_without_a_call() {
    let check = |states: &str, fails: bool| {
        let fleet = Fleet::new(states);
        let ring = || RingHash::new(RingHashConfig::default());
        for policy in [&mut RoundRobin as &mut dyn Policy, &mut ring()] {
            let decision = policy.decide(&fleet.views(), Instant::now());
            let failure = decision.picker.failure().map(Pick::Fail);
            assert_eq!(failure.is_some(), fails, "{states}: {policy:?}");
            assert!(!fails || failure == picks(&decision, 0..1).next());
        }
    };
    check("FF", true);
    check("FR", false);
    check("FI", false);
    check("FC", false);
    check("", true);
}

#[test]
fn failed_call_has_the_errors_of_four_endpoints() {
    let fleet = Fleet::new("FFFFFF");
    let mut views = fleet.views();
    views[0].error = Some("10.0.0.0:1: connection refused");
    let decision = RoundRobin.decide(&views, Instant::now());
    let message = "none of 6 servers is ready: 10.0.0.0:1: connection refused; 10.0.0.1:1: not ready; \
                   10.0.0.2:1: not ready; 10.0.0.3:1: not ready; and 2 more";
    assert_eq!(picks(&decision, 0..1).next(), Some(Pick::Fail(message.into())));
    let decision = RoundRobin.decide(&[], Instant::now());
    assert_eq!(
        picks(&decision, 0..1).next(),
        Some(Pick::Fail("the name resolver returned no address".into()))
    );
}

#[test]
fn round_robin_differs_by_one_call_at_most() {
    let fleet = Fleet::new("RFRRIRR");
    let decision = RoundRobin.decide(&fleet.views(), Instant::now());
    for (start, calls) in [(0, 1), (3, 5), (17, 99), (u64::MAX - 1000, 1000)] {
        let tally = tally(7, picks(&decision, start..start + calls));
        let ready = [0, 2, 3, 5, 6].map(|at: usize| tally[at]);
        assert!(ready.iter().max().unwrap() - ready.iter().min().unwrap() <= 1, "{tally:?} from {start}");
    }
}

/// Policies of applications are equal if their factory is the same one.
#[test]
fn custom_policy_is_built_by_its_factory() {
    #[derive(Debug)]
    struct Factory;
    impl PolicyFactory for Factory {
        fn name(&self) -> &'static str {
            "custom"
        }
        fn build(&self, _: u64) -> Box<dyn Policy> {
            Box::new(RoundRobin)
        }
    }
    let custom = PolicyConfig::Custom(Arc::new(Factory));
    assert_eq!(custom.build(1).name(), "round_robin");
    assert_eq!(custom, custom.clone());
    assert_ne!(custom, PolicyConfig::Custom(Arc::new(Factory)));
    assert_ne!(custom, PolicyConfig::RoundRobin);
}

/// A wrapper passes on what its child needs and reads.
#[test]
fn wrappers_delegate_to_their_child() {
    let weighted = PolicyConfig::WeightedRoundRobin(
        WeightedRoundRobinConfig::default()
            .enable_oob_load_report(true)
            .oob_reporting_period(Duration::from_secs(3)),
    );
    let ring = PolicyConfig::RingHash(RingHashConfig::default().request_hash_header("x-user"));
    let wrap = |child: &PolicyConfig| {
        let subset = PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(2, child.clone()));
        let detection = FailurePercentageEjection::default();
        let config = OutlierDetectionConfig::new(subset).failure_percentage_ejection(detection);
        PolicyConfig::OutlierDetection(config).build(5)
    };
    let reports = Some(ReportSource::OutOfBand(Duration::from_secs(3)));
    assert_eq!(wrap(&weighted).needs(), Needs { outcomes: true, reports });
    assert_eq!(weighted.build(5).needs(), Needs { outcomes: false, reports });
    assert_eq!(wrap(&ring).needs(), Needs { outcomes: true, reports: None });
    // gRFC A17: `pick_first` has no health checks.
    assert!(wrap(&weighted).checks_health() && !wrap(&PolicyConfig::default()).checks_health());
    assert_eq!(wrap(&ring).hash_header(), Some("x-user"));
    assert_eq!(wrap(&weighted).hash_header(), None);
    assert_eq!(wrap(&ring).select(Fleet::new("IIIII").endpoints()).len(), 2);
    assert_eq!(wrap(&PolicyConfig::default()).select(Fleet::new("IIIII").endpoints()).len(), 1);
}
