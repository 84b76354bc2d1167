//! Measures windows with processes: one server for each stack, and our client.

use std::num::NonZeroU64;
use std::time::Duration;

use super::way::GRPC_ALONE;
use super::window::{Found, JsonWindow, Purpose, WindowLength};
use crate::echo::EchoWork;
use crate::process::{EchoExecutor, EchoRun, Network};
use crate::study::{Execute, ExecuteError};

impl Execute for EchoExecutor {
    type Window = JsonWindow;
    type Found = Found;

    fn measure(&mut self, window: &JsonWindow) -> Result<Found, ExecuteError> {
        let stack = &window.way.stack;
        let with_json = stack.variant() != Some(GRPC_ALONE);
        self.drive(stack, with_json, window.purpose == Purpose::Cold, run(window))
    }
}

fn run(window: &JsonWindow) -> EchoRun {
    let case = window.case;
    let looks = window.looks();
    let (duration, calls) = match window.length {
        WindowLength::Ns(ns) => (Duration::from_nanos(ns), None),
        // Only the process's time limit needs the duration.
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
