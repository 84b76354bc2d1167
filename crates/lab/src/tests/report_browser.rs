//! Browser tests of pages: plots draw at desktop and phone widths, and nothing is loaded.

use super::browser::{PROBE, attribute, shown_page};
use super::sample::{self, alone, channels, codec, comparison, connections, json, published};
use crate::AnyResults;
use crate::load::LabResults;
use crate::load::Outcome;
use crate::record::Note;

/// Plots with the number of lines shown: five of calls, and two of the bare socket's four. Client streams, server
/// streams and the one-way socket have a pace instead of a latency.
const PLOTS: [(&str, usize); 5] = [("latency", 4), ("pace", 3), ("gap", 3), ("rate", 7), ("throughput", 7)];
/// Additional plots of a comparison: four stacks and the bare socket, three ratios.
const COMPARING_PLOTS: [(&str, usize); 2] = [("against-rate", 5), ("against-ratio", 3)];
/// Size limit of a whole comparison's page with four stacks. The windows of our own pair and of the bare socket take
/// about 300,000 bytes, and the details of fields as much.
const PAGE_BYTES_MAX: usize = 1_700_000;
/// Size limit of the page of a whole study of ours alone. A third are the windows, an eighth the percentile curves,
/// and a tenth the rate over time.
const PAGE_ALONE_BYTES_MAX: usize = 960_000;

/// Walks through a comparison's table by keyboard, and records the final field and its details.
const WALK: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    document.querySelector('.peer td[tabindex=\"0\"]').focus();
    for (const key of ['ArrowRight', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) press(key);
    const root = document.documentElement;
    const field = document.activeElement;
    root.dataset.walked = [field.parentElement.rowIndex, field.cellIndex];
    root.dataset.told = document.querySelector('.tip.fixed').textContent;
    root.dataset.looked = document.querySelector('[data-choice=\"line\"]').selectedOptions[0].textContent;
}, 40))</script>";

/// Records how many names at line ends overlap within a plot, and how many leave their figure. Then hides a line and
/// records its plot's number of names before and after.
const ENDS: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const root = document.documentElement;
    const figures = [...document.querySelectorAll('figure')];
    const names = (figure) => [...figure.querySelectorAll('.ends span')].map((name) => name.getBoundingClientRect());
    const over = (a, b) => a.top < b.bottom - 2 && b.top < a.bottom - 2;
    let overlaps = 0, outside = 0, count = 0;
    for (const figure of figures) {
        const all = names(figure), box = figure.getBoundingClientRect();
        count += all.length;
        outside += all.filter((name) => name.right > box.right || name.width === 0).length;
        overlaps += all.flatMap((a, i) => all.slice(i + 1).filter((b) => over(a, b))).length;
    }
    Object.assign(root.dataset, { names: count, overlaps, outside });
    const rate = () => names(document.querySelector('[data-chart=\"rate\"]')).length;
    root.dataset.before = rate();
    const button = document.querySelector('#plots .legend button');
    button.focus();
    button.click();
    setTimeout(() => {
        root.dataset.after = rate();
        root.dataset.pressed = button.getAttribute('aria-pressed');
    }, 20);
}, 40))</script>";

/// Follows the first link of the table of choices, and records whether it leads to visible windows.
const FOLLOW: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const root = document.documentElement;
    const links = [...document.querySelectorAll('#choice td a, #figures th a, #spikes th a')];
    root.dataset.links = links.length;
    root.dataset.astray = links.filter((link) => !document.getElementById(link.hash.slice(1))).length;
    location.hash = links[0].hash;
    setTimeout(() => {
        const target = document.getElementById(links[0].hash.slice(1));
        root.dataset.windows = target.rows.length;
        root.dataset.open = target.closest('details').open;
    }, 30);
}, 40))</script>";

/// Points at the middle of the first chart, and records the text shown.
const POINT: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const over = document.querySelector('figure[data-chart] .u-over');
    const { left, top, width, height } = over.getBoundingClientRect();
    const at = { clientX: left + width / 2, clientY: top + height / 2, bubbles: true };
    for (const name of ['mouseenter', 'mousemove']) over.dispatchEvent(new MouseEvent(name, at));
    setTimeout(() => {
        document.documentElement.dataset.told = over.querySelector('.tip:not([hidden])')?.textContent;
    }, 20);
}, 40))</script>";

