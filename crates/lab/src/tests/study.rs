//! Tests a study from plan to files, with an executor that measures nothing.

use std::fs;
use std::time::Duration;

use thalweg_measure::size::ByteSize;
use thalweg_measure::usage::{ProcessUsage, Usage};

use super::{sample, scratch};
use crate::channels::{self, ChannelsOptions, contenders};
use crate::load::Outcome;
use crate::load::{
    CallsSettings, IdleGaps, LabResults, MeasuredLoad, Purpose, StackInfo, SystemCalls, Window,
    WindowMeasurement, WireTraffic,
};
use crate::sizes::{self, SizesOptions};
use crate::stack::{Pair, Stack};
use crate::study::directory::{CSV_FILE, RESULTS_FILE};
use crate::study::{
    Conducted, CutShort, Execute, ExecuteError, LeftOut, Observe, Plan, ResultsDirectory, StudyKind,
    StudyTables, WindowOutcome, conduct,
};
use crate::{AnyResults, report};

/// Returns scripted outcomes in turn, then successes.
struct Scripted(Vec<Result<(), ExecuteError>>);

impl Execute for Scripted {
    type Window = Window;
    type Measurement = WindowMeasurement;

    fn measure(&mut self, window: &Window) -> Result<WindowMeasurement, ExecuteError> {
        if self.0.is_empty() { Ok(()) } else { self.0.remove(0) }?;
        Ok(match window.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) => WindowMeasurement::Figures(Box::new(measured())),
            Purpose::SystemCalls => WindowMeasurement::SystemCalls(SystemCalls {
                client_per_operation: 2.0,
                server_per_operation: 1.5,
            }),
            Purpose::Wire => WindowMeasurement::Wire(Box::new(wire())),
        })
    }
}

fn measured() -> MeasuredLoad {
    let load = sample::sizes().points[0].measured().expect("the sample's points are measured").clone();
    let process = |ns| ProcessUsage { user_ns: ns, system_ns: 2 * ns, ..ProcessUsage::default() };
    let usage = Usage {
        window_ns: load.duration_ns,
        client: process(1_000_000),
        server: process(2_000_000),
        server_memory: None,
    };
    MeasuredLoad { load, usage: Some(usage) }
}

fn wire() -> WireTraffic {
    let idle = IdleGaps {
        share: 0.25,
        gaps: 1000,
        p50_ns: 20_000,
        p90_ns: 90_000,
        p99_ns: 180_000,
        max_ns: 2_000_000,
        buckets: vec![(25_000, 700), (100_000, 250), (2_500_000, 50)],
    };
    WireTraffic {
        watched_ns: 400_000_000,
        all: idle.clone(),
        each: idle,
        sent_bytes: 1000,
        received_bytes: 2000,
        hop_busy_share: 0.5,
    }
}

/// Counts observed windows.
#[derive(Default)]
struct Counting {
    started: usize,
    ended: usize,
    /// Time left, as first reported.
    left: Duration,
}

impl Observe<Window, WindowMeasurement> for Counting {
    fn window_started(&mut self, _: &Window, left: Duration) {
        if self.started == 0 {
            self.left = left;
        }
        self.started += 1;
    }

    fn window_ended(&mut self, _: &Window, _: &WindowOutcome<WindowMeasurement>) {
        self.ended += 1;
    }
}

/// Conducts a quick study. Returns its outcome, the observed counts, and the saved results. The scripted outcomes
/// start with the first window of figures.
fn check(
    name: &str,
    answers: Vec<Result<(), ExecuteError>>,
) -> (Conducted<LabResults>, Counting, Option<LabResults>) {
    let noise = std::iter::repeat_n((), noise_windows()).map(Ok);
    check_study(name, StudyKind::Sizes, &study(), noise.chain(answers).collect())
}

/// Returns the number of windows of the noise floor, which come first.
fn noise_windows() -> usize {
    study().windows.iter().filter(|window| window.purpose != Purpose::Figures).count()
}

