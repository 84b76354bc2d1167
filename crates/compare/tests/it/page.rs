//! Pages of comparisons in a browser: desktop and phone widths, light and dark theme.

#[path = "../../../lab/src/tests/browser.rs"]
mod browser;

use thalweg_compare::{Input, Options, Pairing, Report, Side, compare, page};

use self::browser::{PROBE, attribute, shown_page};
use crate::study::{of_two_stacks, sample};
use crate::support::{comparison, options, rates, run, run_of_intervals, side};

const STEADY: [f64; 5] = [1000.0, 1010.0, 990.0, 1005.0, 995.0];
const LONG: &str = "feature/a-name-without-any-space-that-is-longer-than-a-telephone-is-wide-20261126";
/// Minimum contrast for text (WCAG).
const CONTRAST_MIN: f64 = 4.5;
const CONTRAST_DRAWN_MIN: f64 = 3.0;

/// Checks the page in both themes: contrast of texts and marks, verdicts visible without horizontal scrolling, and
/// script errors.
const LOOK: &str = include_str!("look.html");

fn compared(a: &Side, b: &Side, together: Pairing) -> Report {
    compare(a, b, together, &options()).unwrap()
}

/// Returns the page's DOM after checking it for errors.
fn shown(name: &str, width: u32, reports: &[Report]) -> String {
    let page = page(reports, "2026-11-26T00:00:00Z", "thalweg compare a.json b.json") + PROBE + LOOK;
    let dom = shown_page(&format!("compare-{name}-{width}"), width, &page);
    let of_page = |name: &str| attribute(&dom, "<html", name);
    assert_eq!(of_page("data-error"), None);
    assert_eq!(of_page("data-width"), Some(width.to_string()));
    assert_eq!(of_page("data-sticks-out").as_deref(), Some("0"), "something is wider than {width} px");
    assert_eq!(of_page("data-loaded").as_deref(), Some("0"), "the page loaded something");
    assert_eq!(
        of_page("data-hidden-verdicts").as_deref(),
        Some("0"),
        "verdicts are out of sight at {width} px"
    );
    for theme in ["light", "dark"] {
        for (kind, min) in [("text", CONTRAST_MIN), ("drawn", CONTRAST_DRAWN_MIN)] {
            let least = of_page(&format!("data-{theme}-{kind}")).expect("it was looked at");
            let (ratio, of) = least.split_once(' ').unwrap();
            assert!(ratio.parse::<f64>().unwrap() >= min, "{theme}, {kind}: {ratio} of {of}");
        }
    }
    dom
}

/// Checks the page at both widths.
fn check(name: &str, reports: &[Report], says: &[&str]) {
    for width in [1280, 390] {
        let dom = shown(name, width, reports);
        for words in says {
            assert!(dom.contains(words), "the page of {width} px does not say: {words}");
        }
    }
}

#[test]
#[ignore = "needs Chromium"]
fn page_shows_alternating_rounds() {
    let measured = comparison(&[(1000.0, 800.0), (1010.0, 800.0), (990.0, 800.0), (1000.0, 810.0)]);
    let [a, b] = Side::both_of_comparison(&measured);
    let says = [
        "<title>a|b against main: worse, rate is 0.80 × (",
        "<h1>a|b against main: worse, rate is",
        "4 rounds, measured alternately in pairs",
        "ratios are a|b ÷ main.",
        "from 1\u{202f}000/s to",
        "worse, beyond the margin",
        "higher is better, <b>judged</b>",
        "<dt>main, the base</dt><dd>serve main at a:1</dd>",
        "Abacus 9, 4 processors, Linux 6.0; thalweg 9.9.9 (release)",
        "Ratios are computed within pairs",
    ];
    check("paired", &[compared(&a, &b, Pairing::Paired)], &says);
}

#[test]
#[ignore = "needs Chromium"]
fn page_warns_of_separate_runs() {
    let report =
        compared(&rates("old", &STEADY), &rates(LONG, &STEADY.map(|rate| rate * 4.0)), Pairing::Unpaired);
    let says = ["were not measured alternately", "5 files, old.json to old.json", "<h1>feature/", "Welch"];
    check("apart", &[report], &says);
}

#[test]
#[ignore = "needs Chromium"]
fn page_starts_with_verdict() {
    let report = compared(&rates("old", &STEADY), &rates("new", &STEADY), Pairing::Unpaired);
    let dom = shown("order", 390, &[report]);
    let positions = [
        "<h1>new against old: the same within the margin",
        "class=\"card",
        "doubts",
        "<table",
        "id=\"reading\"",
    ];
    let positions = positions
        .map(|part| dom[dom.find("<body").unwrap()..].find(part).unwrap_or_else(|| panic!("no {part}")));
    assert!(positions.is_sorted(), "{positions:?}");
}

