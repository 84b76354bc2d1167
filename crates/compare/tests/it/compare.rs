//! Comparisons, their results and rejections.

use thalweg_compare::{
    Comparison, Figure, Options, Pairing, Report, Side, SideId, Verdict, WindowRun, compare, text,
};
use thalweg_load::{Flows, LoadRun};
use thalweg_measure::validity::{Cause, Reason};

use crate::support::{comparison, figure, options, rates, run, run_of_intervals, side};

const STEADY: [f64; 5] = [1000.0, 1010.0, 990.0, 1005.0, 995.0];

fn compare_unpaired(a: &Side, b: &Side) -> Report {
    compare(a, b, Pairing::Unpaired, &options()).unwrap()
}

#[test]
fn runs_of_the_same_load_are_rounds() {
    let faster = STEADY.map(|rate| rate * 2.0);
    let report = compare_unpaired(&rates("old", &STEADY), &rates("new", &faster));
    assert_eq!(report.cells.len(), 1);
    let rate = figure(&report, "rate");
    assert!((rate.ratio - 2.0).abs() < 1e-9 && rate.rounds == (5, 5), "{rate:?}");
    assert_eq!((rate.verdict, rate.is_gated, rate.fails()), (Verdict::Better, true, false));
    let p99 = figure(&report, "p99");
    assert!((p99.ratio - 0.5).abs() < 1e-3, "{p99:?}");
    assert_eq!((p99.verdict, p99.is_gated), (Verdict::Better, true));
    assert_eq!(report.failures, [""; 0]);
    assert!(report.headline().starts_with("better, rate is 2.0 × (1.97–2.0), p50 is 0.50 × ("), "{report:?}");
    assert!(report.warnings[0].contains("were not measured alternately"), "{:?}", report.warnings);
    // With the sides swapped, B is worse, which is a failure.
    let report = compare_unpaired(&rates("old", &faster), &rates("new", &STEADY));
    assert_eq!(figure(&report, "rate").verdict, Verdict::Worse);
    assert!(report.failures[0].starts_with("rate is 0.50 × ("), "{:?}", report.failures);
}

#[test]
fn equal_sides_are_same_and_noisy_ones_are_inconclusive() {
    let report = compare_unpaired(&rates("old", &STEADY), &rates("new", &STEADY));
    assert_eq!(figure(&report, "rate").verdict, Verdict::Same);
    assert_eq!(report.headline(), "the same within the margin");
    let noisy = [700.0, 1300.0, 1000.0];
    let report = compare_unpaired(&rates("old", &STEADY), &rates("new", &noisy));
    assert_eq!(figure(&report, "rate").verdict, Verdict::CannotTell);
    assert!(report.failures.is_empty());
}

#[test]
fn single_runs_are_compared_by_intervals_with_warning() {
    let (a, b) = (run_of_intervals(&STEADY), run_of_intervals(&STEADY.map(|rate| rate * 0.8)));
    let report = compare_unpaired(&side("old", vec![a]), &side("new", vec![b]));
    let rate = figure(&report, "rate");
    assert_eq!((rate.rounds, rate.verdict, rate.fails()), ((5, 5), Verdict::Worse, true));
    assert!(report.warnings.iter().any(|it| it.contains("are not independent")), "{:?}", report.warnings);
    // CPU time is known for the whole run only: a ratio without an interval.
    let cpu = figure(&report, "client-cpu");
    assert!(cpu.interval.is_none() && cpu.verdict == Verdict::CannotTell, "{cpu:?}");
}

#[test]
fn incomplete_last_interval_is_ignored() {
    let mut rest = run_of_intervals(&STEADY);
    rest.duration_ns = 4_100_000_000;
    let report = compare_unpaired(&side("old", vec![rest]), &side("new", vec![run_of_intervals(&STEADY)]));
    assert_eq!(figure(&report, "rate").rounds, (4, 5));
}