#[test]
#[ignore = "needs Chromium"]
fn every_line_of_every_plot_draws_on_a_wide_page() {
    check_drawn("wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn every_line_of_every_plot_draws_on_a_narrow_page() {
    check_drawn("narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_study_alone_draws_on_a_wide_page() {
    check_alone("alone-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_study_alone_draws_on_a_narrow_page() {
    check_alone("alone-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_study_alone_draws_on_a_page_of_middle_width() {
    check_alone("alone-middle", 820);
}

#[test]
fn a_whole_study_alone_is_a_page_of_reasonable_size() {
    let page = page(&alone::whole());
    assert!(page.len() < PAGE_ALONE_BYTES_MAX, "the page has {} bytes", page.len());
}

#[test]
#[ignore = "needs Chromium"]
fn every_figure_leads_to_its_windows() {
    let dom = shown_with("windows", 1280, &alone::quick(), &[PROBE, FOLLOW].concat());
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_ne!(of_page("data-links"), "0");
    assert_eq!(of_page("data-astray"), "0", "links that lead nowhere");
    // Four rounds.
    assert_eq!(of_page("data-windows"), "4");
    assert_eq!(of_page("data-open"), "true");
}

#[test]
#[ignore = "needs Chromium"]
fn a_page_without_results_shows_no_plot_and_says_so() {
    let mut empty = sample::sizes();
    empty.points.clear();
    let dom = shown("empty", 1280, &empty);
    assert!(dom.contains("Nothing was measured."));
    assert!(dom.contains("cut short"));
    assert_eq!(attribute(&dom, "<html", "data-plots"), None);
}

#[test]
#[ignore = "needs Chromium"]
fn text_of_the_results_is_not_run_as_a_script() {
    let mut hostile = sample::sizes();
    hostile.machine.cpu =
        "</script><script>document.documentElement.dataset.hostile='yes'</script>".to_owned();
    let dom = shown("hostile", 1280, &hostile);
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    assert_eq!(attribute(&dom, "<html", "data-plots").as_deref(), Some("drawn"));
}

#[test]
#[ignore = "needs Chromium"]
fn a_comparison_draws_on_a_wide_page() {
    check_comparison("comparison-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_comparison_draws_on_a_narrow_page() {
    check_comparison("comparison-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn comparison_without_peers_lists_left_out_stacks() {
    let mut lonely = comparison::quick();
    lonely.points.retain(|window| window.pair.as_ref().is_none_or(|pair| pair.to_string() == "thalweg"));
    lonely.stacks.truncate(1);
    lonely.left_out[0].reason = "<script>document.documentElement.dataset.hostile='yes'</script>".to_owned();
    let dom = shown("lonely", 1280, &lonely);
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    assert_eq!(attribute(&dom, "<html", "data-plots").as_deref(), Some("drawn"));
    assert!(dom.contains("connect-go"));
}

#[test]
#[ignore = "needs Chromium"]
fn a_channels_study_draws_on_a_wide_page() {
    check_channels("channels-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_channels_study_draws_on_a_narrow_page() {
    check_channels("channels-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_channels_study_without_results_shows_no_plot_and_says_so() {
    let mut empty = channels::quick();
    empty.points.clear();
    let dom = shown("channels-empty", 1280, &empty);
    assert!(dom.contains("Nothing was measured."));
    assert_eq!(attribute(&dom, "<html", "data-lines").as_deref(), Some("0"));
}

#[test]
#[ignore = "needs Chromium"]
fn a_connections_study_draws_on_a_wide_page() {
    check_connections("connections-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_connections_study_draws_on_a_narrow_page() {
    check_connections("connections-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn a_codec_study_draws_on_a_wide_page() {
    check_codec("codec-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_codec_study_draws_on_a_narrow_page() {
    check_codec("codec-narrow", 390);
}

fn check_codec(name: &str, width: u32) {
    let mut study = codec::quick();
    study.settings.arguments =
        vec!["</script><script>document.documentElement.dataset.hostile='yes'</script>".to_owned()];
    let dom = shown_page(name, width, &(AnyResults::Codec(Box::new(study)).analyse().page + PROBE));
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    assert_eq!(of_page("data-plots"), "drawn");
    // Four codecs of two messages; a peer has no steps.
    assert_eq!(lines(&dom, "steps "), 4 * 2);
    assert!(dom.contains("Where Protobuf wins"));
}

#[test]
#[ignore = "needs Chromium"]
fn a_json_study_draws_on_a_wide_page() {
    check_json("json-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn a_json_study_draws_on_a_narrow_page() {
    check_json("json-narrow", 390);
}

#[test]
#[ignore = "needs Chromium"]
fn published_measurements_draw_on_a_wide_page() {
    check_published("published-wide", 1280);
}

#[test]
#[ignore = "needs Chromium"]
fn published_measurements_draw_on_a_narrow_page() {
    check_published("published-narrow", 390);
}

/// Opens the figures of the first claim, sorts the first table, and checks the links to claims.
const CLAIMS: &str = "<script>addEventListener('load', () => setTimeout(() => {
    const root = document.documentElement;
    const claims = [...document.querySelectorAll('.claim')];
    root.dataset.claims = claims.length;
    claims[0].querySelector('summary').click();
    const links = [...document.querySelectorAll('#situations a')];
    root.dataset.links = links.length;
    root.dataset.astray = links.filter((link) => !document.getElementById(link.hash.slice(1))).length;
    document.querySelector('#qt .scroll th:last-child button').click();
    setTimeout(() => {
        root.dataset.figures = claims[0].querySelectorAll('details[open] td').length;
        root.dataset.sorted = document.querySelectorAll('th[aria-sort]').length;
    }, 20);
}, 30))</script>";

fn check_published(name: &str, width: u32) {
    let results = published::results();
    let dom = shown_page(name, width, &(results.report().page + CLAIMS + PROBE));
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-width"), width.to_string());
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(of_page("data-claims"), results.claims().count().to_string());
    assert_eq!(of_page("data-astray"), "0", "an advice leads nowhere");
    for (name, least) in [("data-links", 10), ("data-figures", 2), ("data-sorted", 1)] {
        let found: usize = of_page(name).parse().unwrap();
        assert!(found >= least, "{name} is {found}");
    }
}

fn check_json(name: &str, width: u32) {
    let mut study = json::quick();
    study.settings.arguments =
        vec!["</script><script>document.documentElement.dataset.hostile='yes'</script>".to_owned()];
    let dom = shown_page(name, width, &(AnyResults::Json(Box::new(study)).analyse().page + PROBE));
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    // Stages of 21 endpoints with three messages, rates with two of them.
    assert_eq!(dom.matches("<div class=\"row\"").count(), 21 * (3 + 2));
    // Median, p99 and the longest calls of each endpoint.
    assert_eq!(lines(&dom, "spikes "), 21 * 3);
    // Times of four endpoints with 1 and 5,000 strings; rates with 5,000 only.
    assert_eq!(lines(&dom, "sizes-"), 4);
    for words in [
        "Where the difference comes from",
        "What the server’s objects cost",
        "What the shared port costs gRPC",
        "Left out",
    ] {
        assert!(dom.to_lowercase().contains(&words.to_lowercase()), "the page does not say: {words}");
    }
}

fn check_channels(name: &str, width: u32) {
    let mut study = channels::quick();
    study.settings.arguments =
        vec!["</script><script>document.documentElement.dataset.hostile='yes'</script>".to_owned()];
    let dom = shown(name, width, &study);
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    // Rates and latencies of nine strategies over two delays; ideal scaling is known only without delay.
    assert_eq!([lines(&dom, "rate-"), lines(&dom, "latency-")], [2 * 9 + 1, 2 * 9]);
    assert!(lines(&dom, "lanes ") > 0);
    for words in [
        "loads, several connections help at",
        "Best: 6 connections with 16, 64 and 256 in flight.",
        "share one connection: the kernel counts 1",
        "The single connection limits the client.",
        "Calls wait for the network",
        "no byte was on the wire for 70",
        "<h3>5&nbsp;ms added round trip</h3>",
    ] {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

fn check_connections(name: &str, width: u32) {
    let dom = shown_with(name, width, &connections::quick(), &[PROBE, POINT].concat());
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    // Times, rates and latencies of three servers, with a tenth and with all connections active, 1 and 4 calls on
    // each.
    assert_eq!(["server-", "rate-", "latency-"].map(|name| lines(&dom, name)), [3 * 4; 3]);
    let tooltip = of_page("data-told");
    assert!(
        tooltip.starts_with("100 connections") && tooltip.contains("grpc-cpp") && tooltip.contains("µs"),
        "{tooltip}"
    );
    for words in ["Compared with the bare echo", "Jain’s index", "100&nbsp;% active, 1 on each"] {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

#[test]
fn a_whole_comparison_is_a_page_of_reasonable_size() {
    let page = page(&comparison::whole());
    assert!(page.len() < PAGE_BYTES_MAX, "the page has {} bytes", page.len());
}

fn check_comparison(name: &str, width: u32) {
    let dom = shown_with(name, width, &comparison::quick(), &[PROBE, WALK].concat());
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(of_page("data-plots"), "drawn");
    for (plot, lines) in COMPARING_PLOTS {
        let figure = format!("data-chart=\"{plot}\"");
        let count = |name| attribute(&dom, &figure, name).unwrap_or_else(|| panic!("{plot} has no {name}"));
        assert_eq!(count("data-lines-shown"), lines.to_string(), "{plot}");
        assert_eq!(count("data-lines-drawn"), lines.to_string(), "{plot}");
    }
    // Both transports of lone calls have a row of rates and one of medians, so the fifth row belongs to the third
    // line.
    assert_eq!(of_page("data-walked"), "5,2");
    assert_eq!(of_page("data-looked"), "unary, 16 in flight, TCP");
    let tooltip = of_page("data-told");
    assert!(
        tooltip.contains("unary, 16 in flight, TCP, 1 KiB") && tooltip.contains("8 pairs of windows"),
        "{tooltip}"
    );
    for words in
        ["thalweg is faster than tonic in", "Where others are faster", "left out: target/peers/connect-go"]
    {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

fn check_alone(name: &str, width: u32) {
    let mut study = alone::quick();
    let hostile = "</script><script>document.documentElement.dataset.hostile='yes'</script>";
    let Outcome::Measured(measured) = &mut study.points[0].outcome else { panic!("it is measured") };
    measured.notes.push(Note { text: hostile.to_owned(), invalidates: true });
    let dom = shown_with(name, width, &study, &[PROBE, ENDS].concat());
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(attribute(&dom, "<html", "data-hostile"), None);
    assert_eq!(of_page("data-plots"), "drawn");
    // Rates over time: nine kinds of calls, their median, and the windows whose client was the bottleneck.
    for (plot, lines) in [("percentiles", 4), ("time-rate", 11), ("time-waited", 2), ("time-taken", 1)] {
        let figure = format!("data-chart=\"{plot}\"");
        let count = |name| attribute(&dom, &figure, name).unwrap_or_else(|| panic!("{plot} has no {name}"));
        assert_eq!(count("data-lines-shown"), lines.to_string(), "{plot}");
        assert_eq!(count("data-lines-drawn"), lines.to_string(), "{plot}");
    }
    // Every line of every plot is named, and every percentile curve.
    let lines: usize = PLOTS.iter().map(|(_, lines)| lines).sum();
    assert_eq!(of_page("data-names"), (lines + 4).to_string());
    assert_eq!(of_page("data-overlaps"), "0", "names lie on one another");
    assert_eq!(of_page("data-outside"), "0", "names stick out of their figures");
    assert_eq!((of_page("data-before"), of_page("data-after")), ("7".to_owned(), "6".to_owned()));
    assert_eq!(of_page("data-pressed"), "false");
    for words in ["Best call type by message size", "differed by up to", "Ours against ours"] {
        assert!(dom.contains(words), "the page does not say: {words}");
    }
}

fn check_drawn(name: &str, width: u32) {
    let dom = shown(name, width, &sample::sizes());
    let of_page = |name| attribute(&dom, "<html", name).unwrap_or_else(|| panic!("the page has no {name}"));
    assert_eq!(of_page("data-width"), width.to_string());
    assert_eq!(of_page("data-sticks-out"), "0", "something is wider than {width} px");
    assert_eq!(of_page("data-loaded"), "0", "the page loaded something");
    assert_eq!(of_page("data-plots"), "drawn");
    for (plot, lines) in PLOTS {
        let figure = format!("data-chart=\"{plot}\"");
        let count = |name| attribute(&dom, &figure, name).unwrap_or_else(|| panic!("{plot} has no {name}"));
        assert_eq!(count("data-lines-shown"), lines.to_string(), "{plot}");
        assert_eq!(count("data-lines-drawn"), lines.to_string(), "{plot}");
    }
}

/// Returns the number of lines shown in charts whose ids start with `name`. Each chart must draw at least a third of
/// its own, since lines may hide each other.
fn lines(dom: &str, name: &str) -> usize {
    let mark = format!("<figure data-chart=\"{name}");
    let tags = dom.match_indices(&mark).map(|(at, _)| &dom[at..]);
    let counts = tags.map(|tag| {
        let count = |name| attribute(tag, "<figure", name).unwrap_or_default().parse().unwrap_or(0);
        let (shown, drawn): (usize, usize) = (count("data-lines-shown"), count("data-lines-drawn"));
        assert!(3 * drawn >= shown, "{}: {drawn} of {shown} lines are drawn", &tag[..80]);
        shown
    });
    counts.sum()
}

fn page(results: &LabResults) -> String {
    AnyResults::Calls(Box::new(results.clone())).analyse().page
}

/// Returns the page's elements after its scripts have run.
fn shown(name: &str, width: u32, results: &LabResults) -> String {
    shown_with(name, width, results, PROBE)
}

/// Does the same with additional scripts at the end of the page.
fn shown_with(name: &str, width: u32, results: &LabResults, scripts: &str) -> String {
    shown_page(name, width, &(page(results) + scripts))
}
