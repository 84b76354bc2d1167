//! `thalweg compare`: compares results.

mod running;
mod verdict;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use thalweg_compare::{Figure, Options, Report, Side, StackPair, compare, csv, json, markdown, page, text};
use thalweg_lab::load::LabResults;
use thalweg_measure::page::parts::command_line;

use crate::failure::Failure;
use crate::output::OutputFile;
use crate::percent;
use crate::report_text;
use crate::terminal::Syntax;
use running::RunningArgs;
use verdict::{Inconclusive, verdict};

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
  0    B is not worse, or the result is inconclusive
  1    the comparison failed
  2    invalid arguments
  3    B is worse; or inconclusive, with --inconclusive fail
  130  interrupted";

/// Compare results, servers or git revisions
///
/// Two servers are measured in alternating windows. Differences have 95 % intervals.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Result files or folders: A (the base) first, then B
    ///
    /// Several runs of one side: FILE,FILE,... or a folder. A --save file already has both sides.
    #[arg(value_name = "FILES")]
    sides: Vec<String>,

    /// In results of `thalweg lab --against`: the stack to compare (B)
    #[arg(long, value_name = "STACK", requires = "to")]
    of: Option<String>,

    /// In results of `thalweg lab --against`: the base (A)
    #[arg(long, value_name = "STACK", requires = "of")]
    to: Option<String>,

    /// Ignore differences up to this; exit 3 if B is worse by more
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent::parse)]
    margin: f64,

    /// Figures that can fail B, comma-separated, or none [default: rate,p50,p99; p50,p99 with --rps]
    ///
    /// rate, mean, p50, p90, p95, p99, client-cpu, server-cpu.
    #[arg(long, value_name = "FIGURES")]
    fail_on: Option<FailOn>,

    /// If a figure is inconclusive: exit with 0 (pass) or 3 (fail)
    #[arg(
        long,
        value_name = "pass|fail",
        value_enum,
        default_value_t = Inconclusive::Pass,
        hide_possible_values = true
    )]
    inconclusive: Inconclusive,

    /// Compare even if machines or conditions differ, and use windows that are NOT VALID
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
    /// A line for each figure
    Csv,
    /// Self-contained HTML page
    Html,
}

impl Format {
    fn syntax(self) -> Syntax {
        match self {
            Self::Text | Self::Markdown | Self::Csv => Syntax::Text,
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
    let write = |reports: &[Report]| match args.format {
        Format::Text => report_text::write(&output, &rendered(reports, args.format)),
        format => output.write(format.syntax(), &rendered(reports, format)),
    };
    let is_of_files = !args.sides.is_empty() || args.of.is_some();
    let count = if args.running.is_asked_for() { 2 } else { args.sides.len().max(2) };
    if !args.names.is_empty() && args.names.len() != count {
        let names = args.names.len();
        return Err(Failure::bad_arguments(format!("--names has {names} names for {count} sides")));
    }
    match (args.running.is_asked_for(), is_of_files) {
        (true, true) => Err(Failure::bad_arguments("give files or servers, not both")),
        (true, false) => running::run(&args.running, &args.names, &options, args.inconclusive, write),
        (false, _) => match args.running.flag_requiring_servers() {
            Some(flag) => Err(Failure::bad_arguments(format!(
                "{flag} needs servers; use --a and --b, or --a-git and --b-git"
            ))),
            None => files(args, &options, write),
        },
    }
}

fn files(
    args: &CompareArgs,
    options: &Options,
    write: impl FnOnce(&[Report]) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    let stacks =
        args.of.as_deref().zip(args.to.as_deref()).map(|(of, to)| StackPair { base: to, compared: of });
    let read = Side::of_files(&args.sides, stacks, LabResults::parse_measured);
    let (mut sides, together) =
        read.map_err(
            |error| {
                if error.is_misuse() { Failure::bad_arguments(error) } else { Failure::failed(error) }
            },
        )?;
    for (side, name) in sides.iter_mut().zip(&args.names) {
        side.name.clone_from(name);
    }
    let (a, others) = sides.split_first().expect("at least two sides");
    let compared = others.iter().map(|b| compare(a, b, together, options));
    let reports = compared.collect::<Result<Vec<Report>, _>>().map_err(Failure::bad_arguments)?;
    write(&reports)?;
    verdict(&reports, args.inconclusive)
}

fn rendered(reports: &[Report], format: Format) -> String {
    let joined = |of: fn(&Report) -> String| reports.iter().map(of).collect::<Vec<_>>().join("\n");
    match format {
        Format::Text => joined(text),
        Format::Markdown => joined(markdown),
        Format::Json => json(reports),
        Format::Csv => csv(reports),
        Format::Html => {
            let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
            let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
            page(reports, &now, &command_line(["thalweg".to_owned()].into_iter().chain(arguments)))
        }
    }
}