#[test]
fn run_without_intervals_has_no_confidence_interval() {
    let report = compare_unpaired(&rates("old", &[1000.0]), &rates("new", &[100.0]));
    let rate = figure(&report, "rate");
    assert!(rate.interval.is_none() && report.failures.is_empty(), "{rate:?}");
    assert!(report.warnings.iter().any(|it| it.contains("fewer than 3 rounds")), "{:?}", report.warnings);
}

#[test]
fn drift_cancels_out_of_paired_rounds() {
    // Both lose a third per round; within each pair B is 2 % slower.
    let rounds: Vec<(f64, f64)> =
        (0..6).map(|round| 10_000.0 * 0.67_f64.powi(round)).map(|rate| (rate, rate * 0.98)).collect();
    let measured = comparison(&rounds);
    let [a, b] = Side::both_of_comparison(&measured);
    let paired = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    let rate = figure(&paired, "rate");
    assert!((rate.ratio - 0.98).abs() < 1e-9 && rate.verdict == Verdict::Same, "{rate:?}");
    assert_eq!(figure(&paired, "server-cpu").verdict, Verdict::Worse);
    assert!(paired.warnings.is_empty(), "{:?}", paired.warnings);
    let unpaired = compare(&a, &b, Pairing::Unpaired, &options()).unwrap();
    assert_eq!(figure(&unpaired, "rate").verdict, Verdict::CannotTell);
}

#[test]
fn round_with_missing_window_is_not_paired() {
    let mut measured = comparison(&[(1000.0, 1000.0); 5]);
    measured.windows.pop();
    let [a, b] = Side::both_of_comparison(&measured);
    let report = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    assert_eq!(figure(&report, "rate").rounds, (4, 4));
}

#[test]
fn different_machines_and_loads_are_rejected_unless_forced() {
    let check = |change: fn(&mut LoadRun), expected: &str| {
        let mut other = run(1000.0);
        change(&mut other);
        let (a, b) = (rates("old", &[1000.0]), side("new", vec![other]));
        let error = compare(&a, &b, Pairing::Unpaired, &options()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("--force"), "{error}");
        let forced = compare(&a, &b, Pairing::Unpaired, &Options { force: true, ..options() }).unwrap();
        assert!(forced.warnings[0].contains(expected), "{:?}", forced.warnings);
    };
    check(
        |run| run.machine.as_mut().unwrap().cpu = "Abacus 10".to_owned(),
        "they differ in the machine's processor (Abacus 9 and Abacus 10)",
    );
    check(|run| run.machine.as_mut().unwrap().cores = 2, "the machine's processors (4 and 2)");
    check(|run| run.machine.as_mut().unwrap().kernel = "Linux 7".to_owned(), "the machine's kernel");
    check(|run| run.method = "shop.Orders/List".to_owned(), "method (shop.Orders/Get and shop.Orders/List)");
    check(|run| run.in_flight = 1, "in flight (64 and 1)");
    check(|run| run.connections = 2, "connections (1 and 2)");
    check(
        |run| (run.loop_kind, run.schedule) = ("open".to_owned(), Some("1000".to_owned())),
        "loop (closed and open)",
    );
}

#[test]
fn unknown_machine_and_differing_request_sizes_cause_warnings() {
    let mut other = run(1000.0);
    other.machine = None;
    other.bytes_sent *= 2;
    let report = compare_unpaired(&rates("old", &[1000.0]), &side("new", vec![other]));
    let has = |text: &str| report.warnings.iter().any(|warning| warning.contains(text));
    assert!(has("the machine of new is not recorded") && has("old sends 20 bytes on average"), "{report:?}");
}

