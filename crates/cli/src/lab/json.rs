//! `thalweg lab json`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::process::ExitCode;

use clap::Args;
use thalweg_lab::json::{
    Budget, Endpoint, JsonOptions, JsonResults, JsonSettings, OwnInfo, PUBLISHED, endpoints_of,
    our_endpoints, plan,
};
use thalweg_lab::load::StackInfo;
use thalweg_lab::peers::{COMPILED_LATE, JSON_SERVERS, NO_PEERS};
use thalweg_lab::process::{EchoExecutor, OwnFiles, Program};
use thalweg_lab::stack::{OURS, Stack};
use thalweg_lab::study::LeftOut;
use thalweg_load::echo::Shape;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::figures::span;
use thalweg_measure::wording::counted;

use super::common::{PeersArgs, StudyArgs, finish, halves, listen_for_signals, rounds, this_program};
use crate::failure::Failure;
use crate::terminal;
use crate::user_messages::{UserMessagesArgs, read_echo_messages};

/// gRPC and a JSON API, stage by stage (50 minutes; --quick: 5)
#[derive(Debug, Args)]
#[command(
    mut_arg("quick", |quick| quick.help("Fewer messages and rounds")),
    mut_arg("budget", |budget| budget.help("Time limit of all windows [default: 50 minutes; --quick: 4.5]")),
    mut_arg("peers", |peers| peers.requires("against")),
)]
pub(super) struct JsonArgs {
    #[command(flatten)]
    study: StudyArgs,

    /// Servers to compare with, such as axum,grpc-gateway,connect-go,spring
    #[arg(long, value_name = "STACKS", value_delimiter = ',', conflicts_with_all = ["from", "proto"])]
    against: Vec<Stack>,

    /// Main message: strings:COUNTxLETTERS, person, or one of the codec study
    ///
    /// Other servers have strings, person and person-full.
    #[arg(long, value_name = "SHAPE", default_value_t = PUBLISHED, conflicts_with_all = ["from", "proto"])]
    message: Shape,

    /// Other messages, such as person,order,strings:100x20
    ///
    /// By default person, order, log-record, visit, samples, and 1 to 50,000 strings; with --quick person and one
    /// string.
    #[arg(long, value_name = "SHAPES", value_delimiter = ',', conflicts_with = "from")]
    messages: Option<Vec<Shape>>,

    #[command(flatten)]
    own: UserMessagesArgs,

    /// Calls of the main message per variant [default: 30000; --quick: limited by time]
    #[arg(long, value_name = "N", conflicts_with = "from")]
    calls: Option<NonZeroU64>,

    /// Windows per variant and message [default: 6; --quick: 3]
    #[arg(long, value_name = "N", value_parser = rounds(), conflicts_with = "from")]
    rounds: Option<u32>,

    #[command(flatten)]
    peers: PeersArgs,
}

pub(super) fn run(args: &JsonArgs) -> Result<ExitCode, Failure> {
    if let Some(report) = args.study.report_from_results() {
        return report;
    }
    args.check_names()?;
    let own = args.own()?;
    let cpus = halves()?;
    let directory = args.study.directory()?;
    let Servers { programs, stacks, endpoints, left_out } = args.servers(&cpus)?;
    let options = args.options(endpoints.clone());
    let plan = plan(&options).map_err(Failure::bad_arguments)?;
    if let Some(usual) = options.budget.exceeded(plan.total()) {
        terminal::say(&format!(
            "the study takes about {} instead of {} because {} are measured; use fewer servers or --budget",
            span(plan.total()),
            span(usual),
            counted(options.endpoints.len() as u64, "variant")
        ));
    }
    let settings = JsonSettings {
        arguments: std::env::args().skip(1).collect(),
        published: options.published,
        own,
        endpoints,
        client_cpus: cpus.client_cpus.clone(),
        server_cpus: cpus.server_cpus.clone(),
    };
    let results = JsonResults::started(settings, stacks, left_out, plan.windows.len());
    let executor = EchoExecutor::new(programs, args.own.files(), cpus, listen_for_signals()?);
    finish(&plan, "", results, executor, &directory)
}

