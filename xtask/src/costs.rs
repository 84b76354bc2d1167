//! What the main calls cost, counted so that the counts repeat: `cargo xtask costs` prints them, `--record` commits
//! them, and the test step of this name compares the two.
//!
//! The programs that are counted do the same in every run: no sockets, no threads, no clock. What would still differ
//! between machines is which of its copying routines glibc chooses for a processor: [`TUNABLES`] pins that.

mod callgrind;
mod record;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use crate::arguments::Arguments;
use crate::bench::table::{Table, grouped};
use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::{figures, tools, workspace};

use callgrind::Counts;
pub(crate) use record::{Cost, Record, Toolchain};

/// What is run and counted.
struct Case {
    name: &'static str,
    program: Program,
    /// Calls or messages of the two runs: what the longer one has more is what so many calls more cost, without what
    /// belongs to the start and the end.
    lengths: [u64; 2],
}

#[derive(Clone, Copy)]
enum Program {
    /// Two halves of the HTTP/2 core, without the library: `crates/http2/examples/unary_calls.rs`.
    Core,
    /// The library's client and server: `crates/sim/examples/costs`.
    Library,
}

#[derive(Clone, Copy)]
enum Side {
    Server,
    Client,
}

const CASES: &[Case] = &[
    Case { name: "core-unary-64", program: Program::Core, lengths: [1280, 3840] },
    Case { name: "unary-1", program: Program::Library, lengths: [200, 600] },
    Case { name: "unary-64", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "unary-64-timeout", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "unary-64-deadline", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "unary-64-web", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "unary-64-1KiB", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "connect-unary-64", program: Program::Library, lengths: [1280, 3840] },
    Case { name: "client-stream", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "server-stream", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "bidi-stream", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "client-stream-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "server-stream-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "bidi-stream-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "client-stream-ordinary", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "server-stream-ordinary", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "bidi-stream-ordinary", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "client-stream-in-place", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "server-stream-in-place", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "bidi-stream-in-place", program: Program::Library, lengths: [4000, 40_000] },
    Case { name: "client-stream-in-place-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "server-stream-in-place-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "bidi-stream-in-place-1KiB", program: Program::Library, lengths: [1000, 10_000] },
    Case { name: "client-stream-64KiB", program: Program::Library, lengths: [64, 192] },
    Case { name: "server-stream-64KiB", program: Program::Library, lengths: [64, 192] },
];

/// Plain SSE2 copying, which every x86-64 has. Left to itself, glibc copies with AVX where there is AVX, and in large
/// pieces with `rep movsb`, which callgrind counts as an instruction for each byte: 214,039 instead of 44,607
/// instructions for a message of 64 KiB. Names that a version of glibc does not know are passed over.
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX,-AVX_Fast_Unaligned_Load,-ERMS";

/// `cargo xtask costs [--record]`.
pub(crate) fn run(mut arguments: Arguments) -> Result<ExitCode> {
    let records = arguments.flag("--record");
    arguments.finish()?;
    log::start("costs")?;
    let costs = measure()?;
    print(&costs);
    if records {
        let record = Record { toolchain: Toolchain::here()?, costs };
        println!("\nrecorded in {}", record.write()?.display());
        // The documents have a table of them.
        figures::regenerate()?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts all cases on both sides.
pub(crate) fn measure() -> Result<Vec<Cost>> {
    tools::debian("valgrind", &["valgrind"])?;
    let (core, library) = (Program::Core.build()?, Program::Library.build()?);
    let mut costs = Vec::new();
    for case in CASES {
        let program = match case.program {
            Program::Core => &core,
            Program::Library => &library,
        };
        // Two processors count at a time: what runs beside a count does not change it.
        let [server, client] = thread::scope(|scope| {
            [Side::Server, Side::Client]
                .map(|side| scope.spawn(move || case.cost(side, program)))
                .map(|counting| counting.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        costs.extend([server?, client?]);
    }
    Ok(costs)
}

impl Case {
    fn cost(&self, side: Side, program: &PathBuf) -> Result<Cost> {
        let [few, many] = self.lengths;
        let functions = self.program.functions(side);
        let counts = |count| {
            let job = Job::new(program).words(&self.arguments(count)).env("GLIBC_TUNABLES", TUNABLES);
            Counts::of(job, side.name(), functions)
        };
        let (least, most) = (counts(few)?, counts(many)?);
        let each = |least: u64, most: u64| (most as f64 - least as f64) / (many - few) as f64;
        Ok(Cost {
            case: self.name.to_owned(),
            side: side.name().to_owned(),
            instructions: each(least.instructions, most.instructions),
            allocations: each(least.allocations, most.allocations),
        })
    }

    /// What the program is told: how many calls or messages, of which case or with how many in flight.
    fn arguments(&self, count: u64) -> String {
        match self.program {
            Program::Core => format!("{count} 64"),
            Program::Library => format!("{} {count}", self.name),
        }
    }
}

impl Program {
    fn build(self) -> Result<PathBuf> {
        let example = match self {
            Self::Core => "unary_calls",
            Self::Library => "costs",
        };
        // With the command's package its dependencies have the features with which they are built for it.
        let packages = "--package thalweg-cli --package thalweg-sim --package thalweg-http2";
        let build = Job::cargo(&format!("build --release {packages} --example {example}"));
        build.builds(30).run()?;
        Ok(workspace::target().join("release/examples").join(example))
    }

    /// What runs within these is the side's.
    fn functions(self, side: Side) -> &'static [&'static str] {
        match (self, side) {
            (Self::Core, Side::Server) => &["unary_calls::serve"],
            (Self::Core, Side::Client) => &["unary_calls::call", "unary_calls::finish"],
            (Self::Library, Side::Server) => &["costs::server_turn"],
            (Self::Library, Side::Client) => &["costs::client_turn"],
        }
    }
}

impl Side {
    fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

fn print(costs: &[Cost]) {
    let row = |cost: &Cost| {
        let instructions = grouped(cost.instructions);
        vec![cost.case.clone(), cost.side.clone(), instructions, format!("{:.2}", cost.allocations)]
    };
    let rows = costs.iter().map(row).collect();
    let title = "Of one call, or of one message of a stream:";
    Table::new(title, ["case", "side", "instructions", "allocations"], rows).print();
}