#[test]
fn differing_request_sizes_within_a_side_cause_warning() {
    let runs = |bytes: [u64; 3]| {
        let of = |bytes_sent| LoadRun { bytes_sent, ..run(1000.0) };
        bytes.map(of).to_vec()
    };
    let check = |of_b: [u64; 3], expected: &[&str]| {
        let report = compare_unpaired(&side("old", runs([20_000; 3])), &side("new", runs(of_b)));
        let warnings: Vec<&str> =
            report.warnings.iter().map(String::as_str).filter(|it| it.contains("requests")).collect();
        assert_eq!(warnings, expected);
    };
    check([20_000, 20_010, 20_000], &[]);
    let warned = "new: requests differ in size between runs (20 and 40 bytes on average), but the runs count as rounds \
                  of one load";
    check([20_000, 20_000, 40_000], &[warned]);
    check([20_000, 40_000, 41_000], &[&format!("{warned} (and 1 similar ones)")]);
}

#[test]
fn unfinished_window_causes_warning() {
    let mut measured = comparison(&[(1000.0, 1000.0); 4]);
    let WindowRun::Method(run) = &mut measured.windows[0].run else { panic!("it is of a method") };
    run.so_far = true;
    let [a, b] = Side::both_of_comparison(&measured);
    let report = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    assert_eq!(report.warnings, ["main: the run had not finished"]);
}

#[test]
fn several_loads_are_compared_each_and_by_mean() {
    let both = |factors: [f64; 2]| {
        let runs = STEADY.iter().flat_map(|rate| {
            let get = run(rate * factors[0]);
            let mut list = run(rate * factors[1]);
            list.method = "shop.Orders/List".to_owned();
            [get, list]
        });
        runs.collect::<Vec<_>>()
    };
    let mut of_a = both([1.0, 1.0]);
    let mut alone = run(1000.0);
    alone.method = "shop.Orders/Drop".to_owned();
    of_a.push(alone);
    let report = compare_unpaired(&side("old", of_a), &side("new", both([2.0, 0.5])));
    assert_eq!(report.cells.len(), 2);
    let overall = report.overall.iter().find(|compared| compared.figure == Figure::Rate).unwrap();
    assert!((overall.ratio - 1.0).abs() < 1e-9 && overall.verdict == Verdict::Same, "{overall:?}");
    // An equal mean does not excuse the slower load.
    assert_eq!(report.failures.len(), 3);
    assert!(report.failures.iter().all(|it| it.contains("of shop.Orders/List")), "{:?}", report.failures);
    let alone = "1 load of old have no match in new, for example shop.Orders/Drop";
    assert!(report.warnings.iter().any(|warning| warning.contains(alone)), "{:?}", report.warnings);
}

#[test]
fn chosen_figures_decide_failure() {
    let slower = STEADY.map(|rate| rate / 2.0);
    let check = |fail_on: Option<Vec<Figure>>, is_open: bool, expected: &[&str]| {
        let runs = |name: &str, rates: &[f64]| {
            let open = |rate: &f64| {
                let mut run = run(*rate);
                run.schedule = is_open.then(|| "1000".to_owned());
                run
            };
            side(name, rates.iter().map(open).collect())
        };
        let options = Options { fail_on, ..options() };
        let report =
            compare(&runs("old", &STEADY), &runs("new", &slower), Pairing::Unpaired, &options).unwrap();
        let failed: Vec<&str> =
            report.failures.iter().map(|failure| failure.split(" is ").next().unwrap()).collect();
        assert_eq!(failed, expected);
    };
    check(None, false, &["rate", "p50", "p99"]);
    check(None, true, &["p50", "p99"]);
    check(Some(vec![Figure::P50, Figure::P99]), false, &["p50", "p99"]);
    check(Some(Vec::new()), false, &[]);
}

