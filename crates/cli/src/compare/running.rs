//! Measures two servers in alternating windows.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_compare::{Event, MeasureError, MeasureOutcome, Options, Plan, Report, Servers, measure};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::figures::{grouped, span};
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::target;

use super::verdict::{Inconclusive, verdict};
use crate::failure::{Failure, INTERRUPTED};
use crate::output::OutputFile;
use crate::terminal::{self, Syntax};
use crate::{runtime, signals};

/// Arguments for measuring two servers.
#[derive(Debug, Args)]
#[command(next_help_heading = "Compare two servers")]
pub(super) struct RunningArgs {
    /// Command that starts A; {port} is replaced by a free port
    #[arg(long, value_name = "COMMAND", requires = "b")]
    a: Option<String>,

    /// Command that starts B
    #[arg(long, value_name = "COMMAND", requires = "a")]
    b: Option<String>,

    /// Git revision of A, built in a separate worktree
    #[arg(long, value_name = "REVISION", requires_all = ["b_git", "command"], conflicts_with = "a")]
    a_git: Option<String>,

    /// Git revision of B
    #[arg(long, value_name = "REVISION", requires = "a_git")]
    b_git: Option<String>,

    /// Command that builds a revision [default: none]
    #[arg(long, value_name = "COMMAND", requires = "a_git")]
    build: Option<String>,

    /// Command that starts a revision's server; {port} is replaced by a free port
    #[arg(long = "run", id = "command", value_name = "COMMAND", requires = "a_git")]
    command: Option<String>,

    /// Target of both servers [default: 127.0.0.1:{port}]
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    target: Option<String>,

    /// Target of A
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    a_target: Option<String>,

    /// Target of B
    #[arg(long, value_name = "TARGET", value_parser = target::parse)]
    b_target: Option<String>,

    /// Measurements (windows) per server, A and B alternately [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,

    /// Duration of a window [default: 2s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    window: Option<Duration>,

    /// Warm-up before each window [default: 500ms]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    warmup: Option<Duration>,

    /// Time limit for servers to listen [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    start_timeout: Option<Duration>,

    /// CPUs of servers: 1 or 4-7
    #[arg(long = "server-cpus", alias = "cpus-server", value_name = "LIST")]
    cpus_server: Option<CpuList>,

    /// CPUs of the client
    #[arg(long = "client-cpus", alias = "cpus-client", value_name = "LIST")]
    cpus_client: Option<CpuList>,

    /// Write the windows to a file for `thalweg compare FILE`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// After --: flags of `thalweg load` [default: empty calls of BenchmarkService]
    #[arg(last = true, value_name = "LOAD-FLAGS")]
    load: Vec<String>,
}

const ROUNDS_DEFAULT: u32 = 10;
const WINDOW_DEFAULT: Duration = Duration::from_secs(2);
const WARM_UP_DEFAULT: Duration = Duration::from_millis(500);
const START_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Flags of `load` that cannot follow `--`, with alternatives.
const OWN_FLAGS: [(&str, &str); 16] = [
    ("-z", "use --window"),
    ("--duration", "use --window"),
    ("-n", "windows are limited by time; use --window"),
    ("--total", "windows are limited by time; use --window"),
    ("-x", "windows are limited by time; use --window"),
    ("--max-duration", "windows are limited by time; use --window"),
    ("--warmup", "put it before --"),
    ("-O", "leave it out; compare reads JSON from load"),
    ("--format", "leave it out; compare reads JSON from load"),
    ("-o", "use --save"),
    ("--output", "use --save"),
    ("--expect", "use --fail-on and --margin"),
    ("--also", "each side is one server; use --target, --a-target or --b-target"),
    ("--start-at", "leave it out; windows run one after the other"),
    ("--find-max", "use --rps; both servers get the same rate"),
    ("--baseline", "leave it out; A is the baseline"),
];

impl RunningArgs {
    /// Returns whether servers are to be measured.
    pub(super) fn is_asked_for(&self) -> bool {
        self.a.is_some() || self.a_git.is_some()
    }

