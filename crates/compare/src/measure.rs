//! Measures two servers alternately. Both run all the time; one is idle while the other is under load.

mod build;
mod checkout;
mod client;
mod error;
mod event;
mod plan;
mod prepare;
mod server;
mod target;

use std::time::{Instant, SystemTime};

use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::machine::{Machine, Versions};

use crate::compare::{Options, Pairing, compare};
use crate::comparison::{Comparison, MeasuredSide, SCHEMA, Settings, SideId, WindowResult};
use crate::report::Report;
use crate::side::Side;
use client::Client;
use plan::SidePlans;
use prepare::prepare;
use server::Server;

pub use checkout::CheckoutError;
pub use error::MeasureError;
pub use event::Event;
pub use plan::{Plan, Servers, SidePlan};
pub use target::{Target, TargetError};

/// Outcome of a measurement.
#[derive(Debug)]
pub struct MeasureOutcome {
    /// The measured windows, even if the measurement was cut short.
    pub comparison: Comparison,
    /// Why some windows were not measured.
    pub cut_short: Option<MeasureError>,
}

impl MeasureOutcome {
    /// Compares both servers.
    ///
    /// # Errors
    ///
    /// Returns an error if no round was measured on both sides. Returns the error that cut the measurement short,
    /// unless it was an interrupt.
    pub fn report(&self, options: &Options) -> Result<Report, MeasureError> {
        let [a, b] = Side::both_of_comparison(&self.comparison);
        if a.cells.is_empty() || b.cells.is_empty() {
            return Err(MeasureError::NoRound);
        }
        let report = compare(&a, &b, Pairing::Paired, options)?;
        let is_empty =
            report.inconclusive_reason.is_none() && report.cells.iter().all(|cell| cell.figures.is_empty());
        match (is_empty, self.cut_short.is_some()) {
            (true, true) => Err(MeasureError::NoRound),
            (true, false) => Err(MeasureError::NoCalls),
            (false, _) => Ok(report),
        }
    }
}

/// Builds revisions, starts both servers, measures windows in the order A B, B A, A B …, and stops the servers.
///
/// # Errors
///
/// Returns an error if a server does not start. Later errors are in [`MeasureOutcome::cut_short`], next to the windows
/// measured before.
pub fn measure(
    plan: &Plan,
    interrupt: &Interrupt,
    mut observe: impl FnMut(Event<'_>),
) -> Result<MeasureOutcome, MeasureError> {
    // Work trees are removed after the servers have ended.
    let (sides, _checkouts) = prepare(plan, interrupt, &mut observe)?;
    let mut start = |side: &SidePlan| {
        observe(Event::Starts(side));
        Server::start(side, plan, interrupt)
    };
    let mut servers = [start(&sides.a)?, start(&sides.b)?];
    let mut comparison = empty_comparison(plan, &sides);
    let mut cut_short = None;
    let started = Instant::now();
    'rounds: for round in 0..plan.rounds {
        let order = if round % 2 == 0 { [SideId::A, SideId::B] } else { [SideId::B, SideId::A] };
        for which in order {
            match window(plan, &sides, which, round, &mut servers, interrupt) {
                Ok(window) => {
                    let done = comparison.windows.len() as u32 + 1;
                    let left = started.elapsed() / done * (2 * plan.rounds).saturating_sub(done);
                    observe(Event::Window { side: sides.side(which), round, run: &window.run, left });
                    comparison.windows.push(window);
                    comparison.ended = timestamp();
                }
                Err(error) => {
                    cut_short = Some(error);
                    break 'rounds;
                }
            }
        }
    }
    // Lets both servers shut down in parallel.
    servers.iter().for_each(Server::terminate);
    Ok(MeasureOutcome { comparison, cut_short })
}

fn window(
    plan: &Plan,
    sides: &SidePlans,
    which: SideId,
    round: u32,
    servers: &mut [Server; 2],
    interrupt: &Interrupt,
) -> Result<WindowResult, MeasureError> {
    let side = sides.side(which);
    let server = &servers[usize::from(which == SideId::B)];
    let driven = Client { plan, side, server: server.id(), interrupt }.run();
    // A server that has exited is a better explanation than its client's error.
    for (server, side) in servers.iter_mut().zip([&sides.a, &sides.b]) {
        if let Some(why) = server.exit_reason() {
            return Err(MeasureError::Ended { name: side.name.clone(), why });
        }
    }
    let (run, server_cpu_ns) = driven?;
    Ok(WindowResult { side: which, round, server_cpu_ns, run: run.without_histograms() })
}

fn empty_comparison(plan: &Plan, sides: &SidePlans) -> Comparison {
    let now = timestamp();
    let side = |side: &SidePlan| MeasuredSide {
        name: side.name.clone(),
        command: side.command.clone(),
        target: side.target.to_string(),
        revision: side.revision.clone(),
    };
    Comparison {
        schema: SCHEMA.to_owned(),
        started: now.clone(),
        ended: now,
        machine: Machine::this(),
        versions: Versions::current(),
        settings: Settings {
            rounds: plan.rounds,
            window_ns: plan.window.as_nanos() as u64,
            warmup_ns: plan.warm_up.as_nanos() as u64,
            load: plan.load.clone(),
            server_cpus: plan.server_cpus.clone(),
            client_cpus: plan.client_cpus.clone(),
        },
        a: side(&sides.a),
        b: side(&sides.b),
        windows: Vec::new(),
    }
}

fn timestamp() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