fn check_study(
    name: &str,
    kind: StudyKind,
    study: &Plan<Window>,
    answers: Vec<Result<(), ExecuteError>>,
) -> (Conducted<LabResults>, Counting, Option<LabResults>) {
    let path = scratch(&format!("study-{name}"));
    let directory = ResultsDirectory::create(&path).unwrap();
    let settings = CallsSettings::default();
    let stacks =
        vec![StackInfo { stack: Stack::ours(), version: "thalweg 0.1.0".to_owned(), settings: Vec::new() }];
    let left_out = vec![LeftOut::new("grpc-go", "no Go here")];
    let results = LabResults::started(kind, study, settings, stacks, left_out);
    let mut observer = Counting::default();
    let conducted = conduct(study, results, &mut Scripted(answers), &directory, &mut observer);
    let planned = study.windows.iter().map(crate::study::Window::total).sum();
    assert!(observer.left >= planned, "{:?} of {planned:?}", observer.left);
    let saved = LabResults::read(&path.join(RESULTS_FILE)).ok();
    let results = AnyResults::read(&path.join(RESULTS_FILE)).unwrap();
    report::write(&directory, &results.analyse()).unwrap();
    for file in [RESULTS_FILE, CSV_FILE, report::REPORT_FILE] {
        assert!(path.join(file).is_file(), "{file} is missing");
    }
    assert_eq!(fs::read_dir(&path).unwrap().count(), 3, "nothing else is left behind");
    fs::remove_dir_all(path).unwrap();
    (conducted, observer, saved)
}

#[test]
fn every_point_is_measured_and_saved() {
    let (conducted, observer, saved) = check("whole", Vec::new());
    let points = study().windows.len();
    assert!(conducted.cut_short.is_none());
    assert_eq!((observer.started, observer.ended), (points, points));
    assert!(conducted.results.is_complete() && !conducted.results.has_failures());
    assert_eq!(saved, Some(conducted.results));
}

#[test]
fn an_interrupted_study_keeps_what_it_has() {
    let (conducted, observer, saved) =
        check("interrupted", vec![Ok(()), Ok(()), Err(ExecuteError::Interrupted)]);
    assert!(matches!(conducted.cut_short, Some(CutShort::Interrupted)));
    assert_eq!((observer.started, observer.ended), (noise_windows() + 3, noise_windows() + 2));
    assert!(!conducted.results.is_complete());
    assert_eq!(saved.map(|saved| saved.points.len()), Some(2));
}

#[test]
fn failed_point_does_not_end_the_study() {
    let reason = "no, \"thank\" you <b>".to_owned();
    let (conducted, observer, _) = check("failed", vec![Err(ExecuteError::Window(reason.clone()))]);
    assert!(conducted.cut_short.is_none());
    assert_eq!(observer.ended, study().windows.len());
    assert!(conducted.results.has_failures());
    assert_eq!(conducted.results.points[0].outcome, Outcome::Failed(reason));
    let page = page(conducted.results.clone());
    assert!(page.contains("no, &quot;thank&quot; you &lt;b&gt;") && !page.contains("you <b>"));
    assert!(csv(conducted.results).contains("\"no, \"\"thank\"\" you <b>\""));
}

#[test]
fn exited_server_ends_the_study() {
    let (conducted, _, saved) =
        check("gone", vec![Ok(()), Err(ExecuteError::Study("the server ended".to_owned()))]);
    let cut_short = conducted.cut_short.map(|why| why.to_string());
    assert_eq!(cut_short.as_deref(), Some("the server ended"));
    assert_eq!(saved.map(|saved| saved.points.len()), Some(1));
}

#[test]
fn comparison_stores_noise_figures_and_system_calls_separately() {
    let pairs = ["thalweg", "tonic"].map(|name| Pair::own(name.parse().unwrap())).to_vec();
    let options = SizesOptions { sizes: vec![ByteSize(0)], ..SizesOptions::quick_comparison(pairs, true) };
    let study = sizes::plan(&options).unwrap();
    // The first window belongs to the noise floor.
    let failed = vec![Err(ExecuteError::Window("not today".to_owned()))];
    let (conducted, observer, saved) = check_study("comparison", StudyKind::Sizes, &study, failed);
    let results = conducted.results;
    assert_eq!(observer.ended, study.windows.len());
    assert_eq!(results.aa.len() + results.points.len() + results.system_calls.len(), study.windows.len());
    assert_eq!(results.points.len(), results.planned);
    assert_eq!(results.aa[0].window.outcome, Outcome::Failed("not today".to_owned()));
    assert!(results.points.iter().all(|point| point.usage.is_some()));
    let counted = SystemCalls { client_per_operation: 2.0, server_per_operation: 1.5 };
    assert!(results.system_calls.iter().all(|it| it.measured() == Some(&counted)));
    assert_eq!(saved, Some(results), "all of it survives JSON");
}

