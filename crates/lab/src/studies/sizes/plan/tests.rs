use super::*;
use crate::load::AaSide;
use crate::load::{Purpose, WindowRequest};

fn stack(name: &str) -> Pair {
    Pair::own(name.parse().unwrap())
}

fn pairs(names: &[&str]) -> Vec<Pair> {
    names.iter().map(|name| stack(name)).collect()
}

fn figures(study: &Plan<Window>) -> impl Iterator<Item = &Window> {
    study.windows.iter().filter(|window| window.purpose == Purpose::Figures)
}

#[test]
fn both_studies_fit_their_budget_and_use_it() {
    for (options, seconds_max) in [(SizesOptions::quick(), 120), (SizesOptions::whole(), 15 * 60)] {
        let study = plan(&options).unwrap();
        assert!(study.total() <= options.budget, "{:?} is over {:?}", study.total(), options.budget);
        assert!(study.total() > options.budget.mul_f64(0.9));
        assert!(options.budget < Duration::from_secs(seconds_max));
        let floors = study.windows.iter().filter(|window| window.purpose != Purpose::Figures);
        assert!(floors.count() > 0, "ours is measured against ours");
        for window in figures(&study) {
            let many =
                figures(&study).filter(|other| (&other.point, &other.pair) == (&window.point, &window.pair));
            assert_eq!(many.count(), options.rounds as usize, "{window}");
        }
    }
}

#[test]
fn measurements_of_a_size_alternate() {
    let options = SizesOptions {
        sizes: vec![ByteSize(0)],
        calls: vec![CallType::BidiStream],
        rounds: 2,
        ..SizesOptions::quick()
    };
    let study = plan(&options).unwrap();
    let order: Vec<String> =
        figures(&study).map(|it| format!("{} {} {}", it.round, it.point.work, it.point.transport)).collect();
    let there = ["bidi-stream TCP", "socket-pipelined TCP", "bidi-stream UDS", "socket-pipelined UDS"];
    let back = there.iter().rev();
    let expected: Vec<String> =
        there.iter().map(|it| format!("0 {it}")).chain(back.map(|it| format!("1 {it}"))).collect();
    assert_eq!(order, expected);
}

#[test]
fn comparisons_fit_their_budget_with_short_windows_and_enough_of_them() {
    let four = pairs(&["thalweg", "tonic", "grpc-cpp", "grpc-go"]);
    let quick = SizesOptions::quick_comparison(four.clone(), true);
    let whole = SizesOptions::whole_comparison(four, true);
    for (options, seconds_max, rounds) in [(quick, 420, 6), (whole, 45 * 60, 10)] {
        let study = plan(&options).unwrap();
        assert!(
            study.total() <= options.budget && options.budget <= Duration::from_secs(seconds_max),
            "{:?}",
            study.total()
        );
        assert!(study.total() > options.budget.mul_f64(0.8), "{:?} of {:?}", study.total(), options.budget);
        for window in figures(&study) {
            let point = &window.point;
            let many =
                figures(&study).filter(|other| (&other.point, &other.pair) == (point, &window.pair)).count();
            assert_eq!(many, rounds, "{window}");
            assert!(point.duration >= Duration::from_millis(200), "{window}: {point:?}");
            assert!(point.warmup >= Duration::from_millis(150), "{window}: {point:?}");
        }
    }
}

#[test]
fn more_pairs_take_more_time_and_not_shorter_windows() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p"];
    let four = plan(&SizesOptions::quick_comparison(pairs(&names[..4]), true)).unwrap();
    let sixteen = plan(&SizesOptions::quick_comparison(pairs(&names), true)).unwrap();
    assert!(sixteen.total() > four.total() * 3);
    assert!(
        figures(&sixteen).next().unwrap().point.duration >= figures(&four).next().unwrap().point.duration
    );
}

#[test]
fn the_whole_covers_every_call_type_size_and_transport_and_their_reference() {
    let options = SizesOptions::whole();
    let study = plan(&options).unwrap();
    for &size_bytes in &options.sizes {
        for transport in Transport::ALL {
            for call in CallType::ALL {
                let has = |work| {
                    study.windows.iter().any(
                        |Window { request: WindowRequest { point, pair, .. }, .. }| {
                            (point.work, point.size_bytes, point.transport) == (work, size_bytes, transport)
                                && pair.is_some() == matches!(work, Work::Call(_))
                        },
                    )
                };
                assert!(has(Work::Call(call)), "{call} {size_bytes} {transport}");
                assert!(has(Work::Socket(Pattern::of(call))), "reference of {call} {size_bytes} {transport}");
            }
        }
    }
    assert!(options.sizes.contains(&ByteSize(1_500_000)));
}

/// Returns the turns of a comparison of these calls at one size, as `work pair`.
fn order(calls: &[CallType], with_socket: bool) -> Vec<String> {
    let comparison = ComparedPairs { pairs: pairs(&["thalweg", "tonic"]), with_socket, rounds: 2 };
    let options = SizesOptions {
        sizes: vec![ByteSize(0)],
        transports: vec![Transport::Uds],
        calls: calls.to_vec(),
        comparison: Some(comparison),
        ..SizesOptions::whole()
    };
    let named = |window: &Window| {
        let who = window.pair.as_ref().map_or("reference".to_owned(), ToString::to_string);
        format!("{} {} {who}", window.round, window.point.work)
    };
    figures(&plan(&options).unwrap()).map(named).collect()
}

