//! Tests of studies with invalid windows: one value decides validity, and invalid windows give no figures.

use thalweg_measure::usage::{ProcessUsage, Usage};
use thalweg_measure::validity::Cause;

use super::sample::{self, alone, channels, codec, comparison, connections, json};
use crate::AnyResults;
use crate::load::LabResults;
use crate::load::{Outcome, PointResult, Transport};
use crate::report;

/// Returns usage in which other programs took three quarters of both sides' time.
fn crowded() -> Usage {
    let side = ProcessUsage {
        user_ns: 100_000_000,
        waited_ns: 300_000_000,
        others_ns: 300_000_000,
        processors: 1,
        ..ProcessUsage::default()
    };
    Usage { window_ns: 400_000_000, client: side, server: side, server_memory: None }
}

fn disturb(window: &mut PointResult) {
    (window.usage, window.not_valid) = (Some(crowded()), None);
}

/// Returns the study with all windows disturbed.
fn disturbed(mut results: LabResults) -> AnyResults {
    results.points.iter_mut().for_each(disturb);
    AnyResults::Calls(Box::new(results))
}

fn check_unanswered(name: &str, results: &AnyResults) {
    let analysis = results.analyse();
    let sentence = analysis.unanswered.as_ref().unwrap_or_else(|| panic!("{name} has an answer"));
    assert!(sentence.starts_with("No window of "), "{name}: {sentence}");
    assert!(
        sentence.contains("other programs used 75 % of the processors; close them or use"),
        "{name}: {sentence}"
    );
    let page = &analysis.page;
    let (_, heading) = page.split_once("<h1>").unwrap();
    let (heading, behind) = heading.split_once("</h1>").unwrap();
    let (behind, _) = behind.split_once("<section id=\"method\"").unwrap();
    assert_eq!(heading.replace('\u{a0}', " "), *sentence, "{name}");
    let text = report::terminal(&analysis);
    for text in [&text, &behind.to_owned()] {
        assert!(!text.contains("annot tell") && !text.contains("NaN"), "{name}: {text}");
    }
    let (_, hero) = behind.split_once("class=\"cards\"").unwrap();
    let (cards, _) = hero.split_once("</section>").unwrap();
    assert!(!cards.contains("class=\"card\""), "{name}: {cards}");
}

#[test]
fn study_without_valid_windows_is_one_sentence() {
    check_unanswered("sizes", &disturbed(alone::quick()));
    check_unanswered("comparison", &disturbed(comparison::quick()));
    check_unanswered("channels", &disturbed(channels::quick()));
    check_unanswered("connections", &disturbed(connections::quick()));
    let mut study = json::quick();
    for window in &mut study.windows {
        (window.usage, window.not_valid) = (Some(crowded()), None);
    }
    check_unanswered("json", &AnyResults::Json(Box::new(study)));
    let mut study = codec::quick();
    for step in &mut study.steps {
        let reason = crowded().client.kept_waiting("program", crowded().window_ns).unwrap();
        step.not_valid = step.elapsed_ns.drain(..).map(|_| reason.clone()).collect();
    }
    check_unanswered("codec", &AnyResults::Codec(Box::new(study)));
}

/// Keeps only lone calls of the largest messages over TCP, which are not the fastest.
#[test]
fn study_with_few_valid_windows_has_no_headline_figures() {
    let mut results = alone::quick();
    let largest = results.points.iter().map(|window| window.point.size_bytes.0).max().unwrap();
    let is_left = |window: &PointResult| {
        let point = &window.point;
        let is_lone = point.in_flight == 1 && format!("{:?}", point.work).contains("Unary");
        is_lone && point.size_bytes.0 == largest && point.transport == Transport::Tcp
    };
    results.points.iter_mut().filter(|window| !is_left(window)).for_each(disturb);
    let analysis = AnyResults::Calls(Box::new(results)).analyse();
    let sentence = analysis.unanswered.as_ref().expect("no answer");
    assert!(sentence.contains("windows are not valid"), "{sentence}");
    assert!(!analysis.page.contains("class=\"card\"") && !analysis.page.contains("A lone call"));
    assert!(!report::terminal(&analysis).contains("lone call takes"));
}

#[test]
fn headline_comes_from_valid_windows_only() {
    let results = alone::quick();
    let headline = |results: &LabResults| {
        let page = AnyResults::Calls(Box::new(results.clone())).analyse().page;
        page.split_once("<h1>").unwrap().1.split_once("</h1>").unwrap().0.to_owned()
    };
    let before = headline(&results);
    // All windows of one round are disturbed and have other figures.
    let mut some = results.clone();
    for window in some.points.iter_mut().filter(|window| window.round == 1) {
        disturb(window);
        if let Outcome::Measured(load) = &mut window.outcome {
            load.rate_per_s *= 1e6;
        }
    }
    let after = headline(&some);
    assert!(after.starts_with("Over TCP a lone call takes"), "{before} {after}");
    assert!(after.contains("GB/s"), "{before} {after}");
}

#[test]
fn csv_and_json_have_the_value_of_the_window() {
    let mut results = sample::sizes();
    disturb(&mut results.points[0]);
    let csv = AnyResults::Calls(Box::new(results.clone())).analyse().csv;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let header = reader.headers().unwrap().clone();
    let at = |name: &str| header.iter().position(|header| header == name).unwrap();
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    for (row, window) in rows.iter().zip(&results.points) {
        assert_eq!(row[at("valid")], window.validity().is_valid().to_string());
        assert_eq!(row[at("not_valid_because")], window.invalid_reason().unwrap_or_default());
    }
    assert_eq!(&rows[0][at("valid")], "false");
    assert_eq!(results.points[0].validity().reasons[0].cause, Cause::OtherPrograms);
}

/// Keeps the decision of an earlier version, even if it would differ today.
#[test]
fn saved_value_counts_and_a_missing_one_is_judged() {
    let mut window = sample::sizes().points.swap_remove(0);
    let is_valid = |json: serde_json::Value| -> bool {
        serde_json::from_value::<PointResult>(json).unwrap().validity().is_valid()
    };
    disturb(&mut window);
    let mut json = serde_json::to_value(&window).unwrap();
    assert!(json.get("not_valid").is_none() && !is_valid(json.clone()));
    json["not_valid"] = serde_json::json!([]);
    assert!(is_valid(json));
}

#[test]
fn client_limit_does_not_invalidate_window() {
    let mut results = sample::sizes();
    let window = &mut results.points[0];
    let Outcome::Measured(load) = &mut window.outcome else { panic!("it is measured") };
    let note = |text: &str| crate::record::Note { text: text.to_owned(), invalidates: true };
    load.notes =
        vec![note("the client's processors were busy for 97 % of the time: the client was the limit")];
    assert!(window.validity().is_valid());
    let Outcome::Measured(load) = &mut window.outcome else { panic!("it is measured") };
    load.notes = vec![note("the server was not reachable at the end: it was killed")];
    assert_eq!(
        window.invalid_reason().as_deref(),
        Some("the server was not reachable at the end: it was killed")
    );
}
