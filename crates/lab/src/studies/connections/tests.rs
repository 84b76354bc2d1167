//! Tests of the texts of a connections study.

use super::analyse::{ConnectionsCells, Load, evenness, memory};
use super::analysis::ConnectionsAnalysis;
use super::{report, terminal};
use crate::AnyResults;
use crate::load::LabResults;
use crate::load::Outcome;
use crate::load::verdict::Verdict;
use crate::stack::Stack;
use crate::tests::sample::connections::quick;

fn cpp() -> Stack {
    "grpc-cpp".parse().unwrap()
}

const ALL: Load = Load { connections: 10_000, active: 10_000, in_flight: 1 };

fn check_near(value: f64, expected: f64) {
    assert!((value / expected - 1.0).abs() < 0.05, "{value} is not {expected}");
}

#[test]
fn servers_are_compared_with_echo_and_ours_at_each_load() {
    let results = quick();
    let cells = ConnectionsCells::of(&results);
    // 1 connection; 10 with 1 and 10 active; the others with a tenth and all active; each with 1 and 4 calls.
    assert_eq!(cells.loads.len(), 2 * (1 + 2 + 2 + 2 + 2));
    let cell = cells.at(ALL).unwrap();
    let names: Vec<String> = cell.servers.iter().map(|server| server.stack.to_string()).collect();
    assert_eq!(names, ["socket", "thalweg", "grpc-cpp"]);
    let ours = cell.ours().unwrap();
    check_near(ours.ns().unwrap(), 4_000.0 * 1.8);
    let used = ours.cell.server().unwrap();
    check_near(used.user_ns / used.system_ns, 2.0 / 3.0);
    let over = ours.over_floor.unwrap();
    check_near(over.ratio, 1.6);
    assert!(over.interval.unwrap().contains(over.ratio) && over.pairs == 4);
    assert_eq!(ours.ours_over, None);
    let theirs = cell.server(&cpp()).unwrap().ours_over.unwrap();
    assert_eq!(theirs.verdict, Verdict::Faster);
    check_near(theirs.ratio.unwrap().ratio, 4.0 / 14.0);
    let [clients, others] = [ALL, Load { in_flight: 4, ..ALL }].map(|load| &cells.at(load).unwrap().clients);
    assert_eq!((clients.len(), others.len()), (2, 0));
    assert_eq!(cells.all_active().len(), 5);
}

#[test]
fn memory_and_evenness_are_per_connection() {
    let results = quick();
    let cells = ConnectionsCells::of(&results);
    let of = |load| cells.at(load).unwrap().ours().unwrap().cell.clone();
    let memory_use = memory(&of(ALL)).unwrap();
    check_near(memory_use.idle, 5_700.0);
    check_near(memory_use.loaded, 9_100.0);
    // With few active connections, each makes many calls.
    let even = evenness(&of(Load { connections: 100, active: 10, in_flight: 1 })).unwrap();
    check_near(even.jain, 0.997);
    check_near(even.most - even.least, 0.2);
    // With few connections memory is not reported, and a single one is always served evenly.
    let one = of(Load { connections: 1, active: 1, in_flight: 1 });
    assert_eq!(memory(&one), None);
    let ten = Load { connections: 10, active: 10, in_flight: 1 };
    assert_eq!(memory(&of(ten)), None);
}

#[test]
fn new_connections_are_separated_by_tls() {
    let results = quick();
    let cells = ConnectionsCells::of(&results);
    let arrivals: Vec<(String, bool)> =
        cells.arrivals.iter().map(|it| (it.stack.to_string(), it.cell.point.tls)).collect();
    let expected = [("thalweg", false), ("grpc-cpp", false), ("thalweg", true), ("grpc-cpp", true)];
    assert_eq!(arrivals, expected.map(|(name, tls)| (name.to_owned(), tls)));
    check_near(cells.arrivals[0].cell.server().unwrap().ns(), 72_000.0);
    assert!(cells.arrivals[2].ours_over.is_none() && cells.arrivals[3].ours_over.is_some());
}

#[test]
fn every_topic_has_its_sentences_and_every_report_its_figures() {
    let results = quick();
    let analysis = ConnectionsAnalysis::of(&results);
    let topics: Vec<&str> = analysis.findings.iter().map(|finding| finding.topic).collect();
    let expected = [
        "As connections grow",
        "Compared with the bare echo",
        "Compared with other servers",
        "Idle connections",
        "Memory",
        "Fairness",
        "New connections",
    ];
    assert_eq!(topics, expected);
    let text = terminal::text(&analysis);
    for words in ["Over 10 000 connections thalweg’s server takes", "Ours ÷ it", "5.7 KB", "TLS", "Jain"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = report(&analysis).page;
    for words in
        ["As connections grow", "data-chart=\"server-0\"", "100\u{a0}% active, 1 on each", "Jain’s index"]
    {
        assert!(page.contains(words), "{words}");
    }
    let results = AnyResults::Calls(Box::new(results.clone()));
    let csv = results.analyse().csv;
    assert!(csv.lines().next().unwrap().contains("server_time_over_echo_low"), "{csv}");
    let condensed: serde_json::Value = serde_json::from_str(&results.analyse().condensed.unwrap()).unwrap();
    assert!(condensed["points"][0]["server"] == "socket" && condensed["arrivals"].as_array().is_some());
}

#[test]
fn empty_study_has_no_findings() {
    let mut results = quick();
    for window in &mut results.points {
        window.outcome = Outcome::Failed("no".to_owned());
        window.usage = None;
    }
    let check = |results: &LabResults, expected: &str| {
        let analysis = ConnectionsAnalysis::of(results);
        assert!(analysis.answer.is_none() && analysis.findings.is_empty());
        assert!(report(&analysis).page.contains(&format!("<h1>{expected}")), "{expected}");
        assert_eq!(terminal::text(&analysis), "");
    };
    check(&results, "No window of");
    results.points.clear();
    check(&results, "Nothing was measured.");
}

#[test]
fn reduced_connection_count_is_a_doubt() {
    let mut results = quick();
    results.settings.cut = Some("The grid ends at 100 connections.".to_owned());
    let doubts = report(&ConnectionsAnalysis::of(&results)).doubts;
    assert!(
        doubts.iter().any(|doubt| doubt.to_string() == "The grid ends at 100 connections."),
        "{doubts:?}"
    );
}

#[test]
fn external_server_is_reported_by_rate() {
    let mut results = quick();
    results.points.retain(|window| window.pair.as_ref().is_some_and(|pair| pair.server.is_ours()));
    for window in &mut results.points {
        window.usage = None;
        window.pair.as_mut().unwrap().server = Stack::target();
    }
    let analysis = ConnectionsAnalysis::of(&results);
    let answer = analysis.answer.unwrap();
    assert!(answer.starts_with("Over 10 000 connections, target handles"), "{answer}");
}
