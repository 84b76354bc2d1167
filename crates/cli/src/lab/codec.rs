//! `thalweg lab codec`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_lab::codec::{
    CodecExecutor, CodecOptions, CodecProgram, CodecResults, CodecSettings, CodecTables, ExtraMeasurements,
    NoCodecs, Origin, Selection, WARM_UPS, conversions, plan,
};
use thalweg_lab::peers::{CODECS, CONVERTERS, PeersDirectory};
use thalweg_lab::process::OwnFiles;
use thalweg_lab::study::ResultsDirectory;
use thalweg_measure::cpus::{CpuAssignment, CpuList};

use super::common::{PeersArgs, StudyArgs, finish, halves, listen_for_signals, rounds, this_program};
use crate::failure::Failure;
use crate::terminal;
use crate::user_messages::UserMessagesArgs;

/// Default seed of messages.
const SEED: u64 = 1;
/// Time limit of conversions with `--quick` and peers, so that the study takes four minutes.
const QUICK_BESIDE_PEERS: Duration = Duration::from_secs(75);
/// Help if codecs are missing and cannot be built.
const HOW_TO_GET_CODECS: &str = "in a clone of the Thalweg repository run `cargo xtask peers codec`, then \
     use --peers target/peers";

/// Encoding and decoding: Protobuf, JSON, MessagePack (30 minutes; --quick: 4)
#[derive(Debug, Args)]
#[command(
    mut_arg("quick", |quick| quick.help("10 to 10⁶ conversions instead of 10 to 10⁷, and fewer rounds")),
    mut_arg("budget", |budget| budget.help("Time limit of all conversions; skips the longest steps")),
)]
pub(super) struct CodecArgs {
    #[command(flatten)]
    study: StudyArgs,

    /// Conversion counts, such as 10,1000,100000 [default: powers of ten]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "from")]
    steps: Option<Vec<u64>>,

    /// Windows per line and step [default: 7; --quick: 5]
    #[arg(long, value_name = "N", value_parser = rounds(), conflicts_with = "from")]
    rounds: Option<u32>,

    /// Messages, such as person-sparse,order [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["from", "proto"])]
    messages: Option<Vec<String>>,

    /// Codecs, such as prost,serde_json [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "from")]
    codecs: Option<Vec<String>>,

    /// Random seed of messages
    #[arg(long, value_name = "N", default_value_t = SEED, conflicts_with = "proto")]
    seed: u64,

    #[command(flatten)]
    own: UserMessagesArgs,

    /// Codecs of other languages: jvm (protobuf-java and Jackson)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["from", "proto"])]
    against: Vec<String>,

    #[command(flatten)]
    peers: PeersArgs,

    /// Do not count instructions
    #[arg(long)]
    no_instructions: bool,

    /// Do not measure calls
    #[arg(long)]
    no_calls: bool,
}

pub(super) fn run(args: &CodecArgs) -> Result<ExitCode, Failure> {
    if let Some(report) = args.study.report_from_results() {
        return report;
    }
    args.check_peers()?;
    let cpus = halves()?;
    let cpu = cpus.client_cpus.as_ref().and_then(|cpus| cpus.as_slice().first().copied());
    let bench = args.bench(cpu)?;
    let directory = args.study.directory()?;
    study(args, bench, cpus, cpu, &directory)
}

impl CodecArgs {
    /// Starts the program with the selected messages and codecs, pinned to `cpu`.
    fn bench(&self, cpu: Option<usize>) -> Result<CodecProgram, Failure> {
        let cpu: Option<CpuList> = cpu.and_then(|cpu| cpu.to_string().parse().ok());
        let program = self.program()?;
        CodecProgram::start(&program, &self.selection(), cpu.as_ref()).map_err(|error| match error {
            NoCodecs::InvalidSelection(_) => Failure::bad_arguments(error),
            NoCodecs::Failed(_) => Failure::failed(error),
        })
    }

    fn selection(&self) -> Selection {
        let from = match self.own.files() {
            Some(OwnFiles { proto, type_name, data }) => Origin::Own { proto, type_name, data },
            None => Origin::Seed(self.seed),
        };
        Selection { from, messages: self.messages.clone(), codecs: self.codecs.clone() }
    }

