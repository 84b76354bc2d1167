//! Options of `load` and `peer load`.

use std::time::Duration;

use clap::Args;
use thalweg_load::peer::Announcement;
use thalweg_load::record::LaneRule;
use thalweg_load::spec::{TIMEOUT_DEFAULT, YEAR};
use thalweg_measure::target;

use crate::failure::Failure;
use crate::seconds;
use crate::terminal::{self, Syntax};

/// Target, concurrency, connections and limits.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// Server to load: HOST:PORT, https://HOST or unix:PATH
    ///
    /// Also dns:///HOST:PORT, ipv4:, ipv6:, grpc://, grpcs:// and unix-abstract:NAME. Several servers, for --lb: a name
    /// with several addresses, ipv4:IP:PORT,IP:PORT or HOST:PORT,HOST:PORT, where a name is one server.
    #[arg(value_parser = target::parse)]
    pub(crate) target: String,

    /// Concurrent calls; with --rps the upper limit [default: 64; 1000 with --rps]
    ///
    /// Streams of the call types: one for each connection by default.
    #[arg(
        short = 'c',
        long = "in-flight",
        visible_alias = "concurrency",
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) in_flight: Option<u32>,

    /// Number of connections
    ///
    /// They are those of one channel. A channel that balances (--lb) has as many to each server.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,

    /// Number of connections: fixed, adaptive, or one per call (per-call)
    ///
    /// fixed: as many as --connections. adaptive: the channel opens more while they raise throughput or lower latency.
    /// per-call: one channel for each call.
    #[arg(long, value_name = "RULE", default_value = "fixed")]
    pub(crate) lanes: LaneRule,

    /// Duration of the measurement [default: 10s]
    #[arg(short = 'z', long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,

    /// Stop after N calls; with a call type of streams, after N messages
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) total: Option<u64>,

    /// Run this long before measuring [default: 1s; 0s with -n, --rps, --find-max]
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) warmup: Option<Duration>,

    /// Deadline of each call; 0 for none [default: 10s]
    ///
    /// It covers a whole stream and is extended by --stream-for. The default is also extended by the time that
    /// --message-rate needs.
    #[arg(
        short = 't',
        long,
        alias = "max-time",
        value_name = "DURATION",
        value_parser = seconds::parse
    )]
    pub(crate) timeout: Option<Duration>,

    /// Time limit to connect and to read reflection [default: --timeout, or 10s]
    #[arg(long, value_name = "DURATION", value_parser = seconds::parse)]
    pub(crate) connect_timeout: Option<Duration>,

    /// Print `measuring` and `measured` when measuring starts and ends
    #[arg(long, hide = true)]
    pub(crate) announce: bool,
}

impl CommonArgs {
    pub(crate) fn connect_timeout(&self) -> Duration {
        let of_calls = self.timeout.filter(|timeout| !timeout.is_zero());
        self.connect_timeout.or(of_calls).unwrap_or(TIMEOUT_DEFAULT)
    }

    /// Prints the announcement if `--announce` is set.
    pub(crate) fn announce(&self, announcement: Announcement) {
        if self.announce {
            // Write errors are reported with the result.
            let _ = terminal::print(Syntax::Text, &format!("{}\n", announcement.name()));
        }
    }
}

/// Converts to nanoseconds. Fails if longer than a year.
pub(crate) fn nanoseconds(flag: &str, duration: Duration) -> Result<u64, Failure> {
    if duration > YEAR {
        return Err(Failure::bad_arguments(format!("{flag} is longer than a year")));
    }
    Ok(duration.as_nanos() as u64)
}
