//! Which flags are for loads on any method, and which for those on BenchmarkService: the others have nothing to do
//! there, and are refused.

use clap::{Arg, Args, Command};
use thalweg_lab::record::LaneRule;

use super::any_arguments::AnyArgs;
use super::arguments::LoadArgs;
use super::benchmark_arguments::BenchmarkArgs;
use super::given::Given;
use crate::failure::Failure;

/// Of [`AnyArgs`], but true of all loads: there is no view of those on BenchmarkService.
const OF_ALL: [&str; 2] = ["no_tui", "quiet"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    All,
    Any,
    Benchmark,
}

impl Side {
    fn of(arg: &Arg) -> Self {
        let id = arg.get_id();
        let is_in = |command: &Command| command.get_arguments().any(|other| other.get_id() == id);
        if OF_ALL.contains(&id.as_str()) {
            Self::All
        } else if is_in(&AnyArgs::augment_args(Command::default())) {
            Self::Any
        } else if is_in(&BenchmarkArgs::augment_args(Command::default())) {
            Self::Benchmark
        } else {
            Self::All
        }
    }
}

/// Flags that a load on BenchmarkService has no use for.
pub(super) fn check_benchmark(given: &Given) -> Result<(), Failure> {
    match first(given, Side::Any) {
        None => Ok(()),
        Some(flag) => Err(Failure::bad_arguments(format!(
            "{flag} needs a method, such as --call grpc.testing.BenchmarkService/UnaryCall"
        ))),
    }
}

/// Flags that a load on a method, or by a scenario, has no use for.
pub(super) fn check_any(given: &Given, lanes: LaneRule) -> Result<(), Failure> {
    let lanes = (lanes == LaneRule::PerCall).then(|| "--lanes per-call".to_owned());
    match first(given, Side::Benchmark).or(lanes) {
        None => Ok(()),
        Some(flag) => Err(Failure::bad_arguments(format!(
            "{flag} does not apply to a method or a scenario; leave it out, or leave out --call"
        ))),
    }
}

/// The first flag of this side that was said.
fn first(given: &Given, side: Side) -> Option<String> {
    let command = LoadArgs::augment_args(Command::default());
    let mut flags = command.get_arguments().filter(|arg| given.has(arg.get_id()));
    flags.find(|arg| Side::of(arg) == side).and_then(Arg::get_long).map(|name| format!("--{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BENCHMARK: &str = "Built-in benchmark (without a method)";
    /// A new flag of all loads has to be named here; others belong into
    /// [`AnyArgs`] or [`BenchmarkArgs`].
    const ALL: [&str; 26] = [
        "target",
        "call",
        "in_flight",
        "connections",
        "lanes",
        "no_tui",
        "quiet",
        "duration",
        "total",
        "warmup",
        "timeout",
        "connect_timeout",
        "keepalive_time",
        "announce",
        "format",
        "output",
        "cpus",
        "threads",
        "busy_poll",
        "tls",
        "plaintext",
        "cacert",
        "cert",
        "key",
        "insecure",
        "servername",
    ];

    #[test]
    fn each_flag_has_a_side_and_is_refused_on_the_other_one() {
        let command = LoadArgs::augment_args(Command::default());
        for arg in command.get_arguments() {
            let given = Given::from(arg.get_id());
            let refused = |checked: Result<(), Failure>| {
                checked.is_err_and(|failure| {
                    let name = arg.get_long().unwrap_or_default();
                    failure.message.starts_with(&format!("--{name} "))
                })
            };
            let refused = (refused(check_benchmark(&given)), refused(check_any(&given, LaneRule::Fixed)));
            let id = arg.get_id().as_str();
            let expected = match Side::of(arg) {
                Side::All => (false, false),
                Side::Any => (true, false),
                Side::Benchmark => (false, true),
            };
            assert_eq!(refused, expected, "{id}");
            assert_eq!(ALL.contains(&id), expected == (false, false), "{id}");
            let heading = arg.get_help_heading().unwrap_or_default();
            let is_there = match Side::of(arg) {
                Side::All => heading.is_empty() || heading == "TLS" || OF_ALL.contains(&id),
                Side::Any => !heading.is_empty() && heading != BENCHMARK,
                Side::Benchmark => heading == BENCHMARK,
            };
            assert!(is_there, "{id} stands below {heading:?}");
        }
    }
}
