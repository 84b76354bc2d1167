//! What a codec study measures at once, and what that finds.

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

/// What counting instructions takes, about.
const COUNTING: Duration = Duration::from_secs(15);
/// How long calls are driven, and before that.
const CALLS_MEASURED: Duration = Duration::from_millis(200);
const CALLS_WARMUP: Duration = Duration::from_millis(50);

/// What is measured at once.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecWindow {
    /// Conversions of a line, timed.
    Conversions(Conversions),
    /// What a line asks of the allocator.
    Allocations(CodecLine),
    /// Calls over a UNIX socket.
    Calls {
        /// Which, without a figure.
        calls: CallsOf,
        /// Which round of them, from 0.
        round: u32,
    },
    /// Instructions of all lines.
    Instructions,
    /// All lines of a program of another language.
    Peer {
        /// Its short name.
        name: String,
        /// How long, about.
        takes: Duration,
    },
}

/// So many conversions of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversions {
    /// Which line.
    pub(crate) line: CodecLine,
    /// It is the line's double, for the noise floor.
    pub(crate) again: bool,
    /// How many conversions.
    #[expect(clippy::struct_field_names, reason = "results and plans call it so")]
    pub(crate) conversions: u64,
    /// Which round of the step, from 0.
    pub(crate) round: u32,
    /// How long, by a first look.
    pub(crate) takes: Duration,
}

/// What a window finds.
#[derive(Clone, Debug, PartialEq)]
pub enum CodecFound {
    /// How long the conversions took, and why that must not be used.
    Elapsed(Duration, Option<Reason>),
    /// What one of them asks of the allocator.
    Allocations(Allocations),
    /// What calls took.
    Calls(CallFigures),
    /// Of all lines.
    Instructions(Vec<InstructionsOf>),
    /// Everything that the peer found.
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

/// The window of calls that is measured as any study of calls measures its own.
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