    /// Returns a given flag that requires servers.
    pub(super) fn flag_requiring_servers(&self) -> Option<&'static str> {
        let flags = [
            (self.target.is_some(), "--target"),
            (self.a_target.is_some(), "--a-target"),
            (self.b_target.is_some(), "--b-target"),
            (self.rounds.is_some(), "--rounds"),
            (self.window.is_some(), "--window"),
            (self.warmup.is_some(), "--warmup"),
            (self.start_timeout.is_some(), "--start-timeout"),
            (self.cpus_server.is_some(), "--server-cpus"),
            (self.cpus_client.is_some(), "--client-cpus"),
            (self.save.is_some(), "--save"),
            (!self.load.is_empty(), "--"),
        ];
        flags.into_iter().find(|(is_there, _)| *is_there).map(|(_, flag)| flag)
    }

    fn plan(&self, names: &[String]) -> Result<Plan, Failure> {
        let servers = match (&self.a, &self.b, &self.a_git, &self.b_git, &self.command) {
            (Some(a), Some(b), ..) => Servers::Commands([a.clone(), b.clone()]),
            (_, _, Some(a), Some(b), Some(command)) => Servers::Revisions {
                revisions: [a.clone(), b.clone()],
                build: self.build.clone(),
                command: command.clone(),
            },
            _ => {
                let why = "name both servers: --a and --b, or --a-git, --b-git and --run";
                return Err(Failure::bad_arguments(why));
            }
        };
        Ok(Plan {
            servers,
            names: names.to_vec(),
            targets: [&self.a_target, &self.b_target].map(|own| own.clone().or_else(|| self.target.clone())),
            program: runtime::program()?,
            load: self.load.clone(),
            rounds: self.rounds.unwrap_or(ROUNDS_DEFAULT),
            window: self.window.unwrap_or(WINDOW_DEFAULT),
            warm_up: self.warmup.unwrap_or(WARM_UP_DEFAULT),
            start_within: self.start_timeout.unwrap_or(START_TIMEOUT_DEFAULT),
            server_cpus: self.cpus_server.clone(),
            client_cpus: self.cpus_client.clone(),
        })
    }

    fn check(&self) -> Result<(), Failure> {
        for argument in &self.load {
            let is_meant = |flag: &str| match flag.strip_prefix("--") {
                Some(_) => {
                    argument.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
                }
                None => argument.starts_with(flag) && !argument.starts_with("--"),
            };
            if let Some((flag, instead)) = OWN_FLAGS.iter().find(|(flag, _)| is_meant(flag)) {
                return Err(Failure::bad_arguments(format!("{flag} cannot follow --: {instead}")));
            }
        }
        if self.window.is_some_and(|window| window.is_zero()) {
            return Err(Failure::bad_arguments("--window must be longer than 0s"));
        }
        Ok(())
    }
}

/// Starts both servers, measures and compares them.
pub(super) fn run(
    args: &RunningArgs,
    names: &[String],
    options: &Options,
    inconclusive: Inconclusive,
    write: impl FnOnce(&[Report]) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    args.check()?;
    let save = args.save.as_deref().map(|path| OutputFile::open(Some(path))).transpose()?;
    let interrupt =
        Interrupt::on_signals_with_others_to_end().map_err(|error| signals::handler_failure(&error))?;
    let plan = args.plan(names)?;
    let measured = measure(&plan, &interrupt, |event| print_event(&event, plan.rounds)).map_err(failure)?;
    let MeasureOutcome { comparison, cut_short } = &measured;
    if let Some(save) = save.as_ref().filter(|_| !comparison.windows.is_empty()) {
        let json = serde_json::to_string(comparison).expect("a comparison is numbers and strings");
        save.write(Syntax::Json, &(json + "\n"))?;
    }
    if let Some(error) = cut_short.as_ref().filter(|error| !error.is_interrupt()) {
        return Err(Failure::failed(error));
    }
    let report = measured.report(options).map_err(failure)?;
    write(std::slice::from_ref(&report))?;
    if cut_short.is_some() { Ok(ExitCode::from(INTERRUPTED)) } else { verdict(&[report], inconclusive) }
}

fn failure(error: MeasureError) -> Failure {
    match &error {
        _ if error.is_interrupt() => Failure::interrupted(error),
        _ if error.is_misuse() => Failure::bad_arguments(error),
        _ => Failure::failed(error),
    }
}

/// Prints a line of progress on a terminal.
fn print_event(event: &Event<'_>, rounds: u32) {
    let line = match event {
        Event::Builds { revision, commit } => format!("building {revision} ({commit})"),
        Event::Starts(side) => format!("starting {} at {}", side.name, side.target),
        Event::Window { side, round, run, left } => format!(
            "round {} of {rounds}: {} {}/s; {} left",
            round + 1,
            side.name,
            grouped(run.rate_per_s()),
            span(*left)
        ),
    };
    if terminal::stderr_is_terminal() {
        terminal::say(&line);
    }
}