    /// Returns the codecs' program, built by cargo if the sources are there.
    fn program(&self) -> Result<PathBuf, Failure> {
        let Some(directory) = self.peers.directory() else {
            return Err(Failure::failed(format!("no codecs found; {HOW_TO_GET_CODECS}")));
        };
        let name = CODECS;
        if let Some(mut command) = directory.build_command(&[name]) {
            if !directory.missing([name]).is_empty() {
                terminal::say(&format!("codecs are not built yet; running `cargo xtask peers {name}`"));
            }
            // If the build fails, the program is missing and reported below.
            command.status().map_err(|error| {
                Failure::failed(format!("failed to start {}: {error}", command.get_program().display()))
            })?;
        }
        directory
            .executable_of(name)
            .map_err(|reason| Failure::failed(format!("no codecs: {reason}; {HOW_TO_GET_CODECS}")))
    }

    fn options(&self) -> CodecOptions {
        let mut options = if self.study.quick { CodecOptions::quick() } else { CodecOptions::whole() };
        if let Some(steps) = &self.steps {
            options.steps.clone_from(steps);
            options.steps.sort_unstable();
            options.steps.dedup();
            options.steps.retain(|&step| step > 0);
        }
        options.rounds = self.rounds.unwrap_or(options.rounds);
        if self.study.quick && !self.against.is_empty() {
            options.budget = QUICK_BESIDE_PEERS;
        }
        options.budget = self.study.budget.unwrap_or(options.budget);
        options
    }

    fn besides(&self) -> ExtraMeasurements {
        ExtraMeasurements {
            calls: !self.no_calls,
            instructions: !self.no_instructions,
            peers: self.against.clone(),
            quick: self.study.quick,
        }
    }

    /// Returns the text that follows the study's estimated time.
    fn about(&self, left_out: usize) -> String {
        let peers = match self.against.as_slice() {
            [] => String::new(),
            names => format!(", {} included", names.join(", ")),
        };
        match left_out {
            0 => peers,
            steps => format!("{peers}; {steps} steps would take too long and are left out"),
        }
    }

    /// Returns the peers' folder. Builds missing selected peers if possible.
    fn peers(&self) -> Result<Option<PeersDirectory>, Failure> {
        let Some(directory) = self.peers.directory() else { return Ok(None) };
        let asked = CONVERTERS.iter().filter(|peer| self.against.iter().any(|name| name == peer.0));
        let folders: Vec<String> = asked.map(|peer| peer.1.to_owned()).collect();
        directory.build_missing(&folders, terminal::say).map_err(Failure::failed)?;
        Ok(Some(directory))
    }

    fn check_peers(&self) -> Result<(), Failure> {
        let known: Vec<String> = CONVERTERS.iter().map(|peer| peer.0.to_owned()).collect();
        check_names("stack", &self.against, &known)
    }
}

fn check_names(what: &str, wanted: &[String], known: &[String]) -> Result<(), Failure> {
    match wanted.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::bad_arguments(format!(
            "unknown {what} `{unknown}`; use one of {}",
            known.join(", ")
        ))),
    }
}

/// Runs all parts in turn. Results are kept even if the study is cut short.
fn study(
    args: &CodecArgs,
    mut bench: CodecProgram,
    cpus: CpuAssignment,
    cpu: Option<usize>,
    directory: &ResultsDirectory,
) -> Result<ExitCode, Failure> {
    let (tables, lines) = (CodecTables::of(&bench), bench.lines.clone());
    let peers = args.peers()?;
    let interrupt = listen_for_signals()?;
    let executor = CodecExecutor::new(&mut bench, this_program()?, cpus, directory.path(), interrupt);
    let mut executor = executor.with_peers(peers, args.study.quick);

    let mut left_out = Vec::new();
    let estimates = executor.estimate(&lines, &mut left_out);
    let planned = conversions(&estimates, &args.options()).map_err(Failure::bad_arguments)?;
    let plan = plan(&planned.windows, &estimates, &tables.calls(), &args.besides());
    let settings = CodecSettings {
        arguments: std::env::args().skip(1).collect(),
        rounds: args.options().rounds,
        warm_ups: WARM_UPS,
        seed: args.own.proto.is_none().then_some(args.seed),
        cpu,
    };
    let about = args.about(planned.left_out.len());
    let results = CodecResults::started(settings, left_out, tables, &planned);
    finish(&plan, &about, results, executor, directory)
}