#[test]
fn unmeasured_chosen_figure_does_not_pass() {
    let check = |fail_on: Option<Vec<Figure>>, of_b: &[&str], expected: &[Figure], headline: &str| {
        let runs = |name: &str, without: &[&str]| {
            let runs = ["shop.Orders/Get", "shop.Orders/List"].into_iter().flat_map(|method| {
                STEADY.map(|rate| {
                    let mut run = run(rate);
                    method.clone_into(&mut run.method);
                    run.latency = run.latency.filter(|_| !without.contains(&method));
                    run
                })
            });
            side(name, runs.collect())
        };
        let options = Options { fail_on, ..options() };
        let report = compare(&runs("old", &[]), &runs("new", of_b), Pairing::Unpaired, &options).unwrap();
        assert_eq!((report.not_measured.as_slice(), report.headline().as_str()), (expected, headline));
        let of = |warning: &&String| {
            warning.starts_with("p99") && warning.contains("was not measured on both sides")
        };
        assert_eq!(report.warnings.iter().filter(of).count(), usize::from(!of_b.is_empty()));
    };
    let (same, list) = ("the same within the margin", "shop.Orders/List");
    check(Some(vec![Figure::P99]), &[], &[], same);
    check(Some(vec![Figure::Rate, Figure::P99]), &[list], &[], same);
    let both = ["shop.Orders/Get", list];
    check(Some(vec![Figure::Rate, Figure::P99]), &both, &[Figure::P99], "not judged by p99");
}

#[test]
fn higher_failure_share_fails_regardless_of_figures() {
    let failing = |failed: u64| {
        let mut run = run(1000.0);
        run.failed = failed;
        run
    };
    let check = |of_a: u64, of_b: u64, expected: bool| {
        let report = compare_unpaired(&side("old", vec![failing(of_a)]), &side("new", vec![failing(of_b)]));
        assert_eq!(!report.failures.is_empty(), expected, "{:?}", report.failures);
        assert!(report.warnings.iter().any(|it| it.contains("failed calls")), "{:?}", report.warnings);
    };
    check(0, 500, true);
    check(500, 500, false);
    check(500, 0, false);
    check(0, 10, false);
}

#[test]
fn cpu_time_is_per_finished_call() {
    let mut measured = comparison(&[(1000.0, 1000.0); 4]);
    // Every second call to B fails: as many calls, and as much CPU time in total.
    for window in measured.windows.iter_mut().filter(|window| window.side == SideId::B) {
        let WindowRun::Method(run) = &mut window.run else { panic!("it is of a method") };
        (run.ok, run.failed) = (run.ok / 2, run.ok / 2);
        run.client_cpu_per_call = run.client_cpu_per_call.map(|cpu| cpu / 0.5);
    }
    let [a, b] = Side::both_of_comparison(&measured);
    let report = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    // The servers use 10 µs per call of A and 20 µs of B.
    assert!((figure(&report, "server-cpu").ratio - 2.0).abs() < 1e-9, "{report:?}");
    assert!((figure(&report, "client-cpu").ratio - 1.0).abs() < 1e-9, "{report:?}");
    let warned = "CPU time is divided by all that finished";
    assert!(report.warnings.iter().any(|it| it.contains(warned)), "{:?}", report.warnings);
}

#[test]
fn never_started_calls_count_as_failed() {
    let open = |dropped: u64| {
        let mut run = run(1000.0);
        (run.loop_kind, run.schedule) = ("open".to_owned(), Some("1000".to_owned()));
        run.dropped = dropped;
        run
    };
    // 5000 calls finished; the dropped ones are additional.
    let report = compare_unpaired(&side("old", vec![open(0)]), &side("new", vec![open(500), open(500)]));
    assert_eq!(
        report.failures,
        ["9.1 % of the calls to new failed or did not start, and 0 % of those to old"]
    );
    let warned = "(including 0 of old and 1000 of new that did not start)";
    assert!(report.warnings.iter().any(|it| it.contains(warned)), "{:?}", report.warnings);
    let report = compare_unpaired(&side("old", vec![open(500)]), &side("new", vec![open(500)]));
    assert_eq!(report.failures, [""; 0]);
}

