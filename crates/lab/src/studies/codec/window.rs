//! Windows of a codec study and their results.

use std::fmt;
use std::time::Duration;

use thalweg_measure::figures::count;
use thalweg_measure::size::ByteSize;
use thalweg_measure::validity::Reason;

use super::line::CodecLine;
use super::tables::{Allocations, CallFigures, CallsOf, InstructionsOf, PeerResult};
use crate::load::{self, Point, Transport, Work};
use crate::record::CallType;
use crate::stack::Pair;
use crate::study;

/// Approximate time for counting instructions.
const COUNTING: Duration = Duration::from_secs(15);
/// Measured time of calls, and their warm-up.
const CALLS_MEASURED: Duration = Duration::from_millis(200);
const CALLS_WARMUP: Duration = Duration::from_millis(50);

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecWindow {
    /// Times conversions of a line.
    Conversions(Conversions),
    /// Counts allocations of a line.
    Allocations(CodecLine),
    /// Measures calls over a Unix socket.
    Calls {
        /// The calls, without figures.
        calls: CallsOf,
        /// Round, from 0.
        round: u32,
    },
    /// Counts instructions of all lines.
    Instructions,
    /// Measures all lines of a peer in another language.
    Peer {
        /// The peer's short name.
        name: String,
        /// Approximate time.
        takes: Duration,
    },
}

/// A number of conversions of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversions {
    pub(crate) line: CodecLine,
    /// Whether it is the line's duplicate, for the noise floor.
    pub(crate) is_duplicate: bool,
    #[expect(clippy::struct_field_names, reason = "the term in results and plans")]
    pub(crate) conversions: u64,
    /// Round of the step, from 0.
    pub(crate) round: u32,
    /// Estimated time.
    pub(crate) takes: Duration,
}

/// Result of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecMeasurement {
    /// Time of the conversions, and why it must not be used.
    Elapsed(Duration, Option<Reason>),
    /// Allocations per conversion.
    Allocations(Allocations),
    /// Figures of calls.
    Calls(CallFigures),
    /// Instructions of all lines.
    Instructions(Vec<InstructionsOf>),
    /// All results of the peer.
    Peer(Box<PeerResult>),
}

impl study::Window for CodecWindow {
    fn total(&self) -> Duration {
        match self {
            Self::Conversions(conversions) => conversions.takes,
            Self::Allocations(_) => Duration::ZERO,
            Self::Calls { calls, round } => study::Window::total(&calls_window(calls, *round)),
            Self::Instructions => COUNTING,
            Self::Peer { takes, .. } => *takes,
        }
    }

    fn group(&self) -> String {
        match self {
            Self::Conversions(Conversions { line, .. }) => format!("{}, {}", line.data, line.operation),
            Self::Allocations(_) => "allocations".to_owned(),
            Self::Calls { round, .. } => format!("calls over a UNIX socket, round {}", round + 1),
            Self::Instructions => "instructions, under callgrind".to_owned(),
            Self::Peer { name, .. } => format!("{name}, which takes some minutes"),
        }
    }
}

impl fmt::Display for CodecWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversions(Conversions { line, conversions, .. }) => {
                write!(f, "{line}, {} conversions", count(*conversions as f64))
            }
            Self::Allocations(line) => write!(f, "allocations of {line}"),
            Self::Calls { calls, .. } => write!(
                f,
                "calls with {}, {} in flight, over a UNIX socket",
                ByteSize(calls.size_bytes),
                calls.in_flight
            ),
            Self::Instructions | Self::Peer { .. } => f.write_str(&study::Window::group(self)),
        }
    }
}

/// Returns the window for measuring these calls like any study of calls.
pub(super) fn calls_window(calls: &CallsOf, round: u32) -> load::Window {
    let (unary, size) = (Work::Call(CallType::Unary), ByteSize(calls.size_bytes));
    let point = Point {
        warmup: CALLS_WARMUP,
        duration: CALLS_MEASURED,
        ..Point::new(unary, size, Transport::Uds, calls.in_flight, 1)
    };
    let mut window = load::Window::of_figures(point, Some(Pair::ours()), None);
    window.round = round;
    window
}
