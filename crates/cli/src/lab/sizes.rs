//! `thalweg lab sizes`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use clap::Args;
use thalweg_lab::load::{Transport, Window};
use thalweg_lab::process::Program;
use thalweg_lab::sizes::{self, SizesOptions};
use thalweg_lab::stacks::Stacks;
use thalweg_lab::study::{Plan, StudyKind};
use thalweg_load::record::CallType;
use thalweg_measure::cpus::CpuAssignment;
use thalweg_measure::size::ByteSize;

use super::calls::{CallsStudy, CommonArgs};
use super::common::halves;
use crate::failure::Failure;

/// Measure call types and message sizes: the default (15 minutes; 2 with --quick)
///
/// Over TCP and Unix sockets. Comparing four stacks takes 50 minutes, or 6 with --quick.
#[derive(Debug, Args)]
pub(super) struct SizesArgs {
    #[command(flatten)]
    common: CommonArgs,

    /// Call types, such as unary,bidi-stream [default: all four]
    #[arg(long, value_name = "TYPES", value_delimiter = ',', conflicts_with = "from")]
    calls: Option<Vec<CallType>>,

    /// Message sizes, such as 0,1KiB,1.5MB [default: 0 to 4 MiB]
    #[arg(long, value_name = "SIZES", value_delimiter = ',', conflicts_with = "from")]
    sizes: Option<Vec<ByteSize>>,

    /// Transports: tcp, uds or tcp,uds [default: both; comparing with --quick: tcp]
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "from")]
    transports: Option<Vec<Transport>>,

    /// Concurrent unary calls, in addition to one at a time
    #[arg(short = 'c', long = "in-flight", value_name = "N", default_value_t = 16)]
    in_flight: u32,

    /// Connection counts to measure, such as 1,16
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1")]
    connections: Vec<u32>,

    /// Threads of each client and server [default: each stack's own]
    #[arg(long, value_name = "N", conflicts_with = "from")]
    threads: Option<NonZeroU32>,
}

impl CallsStudy for SizesArgs {
    const KIND: StudyKind = StudyKind::Sizes;

    fn common(&self) -> &CommonArgs {
        &self.common
    }

    fn cpus(&self) -> Result<CpuAssignment, Failure> {
        let threads = self.threads.map(NonZeroU32::get);
        Ok(CpuAssignment { client_threads: threads, server_threads: threads, ..halves()? })
    }

    fn plan(&self, stacks: &Stacks, _: &BTreeMap<String, Program>) -> Result<Plan<Window>, Failure> {
        sizes::plan(&self.options(stacks)).map_err(Failure::bad_arguments)
    }
}

impl SizesArgs {
    fn options(&self, stacks: &Stacks) -> SizesOptions {
        let study = match (stacks.compares(), self.common.study.quick) {
            (false, true) => SizesOptions::quick(),
            (false, false) => SizesOptions::whole(),
            (true, true) => SizesOptions::quick_comparison(stacks.pairs(), stacks.with_socket()),
            (true, false) => SizesOptions::whole_comparison(stacks.pairs(), stacks.with_socket()),
        };
        SizesOptions {
            sizes: self.sizes.clone().unwrap_or(study.sizes),
            calls: self.calls.clone().unwrap_or(study.calls),
            transports: self.transports.clone().unwrap_or(study.transports),
            in_flight: self.in_flight,
            connections: self.connections.clone(),
            budget: self.common.study.budget.unwrap_or(study.budget),
            rounds: study.rounds,
            comparison: study.comparison,
        }
    }
}