/// The schedule of a scenario counts flows, here of five calls each.
#[test]
fn never_started_flows_count_as_failed() {
    let open = |dropped: u64| {
        let mut run = run(1000.0);
        (run.loop_kind, run.schedule) = ("open".to_owned(), Some("200".to_owned()));
        run.kind = "scenario".to_owned();
        run.flows = Some(Flows { started: 1000, ok: 1000, failed: 0 });
        run.dropped = dropped;
        run
    };
    let report = compare_unpaired(&side("old", vec![open(0)]), &side("new", vec![open(100)]));
    assert_eq!(
        report.failures,
        ["9.1 % of the flows to new failed or did not start, and 0 % of those to old"]
    );
}

#[test]
fn never_started_calls_of_every_window_count() {
    let mut measured = comparison(&[(1000.0, 1000.0); 4]);
    for window in measured.windows.iter_mut().filter(|window| window.side == SideId::B) {
        let WindowRun::Method(run) = &mut window.run else { panic!("it is of a method") };
        run.dropped = 1000;
    }
    let [a, b] = Side::both_of_comparison(&measured);
    let report = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    assert_eq!(report.cells[0].dropped, (0, 4000));
    assert!(report.failures[0].contains("did not start"), "{:?}", report.failures);
}

/// A handler sleeps 54 ms instead of 50 ms, with a noisy rate and tail.
#[test]
fn median_beyond_margin_is_named_despite_inconclusive_rate() {
    let noise = [0.8, 1.3, 0.9, 1.2, 1.0, 0.7, 1.25, 1.1, 0.85, 1.15];
    let runs = |p50_ms: f64, noise: &[f64]| -> Vec<LoadRun> {
        let of = |(number, noise): (usize, &f64)| {
            let mut run = run(150.0 * noise);
            let latency = &mut run.latency.as_mut().unwrap().ns;
            latency.p50 = (p50_ms * 1e6 * (1.0 + 0.001 * (number % 3) as f64)) as u64;
            run
        };
        noise.iter().enumerate().map(of).collect()
    };
    let reversed: Vec<f64> = noise.iter().rev().copied().collect();
    let (a, b) = (side("old", runs(50.0, &noise)), side("new", runs(54.0, &reversed)));
    let report = compare_unpaired(&a, &b);
    assert_eq!(figure(&report, "rate").verdict, Verdict::CannotTell);
    assert_eq!(report.headline(), "worse, p50 is 1.08 × (1.08–1.08)");
    assert!(text(&report).starts_with("new against old: worse, p50 is 1.08 × (1.08–1.08)\n"), "{report:?}");
    // Figures that are not judged are named, too, without failing B.
    let options = Options { fail_on: Some(vec![Figure::Rate]), ..options() };
    let report = compare(&a, &b, Pairing::Unpaired, &options).unwrap();
    assert_eq!(report.failures, [""; 0]);
    assert_eq!(report.headline(), "can't tell; worse but not judged: p50 1.08 ×");
    assert!(report.is_inconclusive());
    let faster = compare(&b, &a, Pairing::Unpaired, &options).unwrap();
    assert_eq!(faster.headline(), "can't tell; better: p50 0.93 ×");
}

#[test]
fn headline_lists_inconclusive_and_equal_figures() {
    let noisy = |name: &str, tails: [f64; 5]| {
        let runs = STEADY.iter().zip(tails).map(|(rate, tail)| {
            let mut run = run(*rate);
            run.latency.as_mut().unwrap().ns.p99 = (tail * 1e6) as u64;
            run
        });
        side(name, runs.collect())
    };
    let (a, b) =
        (noisy("old", [100.0, 200.0, 150.0, 90.0, 120.0]), noisy("new", [190.0, 80.0, 130.0, 100.0, 170.0]));
    let report = compare_unpaired(&a, &b);
    assert_eq!(report.headline(), "can't tell by p99; the same within the margin by rate and p50");
    assert!(report.is_inconclusive() && report.failures.is_empty());
    assert!(!compare_unpaired(&rates("old", &STEADY), &rates("new", &STEADY)).is_inconclusive());
}

