//! Two servers that are measured in turns.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_compare::{
    Checkout, CheckoutError, Event, FreePorts, MeasureError, Measured, Options, Plan, Report, Repository,
    Revision, Side, SidePlan, Target, Together, build, compare, measure,
};
use thalweg_lab::target;
use thalweg_measure::cpus::CpuList;
use thalweg_measure::figures::{grouped, span};
use thalweg_measure::interrupt::Interrupt;

use super::verdict::{Inconclusive, verdict};
use crate::failure::{Failure, INTERRUPTED};
use crate::output::OutputFile;
use crate::terminal::{self, Syntax};

/// What is said of servers.
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

    /// Measurements (windows) per server, A and B in turns [default: 10]
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

/// Flags of `load` that cannot follow `--`, and what to do instead.
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
    /// Whether servers are measured.
    pub(super) fn is_asked_for(&self) -> bool {
        self.a.is_some() || self.a_git.is_some()
    }

    /// A flag that says something only of servers.
    pub(super) fn foreign(&self) -> Option<&'static str> {
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

    fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(ROUNDS_DEFAULT)
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

/// A server that is to be started, and whose.
struct Wanted<'a> {
    name: String,
    command: &'a str,
    target: Option<&'a str>,
    checkout: Option<(&'a str, &'a Checkout)>,
}

/// Starts both, measures them, and compares.
pub(super) fn run(
    args: &RunningArgs,
    names: &[String],
    options: &Options,
    inconclusive: Inconclusive,
    write: impl FnOnce(&[Report]) -> Result<(), Failure>,
) -> Result<ExitCode, Failure> {
    args.check()?;
    if !names.is_empty() && names.len() != 2 {
        return Err(Failure::bad_arguments(format!("--names has {} names for 2 sides", names.len())));
    }
    let save = args.save.as_deref().map(|path| OutputFile::open(Some(path))).transpose()?;
    let interrupt = Interrupt::on_signals_with_others_to_end()
        .map_err(|error| Failure::failed(format!("cannot listen for signals: {error}")))?;
    measured(args, names, &interrupt).and_then(|Measured { comparison, cut_short }| {
        if let Some(save) = save.as_ref().filter(|_| !comparison.windows.is_empty()) {
            let json = serde_json::to_string(&comparison).expect("a comparison is numbers and strings");
            save.write(Syntax::Json, &(json + "\n"))?;
        }
        if let Some(error) = cut_short.as_ref().filter(|error| !matches!(error, MeasureError::Interrupted)) {
            return Err(Failure::failed(error));
        }
        let is_interrupted = cut_short.is_some();
        let [a, b] = Side::both(&comparison);
        if a.cells.is_empty() || b.cells.is_empty() {
            return Err(Failure::interrupted("interrupted before a round was complete"));
        }
        let report = compare(&a, &b, Together::Pairs, options).map_err(Failure::failed)?;
        if report.cells.iter().all(|cell| cell.figures.is_empty()) {
            return Err(if is_interrupted {
                Failure::interrupted("interrupted before a round was complete")
            } else {
                Failure::failed("no round has successful calls on both sides; see the errors with --save")
            });
        }
        write(std::slice::from_ref(&report))?;
        if is_interrupted { Ok(ExitCode::from(INTERRUPTED)) } else { verdict(&[report], inconclusive) }
    })
}

/// Work trees are gone when it returns, and so are servers.
fn measured(args: &RunningArgs, names: &[String], interrupt: &Interrupt) -> Result<Measured, Failure> {
    let checkouts = checkouts(args, interrupt)?;
    let name = |place: usize, default: &str| names.get(place).cloned().unwrap_or_else(|| default.to_owned());
    let targets = [&args.a_target, &args.b_target].map(|own| own.as_deref().or(args.target.as_deref()));
    let wanted = match (&checkouts, &args.command, &args.a, &args.b) {
        (Some([a, b]), Some(command), ..) => {
            let revisions = [args.a_git.as_deref(), args.b_git.as_deref()].map(Option::unwrap_or_default);
            let defaults = if revisions[0] == revisions[1] { ["A", "B"] } else { revisions };
            let of = |place: usize, checkout| Wanted {
                name: name(place, defaults[place]),
                command,
                target: targets[place],
                checkout: Some((revisions[place], checkout)),
            };
            [of(0, a), of(1, b)]
        }
        (_, _, Some(a), Some(b)) => {
            let of = |place: usize, default, command| Wanted {
                name: name(place, default),
                command,
                target: targets[place],
                checkout: None,
            };
            [of(0, "A", a), of(1, "B", b)]
        }
        _ => {
            return Err(Failure::bad_arguments(
                "name both servers: --a and --b, or --a-git, --b-git and --run",
            ));
        }
    };
    let plan = plan(args, wanted)?;
    let mut progress = Progress::new(args.rounds());
    measure(&plan, interrupt, |event| progress.tell(&event)).map_err(failure)
}

