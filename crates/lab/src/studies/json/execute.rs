//! Measures windows by processes: a server of each stack, and our client.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use super::way::GRPC_ALONE;
use super::window::{Found, JsonWindow, Purpose, WindowLength};
use crate::echo::EchoWork;
use crate::process::{EchoProcesses, EchoRun, Network, OwnFiles, Program};
use crate::study::{Execute, ExecuteError};

/// Starts servers as they are wanted, and drives one of them at a time.
#[derive(Debug)]
pub struct JsonExecutor(EchoProcesses);

impl JsonExecutor {
    /// For stacks of these names, ours among them, and one's own messages. Nothing is started yet.
    pub fn new(
        programs: BTreeMap<String, Program>,
        own: Option<OwnFiles>,
        cpus: CpuAssignment,
        interrupt: Interrupt,
    ) -> Self {
        Self(EchoProcesses::new(programs, own, cpus, interrupt))
    }
}

impl Execute for JsonExecutor {
    type Window = JsonWindow;
    type Found = Found;

    fn measure(&mut self, window: &JsonWindow) -> Result<Found, ExecuteError> {
        let stack = &window.way.stack;
        let with_json = stack.variant() != Some(GRPC_ALONE);
        let run = run(window);
        match window.purpose {
            Purpose::Cold => self.0.drive_anew(stack, with_json, run),
            _ => self.0.drive(stack, with_json, run),
        }
    }
}

fn run(window: &JsonWindow) -> EchoRun {
    let case = window.case;
    let looks = window.looks();
    let (duration, calls) = match window.length {
        WindowLength::Ns(ns) => (Duration::from_nanos(ns), None),
        // Only who waits for it asks how long that may take.
        WindowLength::Calls(calls) => (window.driven(), Some(calls)),
    };
    EchoRun {
        work: EchoWork { shape: case.shape, protocol: window.way.protocol, looks, gzip: case.gzip },
        in_flight: window.in_flight,
        afresh: case.afresh,
        warmup: Duration::from_nanos(window.warmup_ns),
        duration,
        calls,
        network: Network {
            round_trip: case.round_trip(),
            rate: case.rate_bit_per_s.and_then(NonZeroU64::new),
        },
    }
}