#[test]
#[ignore = "needs Chromium"]
fn single_runs_and_figures_without_an_interval_are_shown() {
    let (a, b) = (run_of_intervals(&STEADY), run_of_intervals(&STEADY.map(|rate| rate * 1.01)));
    let report = compared(&side("old", vec![a]), &side("new", vec![b]), Pairing::Unpaired);
    check(
        "single",
        &[report],
        &["computed from time intervals within", "no interval", "class=\"point unsure\"", "can't tell"],
    );
}

#[test]
#[ignore = "needs Chromium"]
fn page_has_verdict_per_side() {
    let a = rates("main", &STEADY);
    let of = |name: &str, factor: f64| {
        compared(&a, &rates(name, &STEADY.map(|rate| rate * factor)), Pairing::Unpaired)
    };
    let says = [
        "<title>3 results compared with main, thalweg compare</title>",
        "<a class=\"answer\" href=\"#comparison-0\">fast against main: better, rate is",
        "<a class=\"answer\" href=\"#comparison-2\">slow against main: worse, rate is",
        "<section id=\"comparison-2\">",
    ];
    check("several", &[of("fast", 3.0), of("same", 1.0), of("slow", 0.3)], &says);
}

#[test]
#[ignore = "needs Chromium"]
fn page_shows_failed_calls() {
    let mut failing = run(1000.0);
    failing.failed = 500;
    let report = compared(&rates("old", &[1000.0]), &side("new", vec![failing]), Pairing::Unpaired);
    check("failed", &[report], &["Worse by more than the margin", "of the calls to new failed"]);
}

#[test]
#[ignore = "needs Chromium"]
fn page_of_forced_comparison_names_differences() {
    let mut other = run(1000.0);
    other.machine.as_mut().unwrap().cpu = "Abacus 10".to_owned();
    let options = Options { force: true, ..options() };
    let report =
        compare(&rates("old", &[1000.0]), &side("new", vec![other]), Pairing::Unpaired, &options).unwrap();
    check("forced", &[report], &["compared although they differ", "Abacus 9 and Abacus 10"]);
}

#[test]
#[ignore = "needs Chromium"]
fn page_unfolds_failing_loads() {
    let runs = |factor: f64| {
        let load = |(index, rate): (usize, &f64)| {
            let mut run = run(if index % 7 == 0 { rate * factor } else { *rate });
            run.method = format!("com.example.warehouse.v1.ReservationsOfAllWarehousesService/List{index}");
            run
        };
        STEADY.iter().flat_map(|rate| (0..40).map(move |index| load((index, rate)))).collect::<Vec<_>>()
    };
    let report = compared(&side("old", runs(1.0)), &side("new", runs(0.5)), Pairing::Unpaired);
    let says = [
        "All 40 loads, geometric mean",
        "All of them: unary, closed loop, 64 in flight, 1 connection.",
        "<a href=\"#load-0-7\">com.<wbr>example.<wbr>warehouse.<wbr>v1.<wbr>\
         ReservationsOfAllWarehousesService/<wbr>List7</a>",
        "<details id=\"load-0-7\" open=\"\">",
        "<details id=\"load-0-8\">",
        "17 more",
    ];
    check("many", &[report], &says);
}

#[test]
#[ignore = "needs Chromium"]
fn studies_of_the_lab_are_shown() {
    let of = |name: &str| Side::of_inputs(name, vec![(format!("{name}/results.json"), sample())]).unwrap();
    let says = ["Load by load", "old/results.json", "of each, measured separately"];
    check("studies", &[compared(&of("old"), &of("new"), Pairing::Unpaired)], &says);
}

#[test]
#[ignore = "needs Chromium"]
fn stacks_of_a_study_are_shown() {
    let Input::Study(results) = of_two_stacks() else { panic!("it is a study") };
    let [tonic, ours] = ["tonic", "thalweg"].map(|stack| Side::of_study(&results, stack).unwrap());
    let report = compared(&tonic, &ours, Pairing::Paired);
    check("stacks", &[report], &["thalweg against tonic: better", "the windows of tonic in a study"]);
}

#[test]
#[ignore = "needs Chromium"]
fn page_escapes_untrusted_text() {
    let hostile = "<img src=x onerror=\"document.documentElement.dataset.error='hostile'\">";
    let mut run = run(1000.0);
    run.method = hostile.to_owned();
    let sides = ["old", hostile].map(|name| side(name, vec![run.clone()]));
    let mut report = compared(&sides[0], &sides[1], Pairing::Unpaired);
    report.warnings.push(hostile.to_owned());
    check("hostile", &[report], &["&lt;img"]);
}
