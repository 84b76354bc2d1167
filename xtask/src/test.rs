//! `cargo xtask test`: the steps of a tier, in two parallel sequences.

mod book;
mod call;
mod cases;
mod conformance;
mod connect;
mod costs;
mod decisions;
mod dependencies;
mod deploy;
mod disk;
mod dist;
mod environment;
mod examples;
mod fleet;
mod grpcio;
mod h2spec;
mod import_cycles;
mod interop;
mod layering;
mod metrics;
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
mod prose;
mod protos;
mod python;
mod rebuild;
mod report;
pub(crate) mod rust;
mod schedule;
mod services;
mod source;
mod steps;
pub(crate) mod surface;
mod tls;
mod web;
mod workflows;

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::arguments::{Arguments, are_known};
use crate::failure::{Failure, Result};
use crate::log;

use outcome::StepTime;
use steps::{STEPS, Step, TIERS, Tier};

pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let list = arguments.flag("--list");
    let allow_missing = arguments.flag("--allow-missing");
    let all = arguments.flag("--all");
    let step_alone = arguments.value("--step")?;
    let only = arguments.value("--only")?;
    let tier = arguments.value("--tier")?;
    arguments.finish()?;
    if let Some(name) = step_alone {
        return run_alone(&name);
    }
    if list {
        print!("{}", steps::list());
        return Ok(ExitCode::SUCCESS);
    }
    let steps = match only {
        Some(names) => steps_named(&names)?,
        None if all => STEPS.iter().collect(),
        None => steps_of_tiers(tier.as_deref().unwrap_or(Tier::Push.name()))?,
    };

    let environment = environment::variables();
    for (name, value) in &environment {
        println!("{name}={value}");
    }
    let free = disk::free();
    if let Some(free) = free {
        println!("{} of disk space free", disk::gigabytes(free));
    }
    let start = Instant::now();
    let report = |finished: &schedule::FinishedStep| {
        print!("{}", finished.printed);
        println!("{}", row(finished, allow_missing));
        if is_failure(finished, allow_missing) {
            print_log(finished.step);
        }
    };
    let finished = schedule::run(&steps, &environment, report);
    if let Some((before, now)) = free.zip(disk::free()) {
        println!(
            "\nDisk: {} more in use, {} free",
            disk::gigabytes(before.saturating_sub(now)),
            disk::gigabytes(now)
        );
    }
    Ok(summarise(&finished, start.elapsed(), allow_missing))
}

/// Runs a step in this process, which [`schedule::run`] started for it.
fn run_alone(name: &str) -> Result<ExitCode> {
    for step in steps_named(name)? {
        log::start(step.name)?;
        println!("{}", outcome::line(&(step.run)()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The steps named in `--only`, in our order.
fn steps_named(only: &str) -> Result<Vec<&'static Step>> {
    let names: Vec<&str> = only.split(',').map(str::trim).collect();
    are_known("step", &names, &STEPS.iter().map(|step| step.name).collect::<Vec<_>>())?;
    Ok(STEPS.iter().filter(|step| names.contains(&step.name)).collect())
}

/// The steps of the tiers named in `--tier`, with the steps of other tiers that they need.
fn steps_of_tiers(names: &str) -> Result<Vec<&'static Step>> {
    let names: Vec<&str> = names.split(',').map(str::trim).collect();
    are_known("tier", &names, &TIERS.iter().map(|tier| tier.name()).collect::<Vec<_>>())?;
    let is_selected = |step: &Step| names.contains(&step.tier.name());
    let is_needed =
        |step: &Step| STEPS.iter().any(|other| is_selected(other) && other.after.contains(&step.name));
    Ok(STEPS.iter().filter(|step| is_selected(step) || is_needed(step)).collect())
}

fn is_failure(finished: &schedule::FinishedStep, allow_missing: bool) -> bool {
    match &finished.result {
        Ok(_) => false,
        Err(Failure::Missing(_)) => !allow_missing && !finished.step.tier.allows_missing(),
        Err(_) => true,
    }
}

fn row(finished: &schedule::FinishedStep, allow_missing: bool) -> String {
    let (label, summary) = match &finished.result {
        Ok(summary) => ("ok", summary.clone()),
        Err(why) if is_failure(finished, allow_missing) => ("FAIL", why.to_string()),
        Err(why) => ("skip", why.to_string()),
    };
    let summary = summary.replace('\n', " ");
    format!("{label:<5} {:<14} {:>7.1} s  {summary}", finished.step.name, finished.took.elapsed.as_secs_f64())
}

/// Number of lines shown from the end of a failed step's log, which may be long.
const LOG_LINES_SHOWN: usize = 200;

fn print_log(step: &Step) {
    let path = crate::workspace::output().join(format!("{}.log", step.name));
    let text = fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let omitted = lines.len().saturating_sub(LOG_LINES_SHOWN);
    println!("---- {} ({omitted} lines omitted) ----", path.display());
    for line in &lines[omitted..] {
        println!("{line}");
    }
    println!("----");
}

fn summarise(finished: &[schedule::FinishedStep], elapsed: Duration, allow_missing: bool) -> ExitCode {
    println!("\nMinutes of each step; two sequences ran in parallel:\n");
    println!("{:<6}{:<16}{:>8}{:>8}{:>8}{:>12}", "", "step", "minutes", "builds", "runs", "processor");
    let mut sum = StepTime::default();
    for step_result in finished {
        let label = if is_failure(step_result, allow_missing) { "FAIL" } else { "" };
        println!("{}", minutes(label, step_result.step.name, step_result.took));
        sum.elapsed += step_result.took.elapsed;
        sum.builds += step_result.took.builds;
        sum.cpu += step_result.took.cpu;
    }
    println!("{}", minutes("", "all", sum));

    println!();
    for step_result in finished {
        println!("{}", row(step_result, allow_missing));
    }
    let failed = finished.iter().filter(|step_result| is_failure(step_result, allow_missing)).count();
    let passed = finished.iter().filter(|step_result| step_result.result.is_ok()).count();
    let omitted = finished.len() - passed - failed;
    println!("\nIn {:.1} minutes:", elapsed.as_secs_f64() / 60.0);
    match omitted {
        0 => println!("{passed} passed, {failed} failed"),
        _ => println!("{passed} passed, {failed} failed, {omitted} skipped"),
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Formats a line like `      tests            4.21    2.80    1.41        6.90`.
fn minutes(label: &str, name: &str, took: StepTime) -> String {
    let [elapsed, builds, runs, cpu] =
        [took.elapsed, took.builds, took.elapsed.saturating_sub(took.builds), took.cpu]
            .map(|time| format!("{:.2}", time.as_secs_f64() / 60.0));
    format!("{label:<6}{name:<16}{elapsed:>8}{builds:>8}{runs:>8}{cpu:>12}")
}
