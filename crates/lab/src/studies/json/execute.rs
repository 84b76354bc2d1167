//! Measures windows with processes: one server for each stack, and our client.

use std::num::NonZeroU64;
use std::time::Duration;

use super::endpoint::GRPC_ONLY;
use super::window::{JsonMeasurement, JsonWindow, Purpose, WindowLength};
use crate::echo::EchoWork;
use crate::process::{EchoExecutor, EchoRun, Network};
use crate::study::{Execute, ExecuteError};

impl Execute for EchoExecutor {
    type Window = JsonWindow;
    type Measurement = JsonMeasurement;

    fn measure(&mut self, window: &JsonWindow) -> Result<JsonMeasurement, ExecuteError> {
        let stack = &window.endpoint.stack;
        let with_json = stack.variant() != Some(GRPC_ONLY);
        self.drive(stack, with_json, window.purpose == Purpose::Cold, run(window))
    }
}

fn run(window: &JsonWindow) -> EchoRun {
    let case = window.case;
    let client_work = window.recording();
    let (duration, calls) = match window.length {
        WindowLength::Ns(ns) => (Duration::from_nanos(ns), None),
        // Only the process's time limit needs the duration.
        WindowLength::Calls(calls) => (window.driving_time(), Some(calls)),
    };
    EchoRun {
        work: EchoWork {
            shape: case.shape,
            protocol: window.endpoint.protocol,
            client_work,
            gzip: case.gzip,
        },
        in_flight: window.in_flight,
        new_connection: case.new_connection,
        warmup: Duration::from_nanos(window.warmup_ns),
        duration,
        calls,
        network: Network {
            round_trip: case.round_trip(),
            rate: case.rate_bit_per_s.and_then(NonZeroU64::new),
        },
    }
}