#[test]
fn pairs_alternate_in_both_orders() {
    let order = order(&[CallType::BidiStream], true);
    let expected = [
        "0 bidi-stream thalweg",
        "0 bidi-stream tonic",
        "0 socket-pipelined reference",
        "1 socket-pipelined reference",
        "1 bidi-stream tonic",
        "1 bidi-stream thalweg",
    ];
    assert_eq!(order, expected);
}

#[test]
fn shared_reference_is_measured_once_if_requested() {
    let references = |with_socket| {
        let order = order(&[CallType::ClientStream, CallType::ServerStream], with_socket);
        order.iter().filter(|name| name.ends_with("reference")).count()
    };
    assert_eq!((references(true), references(false)), (2, 0));
}

#[test]
fn the_noise_floor_comes_first_and_the_system_calls_last() {
    let study = plan(&SizesOptions::quick_comparison(pairs(&["thalweg", "tonic"]), true)).unwrap();
    let rank = |window: &Window| match window.purpose {
        Purpose::NoiseFloor(_) => 0,
        Purpose::Figures => 1,
        Purpose::SystemCalls | Purpose::Wire => 2,
    };
    assert!(study.windows.is_sorted_by_key(rank));
    let noise: Vec<&Window> = study.windows.iter().filter(|window| rank(window) == 0).collect();
    // Lone and overlapping unary calls and a stream, at the smallest and the largest size, A and B, six times.
    assert_eq!(noise.len(), 3 * 2 * 2 * 6);
    assert!(noise.iter().all(|window| window.pair == Some(Pair::ours())));
    let labels: Vec<_> = noise[..4].iter().map(|window| window.purpose).collect();
    assert_eq!(labels, [AaSide::A, AaSide::B, AaSide::B, AaSide::A].map(Purpose::NoiseFloor));

    let counted: Vec<&Window> = study.windows.iter().filter(|window| rank(window) == 2).collect();
    assert_eq!(counted.len(), 5 * 2, "each kind of call of each pair");
    assert!(counted.iter().all(|window| window.point.size_bytes == ByteSize(0) && window.pair.is_some()));
}

#[test]
fn heavy_points_get_longer_windows() {
    let study = plan(&SizesOptions::quick_comparison(pairs(&["thalweg", "tonic"]), true)).unwrap();
    let length = |size, in_flight| {
        let mut windows = figures(&study).map(|window| &window.point);
        let wanted = |point: &&Point| {
            (point.work, point.size_bytes.0, point.in_flight)
                == (Work::Call(CallType::Unary), size, in_flight)
        };
        let window = windows.find(wanted).unwrap();
        window.warmup + window.duration
    };
    assert_eq!(length(1_500_000, 16), length(0, 16) * 2);
    assert_eq!(length(1_500_000, 1), length(0, 16));
}

#[test]
fn a_reference_has_the_in_flight_of_its_calls() {
    let names = |calls: &[CallType], in_flight| {
        let loads = loads(calls, in_flight, &[1]);
        let all = loads.iter().copied().chain(references(&loads));
        all.map(|load| format!("{} {}", load.work, load.in_flight)).collect::<Vec<_>>()
    };
    assert_eq!(names(&[CallType::Unary], 1), ["unary 1", "socket-echo 1"]);
    assert_eq!(
        names(&[CallType::BidiStream, CallType::Unary], 16),
        ["unary 1", "unary 16", "bidi-stream 1", "socket-echo 1", "socket-echo 16", "socket-pipelined 1"]
    );
    assert_eq!(
        names(&[CallType::ClientStream, CallType::ServerStream], 16),
        ["client-stream 1", "server-stream 1", "socket-one-way 1"]
    );
}

#[test]
fn few_points_do_not_use_the_whole_budget() {
    let options = SizesOptions { sizes: vec![ByteSize(0)], ..SizesOptions::whole() };
    let study = plan(&options).unwrap();
    let slots = study.windows.iter().map(|window| window.point.warmup + window.point.duration);
    assert!(slots.into_iter().all(|slot| slot == ALONE.max), "{study:?}");
}

#[test]
fn impossible_plans_are_rejected_with_reason() {
    let whole = SizesOptions::whole;
    let check = |options: SizesOptions, expected| assert_eq!(plan(&options), Err(expected));
    check(SizesOptions { sizes: vec![], ..whole() }, PlanError::NothingToMeasure);
    check(SizesOptions { calls: vec![], ..whole() }, PlanError::NothingToMeasure);
    check(SizesOptions { in_flight: 0, ..whole() }, PlanError::NoLoad);
    check(SizesOptions { connections: vec![1, 17], ..whole() }, PlanError::NoLoad);
    // Six rounds of the grid, and of the noise floor at three points of two sizes.
    let windows = 6 * (14 * 2 * 9 + 2 * 3 * 2);
    let small = plan(&SizesOptions { budget: Duration::from_secs(30), ..whole() });
    assert!(
        matches!(
            small,
            Err(PlanError::BudgetTooSmall { windows: found, budget_s: 30, least_s })
                if found == windows && least_s > 60
        ),
        "{small:?}"
    );
}

#[test]
fn point_survives_json_round_trip() {
    for window in plan(&SizesOptions::quick()).unwrap().windows {
        let json = serde_json::to_string(&window.point).unwrap();
        assert_eq!(serde_json::from_str::<Point>(&json).unwrap(), window.point, "{json}");
    }
}
