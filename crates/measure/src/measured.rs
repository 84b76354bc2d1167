//! Windows of a study, for comparisons with other measurements.

use crate::distribution::Latency;
use crate::machine::{Machine, Versions};

/// The windows of a study of calls.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredStudy {
    /// Machine of the study.
    pub machine: Machine,
    /// Versions that measured it.
    pub versions: Versions,
    /// Cells in the order of measurement, without the noise floor.
    pub cells: Vec<MeasuredCell>,
}

/// All windows of one pair, or of a bare socket, with the same settings.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredCell {
    /// Settings of each window by name: kind of call, size, transport and so on.
    pub conditions: Vec<(&'static str, String)>,
    /// Client and server, `tonic` or `thalweg → tonic`; `None` for a bare socket.
    pub pair: Option<String>,
    /// Valid windows by round.
    pub windows: Vec<MeasuredWindow>,
    /// Number of windows that failed or were disturbed.
    pub excluded: usize,
}

/// Figures of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredWindow {
    /// Round. Windows of the same round are adjacent in time.
    pub round: u32,
    /// Operations per second.
    pub rate_per_s: f64,
    /// Latency. `None` for one-way streams.
    pub latency_ns: Option<Latency>,
    /// CPU time of the client per operation, in ns; 0 if unknown.
    pub client_cpu_ns: f64,
    /// CPU time of the server per operation, in ns; 0 if unknown.
    pub server_cpu_ns: f64,
}
