//! Tests of the page in a browser, at desktop and phone widths, with runs of all kinds.

#[path = "../../../lab/src/tests/browser.rs"]
mod browser;
mod sample;

use self::browser::{PROBE, attribute, shown_page};
use self::sample::{closed, hostile, nothing, open, scenario, searched, stalled};
use super::page;
use crate::run::{Interval, LoadRun};

/// Maximum page size of a run with the maximum number of intervals.
const PAGE_BYTES_MAX: usize = 1_500_000;

/// Inserted before all scripts of the page; records their errors.
const WATCH: &str = "<script>addEventListener('error', ({ message }) => {
    document.documentElement.dataset.error = message;
})</script>";

/// Appended after them; hides a line, and checks the targets of the download links.
const USE: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const root = document.documentElement;
    const shown = () => document.querySelectorAll('[data-plot=\"percentiles\"] .ends span').length;
    root.dataset.before = shown();
    document.querySelector('#spread .legend button')?.click();
    document.querySelector('[data-choice=\"shares\"] [data-value=\"log\"]')?.click();
    setTimeout(() => { root.dataset.after = shown(); }, 20);
    for (const link of document.querySelectorAll('[data-saves]')) {
        root.dataset[link.dataset.saves] = link.href.split(':')[0];
    }
}, 40))</script>";

/// Returns the page's DOM after checking for errors.
fn shown(name: &str, width: u32, run: &LoadRun) -> String {
    let page = page(run).replacen("<head>", &["<head>", WATCH].concat(), 1) + PROBE + USE;
    let dom = shown_page(&format!("load-{name}"), width, &page);
    let of_page = |name| attribute(&dom, "<html", name);
    assert_eq!(of_page("data-error"), None);
    assert_eq!(of_page("data-width"), Some(width.to_string()));
    assert_eq!(of_page("data-sticks-out").as_deref(), Some("0"), "something is wider than {width} px");
    assert_eq!(of_page("data-loaded").as_deref(), Some("0"), "the page loaded something");
    assert_eq!(of_page("data-plots").as_deref(), Some("drawn"));
    assert_eq!(of_page("data-csv").as_deref(), Some("blob"));
    dom
}

/// Checks that each plot has this many lines, all with visible pixels.
fn check_drawn(dom: &str, plots: &[(&str, usize)]) {
    for (plot, lines) in plots {
        let plot_tag = format!("data-plot=\"{plot}\"");
        let count = |name| attribute(dom, &plot_tag, name).unwrap_or_else(|| panic!("{plot} has no {name}"));
        assert_eq!(count("data-lines-shown"), lines.to_string(), "{plot}");
        assert_eq!(count("data-lines-drawn"), lines.to_string(), "{plot}");
    }
}

