//! `thalweg lab codec`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use thalweg_codec::{Codecs, OwnData, count_here, count_under_callgrind};
use thalweg_lab::codec::conduct::{self, Observe, Setup};
use thalweg_lab::codec::plan::{Options, Plan, plan};
use thalweg_lab::codec::results::{self, CodecResults, LeftOut, Settings};
use thalweg_lab::codec::{Line, WARM_UPS, peers, report};
use thalweg_lab::cpus::CpuList;
use thalweg_lab::figures::{count, span};
use thalweg_lab::interrupt::Interrupt;
use thalweg_lab::peers::PeersDirectory;
use thalweg_lab::process::{Places, ProcessExecutor};
use thalweg_lab::results::ResultsDirectory;
use thalweg_lab::stack::{OURS, Stack};

use super::{default_directory, halves, listen_for_signals, rounds, this_program};
use crate::failure::Failure;

/// What messages are made from unless another seed is named.
const SEED: u64 = 1;
/// What counting instructions takes, about.
const COUNTING: Duration = Duration::from_secs(15);
/// What a peer takes, quick and whole.
const PEER_TAKES: [Duration; 2] = [Duration::from_secs(115), Duration::from_secs(10 * 60)];
/// What conversions may take with --quick beside a peer, so that all takes four minutes.
const QUICK_BESIDE_PEERS: Duration = Duration::from_secs(75);
/// Where messages lie for programs that are not this one, and callgrind's files.
const FILES: &str = "codec-files";

/// What it costs to turn objects into bytes and back, with Protobuf, JSON and MessagePack: 30 minutes, or 4 with --quick
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(super) struct CodecArgs {
    /// 10 to 10⁶ conversions instead of 10 to 10⁷, and fewer rounds
    #[arg(long)]
    quick: bool,

    /// Where results.json, results.csv and report.html go [default: lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// All conversions together take no longer than this; the longest steps are left out
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    budget: Option<Duration>,

    /// Numbers of conversions, such as 10,1000,100000 [default: powers of ten]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    steps: Option<Vec<u64>>,

    /// Windows of each line at each step [default: 7, or 5 with --quick]
    #[arg(long, value_name = "N", value_parser = rounds())]
    rounds: Option<u32>,

    /// These messages only, such as person-sparse,order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "proto")]
    messages: Option<Vec<String>>,

    /// These codecs only, such as prost,serde_json
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    codecs: Option<Vec<String>>,

    /// What messages are made from
    #[arg(long, value_name = "N", default_value_t = SEED, conflicts_with = "proto")]
    seed: u64,

    /// Your own messages: the file that has their type; only codecs that learn a type at run time take part
    #[arg(long, value_name = "FILE", requires_all = ["type_name", "data"])]
    proto: Option<PathBuf>,

    /// Their type, such as shop.Order
    #[arg(long = "type", id = "type_name", value_name = "NAME", requires = "proto")]
    type_name: Option<String>,

    /// The messages: JSON one after the other (.json, .jsonl), or binary with each one's length before it
    #[arg(long, value_name = "FILE", requires = "proto")]
    data: Option<PathBuf>,

    /// Convert with other languages' codecs too: jvm (protobuf-java and Jackson)
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "proto")]
    against: Vec<String>,

    /// Where the peers are, each as NAME/peer [default: target/peers, built if missing]
    #[arg(long, value_name = "DIR", requires = "against")]
    peers: Option<PathBuf>,

    /// Count no instructions
    #[arg(long)]
    no_instructions: bool,

    /// Measure no calls
    #[arg(long)]
    no_calls: bool,

    /// Measure nothing: write the report of a results.json that exists
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "budget", "steps", "rounds", "messages", "codecs", "proto", "against"])]
    from: Option<PathBuf>,

    /// Convert for callgrind, which this very command starts
    #[arg(long, hide = true)]
    counted: bool,
}

