//! Tests of the judgements, with made-up figures.

use std::collections::BTreeSet;

use super::judgement::ClaimVerdict;
use super::original::{Extent, original, runs, situations};
use super::publication::Publication;
use super::results::{PublishedResults, RunResult};
use super::{Evidence, judge};
use crate::AnyResults;
use crate::tests::sample::published::results;
use crate::tests::scratch;

#[test]
fn each_claim_has_a_verdict_and_each_verdict_a_figure() {
    let results = results();
    assert_eq!(results.answered.len(), Publication::ALL.len());
    for answered in &results.answered {
        assert_eq!(answered.claims.len(), original(answered.publication).claims.len());
        for claim in &answered.claims {
            assert_ne!(claim.verdict, ClaimVerdict::CannotBeTried, "{}: {}", claim.id, claim.cause);
            assert!(!claim.figures.is_empty(), "{} has no figure", claim.id);
            assert!(claim.figures.iter().all(|figure| figure.value.is_finite()), "{claim:?}");
            assert!(claim.ours.len() > 3 && claim.cause.len() > 10, "{claim:?}");
        }
        assert!(!answered.tables.is_empty(), "{}", answered.publication);
    }
}

#[test]
fn untestable_claim_has_a_reason() {
    let answered = judge(&Publication::ALL, &Evidence::default());
    for claim in answered.iter().flat_map(|answered| &answered.claims) {
        assert_eq!(claim.verdict, ClaimVerdict::CannotBeTried);
        assert!(claim.cause.contains("missing run") && claim.figures.is_empty(), "{claim:?}");
    }
}

#[test]
fn claims_and_runs_have_unique_names() {
    let claims: Vec<&str> =
        Publication::ALL.iter().flat_map(|&it| &original(it).claims).map(|claim| claim.id.as_str()).collect();
    assert_eq!(claims.iter().collect::<BTreeSet<_>>().len(), claims.len(), "{claims:?}");
    for extent in [Extent::Quick, Extent::Whole] {
        let runs: Vec<&str> =
            Publication::ALL.iter().flat_map(|&it| runs(it, extent)).map(|run| run.name).collect();
        assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len(), "{runs:?}");
    }
    for it in situations() {
        assert!(claims.contains(&it.claim.as_str()), "the advice “{}” rests on no claim", it.reader);
    }
}

#[test]
fn the_page_has_every_claim_and_every_study() {
    let mut results = results();
    results.ran(RunResult {
        name: "qt-at-cpp".to_owned(),
        publication: Publication::Qt,
        about: "both clients".to_owned(),
        arguments: vec!["lab".to_owned(), "sizes".to_owned()],
        took_ns: 1_000_000_000,
        has_page: true,
        failed: Some("it <failed>".to_owned()),
    });
    let report = results.report();
    let (page, text, csv) = (&report.page, &report.text, &report.csv);
    for claim in results.claims() {
        assert!(page.contains(&format!("id=\"claim-{}\"", claim.id)), "{}", claim.id);
        assert!(csv.contains(&claim.id), "{}", claim.id);
    }
    assert!(page.contains("href=\"qt-at-cpp/report.html\"") && page.contains("it &lt;failed&gt;"));
    assert_eq!(csv.lines().count(), results.claims().count() + 1);
    for publication in Publication::ALL {
        assert!(text.contains(&original(publication).title), "{text}");
    }
    let doubts: Vec<String> = report.doubts.iter().map(ToString::to_string).collect();
    assert!(doubts.iter().any(|doubt| doubt.contains("qt-at-cpp")), "{doubts:?}");
}

#[test]
fn failed_run_is_replaced_by_successful_one() {
    let mut results = results();
    let run = |failed: Option<&str>| RunResult {
        name: "qt-at-cpp".to_owned(),
        publication: Publication::Qt,
        about: "both clients".to_owned(),
        arguments: Vec::new(),
        took_ns: 1,
        has_page: true,
        failed: failed.map(str::to_owned),
    };
    let folder = scratch("published-again");
    std::fs::create_dir_all(folder.join("qt-at-cpp")).unwrap();
    std::fs::write(folder.join("qt-at-cpp/results.json"), "{}").unwrap();
    let before = results.runs.len();
    results.ran(run(Some("it was interrupted")));
    assert!(!results.is_made("qt-at-cpp", &folder));
    results.ran(run(None));
    assert!(results.is_made("qt-at-cpp", &folder));
    assert_eq!(results.runs.len(), before + 1);
    // Deleting a run's results makes it run again.
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(!results.is_made("qt-at-cpp", &folder));
}

#[test]
fn published_results_survive_round_trip() {
    let results = results();
    let text = serde_json::to_string(&results).unwrap();
    let read: PublishedResults = serde_json::from_str(&text).unwrap();
    // Figures may differ in the last digit.
    let contents = |results: &PublishedResults| -> Vec<_> {
        results.claims().map(|claim| (claim.id.clone(), claim.verdict, claim.ours.clone())).collect()
    };
    assert_eq!((contents(&read), &read.settings), (contents(&results), &results.settings));
}

/// The sample channels have the published behaviour of the gRPC C++ channel.
#[test]
fn made_up_figures_as_published_confirm_them() {
    let results = results();
    let verdict = |id: &str| results.claims().find(|claim| claim.id == id).map(|claim| claim.verdict);
    for id in ["several", "shared", "far", "bytes", "factor"] {
        assert_eq!(verdict(id), Some(ClaimVerdict::Confirmed), "{id}");
    }
}

/// A stack that was left out is the reason given.
#[test]
fn missing_peer_is_named() {
    let mut calls = crate::tests::sample::channels::quick();
    calls.points.retain(|point| point.pair.as_ref().is_none_or(|pair| pair.client.name() != "grpc-cpp"));
    calls.left_out = vec![crate::study::LeftOut::new("grpc-cpp", "there is no compiler")];
    let evidence = Evidence::default().with("channels", AnyResults::Calls(Box::new(calls)));
    let answered = judge(&[Publication::Channels], &evidence);
    let several = answered[0].claims.iter().find(|claim| claim.id == "several").unwrap();
    assert_eq!(several.verdict, ClaimVerdict::CannotBeTried);
    assert!(several.cause.contains("there is no compiler"), "{}", several.cause);
}

#[test]
fn every_byte_of_both_formats_is_accounted_for() {
    let results = results();
    let codec = results.answered.iter().find(|answered| answered.publication == Publication::Codec).unwrap();
    let table = codec.tables.iter().find(|table| table.title == "Byte by byte").unwrap();
    let of = |format: &str| -> (String, f64) {
        let rows = || table.table.rows.iter().filter(|row| row[0].text == format);
        (rows().map(|row| row[1].text.as_str()).collect(), rows().filter_map(|row| row[2].value).sum())
    };
    let json = r#"{"name":"polar penguin","age":20,"hobbies":null,"address":null}"#;
    assert_eq!(of("JSON"), (json.to_owned(), 63.0));
    let hex = "0a0d706f6c61722070656e6775696e1014".to_owned();
    let (bytes, count) = of("Protobuf");
    assert_eq!((bytes.replace(' ', ""), count), (hex, 17.0));
}