fn check_says(dom: &str, all: &[&str]) {
    for words in all {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

fn check_open(name: &str, width: u32) {
    let dom = shown(name, width, &stalled());
    // Scheduled, OK, late and failed; four percentiles; latency, service and wait.
    check_drawn(&dom, &[("rate", 4), ("in-flight", 1), ("latency", 4), ("percentiles", 3), ("histogram", 3)]);
    let fields = attribute(&dom, "data-chart=\"heat\"", "data-fields").unwrap();
    assert!(fields.parse::<usize>().unwrap() > 30, "the heat map has {fields} fields");
    assert_eq!(attribute(&dom, "<html", "data-before").as_deref(), Some("3"));
    assert_eq!(attribute(&dom, "<html", "data-after").as_deref(), Some("2"));
    assert_eq!(attribute(&dom, "<html", "data-json").as_deref(), Some("blob"));
    check_says(
        &dom,
        &[
            "of 1\u{202f}000&nbsp;scheduled calls/s",
            "<code>shop.Orders/Get</code>",
            "<code>a:1</code>, <code>b:1</code>",
            ", schedule <code>1000</code>",
            "Not valid: these figures do not describe the server",
            "the client had no processor left",
            "the server was slow",
            "p99&lt;5ms",
            "✗ failed",
            "✓ passed",
            "DEADLINE_EXCEEDED",
            "Latency counts from the scheduled start",
            "from the scheduled to the actual start",
            "did not start",
            "Slow 1, 2 processors",
        ],
    );
    assert!(dom.find("Not valid: ").unwrap() < dom.find("<h1>").unwrap(), "the warning is not the first");
}

#[test]
#[ignore = "needs Chromium"]
fn an_open_loop_is_shown_on_a_wide_page() {
    check_open("open-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn an_open_loop_is_shown_on_a_narrow_page() {
    check_open("open-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_closed_loop_has_no_schedule() {
    let dom = shown("closed", 820, &closed());
    check_drawn(&dom, &[("rate", 1), ("in-flight", 1), ("latency", 4), ("percentiles", 1), ("histogram", 1)]);
    check_says(&dom, &["calls/s with 64 in flight", "by 64 workers"]);
    for words in ["scheduled", "Conditions", "Notes", "Not valid: "] {
        assert!(!dom[..dom.find("<script").unwrap()].contains(words), "the page says: {words}");
    }
}

#[test]
#[ignore = "needs Chromium"]
fn a_scenario_has_its_steps() {
    let dom = shown("scenario", 390, &scenario());
    check_says(&dom, &["a scenario", "sign up", "<small>shop.Carts/Add</small>", "7 ABORTED", "all steps"]);
}

#[test]
fn a_part_of_a_load_that_goes_on_says_both() {
    let part = LoadRun { so_far: true, share: Some("1/4".parse().unwrap()), ..open() };
    let (part, whole) = (page(&part), page(&open()));
    for words in ["part 1/4 of a distributed load", "The run is not complete"] {
        assert!(part.contains(words) && !whole.contains(words), "only the page of a part says: {words}");
    }
}

#[test]
fn a_run_says_what_its_user_calls_it() {
    let tags = [("build".to_owned(), "7".to_owned())].into();
    let named = page(&LoadRun { name: Some("nightly".to_owned()), tags, ..open() });
    check_says(
        &named,
        &["<title>nightly", "<strong>nightly</strong>", "<code>build=7</code>", "<dt>Tags</dt>"],
    );
}

#[test]
#[ignore = "needs Chromium"]
fn a_search_has_its_tries() {
    let dom = shown("search", 390, &searched());
    check_says(
        &dom,
        &["The highest rate that meets <code>p99&lt;5ms</code>", "500&nbsp;calls/s", "width:50.0%"],
    );
}

#[test]
#[ignore = "needs Chromium"]
fn what_comes_from_outside_is_text() {
    let dom = shown("hostile", 1280, &hostile());
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
}

#[test]
#[ignore = "needs Chromium"]
fn a_run_of_which_nothing_came_says_so() {
    let dom = shown("nothing", 390, &nothing());
    check_says(&dom, &["No call finished", "–"]);
    assert!(!dom.contains("<figure"), "there is nothing to draw");
}

#[test]
#[ignore = "needs Chromium"]
fn a_single_interval_is_drawn() {
    let mut run = stalled();
    run.intervals.truncate(1);
    let dom = shown("single", 390, &run);
    check_drawn(&dom, &[("latency", 4), ("in-flight", 1)]);
}

#[test]
#[ignore = "needs Chromium"]
fn a_run_that_failed_throughout_has_its_errors() {
    let mut run = stalled();
    (run.failed, run.ok, run.rate_per_s) = (run.calls(), 0, 0.0);
    run.failed_latency = run.latency.take();
    (run.service, run.client_cpu_per_call) = (None, None);
    for interval in &mut run.intervals {
        (interval.failed, interval.ok) = (interval.ok + interval.failed, 0);
        (interval.latency_ns, interval.histogram) = (None, None);
    }
    let dom = shown("failed", 1280, &run);
    check_says(&dom, &["No call succeeded", "failed calls", "100&nbsp;%"]);
    for plot in ["latency", "heat"] {
        assert!(!dom.contains(&format!("<figure data-chart=\"{plot}\"")), "there is no latency to draw");
    }
    check_drawn(&dom, &[("percentiles", 2)]);
}

#[test]
#[ignore = "needs Chromium"]
fn a_run_of_hours_is_a_page_of_reasonable_size() {
    let mut run = stalled();
    let parts = run.intervals.clone();
    run.intervals = (0..3600_u64)
        .zip(parts.iter().cycle())
        .map(|(second, part)| Interval { at_ns: second * 1_000_000_000, ..part.clone() })
        .collect();
    run.duration_ns = 3_600_000_000_000;
    let size = page(&run).len();
    assert!(size < PAGE_BYTES_MAX, "the page has {size} bytes");
    let dom = shown("hours", 1280, &run);
    check_drawn(&dom, &[("latency", 4)]);
    assert_eq!(attribute(&dom, "<html", "data-json"), None, "the run itself is too long");
}

#[test]
#[ignore = "needs Chromium"]
fn runs_that_were_joined_are_shown() {
    let mut later = open();
    later.started = "2026-11-26T10:00:05.000Z".to_owned();
    let joined = LoadRun::merged(&[open(), later]).unwrap();
    let dom = shown("joined", 1280, &joined);
    check_drawn(&dom, &[("rate", 2), ("latency", 4)]);
    check_says(&dom, &["took 15 s"]);
}
