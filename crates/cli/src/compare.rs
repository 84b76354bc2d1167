//! `thalweg compare`: loads beside each other.

mod files;
mod running;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use thalweg_compare::{Figure, Options, Report, json, markdown, page, text};

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::percent;
use crate::terminal::Syntax;
use files::FileArgs;
use running::RunningArgs;

const EXAMPLES: &str = "\
Examples:
  thalweg compare main.json branch.json
  thalweg compare main/ branch/ -O markdown      # folders with several runs
  thalweg compare results.json --of thalweg --to tonic
  thalweg compare --a './old --port {port}' --b './new --port {port}' \\
      -- --call shop.Orders/Get
  thalweg compare --a-git main --b-git HEAD --build 'cargo build --release' \\
      --run 'target/release/shop --port {port}' \\
      -- --call shop.Orders/Get -d '{\"id\": 1}'

Exit codes:
  0    B is not worse
  1    the comparison failed
  2    invalid arguments
  3    B is worse
  130  interrupted";

/// Compare results, servers or git revisions
///
/// Two servers are measured in alternating windows. Differences have 95 % intervals.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    #[command(flatten)]
    files: FileArgs,

    /// Ignore differences up to this; exit 3 if B is worse by more
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent::parse)]
    margin: f64,

    /// Figures that can fail B, comma-separated, or none [default: rate; p99 with --rps]
    ///
    /// rate, mean, p50, p90, p99, client-cpu, server-cpu.
    #[arg(long, value_name = "FIGURES")]
    fail_on: Option<FailOn>,

    /// Compare even if machines or conditions differ
    #[arg(long)]
    force: bool,

    /// Names of A, B and so on, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    names: Vec<String>,

    /// Output format
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Text)]
    format: Format,

    /// Write the result to a file
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    running: RunningArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Human-readable
    Text,
    /// Table for a pull request
    Markdown,
    /// Machine-readable (thalweg.comparison-report/1)
    Json,
    /// Self-contained HTML page
    Html,
}

impl Format {
    fn syntax(self) -> Syntax {
        match self {
            Self::Text | Self::Markdown => Syntax::Text,
            Self::Json => Syntax::Json,
            Self::Html => Syntax::Html,
        }
    }
}

#[derive(Clone, Debug)]
struct FailOn(Vec<Figure>);

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self(Vec::new()));
        }
        let figures = text.split(',').map(|name| name.trim().parse::<Figure>());
        figures.collect::<Result<_, _>>().map(Self).map_err(|error| error.to_string())
    }
}

pub(crate) fn run(args: &CompareArgs) -> Result<ExitCode, Failure> {
    let options = Options {
        margin: args.margin,
        fail_on: args.fail_on.as_ref().map(|FailOn(figures)| figures.clone()),
        force: args.force,
    };
    let output = OutputFile::open(args.output.as_deref())?;
    let write = |reports: &[Report]| output.write(args.format.syntax(), &rendered(reports, args.format));
    match (args.running.is_asked_for(), args.files.is_asked_for()) {
        (true, true) => Err(Failure::bad_arguments("give files or servers, not both")),
        (true, false) => running::run(&args.running, &args.names, &options, write),
        (false, _) => match args.running.foreign() {
            Some(flag) => Err(Failure::bad_arguments(format!(
                "{flag} needs servers; use --a and --b, or --a-git and --b-git"
            ))),
            None => files::run(&args.files, &args.names, &options, write),
        },
    }
}

fn rendered(reports: &[Report], format: Format) -> String {
    let joined = |of: fn(&Report) -> String| reports.iter().map(of).collect::<Vec<_>>().join("\n");
    match format {
        Format::Text => joined(text),
        Format::Markdown => joined(markdown),
        Format::Json => json(reports),
        Format::Html => page(reports, &humantime::format_rfc3339_seconds(SystemTime::now()).to_string()),
    }
}
