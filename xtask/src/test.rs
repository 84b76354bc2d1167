//! `cargo xtask test`: every check that a change must pass, in two sequences beside each other.

mod book;
mod call;
mod circles;
mod conformance;
mod connect;
mod costs;
mod deny;
mod dependencies;
mod deploy;
mod disk;
mod dist;
mod etcd;
mod examples;
mod extent;
mod grpcio;
mod h2spec;
mod interop;
mod layering;
mod metrics;
mod modules;
mod negative;
mod oldest;
mod openapi;
mod outcome;
mod packages;
mod pages;
mod peers;
mod platforms;
mod plugin;
mod programs;
mod protos;
mod rebuild;
mod report;
pub(crate) mod rust;
mod schedule;
mod services;
mod steps;
pub(crate) mod surface;
mod tls;
mod tokens;
mod web;
mod workflows;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::arguments::{Arguments, Misuse};
use crate::ended::Ended;
use crate::job::Log;

use outcome::{Took, Verdict};
use steps::{STEPS, Step};

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode, Ended> {
    let list = arguments.flag("--list");
    let as_markdown = arguments.flag("--markdown");
    let allow_missing = arguments.flag("--allow-missing");
    let is_long = arguments.flag("--long");
    let one = arguments.value("--step")?;
    let only = arguments.value("--only")?;
    arguments.finish()?;
    if let Some(name) = one {
        return run_alone(&name);
    }
    let steps = selected(only.as_deref(), is_long || list)?;
    if list {
        if as_markdown {
            print!("{}", steps::markdown());
        } else {
            for step in steps {
                println!("{:<14} {}", step.name, step.proves);
            }
        }
        return Ok(ExitCode::SUCCESS);
    }

    let environment = extent::environment(is_long);
    for (name, value) in &environment {
        println!("{name}={value}");
    }
    let free = disk::free();
    if let Some(free) = free {
        println!("{} of disk are free", disk::gigabytes(free));
    }
    let start = Instant::now();
    let told = |ended: &schedule::Ended| {
        print!("{}", ended.said);
        println!("{}", row(ended, allow_missing));
        if is_failure(&ended.verdict, allow_missing) {
            print_log(ended.step);
        }
    };
    let ended = schedule::run(&steps, &environment, told);
    if let Some((before, now)) = free.zip(disk::free()) {
        println!(
            "\nOf the disk {} more are in use, and {} are free",
            disk::gigabytes(before.saturating_sub(now)),
            disk::gigabytes(now)
        );
    }
    Ok(summarise(&ended, start.elapsed(), allow_missing))
}

/// A step in this process, which [`schedule::run`] started for it.
fn run_alone(name: &str) -> Result<ExitCode, Ended> {
    let Some(step) = STEPS.iter().find(|step| step.name == name) else {
        return Err(Misuse(format!("there is no step `{name}`")).into());
    };
    let log = Log::create(step.name)?;
    println!("{}", outcome::line(&Verdict::from((step.run)(&log))));
    Ok(ExitCode::SUCCESS)
}

/// The steps named in `--only`, in our order, or all of them; those that have no bounded form only if `is_long`.
fn selected(only: Option<&str>, is_long: bool) -> Result<Vec<&'static Step>, Misuse> {
    let Some(only) = only else {
        return Ok(STEPS.iter().filter(|step| is_long || !steps::ONLY_LONG.contains(&step.name)).collect());
    };
    let names: Vec<&str> = only.split(',').map(str::trim).collect();
    if let Some(unknown) = names.iter().find(|name| STEPS.iter().all(|step| step.name != **name)) {
        let known: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        return Err(Misuse(format!("there is no step `{unknown}`; the steps are {}", known.join(", "))));
    }
    Ok(STEPS.iter().filter(|step| names.contains(&step.name)).collect())
}

fn is_failure(verdict: &Verdict, allow_missing: bool) -> bool {
    match verdict {
        Verdict::Passed(_) => false,
        Verdict::Failed(_) => true,
        Verdict::Missing(_) => !allow_missing,
    }
}

fn row(ended: &schedule::Ended, allow_missing: bool) -> String {
    let (Verdict::Passed(account) | Verdict::Failed(account) | Verdict::Missing(account)) = &ended.verdict;
    let word = match &ended.verdict {
        Verdict::Passed(_) => "ok",
        Verdict::Missing(_) if allow_missing => "left",
        Verdict::Failed(_) | Verdict::Missing(_) => "FAIL",
    };
    format!("{word:<5} {:<14} {:>7.1} s  {account}", ended.step.name, ended.took.elapsed.as_secs_f64())
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

fn summarise(ended: &[schedule::Ended], elapsed: Duration, allow_missing: bool) -> ExitCode {
    println!("\nWhere the minutes went; two sequences ran beside each other:\n");
    println!("{:<6}{:<16}{:>8}{:>8}{:>8}{:>12}", "", "step", "minutes", "builds", "runs", "processor");
    let mut sum = Took::default();
    for one in ended {
        let word = if is_failure(&one.verdict, allow_missing) { "FAIL" } else { "" };
        println!("{}", minutes(word, one.step.name, one.took));
        sum.elapsed += one.took.elapsed;
        sum.builds += one.took.builds;
        sum.cpu += one.took.cpu;
    }
    println!("{}", minutes("", "all", sum));

    println!();
    for one in ended {
        println!("{}", row(one, allow_missing));
    }
    let failed = ended.iter().filter(|one| is_failure(&one.verdict, allow_missing)).count();
    let passed = ended.iter().filter(|one| matches!(one.verdict, Verdict::Passed(_))).count();
    let left_out = ended.len() - passed - failed;
    println!("\nIn {:.1} minutes:", elapsed.as_secs_f64() / 60.0);
    match left_out {
        0 => println!("{passed} passed, {failed} failed"),
        _ => println!("{passed} passed, {failed} failed, {left_out} skipped"),
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// `      tests            4.21    2.80    1.41        6.90`
fn minutes(word: &str, name: &str, took: Took) -> String {
    let [elapsed, builds, runs, cpu] =
        [took.elapsed, took.builds, took.elapsed.saturating_sub(took.builds), took.cpu]
            .map(|time| format!("{:.2}", time.as_secs_f64() / 60.0));
    format!("{word:<6}{name:<16}{elapsed:>8}{builds:>8}{runs:>8}{cpu:>12}")
}
