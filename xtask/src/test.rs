//! `cargo xtask test`: every check that a change must pass, one after the other.

mod conformance;
mod costs;
mod dependencies;
mod grpcio;
mod h2spec;
mod interop;
mod layering;
mod modules;
mod negative;
mod peers;
mod report;
pub(crate) mod rust;

use std::fs;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::Ended;
use crate::arguments::{Arguments, Misuse};
use crate::job::{Failure, Log};

/// One check. It writes to its log and gives a short account of what passed.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Log) -> Result<String, Failure>,
}

/// In the order in which they run: what is quick and finds most comes first.
const STEPS: &[Step] = &[
    Step { name: "format", about: "cargo fmt --check", run: rust::format },
    Step {
        name: "layering",
        about: "crates and modules import only down ARCHITECTURE.md's arrows",
        run: layering::check,
    },
    Step { name: "lints", about: "cargo clippy, warnings denied", run: rust::lints },
    Step { name: "tests", about: "unit, simulation and doc tests", run: rust::tests },
    Step {
        name: "dependencies",
        about: "cargo deny, and the MSRV of what we build on",
        run: dependencies::check,
    },
    Step { name: "release", about: "the release build that the suites run against", run: rust::release },
    Step {
        name: "costs",
        about: "instructions and allocations of the main calls are the committed ones",
        run: costs::check,
    },
    Step {
        name: "conformance",
        about: "Protobuf's conformance suite 36.2, binary and JSON, against our engine",
        run: conformance::check,
    },
    Step { name: "h2spec", about: "h2spec 2.2.1, strict, against `thalweg serve`", run: h2spec::server },
    Step {
        name: "h2specd",
        about: "h2spec's client cases against the client half of our HTTP/2 core",
        run: h2spec::client,
    },
    Step {
        name: "interop-server",
        about: "grpc-go's interop client against `thalweg serve`",
        run: interop::server,
    },
    Step {
        name: "interop-client",
        about: "our interop client against grpc-go's server",
        run: interop::client,
    },
    Step {
        name: "grpcio-server",
        about: "gRPC's C core against `thalweg serve`, 0 B to 4 MiB",
        run: grpcio::server,
    },
    Step {
        name: "grpcio-client",
        about: "`thalweg load` against gRPC's C core, 0 B to 4 MiB",
        run: grpcio::client,
    },
    Step { name: "negative", about: "`thalweg load` against servers that misbehave", run: negative::check },
    Step {
        name: "peers",
        about: "tonic, gRPC C++ and grpc-go keep the contract of peers/README.md",
        run: peers::check,
    },
    Step { name: "report", about: "`thalweg lab --quick`, and its page in Chromium", run: report::check },
];

/// How one step ended.
enum Verdict {
    Passed(String),
    Failed(String),
    /// What it needs cannot be had, and the person said that this is all right.
    LeftOut(String),
}

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let list = arguments.flag("--list");
    let allow_missing = arguments.flag("--allow-missing");
    let only = arguments.value("--only")?;
    arguments.finish()?;
    let steps = selected(only.as_deref())?;
    if list {
        for step in steps {
            println!("{:<14} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    }

    let mut results = Vec::new();
    for step in steps {
        announce(step);
        let start = Instant::now();
        let verdict = judge(step, allow_missing)?;
        let took = start.elapsed();
        println!("{}", row(step, &verdict, took));
        if let Verdict::Failed(_) = verdict {
            print_log(step);
        }
        results.push((step, verdict, took));
    }
    Ok(summarise(&results))
}

/// The steps named in `--only`, in our order, or all of them.
fn selected(only: Option<&str>) -> Result<Vec<&'static Step>, Misuse> {
    let Some(only) = only else { return Ok(STEPS.iter().collect()) };
    let names: Vec<&str> = only.split(',').map(str::trim).collect();
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Misuse(format!("there is no step `{unknown}`; the steps are {}", known.join(", "))));
    }
    Ok(STEPS.iter().filter(|step| names.contains(&step.name)).collect())
}

fn judge(step: &Step, allow_missing: bool) -> Result<Verdict, Failure> {
    let log = Log::create(step.name)?;
    Ok(match (step.run)(&log) {
        Ok(account) => Verdict::Passed(account),
        Err(Failure::Failed(why)) => Verdict::Failed(why),
        Err(missing @ Failure::Missing(_)) if !allow_missing => Verdict::Failed(missing.to_string()),
        Err(missing @ Failure::Missing(_)) => Verdict::LeftOut(missing.to_string()),
    })
}

/// On a terminal, says which step runs now; the result overwrites the line.
fn announce(step: &Step) {
    let mut out = std::io::stdout();
    if out.is_terminal() {
        print!("....  {:<14} {}\r", step.name, step.about);
        let _ = out.flush();
    }
}

fn row(step: &Step, verdict: &Verdict, took: Duration) -> String {
    let (word, account) = match verdict {
        Verdict::Passed(account) => ("ok", account),
        Verdict::Failed(why) => ("FAIL", why),
        Verdict::LeftOut(why) => ("left", why),
    };
    // The escape clears what `announce` left on the line.
    let clear = if std::io::stdout().is_terminal() { "\x1b[K" } else { "" };
    format!("{clear}{word:<5} {:<14} {:>7.1} s  {account}", step.name, took.as_secs_f64())
}

/// The end of a failed step's log: what is wrong stands there, and the whole may be long.
const LOG_LINES_SHOWN: usize = 200;

fn print_log(step: &Step) {
    let path = crate::workspace::output().join(format!("{}.log", step.name));
    let text = fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let left_out = lines.len().saturating_sub(LOG_LINES_SHOWN);
    println!("---- {} ({left_out} lines left out) ----", path.display());
    for line in &lines[left_out..] {
        println!("{line}");
    }
    println!("----");
}

fn summarise(results: &[(&Step, Verdict, Duration)]) -> ExitCode {
    println!();
    for (step, verdict, took) in results {
        println!("{}", row(step, verdict, *took));
    }
    let count = |is: fn(&Verdict) -> bool| results.iter().filter(|(_, verdict, _)| is(verdict)).count();
    let passed = count(|verdict| matches!(verdict, Verdict::Passed(_)));
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    let left_out = results.len() - passed - failed;
    let total: Duration = results.iter().map(|(_, _, took)| *took).sum();
    println!("\nIn {:.1} minutes:", total.as_secs_f64() / 60.0);
    match left_out {
        0 => println!("{passed} passed, {failed} failed"),
        _ => println!("{passed} passed, {failed} failed, {left_out} skipped"),
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