#[test]
fn single_stall_does_not_fail_its_side() {
    let mut measured = comparison(&[(1000.0, 1000.0); 10]);
    let stalled = measured.windows.iter_mut().find(|window| window.side == SideId::B).unwrap();
    let WindowRun::Method(run) = &mut stalled.run else { panic!("it is of a method") };
    run.dropped = 1500;
    let [a, b] = Side::both_of_comparison(&measured);
    let report = compare(&a, &b, Pairing::Paired, &options()).unwrap();
    assert!(report.cells[0].failed.b > 0.02, "{report:?}");
    assert_eq!(report.failures, [""; 0]);
    assert_eq!(report.headline().split(';').next(), Some("can't tell by failed calls"));
}

/// Returns windows of two servers. In `rounds`, B was disturbed and half as fast.
fn disturbed(rounds: std::ops::Range<usize>) -> Comparison {
    let rates: Vec<(f64, f64)> = (0..6)
        .map(|round| if rounds.contains(&round) { (1000.0, 500.0) } else { (1000.0, 1001.0) })
        .collect();
    let mut measured = comparison(&rates);
    for window in &mut measured.windows {
        if let WindowRun::Method(run) = &mut window.run
            && window.side == SideId::B
            && rounds.contains(&(window.round as usize))
        {
            let reason = Reason { cause: Cause::OtherPrograms, text: "busy".to_owned(), share: Some(0.5) };
            run.not_valid = [reason].into_iter().collect();
        }
    }
    measured
}

#[test]
fn invalid_windows_are_not_used() {
    let report = |rounds: std::ops::Range<usize>, options: Options| {
        let [a, b] = Side::both_of_comparison(&disturbed(rounds));
        compare(&a, &b, Pairing::Paired, &options).unwrap()
    };
    let some = report(0..2, options());
    assert_eq!(figure(&some, "rate").rounds, (4, 4));
    assert_eq!(figure(&some, "rate").verdict, Verdict::Same);
    let why = "2 of 12 windows are not valid: other programs used 50 % of the processors; close them or measure more \
               rounds. They are not used";
    assert!(some.warnings.contains(&why.to_owned()), "{:?}", some.warnings);
    let forced = report(0..2, Options { force: true, ..options() });
    assert_eq!(figure(&forced, "rate").rounds, (6, 6));
}

#[test]
fn too_few_valid_windows_are_inconclusive() {
    let [a, b] = Side::both_of_comparison(&disturbed(0..6));
    let judged = Options { fail_on: Some(vec![Figure::Rate]), ..options() };
    let report = compare(&a, &b, Pairing::Paired, &judged).unwrap();
    assert!(
        report.headline().starts_with("can't tell: 6 of 12 windows are not valid: "),
        "{}",
        report.headline()
    );
    assert!(report.is_inconclusive() && report.failures.is_empty() && report.not_measured.is_empty());
    // Failed or unfinished calls may be the server's fault, and a client limit does not hide slower servers.
    for cause in [Cause::NotMeasured, Cause::ClientLimit] {
        let mut broken = disturbed(0..6);
        for window in &mut broken.windows {
            if let WindowRun::Method(run) = &mut window.run {
                run.not_valid.reasons.iter_mut().for_each(|reason| reason.cause = cause);
            }
        }
        let [a, b] = Side::both_of_comparison(&broken);
        let report = compare(&a, &b, Pairing::Paired, &judged).unwrap();
        assert!(!report.failures.is_empty());
        let is_warned =
            report.warnings.iter().any(|it| it.starts_with("the client was the limit in 6 of 12 windows"));
        assert_eq!(is_warned, cause == Cause::ClientLimit, "{:?}", report.warnings);
    }
}