pub(super) fn run(args: &CodecArgs) -> Result<ExitCode, Failure> {
    if args.counted {
        count_here(&mut args.bench()?).map_err(Failure::failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let directory = args.out.clone().unwrap_or_else(default_directory);
    if let Some(file) = &args.from {
        let results = results::read(file).map_err(Failure::failed)?;
        return show(&ResultsDirectory::create(directory).map_err(Failure::failed)?, &results);
    }
    args.check_peers()?;
    let bench = args.bench()?;
    let directory = ResultsDirectory::create(directory).map_err(Failure::failed)?;
    study(args, bench, &directory)
}

impl CodecArgs {
    /// The messages and codecs that were asked for.
    fn bench(&self) -> Result<Codecs, Failure> {
        let mut codecs = match (&self.proto, &self.type_name, &self.data) {
            (Some(proto), Some(name), Some(data)) => {
                let data = OwnData::read(proto, name, data).map_err(Failure::bad_arguments)?;
                Codecs::own(data).map_err(Failure::failed)?
            }
            _ => Codecs::generated(self.seed).map_err(Failure::failed)?,
        };
        let data: Vec<String> = codecs.data().into_iter().map(|data| data.name).collect();
        let names: Vec<String> = codecs.codecs().into_iter().map(|codec| codec.name).collect();
        if let Some(wanted) = &self.messages {
            check_names("message", wanted, &data)?;
            codecs.retain_data(|name| wanted.iter().any(|wanted| wanted == name));
        }
        if let Some(wanted) = &self.codecs {
            check_names("codec", wanted, &names)?;
            codecs.retain_codecs(|name| wanted.iter().any(|wanted| wanted == name));
        }
        Ok(codecs)
    }

    fn options(&self) -> Options {
        let mut options = if self.quick { Options::quick() } else { Options::whole() };
        if let Some(steps) = &self.steps {
            options.steps.clone_from(steps);
            options.steps.sort_unstable();
            options.steps.dedup();
            options.steps.retain(|&step| step > 0);
        }
        options.rounds = self.rounds.unwrap_or(options.rounds);
        if self.quick && !self.against.is_empty() {
            options.budget = QUICK_BESIDE_PEERS;
        }
        options.budget = self.budget.unwrap_or(options.budget);
        options
    }

    fn check_peers(&self) -> Result<(), Failure> {
        let known: Vec<String> = peers::CONVERTERS.iter().map(|peer| peer.0.to_owned()).collect();
        check_names("peer that converts", &self.against, &known)
    }

    /// The arguments that make the same messages in another process of this program.
    fn counted_arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = ["lab", "codec", "--counted"].map(str::to_owned).to_vec();
        let mut add = |flag: &str, value: Option<String>| {
            arguments.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
        };
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        add("--messages", self.messages.as_ref().map(|names| names.join(",")));
        add("--codecs", self.codecs.as_ref().map(|names| names.join(",")));
        add("--seed", self.proto.is_none().then(|| self.seed.to_string()));
        add("--proto", path(&self.proto));
        add("--type", self.type_name.clone());
        add("--data", path(&self.data));
        arguments
    }
}

fn check_names(what: &str, wanted: &[String], known: &[String]) -> Result<(), Failure> {
    match wanted.iter().find(|name| !known.contains(name)) {
        None => Ok(()),
        Some(unknown) => Err(Failure::bad_arguments(format!(
            "there is no {what} `{unknown}`: there are {}",
            known.join(", ")
        ))),
    }
}

/// Everything, one after the other. What is found is kept, whatever ends the study.
fn study(args: &CodecArgs, mut bench: Codecs, directory: &ResultsDirectory) -> Result<ExitCode, Failure> {
    let interrupt = listen_for_signals()?;
    let places = halves()?;
    let cpu = places.client_cpus.as_ref().and_then(|cpus| cpus.as_slice().first().copied());
    let mut setup = Setup {
        settings: Settings {
            arguments: std::env::args().skip(1).collect(),
            rounds: args.options().rounds,
            warm_ups: WARM_UPS,
            seed: args.proto.is_none().then_some(args.seed),
            cpu,
        },
        codecs: bench.codecs(),
        data: bench.data(),
        sizes: bench.sizes(),
        left_out: Vec::new(),
    };
    let lines = bench.lines();
    let estimates = on_processor(cpu, || conduct::look(&mut bench, &lines, &mut setup.left_out));
    let planned = plan(&estimates, &args.options()).map_err(Failure::bad_arguments)?;
    let mut results = conduct::begun(setup, &planned, &estimates);
    let calls = if args.no_calls { Vec::new() } else { conduct::planned_calls(&results) };
    let mut progress = Progress::new();
    announce(args, &planned, conduct::calls_take(&calls));

    let went_on = on_processor(cpu, || {
        conduct::conversions(&planned, &estimates, &mut results, &mut bench, &interrupt, &mut progress)
    });
    let went_on =
        went_on && (calls.is_empty() || self::calls(calls, &mut results, places, &interrupt, &mut progress)?);
    if went_on {
        apart(args, &bench, &mut results, directory.path(), &mut progress);
    }
    progress.end();
    let code = show(directory, &results)?;
    if went_on { Ok(code) } else { Err(Failure::interrupted("interrupted: the report is a partial one")) }
}

/// Does it on a thread that is kept on this processor.
fn on_processor<T: Send>(cpu: Option<usize>, work: impl FnOnce() -> T + Send) -> T {
    let pinned = || {
        if let Some(list) = cpu.and_then(|cpu| cpu.to_string().parse::<CpuList>().ok()) {
            // Where the kernel does not allow it, figures are noisier, and the report shows how much.
            let _ = list.pin_this_thread();
        }
        work()
    };
    thread::scope(|scope| scope.spawn(pinned).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Calls over a UNIX socket, between this program and this program. False: interrupted.
fn calls(
    planned: Vec<results::CallsOf>,
    results: &mut CodecResults,
    places: Places,
    interrupt: &Interrupt,
    progress: &mut Progress,
) -> Result<bool, Failure> {
    let programs = BTreeMap::from([(OURS.to_owned(), this_program()?)]);
    let mut executor = ProcessExecutor::new(programs, places, interrupt.clone());
    match executor.serve(&Stack::ours()) {
        Ok(()) => Ok(conduct::calls(planned, results, &mut executor, progress)),
        Err(error) => {
            results.left_out.push(LeftOut { what: "calls".to_owned(), reason: error.to_string() });
            Ok(true)
        }
    }
}

/// What is found in programs of their own: instructions, and other languages.
fn apart(
    args: &CodecArgs,
    bench: &Codecs,
    results: &mut CodecResults,
    directory: &Path,
    progress: &mut Progress,
) {
    let folder = directory.join(FILES);
    let mut leave_out = |what: &str, reason: String| {
        results.left_out.push(LeftOut { what: what.to_owned(), reason });
    };
    if let Err(error) = std::fs::create_dir_all(&folder) {
        return leave_out("instructions and peers", format!("{}: {error}", folder.display()));
    }
    if !args.no_instructions {
        progress.turns_to("instructions, under callgrind");
        let program = std::env::current_exe().map_err(|error| error.to_string());
        let counted = program.and_then(|program| {
            count_under_callgrind(&program, &args.counted_arguments(), bench, &folder)
                .map_err(|error| error.to_string())
        });
        match counted {
            Ok(counted) => results.instructions = counted,
            Err(reason) => leave_out("instructions", reason),
        }
    }
    for name in &args.against {
        progress.turns_to(&format!("{name}, which takes some minutes"));
        match peer(args, bench, name, &folder) {
            Ok(peer) => results.peers.push(peer),
            Err(reason) => results.left_out.push(LeftOut { what: name.clone(), reason }),
        }
    }
    results.figure_taken();
    // What is in there can be made again.
    let _ = std::fs::remove_dir_all(&folder);
}

fn peer(args: &CodecArgs, bench: &Codecs, name: &str, folder: &Path) -> Result<results::PeerResult, String> {
    let (_, name) = peers::CONVERTERS.iter().find(|peer| peer.0 == name).ok_or("nobody knows it")?;
    let directory =
        args.peers.as_ref().map_or_else(PeersDirectory::find, |path| Some(PeersDirectory::at(path)));
    let directory = directory.ok_or("there is no folder of peers here: name it with --peers")?;
    let missing = directory.missing([*name]);
    if let Some(mut command) = directory.build_command(&missing).filter(|_| !missing.is_empty()) {
        eprintln!("not built yet: {name}; running `cargo xtask peers {name}`");
        command.status().map_err(|error| error.to_string())?;
    }
    bench.write_messages(folder).map_err(|error| error.to_string())?;
    peers::convert(&directory, name, folder, args.quick)
}

/// Says how long it will take.
fn announce(args: &CodecArgs, plan: &Plan, calls: Duration) {
    let mut total = plan.total + calls;
    let mut besides = Vec::new();
    if !args.no_instructions {
        total += COUNTING;
    }
    for name in &args.against {
        total += PEER_TAKES[usize::from(!args.quick)];
        besides.push(name.as_str());
    }
    let besides =
        if besides.is_empty() { String::new() } else { format!(", {} included", besides.join(", ")) };
    let left_out = match plan.left_out.len() {
        0 => String::new(),
        steps => format!("; {steps} steps would take too long and are left out"),
    };
    eprintln!("{} windows, about {}{besides}{left_out}", plan.windows.len(), span(total));
}

/// A line on stderr for each message and operation, and what else is done.
struct Progress {
    began: Instant,
    shown: Option<(String, String)>,
    is_terminal: bool,
}

impl Progress {
    fn new() -> Self {
        Self { began: Instant::now(), shown: None, is_terminal: io::stderr().is_terminal() }
    }

    fn say(&self, text: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[K{text}");
        } else {
            eprintln!("{text}");
        }
    }

    fn end(&self) {
        if self.is_terminal {
            eprint!("\r\x1b[K");
        }
        eprintln!("took {}", span(self.began.elapsed()));
    }
}

impl Observe for Progress {
    fn begins(&mut self, line: &Line, conversions: u64, left: Duration) {
        let now = (line.data.clone(), line.operation.to_string());
        let is_new = self.shown.as_ref() != Some(&now);
        if is_new || (self.is_terminal && conversions >= 10_000) {
            let (data, operation) = &now;
            self.say(&format!(
                "{data}, {operation}, {} conversions; {} left",
                count(conversions as f64),
                span(left)
            ));
            self.shown = Some(now);
        }
    }

    fn turns_to(&mut self, what: &str) {
        self.say(what);
    }
}

/// Writes the report, prints its tables and findings, and says where it is.
fn show(directory: &ResultsDirectory, results: &CodecResults) -> Result<ExitCode, Failure> {
    let page = report::write(directory, results).map_err(Failure::failed)?;
    let text = format!("{}\nReport: {}\n", report::terminal(results), page.display());
    match io::stdout().write_all(text.as_bytes()) {
        // Who pipes into `head` has seen enough.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::failed(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}