/// The servers to measure.
struct Servers {
    programs: BTreeMap<String, Program>,
    stacks: Vec<StackInfo>,
    endpoints: Vec<Endpoint>,
    left_out: Vec<LeftOut>,
}

impl JsonArgs {
    /// Reads the user's messages, before anything is started.
    fn own(&self) -> Result<Option<OwnInfo>, Failure> {
        let mut asked = self.messages.iter().flatten().chain([&self.message]);
        let Some(OwnFiles { proto, type_name, data }) = self.own.files() else {
            if asked.any(|shape| *shape == Shape::Own) {
                let how = "for your own messages use --proto, --type and --data";
                return Err(Failure::bad_arguments(how));
            }
            return Ok(None);
        };
        let (_, messages) = read_echo_messages(&proto, &type_name, &data)?;
        Ok(Some(OwnInfo { type_name, messages }))
    }

    fn check_names(&self) -> Result<(), Failure> {
        match self.against.iter().find(|stack| !JSON_SERVERS.contains(&stack.name())) {
            None => Ok(()),
            Some(unknown) => Err(Failure::bad_arguments(format!(
                "unknown JSON server `{}`; use one of {}",
                unknown.name(),
                JSON_SERVERS.join(", ")
            ))),
        }
    }

    /// Returns our server and the selected ones. Unavailable servers are left out.
    fn servers(&self, cpus: &CpuAssignment) -> Result<Servers, Failure> {
        let ours = this_program()?;
        let mut servers = Servers {
            stacks: vec![ours.info(Stack::ours(), cpus).map_err(Failure::failed)?],
            programs: BTreeMap::from([(OURS.to_owned(), ours)]),
            endpoints: our_endpoints(),
            left_out: Vec::new(),
        };
        let directory = self.peers.directory();
        if let Some(directory) = &directory {
            let names: Vec<String> = self.against.iter().map(|stack| stack.name().to_owned()).collect();
            directory.build_missing(&names, terminal::say).map_err(Failure::failed)?;
        }
        for stack in &self.against {
            let program = match &directory {
                Some(directory) => directory.program(stack.name()),
                None => Err(NO_PEERS.to_owned()),
            };
            match program {
                Ok(program) => {
                    program.check_variant(stack, true, false).map_err(Failure::bad_arguments)?;
                    servers.stacks.push(program.info(stack.clone(), cpus).map_err(Failure::failed)?);
                    servers.endpoints.extend(endpoints_of(stack, &program.json));
                    servers.programs.insert(stack.name().to_owned(), program);
                }
                Err(reason) => {
                    terminal::say(&format!("{stack} is left out: {reason}"));
                    servers.left_out.push(LeftOut::new(stack, reason));
                }
            }
        }
        Ok(servers)
    }

    fn options(&self, endpoints: Vec<Endpoint>) -> JsonOptions {
        let late = COMPILED_LATE.iter().map(|&name| name.to_owned()).collect();
        let mut options = if self.study.quick {
            JsonOptions::quick(endpoints, late)
        } else {
            JsonOptions::whole(endpoints, late)
        };
        let own = self.own.proto.is_some();
        let first = if own { Shape::Own } else { self.message };
        match &self.messages {
            Some(messages) => options = options.about(first, messages.clone()),
            // With the user's messages, others are measured only if selected.
            None if own => options = options.about(first, Vec::new()),
            None => {
                options.published = first;
                options.rated.push(first);
            }
        }
        options.calls = self.calls.map(NonZeroU64::get).or(options.calls);
        options.rounds = self.rounds.unwrap_or(options.rounds);
        options.budget = self.study.budget.map_or(options.budget, Budget::AtMost);
        options
    }
}
