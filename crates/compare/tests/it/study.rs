//! Studies of the lab.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use thalweg_compare::{Figure, Input, Pairing, Side, Verdict, compare, read};
use thalweg_lab::load::LabResults;

use crate::support::options;

pub(crate) fn sample() -> Input {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/src/tests/sample/results.json");
    read(&path, LabResults::parse_measured).unwrap()
}

#[test]
fn cells_of_two_studies_are_matched() {
    let side = |name: &str| Side::of_inputs(name, vec![(name.to_owned(), sample())]).unwrap();
    let (a, b) = (side("old"), side("new"));
    let report = compare(&a, &b, Pairing::Unpaired, &options()).unwrap();
    assert_eq!(report.cells.len(), a.cells.len());
    assert!(report.cells.len() > 10 && !report.overall.is_empty());
    // Both sides have the same figures.
    assert!(report.overall.iter().all(|compared| (compared.ratio - 1.0).abs() < 1e-9), "{report:?}");
    assert!(report.failures.is_empty());
}

#[test]
fn stacks_of_one_study_are_sides() {
    let Input::Study(results) = sample() else { panic!("the sample is a study") };
    assert!(!Side::of_study(&results, "thalweg").unwrap().cells.is_empty());
    let error = Side::of_study(&results, "tonic").unwrap_err().to_string();
    assert!(error.contains("no `tonic` in the study; use one of thalweg"), "{error}");
}

/// Returns the sample three times, each window paired with one of tonic at half the rate.
pub(crate) fn of_two_stacks() -> Input {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab/src/tests/sample/results.json");
    let mut study: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let windows = study["points"].as_array().unwrap().clone();
    let mut all = Vec::new();
    for round in 0..3 {
        for window in windows.iter().filter(|window| !window["pair"].is_null()) {
            let mut ours = window.clone();
            ours["round"] = round.into();
            let mut theirs = ours.clone();
            theirs["pair"] = json!({"client": "tonic", "server": "tonic"});
            if let Some(rate) = theirs["measured"]["rate_per_s"].as_f64() {
                // A slow round affects both of its windows.
                ours["measured"]["rate_per_s"] = (rate / f64::from(1 + round)).into();
                theirs["measured"]["rate_per_s"] = (rate / f64::from(1 + round) / 2.0).into();
            }
            all.extend([ours, theirs]);
        }
    }
    study["points"] = all.into();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    fs::write(&path, study.to_string()).unwrap();
    read(&path, LabResults::parse_measured).unwrap()
}

#[test]
fn windows_of_two_stacks_are_pairs() {
    let Input::Study(results) = of_two_stacks() else { panic!("it is a study") };
    let [tonic, ours] = ["tonic", "thalweg"].map(|stack| Side::of_study(&results, stack).unwrap());
    let report = compare(&tonic, &ours, Pairing::Paired, &options()).unwrap();
    assert!(report.cells.len() > 10, "{}", report.cells.len());
    for cell in &report.cells {
        let rate = cell.figures.iter().find(|compared| compared.figure == Figure::Rate).unwrap();
        assert!((rate.ratio - 2.0).abs() < 1e-6, "{cell:?}");
        assert_eq!((rate.rounds, rate.verdict), ((3, 3), Verdict::Better), "{cell:?}");
    }
}

#[test]
fn study_and_load_are_not_comparable() {
    let study = Side::of_inputs("study", vec![("s".to_owned(), sample())]).unwrap();
    let load = crate::support::rates("load", &[1000.0]);
    let error = compare(&study, &load, Pairing::Unpaired, &options()).unwrap_err().to_string();
    assert!(error.contains("no load has the same conditions on both sides"), "{error}");
}
