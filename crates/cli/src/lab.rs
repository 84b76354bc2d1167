//! `thalweg lab`.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use thalweg_lab::conduct::{Conducted, CutShort, Observe, conduct};
use thalweg_lab::figures::{count, span, time};
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::plan::{self, Point, SizesOptions, Study, Transport};
use thalweg_lab::process::ProcessExecutor;
use thalweg_lab::record::CallType;
use thalweg_lab::report;
use thalweg_lab::results::{self, LabResults, Outcome, PointResult, ResultsDirectory, Settings};
use thalweg_lab::size::ByteSize;

use crate::failure::Failure;

/// Measure all kinds of call over message sizes, on a server that this command starts, and write a report
#[derive(Debug, Args)]
pub(crate) struct LabArgs {
    /// What to study
    #[arg(value_enum, default_value_t = StudyName::Sizes)]
    study: StudyName,

    /// Fewer sizes and shorter points: within 90 seconds instead of 15 minutes
    #[arg(long)]
    quick: bool,

    /// Where results.json, results.csv and report.html go [default: lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Kinds of call, such as unary,bidi-stream [default: all four]
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    calls: Option<Vec<CallType>>,

    /// Message sizes, such as 0,1KiB,1.5MB [default: 0 to 4 MiB]
    #[arg(long, value_name = "SIZES", value_delimiter = ',')]
    sizes: Option<Vec<ByteSize>>,

    /// tcp, uds or tcp,uds [default: both]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    transports: Option<Vec<Transport>>,

    /// Unary calls in flight, beside those made one at a time
    #[arg(short = 'c', long = "in-flight", value_name = "N", default_value_t = 16)]
    in_flight: u32,

    /// Connections
    #[arg(long, value_name = "N", default_value_t = 1)]
    connections: u32,

    /// The whole study takes no longer than this [default: 13min; with --quick: 75s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,

    /// Measure nothing: write the report of a results.json that exists
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "calls", "sizes", "transports", "budget"])]
    from: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StudyName {
    /// Calls over message sizes, TCP and Unix domain sockets
    Sizes,
}

pub(crate) fn run(mut args: LabArgs) -> Result<ExitCode, Failure> {
    let directory = args.out.take().unwrap_or_else(default_directory);
    if let Some(file) = &args.from {
        let results = results::read(file).map_err(Failure::failed)?;
        let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
        return show(&directory, &results);
    }

    let study = match args.study {
        StudyName::Sizes => plan::sizes(&args.options()).map_err(Failure::bad_arguments)?,
    };
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    let program = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("cannot find this program to start it as a server: {error}"))
    })?;
    let interrupt = Interrupt::on_signals()
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    let mut executor = ProcessExecutor::start(program, interrupt).map_err(Failure::failed)?;
    let settings = Settings {
        arguments: std::env::args().skip(1).collect(),
        client_cpus: executor.client_cpus().cloned(),
        server_cpus: executor.server_cpus().cloned(),
    };
    let mut progress = Progress::new(&study);
    let Conducted { results, cut_short } =
        conduct(&study, settings, &mut executor, &directory, &mut progress);
    progress.end();
    drop(executor);

    let code = show(&directory, &results)?;
    match cut_short {
        None if results.has_failures() => Err(Failure::failed("some points failed: see what stands above")),
        None => Ok(code),
        Some(CutShort::Interrupted) => Err(Failure::interrupted("interrupted: the report is a partial one")),
        Some(error @ (CutShort::Failed(_) | CutShort::NotWritable(_))) => Err(Failure::failed(error)),
    }
}

impl LabArgs {
    fn options(self) -> SizesOptions {
        let study = if self.quick { SizesOptions::quick() } else { SizesOptions::whole() };
        SizesOptions {
            sizes: self.sizes.unwrap_or(study.sizes),
            calls: self.calls.unwrap_or(study.calls),
            transports: self.transports.unwrap_or(study.transports),
            in_flight: self.in_flight,
            connections: self.connections,
            budget: self.budget.unwrap_or(study.budget),
        }
    }
}

/// `lab-2026-11-21T08-00-00` here.
fn default_directory() -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    PathBuf::from(format!("lab-{}", now.trim_end_matches('Z').replace(':', "-")))
}

/// Writes the report, prints its tables and findings, and says where it is.
fn show(directory: &ResultsDirectory, results: &LabResults) -> Result<ExitCode, Failure> {
    let page = report::write(directory, results).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(results), page.display());
    match io::stdout().write_all(text.as_bytes()) {
        // Who pipes into `head` has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// A bar on a terminal, a line for each point elsewhere; both on stderr.
struct Progress {
    bar: Option<ProgressBar>,
    total: usize,
    done: usize,
    left: Duration,
}

impl Progress {
    fn new(study: &Study) -> Self {
        let (total, left) = (study.points.len(), study.total());
        let about = format!("{total} points, about {}", span(left));
        let bar = if io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len}  {prefix} left  {wide_msg}");
            bar.set_style(style.expect("the template is a constant"));
            bar.println(about);
            Some(bar)
        } else {
            eprintln!("{about}");
            None
        };
        Self { bar, total, done: 0, left }
    }

    /// Takes the bar away, so that what is printed next stands on a clean line.
    fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observe for Progress {
    fn begins(&mut self, point: &Point, left: Duration) {
        self.left = left;
        if let Some(bar) = &self.bar {
            bar.set_prefix(span(left));
            bar.set_message(point.to_string());
        }
    }

    fn ended(&mut self, result: &PointResult) {
        self.done += 1;
        let line = format!("[{}/{}] {}: {}", self.done, self.total, result.point, summary(&result.outcome));
        match &self.bar {
            Some(bar) => {
                bar.inc(1);
                if matches!(result.outcome, Outcome::Failed(_)) {
                    bar.println(line);
                }
            }
            None => eprintln!("{line}; {} left", span(self.left.saturating_sub(result.point.total()))),
        }
    }
}

fn summary(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Failed(reason) => format!("failed: {reason}"),
        Outcome::Measured(result) => {
            let median = result.latency_ns.map(|latency| format!(", median {}", time(latency.p50 as f64)));
            let errors = match result.error_count() {
                0 => String::new(),
                errors => format!(", {errors} errors"),
            };
            format!("{}/s{}{errors}", count(result.rate_per_s), median.unwrap_or_default())
        }
    }
}