fn plan(args: &RunningArgs, wanted: [Wanted<'_>; 2]) -> Result<Plan, Failure> {
    let mut ports = FreePorts::default();
    let mut side = |Wanted { name, command, target, checkout }: Wanted<'_>| {
        let (target, command) = Target::of(command, target, &mut ports).map_err(Failure::bad_arguments)?;
        let revision = checkout.map(|(name, checkout)| Revision {
            name: name.to_owned(),
            commit: checkout.commit().to_owned(),
            build: args.build.clone(),
        });
        let directory = checkout.map(|(_, checkout)| checkout.folder());
        Ok::<_, Failure>(SidePlan { name, command, directory, target, revision })
    };
    let [a, b] = wanted;
    let (a, b) = (side(a)?, side(b)?);
    if a.target == b.target {
        return Err(Failure::bad_arguments(format!(
            "both servers run at the same time and cannot both listen on {}; use --a-target and --b-target, or \
             {{port}} in their commands",
            a.target
        )));
    }
    Ok(Plan {
        a,
        b,
        program: env::current_exe()
            .map_err(|error| Failure::failed(format!("cannot find this program: {error}")))?,
        load: args.load.clone(),
        rounds: args.rounds(),
        window: args.window.unwrap_or(WINDOW_DEFAULT),
        warm_up: args.warmup.unwrap_or(WARM_UP_DEFAULT),
        start_within: args.start_timeout.unwrap_or(START_TIMEOUT_DEFAULT),
        server_cpus: args.cpus_server.clone(),
        client_cpus: args.cpus_client.clone(),
    })
}

/// Both revisions, built.
fn checkouts(args: &RunningArgs, interrupt: &Interrupt) -> Result<Option<[Checkout; 2]>, Failure> {
    let (Some(a), Some(b)) = (&args.a_git, &args.b_git) else { return Ok(None) };
    let here = env::current_dir()
        .map_err(|error| Failure::failed(format!("cannot read the current folder: {error}")))?;
    let unknown = |error: CheckoutError| match error {
        CheckoutError::Unknown(_) => Failure::bad_arguments(error),
        CheckoutError::Failed { .. } => Failure::failed(error),
    };
    let repository = Repository::at(&here).map_err(unknown)?;
    // That one of them is not known is said before anything is built.
    let commits = [repository.commit(a).map_err(unknown)?, repository.commit(b).map_err(unknown)?];
    let [one, other] = commits.map(|commit| repository.checkout(&commit).map_err(unknown));
    let checkouts = [one?, other?];
    if let Some(command) = &args.build {
        for (revision, checkout) in [a, b].into_iter().zip(&checkouts) {
            tell(&format!("building {revision} ({})", &checkout.commit()[..12.min(checkout.commit().len())]));
            build(revision, command, &checkout.folder(), interrupt).map_err(failure)?;
        }
    }
    Ok(Some(checkouts))
}

fn failure(error: MeasureError) -> Failure {
    match error {
        MeasureError::Interrupted => Failure::interrupted(error),
        _ => Failure::failed(error),
    }
}

/// Lines on stderr, for whoever sits before it.
struct Progress {
    rounds: u32,
}

impl Progress {
    fn new(rounds: u32) -> Self {
        Self { rounds }
    }

    fn tell(&mut self, event: &Event<'_>) {
        match event {
            Event::Starts(side) => tell(&format!("starting {} at {}", side.name, side.target)),
            Event::Window { side, round, run, left } => tell(&format!(
                "round {} of {}: {} {}/s; {} left",
                round + 1,
                self.rounds,
                side.name,
                grouped(run.rate_per_s()),
                span(*left)
            )),
        }
    }
}

fn tell(line: &str) {
    if terminal::stderr_is_terminal() {
        terminal::say(line);
    }
}
