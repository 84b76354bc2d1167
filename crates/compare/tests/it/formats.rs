//! Output formats of a report.

use serde_json::Value;
use thalweg_compare::{Comparison, Pairing, Report, Side, compare, csv, json, markdown, page, text};

use crate::support::{comparison, options};

const HEADLINE: &str = "worse, rate is 0.80 × (0.78–0.82), p50 is 1.25 × (1.22–1.28), p99 is 1.25 × (1.22–1.28); worse \
                        but not judged: mean latency 1.25 ×, p90 1.25 ×, p95 1.25 ×, server CPU per call 2.0 ×";

fn report() -> Report {
    let rounds = [(1000.0, 800.0), (1010.0, 800.0), (990.0, 800.0), (1000.0, 810.0), (1000.0, 790.0)];
    let mut measured = comparison(&rounds);
    "debug".clone_into(&mut measured.versions.build);
    let [a, b] = Side::both_of_comparison(&measured);
    compare(&a, &b, Pairing::Paired, &options()).unwrap()
}

#[test]
fn markdown_output_is_a_table() {
    assert_eq!(markdown(&report()), include_str!("golden/report.md"));
}

#[test]
fn text_output_is_aligned_table() {
    assert_eq!(text(&report()), include_str!("golden/report.txt"));
}

#[test]
fn json_output_has_verdicts_and_figures() {
    let document: Value = serde_json::from_str(&json(&[report()])).unwrap();
    assert_eq!(document["schema"], "thalweg.comparison-report/1");
    let report = &document["comparisons"][0];
    assert_eq!((&report["a"], &report["verdict"]), (&"main".into(), &Value::from(HEADLINE)));
    assert_eq!((&report["paired"], &report["margin"]), (&true.into(), &0.05.into()));
    assert_eq!(
        (&report["inconclusive"], &report["intervals"]),
        (&false.into(), &serde_json::json!({"judged": 4, "others": 5}))
    );
    let difference = &report["cells"][0]["failed_share_difference"];
    assert_eq!((&difference["verdict"], &difference["fails"]), (&"same".into(), &false.into()));
    let rate = &report["cells"][0]["figures"][0];
    assert_eq!((&rate["figure"], &rate["verdict"]), (&"rate".into(), &"worse".into()));
    assert_eq!((&rate["gated"], &rate["fails"]), (&true.into(), &true.into()));
    let (low, ratio, high) = (&rate["low"], &rate["ratio"], &rate["high"]);
    assert!(low.as_f64() < ratio.as_f64() && ratio.as_f64() < high.as_f64(), "{rate}");
    assert_eq!(report["cells"][0]["conditions"]["in flight"], "64");
    assert!(report["failures"][0].as_str().unwrap().starts_with("rate is 0.80 ×"), "{report}");
}

#[test]
fn csv_has_one_line_per_figure() {
    let mut report = report();
    "a, \"b\"".clone_into(&mut report.b);
    let csv = csv(&[report]);
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 9);
    let fields = lines[0].split(',').count();
    assert_eq!((fields, lines[0].split(',').nth(3)), (14, Some("figure")));
    let load = "\"shop.Orders/Get, unary, closed loop, 64 in flight, 1 connection\"";
    assert!(lines[1].starts_with(&format!("main,\"a, \"\"b\"\"\",{load},rate,")), "{}", lines[1]);
    assert!(lines[1].ends_with(",worse,true,true"), "{}", lines[1]);
}

#[test]
fn page_is_self_contained_and_escapes_text() {
    let mut report = report();
    report.b = "<script>alert(1)</script>".to_owned();
    let page = page(&[report], "2026-11-26T00:00:00Z", "thalweg compare a.json b.json -O html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Comparison · 2026-11-26"));
    assert!(!page.contains("<script>alert"), "markup came from a name");
    // Bars and verdicts are present, and nothing is loaded from elsewhere.
    assert!(page.contains("<tr class=\"worse fails\">") && page.matches("class=\"point\"").count() == 8);
    assert!(!page.contains("src=\"http") && !page.contains("@import"));
    assert!(page.contains("<code>thalweg compare a.json b.json -O html</code>"));
    for file in ["comparison.csv", "comparison.json"] {
        assert!(page.contains(&format!("<a download=\"{file}\" href=\"data:")), "no {file}");
    }
}

#[test]
fn comparison_survives_round_trip() {
    let measured = comparison(&[(1000.0, 900.0), (1000.0, 910.0)]);
    let written = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<Comparison>(&written).unwrap(), measured);
}
