//! Drives a server that the lab did not start, with our client.

use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::interrupt::Interrupt;

use super::driver::Driver;
use super::program::Program;
use crate::load::{Purpose, Strategy, Window, WindowMeasurement};
use crate::record::{BareWire, LaneRule, MethodCall};
use crate::study::{Execute, ExecuteError};

/// Drives one method of a server that the lab did not start. Only its responses are visible.
#[derive(Debug)]
pub struct TargetExecutor {
    program: Program,
    target: String,
    method: MethodCall,
    cpus: CpuAssignment,
    interrupt: Interrupt,
    /// Whether a window succeeded: the target is reachable and has the method.
    has_answered: bool,
}

impl TargetExecutor {
    /// Creates an executor for our `program`. It uses the client's processors of `cpus`, with one thread per processor
    /// by default.
    pub fn new(
        program: Program,
        target: String,
        method: MethodCall,
        cpus: CpuAssignment,
        interrupt: Interrupt,
    ) -> Self {
        Self { program, target, method, cpus, interrupt, has_answered: false }
    }

    fn driver(&self, window: &Window) -> Driver {
        let processors = self.cpus.client_cpus.as_ref().map(|cpus| cpus.as_slice().len());
        let processors = processors.and_then(|processors| u32::try_from(processors).ok());
        Driver {
            lanes: window.strategy.map_or(LaneRule::Fixed, Strategy::rule),
            // The bare client has one thread.
            threads: self.cpus.client_threads.or(processors).filter(|_| !window.is_bare()),
            method: Some(self.method.clone()),
            bare: window.is_bare().then_some(BareWire::Grpc),
            server_cpus: None,
            ..Driver::new(&self.program, &self.target, window.point.clone(), &self.cpus, &self.interrupt)
        }
    }
}

/// Returns the driver's error without its prefix, with advice if the method is missing.
fn explained(reason: &str) -> String {
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let is_missing = reason.contains("UNIMPLEMENTED") || reason.contains("returned no message");
    let advice = if is_missing { "; use --method with one of its methods" } else { "" };
    format!("{reason}{advice}")
}

impl Execute for TargetExecutor {
    type Window = Window;
    type Measurement = WindowMeasurement;

    fn measure(&mut self, window: &Window) -> Result<WindowMeasurement, ExecuteError> {
        match window.purpose {
            Purpose::Figures | Purpose::NoiseFloor(_) => self.run(window),
            Purpose::SystemCalls => {
                Err(ExecuteError::Window("system calls of an external server cannot be counted".to_owned()))
            }
            Purpose::Wire => {
                Err(ExecuteError::Window("the wire to an external server cannot be observed".to_owned()))
            }
        }
    }
}

impl TargetExecutor {
    fn run(&mut self, window: &Window) -> Result<WindowMeasurement, ExecuteError> {
        if self.interrupt.is_requested() {
            return Err(ExecuteError::Interrupted);
        }
        match self.driver(window).run() {
            Ok(measured) => {
                self.has_answered = true;
                Ok(WindowMeasurement::Figures(Box::new(measured)))
            }
            // A target that fails the first window is assumed to fail them all.
            Err(ExecuteError::Window(reason)) if !self.has_answered => {
                Err(ExecuteError::Study(explained(&reason)))
            }
            Err(error) => Err(error),
        }
    }
}
