//! What a study found, and what speaks against its figures: values, and how they are worded.

use std::fmt;

use thalweg_measure::figures::percent;
use thalweg_measure::wording::counted;

/// One thing that a study found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What it is about.
    pub(crate) topic: Topic,
    /// A few sentences.
    pub(crate) text: String,
}

/// What findings are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic {
    /// How long a lone call takes, and up to which size.
    Latency,
    /// Bytes per second.
    Throughput,
    /// Operations per second.
    Rate,
    /// Which call type is fastest at which size.
    CallType,
    /// TCP beside Unix domain sockets.
    Transports,
    /// The longest waits.
    Spikes,
    /// What a call costs as connections grow.
    Growth,
    /// What a call costs beside the bare echo's.
    Floor,
    /// What a call costs beside other stacks'.
    Servers,
    /// What idle connections cost the active ones.
    IdleConnections,
    /// Bytes of a connection.
    Memory,
    /// How evenly connections are served.
    Fairness,
    /// New connections.
    Arrivals,
    /// Where Protobuf takes less time than JSON.
    ProtobufWins,
    /// Where it does not.
    ProtobufLoses,
    /// Bytes of a message, by format.
    Bytes,
    /// What conversions are of a call.
    ShareOfCall,
    /// Codecs of ProtoJSON.
    ProtoJson,
    /// Codecs of MessagePack.
    MessagePack,
    /// Codecs that learn a message's type at run time.
    TypeAtRunTime,
    /// Messages that borrow from the bytes that they were read from.
    Borrowing,
    /// The first conversions beside the later ones.
    FirstConversions,
    /// Codecs on the JVM.
    Jvm,
    /// What a line differs from itself by.
    Noise,
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Latency => "Latency",
            Self::Throughput => "Throughput",
            Self::Rate => "Rate",
            Self::CallType => "Which call",
            Self::Transports => "TCP or UDS",
            Self::Spikes => "Spikes",
            Self::Growth => "As connections grow",
            Self::Floor => "Compared with the bare echo",
            Self::Servers => "Compared with other servers",
            Self::IdleConnections => "Idle connections",
            Self::Memory => "Memory",
            Self::Fairness => "Fairness",
            Self::Arrivals => "New connections",
            Self::ProtobufWins => "Where Protobuf wins",
            Self::ProtobufLoses => "Where it does not",
            Self::Bytes => "Bytes",
            Self::ShareOfCall => "Share of a whole call",
            Self::ProtoJson => "ProtoJSON",
            Self::MessagePack => "MessagePack",
            Self::TypeAtRunTime => "Type at run time",
            Self::Borrowing => "Borrowing",
            Self::FirstConversions => "The first conversions",
            Self::Jvm => "On the JVM",
            Self::Noise => "Noise",
        })
    }
}

/// What a reader must know before using the figures of a study.
#[derive(Clone, Debug, PartialEq)]
pub enum Doubt {
    /// Not all was measured.
    CutShort {
        /// So much was.
        done: usize,
        /// Of so much.
        planned: usize,
    },
    /// The program was not built for speed.
    Build(String),
    /// Client and server had one processor between them.
    OneProcessor,
    /// Other programs ran.
    Busy {
        /// Threads that wanted a processor, on average over the minute before.
        load_average: f64,
        /// How many there are.
        cores: usize,
    },
    /// TCP sent by a timer.
    Paced {
        /// Its congestion control.
        by: String,
    },
    /// The machine gives free memory back to its host.
    MemoryGivenBack,
    /// Points were left out, and why.
    Grid(String),
    /// Something is to be said of windows.
    Windows(Remark),
    /// The noise floor, as a ratio, is high.
    Noisy {
        /// As a ratio: 1.3.
        floor: f64,
    },
    /// The noise floor of some of the figures, as a ratio, is high.
    NoisyAt {
        /// Of which.
        what: String,
        /// As a ratio: 1.3.
        floor: f64,
    },
    /// Lines of peers whose iterations differ.
    UnsteadyPeers {
        /// So many.
        unsteady: usize,
        /// Of so many.
        lines: usize,
        /// By more than this share of their median.
        by: f64,
    },
    /// The user's own messages leave out the codecs that generate code.
    DynamicOnly,
    /// Windows are not valid, in a sentence.
    Disturbed(String),
    /// Something could not be measured.
    LeftOut {
        /// What.
        what: String,
        /// Why.
        reason: String,
    },
}

/// A remark on one window, or on several that differ in their figures only.
#[derive(Clone, Debug, PartialEq)]
pub struct Remark {
    /// What it means for the figures.
    pub(crate) weight: Weight,
    /// The first window that it was made of.
    pub(crate) window: String,
    /// What was said of it.
    pub(crate) text: String,
    /// Of how many windows.
    pub(crate) count: usize,
    /// How many windows there are.
    pub(crate) of: usize,
}

/// What a remark means for the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weight {
    /// There are none.
    NotMeasured,
    /// They must not be used.
    NotValid,
    /// They may be used.
    Note,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CutShort { done, planned } => {
                let planned = counted(*planned as u64, "window");
                write!(f, "The study was cut short: {done} of {planned} were measured.")
            }
            Self::Build(build) => {
                write!(f, "This is a {build} build; use --release for meaningful figures.")
            }
            Self::OneProcessor => {
                f.write_str("There is only one processor: client and server competed for it.")
            }
            Self::Busy { load_average, cores } => write!(
                f,
                "Other programs were running when the study started (load average {load_average:.1} on {}); repeat it \
                 on an idle machine.",
                counted(*cores as u64, "core")
            ),
            Self::Paced { by } => write!(
                f,
                "TCP congestion control is {by}, which paces packets with a timer. Over loopback this slows streams \
                 by up to 50 %, and varies between runs. Linux’s default is cubic: \
                 `sysctl -w net.ipv4.tcp_congestion_control=cubic`."
            ),
            Self::MemoryGivenBack => f.write_str(
                "This virtual machine returns free memory to its host (free page reporting). Touching such a page \
                 again takes up to ten times as long, so windows that need fresh memory are slow for every stack.",
            ),
            Self::Grid(text) | Self::Disturbed(text) => f.write_str(text),
            Self::Windows(remark) => remark.fmt(f),
            Self::Noisy { floor } => write!(
                f,
                "Measured against itself, the same variant differed by up to {}: this is the noise floor, and \
                 smaller differences are not significant.",
                percent(floor - 1.0)
            ),
            Self::NoisyAt { what, floor } => write!(
                f,
                "{what}: measured against itself, the same variant differed by up to {}: this is the noise floor \
                 here, and smaller differences are not significant.",
                percent(floor - 1.0)
            ),
            Self::UnsteadyPeers { unsteady, lines, by } => write!(
                f,
                "{unsteady} of {lines} results of other programs are unstable: iterations differ by more than {}.",
                percent(*by)
            ),
            Self::DynamicOnly => f.write_str(
                "The message's type is known at run time only, so codecs with generated code are not measured.",
            ),
            Self::LeftOut { what, reason } => write!(f, "{what}: {reason}"),
        }
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weight, window, text, count, of } = self;
        if *count == 1 {
            return write!(f, "{weight}: {window}: {text}.");
        }
        let all = counted(*of as u64, "window");
        write!(f, "{weight} in {count} of {all}, first in {window}: {text}.")
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotMeasured => "Not measured",
            Self::NotValid => "Not valid",
            Self::Note => "Note",
        })
    }
}
