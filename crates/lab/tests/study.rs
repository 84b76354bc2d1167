//! A study from plan to files, with an executor that measures nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thalweg_lab::conduct::{Conducted, CutShort, Observe, conduct};
use thalweg_lab::execute::{Execute, ExecuteError};
use thalweg_lab::plan::{self, Point, SizesOptions, Study};
use thalweg_lab::record::LoadResult;
use thalweg_lab::report;
use thalweg_lab::results::{self, LabResults, Outcome, PointResult, ResultsDirectory, Settings};

/// Answers each point with the next of its answers, and with a result once they are used up.
struct Scripted(Vec<Result<(), ExecuteError>>);

impl Execute for Scripted {
    fn run(&mut self, _: &Point) -> Result<LoadResult, ExecuteError> {
        if self.0.is_empty() { Ok(()) } else { self.0.remove(0) }?;
        Ok(sample().points[0].measured().expect("the sample's points are measured").clone())
    }
}

/// Counts what it is told.
#[derive(Default)]
struct Counting {
    begun: usize,
    ended: usize,
}

impl Observe for Counting {
    fn begins(&mut self, _: &Point, left: Duration) {
        assert!(left > Duration::ZERO);
        self.begun += 1;
    }

    fn ended(&mut self, _: &PointResult) {
        self.ended += 1;
    }
}

/// Conducts a quick study and returns what came of it, how many points were begun and ended, and what lies in the
/// directory afterwards.
fn check(name: &str, answers: Vec<Result<(), ExecuteError>>) -> (Conducted, Counting, Option<LabResults>) {
    let path = scratch(name);
    let directory = ResultsDirectory::create(&path).unwrap();
    let settings = Settings { arguments: Vec::new(), client_cpus: None, server_cpus: None };
    let mut observer = Counting::default();
    let conducted = conduct(&study(), settings, &mut Scripted(answers), &directory, &mut observer);
    let saved = results::read(&path.join(results::RESULTS_FILE)).ok();
    report::write(&directory, &conducted.results).unwrap();
    for file in [results::RESULTS_FILE, report::CSV_FILE, report::REPORT_FILE] {
        assert!(path.join(file).is_file(), "{file} is missing");
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), 3, "nothing else is left behind");
    fs::remove_dir_all(path).unwrap();
    (conducted, observer, saved)
}

#[test]
fn every_point_is_measured_and_saved() {
    let (conducted, observer, saved) = check("whole", Vec::new());
    let points = study().points.len();
    assert!(conducted.cut_short.is_none());
    assert_eq!((observer.begun, observer.ended), (points, points));
    assert!(conducted.results.is_complete() && !conducted.results.has_failures());
    assert_eq!(saved, Some(conducted.results));
}

#[test]
fn an_interrupted_study_keeps_what_it_has() {
    let (conducted, observer, saved) =
        check("interrupted", vec![Ok(()), Ok(()), Err(ExecuteError::Interrupted)]);
    assert!(matches!(conducted.cut_short, Some(CutShort::Interrupted)));
    assert_eq!((observer.begun, observer.ended), (3, 2));
    assert!(!conducted.results.is_complete());
    assert_eq!(saved.map(|saved| saved.points.len()), Some(2));
}

#[test]
fn a_point_that_fails_does_not_end_the_study() {
    let reason = "no, \"thank\" you <b>".to_owned();
    let (conducted, observer, _) = check("failed", vec![Err(ExecuteError::Point(reason.clone()))]);
    assert!(conducted.cut_short.is_none());
    assert_eq!(observer.ended, study().points.len());
    assert!(conducted.results.has_failures());
    assert_eq!(conducted.results.points[0].outcome, Outcome::Failed(reason));
    let page = report::html(&conducted.results);
    assert!(page.contains("no, &quot;thank&quot; you &lt;b&gt;") && !page.contains("you <b>"));
    assert!(report::csv(&conducted.results).contains("\"no, \"\"thank\"\" you <b>\""));
}

#[test]
fn a_server_that_is_gone_ends_the_study() {
    let (conducted, _, saved) =
        check("gone", vec![Ok(()), Err(ExecuteError::Study("the server ended".to_owned()))]);
    let cut_short = conducted.cut_short.map(|why| why.to_string());
    assert_eq!(cut_short.as_deref(), Some("the server ended"));
    assert_eq!(saved.map(|saved| saved.points.len()), Some(1));
}

#[test]
fn a_place_that_is_no_directory_is_refused_before_anything_is_measured() {
    let file = scratch("file");
    fs::write(&file, "in the way").unwrap();
    let error = ResultsDirectory::create(&file).unwrap_err().to_string();
    assert!(error.contains(file.to_str().unwrap()) && error.contains("--out"), "{error}");
    fs::remove_file(file).unwrap();
}

#[test]
fn the_csv_has_a_line_for_each_point_and_a_cell_for_each_column() {
    let sample = sample();
    let csv = report::csv(&sample);
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(lines.len(), 1 + sample.points.len());
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "no cell of the sample needs quotes"
    );
}

fn study() -> Study {
    plan::sizes(&SizesOptions::quick()).unwrap()
}

fn sample() -> LabResults {
    results::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sample/results.json")).unwrap()
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("study-{name}-{}", std::process::id()))
}
