//! Tests of the page in a browser, at desktop and phone widths, with runs of all kinds.

#[path = "../../../lab/src/tests/browser.rs"]
mod browser;
mod sample;

use thalweg_measure::figures::time;

use self::browser::{PROBE, attribute, shown_page};
use self::sample::{balanced, closed, hostile, nothing, open, scenario, searched, stalled};
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
fn rendered(name: &str, width: u32, run: &LoadRun) -> String {
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

fn check_contains(dom: &str, all: &[&str]) {
    for words in all {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

fn check_open(name: &str, width: u32) {
    let dom = rendered(name, width, &stalled());
    // Scheduled, OK, late and failed; four percentiles; latency, service and wait.
    check_drawn(&dom, &[("rate", 4), ("in-flight", 1), ("latency", 4), ("percentiles", 3), ("histogram", 3)]);
    let fields = attribute(&dom, "data-chart=\"heat\"", "data-fields").unwrap();
    assert!(fields.parse::<usize>().unwrap() > 30, "the heat map has {fields} fields");
    assert_eq!(attribute(&dom, "<html", "data-before").as_deref(), Some("3"));
    assert_eq!(attribute(&dom, "<html", "data-after").as_deref(), Some("2"));
    assert_eq!(attribute(&dom, "<html", "data-json").as_deref(), Some("blob"));
    check_contains(
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
fn open_loop_page_renders_at_wide_width() {
    check_open("open-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn open_loop_page_renders_at_narrow_width() {
    check_open("open-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_closed_loop_has_no_schedule() {
    let dom = rendered("closed", 820, &closed());
    check_drawn(&dom, &[("rate", 1), ("in-flight", 1), ("latency", 4), ("percentiles", 1), ("histogram", 1)]);
    check_contains(&dom, &["calls/s with 64 in flight", "by 64 workers"]);
    for words in ["scheduled", "Conditions", "Notes", "Not valid: "] {
        assert!(!dom[..dom.find("<script").unwrap()].contains(words), "the page says: {words}");
    }
}

#[test]
#[ignore = "needs Chromium"]
fn scenario_page_lists_steps() {
    let dom = rendered("scenario", 390, &scenario());
    check_contains(
        &dom,
        &["a scenario", "sign up", "<small>shop.Carts/Add</small>", "7 ABORTED", "all steps"],
    );
}

#[test]
fn page_lists_several_servers() {
    let row = |cells: [&str; 10]| {
        let [server, cells @ ..] = cells;
        format!("<tr><th scope=\"row\">{server}</th><td>{}</td></tr>", cells.join("</td><td>"))
    };
    let run = balanced();
    let several = page(&run);
    let times = run.servers[0].times().expect("latencies").map(|ns| time(ns as f64));
    assert_eq!(times[2], "399 ms");
    let [p50, p99, max] = times.each_ref().map(String::as_str);
    let dead = "10.0.0.2:80, not connected: connection &lt;refused&gt;";
    for cells in [
        ["10.0.0.1:80", "7\u{202f}500", "75 %", "750", "0", "0", "0", p50, p99, max],
        [dead, "2\u{202f}500", "25 %", "250", "12", "9", "4", "–", "–", "–"],
    ] {
        assert!(several.contains(&row(cells)), "{cells:?}");
    }
    let mut one = balanced();
    one.servers.truncate(1);
    assert!(page(&one).contains("Calls by server"), "one of several was called");
    one.servers[0].latency = None;
    assert!(!page(&one).contains("Calls by server"));
}

#[test]
fn page_of_unfinished_share_shows_share_and_progress() {
    let part = LoadRun { so_far: true, share: Some("1/4".parse().unwrap()), ..open() };
    let (part, whole) = (page(&part), page(&open()));
    for words in ["part 1/4 of a distributed load", "The run is not complete"] {
        assert!(part.contains(words) && !whole.contains(words), "only the page of a part says: {words}");
    }
}

#[test]
fn page_shows_name_and_tags_of_run() {
    let tags = [("build".to_owned(), "7".to_owned())].into();
    let named = page(&LoadRun { name: Some("nightly".to_owned()), tags, ..open() });
    check_contains(
        &named,
        &["<title>nightly", "<strong>nightly</strong>", "<code>build=7</code>", "<dt>Tags</dt>"],
    );
}

#[test]
#[ignore = "needs Chromium"]
fn search_page_lists_tries() {
    let dom = rendered("search", 390, &searched());
    check_contains(
        &dom,
        &["The highest rate that meets <code>p99&lt;5ms</code>", "500&nbsp;calls/s", "width:50.0%"],
    );
}

#[test]
#[ignore = "needs Chromium"]
fn page_escapes_untrusted_text() {
    let dom = rendered("hostile", 1280, &hostile());
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
}

#[test]
#[ignore = "needs Chromium"]
fn page_of_run_without_calls_says_so() {
    let dom = rendered("nothing", 390, &nothing());
    check_contains(&dom, &["No call finished", "–"]);
    assert!(!dom.contains("<figure"), "there is nothing to draw");
}

#[test]
#[ignore = "needs Chromium"]
fn page_draws_single_interval() {
    let mut run = stalled();
    run.intervals.truncate(1);
    let dom = rendered("single", 390, &run);
    check_drawn(&dom, &[("latency", 4), ("in-flight", 1)]);
}

#[test]
#[ignore = "needs Chromium"]
fn page_of_failed_run_lists_errors() {
    let mut run = stalled();
    (run.failed, run.ok, run.rate_per_s) = (run.calls(), 0, 0.0);
    run.failed_latency = run.latency.take();
    (run.service, run.client_cpu_per_call) = (None, None);
    for interval in &mut run.intervals {
        (interval.failed, interval.ok) = (interval.ok + interval.failed, 0);
        (interval.latency_ns, interval.histogram) = (None, None);
    }
    let dom = rendered("failed", 1280, &run);
    check_contains(&dom, &["No call succeeded", "failed calls", "100&nbsp;%"]);
    for plot in ["latency", "heat"] {
        assert!(!dom.contains(&format!("<figure data-chart=\"{plot}\"")), "there is no latency to draw");
    }
    check_drawn(&dom, &[("percentiles", 2)]);
}

#[test]
#[ignore = "needs Chromium"]
fn page_size_is_bounded_for_long_runs() {
    let mut run = stalled();
    let parts = run.intervals.clone();
    run.intervals = (0..3600_u64)
        .zip(parts.iter().cycle())
        .map(|(second, part)| Interval { at_ns: second * 1_000_000_000, ..part.clone() })
        .collect();
    run.duration_ns = 3_600_000_000_000;
    let size = page(&run).len();
    assert!(size < PAGE_BYTES_MAX, "the page has {size} bytes");
    let dom = rendered("hours", 1280, &run);
    check_drawn(&dom, &[("latency", 4)]);
    assert_eq!(attribute(&dom, "<html", "data-json"), None, "the run itself is too long");
}

#[test]
#[ignore = "needs Chromium"]
fn page_renders_merged_runs() {
    let mut later = open();
    later.started = "2026-11-26T10:00:05.000Z".to_owned();
    let joined = LoadRun::merged(&[open(), later]).unwrap();
    let dom = rendered("joined", 1280, &joined);
    check_drawn(&dom, &[("rate", 2), ("latency", 4)]);
    check_contains(&dom, &["took 15 s"]);
}