#[test]
fn channels_study_stores_wire_separately() {
    let contenders = contenders(&Pair::ours(), &[], 4);
    let study = channels::plan(&ChannelsOptions::quick(contenders)).unwrap();
    let (conducted, observer, saved) = check_study("channels", StudyKind::Channels, &study, Vec::new());
    let results = conducted.results;
    assert_eq!(observer.ended, study.windows.len());
    let separate = results.aa.len() + results.system_calls.len() + results.wire.len();
    assert_eq!(separate + results.points.len(), study.windows.len());
    assert_eq!((results.points.len(), results.wire.len()), (results.planned, 5));
    assert!(results.points.iter().all(|window| window.strategy.is_some()));
    let csv = csv(results.clone());
    let header = csv.lines().next().unwrap();
    assert!(header.ends_with("wire_gap_max_ns") && header.contains(",strategy,round_trip_ns,"), "{header}");
    assert!(csv.contains(",per-worker,5000000,"), "{csv}");
    assert_eq!(saved, Some(results), "all of it survives JSON");
}

#[test]
fn unusable_directory_is_rejected_before_measuring() {
    let file = scratch("study-file");
    fs::write(&file, "in the way").unwrap();
    let error = ResultsDirectory::create(&file).unwrap_err().to_string();
    assert!(error.contains(file.to_str().unwrap()) && error.contains("--out"), "{error}");
    fs::remove_file(file).unwrap();
}

#[test]
fn the_csv_has_a_line_for_each_point_and_a_cell_for_each_column() {
    let sample = sample::sizes();
    let csv = csv(sample.clone());
    let lines: Vec<&str> = csv.split_terminator('\n').collect();
    assert!(!csv.contains('\r'), "lines end with LF alone");
    assert_eq!(lines.len(), 1 + sample.points.len());
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "no cell of the sample needs quotes"
    );
}

fn study() -> Plan<Window> {
    sizes::plan(&SizesOptions::quick()).unwrap()
}

fn page(results: LabResults) -> String {
    AnyResults::Calls(Box::new(results)).analyse().page
}

fn csv(results: LabResults) -> String {
    AnyResults::Calls(Box::new(results)).analyse().csv
}

/// Checks results with the field names of version 0.1.
#[test]
fn results_of_earlier_schemas_are_read() {
    let renamed = |rows: &mut serde_json::Value, earlier: &str| {
        for row in rows.as_array_mut().into_iter().flatten() {
            let row = row.as_object_mut().unwrap();
            if let Some(measured) = row.remove("measured") {
                row.insert(earlier.to_owned(), measured);
            }
        }
    };
    let check = |name: &str, schema: &str, results: &AnyResults, json: serde_json::Value| {
        let path = scratch(&format!("earlier-{name}.json"));
        let mut json = json;
        json["schema"] = schema.into();
        for (rows, earlier) in [("windows", "load"), ("system_calls", "counted"), ("wire", "watched")] {
            renamed(&mut json[rows], earlier);
        }
        if !schema.starts_with("thalweg.lab") {
            json.as_object_mut().unwrap().remove("study");
        }
        fs::write(&path, json.to_string()).unwrap();
        let read = AnyResults::read(&path).unwrap();
        fs::remove_file(path).unwrap();
        assert_eq!(read.analyse().text, results.analyse().text, "{schema}");
        assert_eq!(read.analyse().csv, results.analyse().csv, "{schema}");
    };
    let (channels, codec, json) = (sample::channels::quick(), sample::codec::quick(), sample::json::quick());
    let saved = serde_json::to_value(&channels).unwrap();
    check("lab", "thalweg.lab/4", &AnyResults::Calls(Box::new(channels)), saved);
    let saved = serde_json::to_value(&codec).unwrap();
    check("codec", "thalweg.codec/1", &AnyResults::Codec(Box::new(codec)), saved);
    let saved = serde_json::to_value(&json).unwrap();
    check("json", "thalweg.json/1", &AnyResults::Json(Box::new(json)), saved);
}
