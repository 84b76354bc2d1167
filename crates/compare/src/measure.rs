//! Measures two servers in turns: both run all the time, and one of them is idle while the other is driven.

mod build;
mod checkout;
mod client;
mod error;
mod plan;
mod server;
mod target;

use std::time::{Duration, Instant, SystemTime};

use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::machine::{Machine, Versions};

use crate::comparison::{Comparison, MeasuredSide, SCHEMA, Settings, Which, WindowResult, WindowRun};
use client::Client;
use server::Server;

pub use build::build;
pub use checkout::{Checkout, CheckoutError, Repository};
pub use error::MeasureError;
pub use plan::{Plan, SidePlan};
pub use target::{FreePorts, Target, TargetError};

/// What came of measuring.
#[derive(Debug)]
pub struct Measured {
    /// What was found, also where it was cut short.
    pub comparison: Comparison,
    /// Why not every window was measured.
    pub cut_short: Option<MeasureError>,
}

/// Told how it goes on.
#[derive(Debug)]
pub enum Event<'a> {
    /// A server is started.
    Starts(&'a SidePlan),
    /// A window has ended.
    Window {
        /// Whose.
        side: &'a SidePlan,
        /// From 0.
        round: u32,
        /// What it found.
        run: &'a WindowRun,
        /// How long the windows to come will take, as those so far did.
        left: Duration,
    },
}

/// Starts both servers, measures windows in the order A B, B A, A B …, and ends the servers.
///
/// # Errors
///
/// Where a server does not come to listen. Whatever ends it later is told beside what was found until then.
pub fn measure(
    plan: &Plan,
    interrupt: &Interrupt,
    mut observe: impl FnMut(Event<'_>),
) -> Result<Measured, MeasureError> {
    let mut start = |side: &SidePlan| {
        observe(Event::Starts(side));
        Server::start(side, plan, interrupt)
    };
    let mut servers = [start(&plan.a)?, start(&plan.b)?];
    let mut comparison = begun(plan);
    let mut cut_short = None;
    let started = Instant::now();
    'rounds: for round in 0..plan.rounds {
        let order = if round % 2 == 0 { [Which::A, Which::B] } else { [Which::B, Which::A] };
        for which in order {
            match window(plan, which, round, &mut servers, interrupt) {
                Ok(window) => {
                    let done = comparison.windows.len() as u32 + 1;
                    let left = started.elapsed() / done * (2 * plan.rounds).saturating_sub(done);
                    observe(Event::Window { side: plan.side(which), round, run: &window.run, left });
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
    // Both end at the same time.
    servers.iter().for_each(Server::ask_to_end);
    Ok(Measured { comparison, cut_short })
}

fn window(
    plan: &Plan,
    which: Which,
    round: u32,
    servers: &mut [Server; 2],
    interrupt: &Interrupt,
) -> Result<WindowResult, MeasureError> {
    let side = plan.side(which);
    let server = &servers[usize::from(which == Which::B)];
    let driven = Client { plan, side, server: server.id(), interrupt }.run();
    // That a server is no more says more than what its client says of it.
    for (server, side) in servers.iter_mut().zip([&plan.a, &plan.b]) {
        if let Some(why) = server.ended() {
            return Err(MeasureError::Ended { name: side.name.clone(), why });
        }
    }
    let (run, server_cpu_ns) = driven?;
    Ok(WindowResult { side: which, round, server_cpu_ns, run: run.without_histograms() })
}

fn begun(plan: &Plan) -> Comparison {
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
        versions: Versions::this(),
        settings: Settings {
            rounds: plan.rounds,
            window_ns: plan.window.as_nanos() as u64,
            warmup_ns: plan.warm_up.as_nanos() as u64,
            load: plan.load.clone(),
            server_cpus: plan.server_cpus.clone(),
            client_cpus: plan.client_cpus.clone(),
        },
        a: side(&plan.a),
        b: side(&plan.b),
        windows: Vec::new(),
    }
}

fn timestamp() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}
