//! Instruction and allocation counts of the main calls. `cargo xtask costs` prints them, `--record` commits them, and
//! the test step of this name compares the two.
//!
//! The counted programs are deterministic: no sockets, no threads, no clock. The copy routines that glibc selects for a
//! processor would still differ; [`TUNABLES`] pins them.

mod callgrind;
mod record;

use std::panic::resume_unwind;
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

/// Cases of a program, and the calls or messages of two runs of each. The difference of the runs excludes start and
/// stop.
struct Cases {
    names: &'static str,
    program: Program,
    lengths: [u64; 2],
}

/// An example program.
#[derive(Clone, Copy)]
struct Program {
    example: &'static str,
    /// Functions whose work counts for the server, and those for the client.
    functions: [&'static [&'static str]; 2],
}

/// Client and server of the HTTP/2 core, without the library: `crates/http2/examples/unary_calls.rs`.
const CORE: Program = Program {
    example: "unary_calls",
    functions: [&["unary_calls::serve"], &["unary_calls::call", "unary_calls::finish"]],
};
/// The library's client and server: `crates/sim/examples/costs`.
const LIBRARY: Program =
    Program { example: "costs", functions: [&["costs::server_turn"], &["costs::client_turn"]] };

const CASES: &[Cases] = &[
    Cases { names: "core-unary-64", program: CORE, lengths: [1280, 3840] },
    Cases { names: "unary-1", program: LIBRARY, lengths: [200, 600] },
    Cases {
        names: "unary-64 unary-64-timeout unary-64-deadline unary-64-web unary-192-round-robin unary-64-1KiB \
                connect-unary-64",
        program: LIBRARY,
        lengths: [1280, 3840],
    },
    Cases { names: "client-stream server-stream bidi-stream", program: LIBRARY, lengths: [4000, 40_000] },
    Cases {
        names: "client-stream-1KiB server-stream-1KiB bidi-stream-1KiB",
        program: LIBRARY,
        lengths: [1000, 10_000],
    },
    Cases {
        names: "client-stream-ordinary server-stream-ordinary bidi-stream-ordinary client-stream-in-place \
                server-stream-in-place bidi-stream-in-place",
        program: LIBRARY,
        lengths: [4000, 40_000],
    },
    Cases {
        names: "client-stream-in-place-1KiB server-stream-in-place-1KiB bidi-stream-in-place-1KiB",
        program: LIBRARY,
        lengths: [1000, 10_000],
    },
    Cases { names: "client-stream-64KiB server-stream-64KiB", program: LIBRARY, lengths: [64, 192] },
];
const SIDES: [&str; 2] = ["server", "client"];

/// Selects plain SSE2 copying, which every x86-64 has. By default glibc copies with AVX where available, and large
/// blocks with `rep movsb`. callgrind counts that as one instruction per byte: 214,039 instead of 44,607 for a 64 KiB
/// message. glibc ignores names that its version does not know.
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
        // The documents include a table of the costs.
        figures::regenerate()?;
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn measure() -> Result<Vec<Cost>> {
    tools::debian("valgrind", &["valgrind"])?;
    for program in [CORE, LIBRARY] {
        // Including the command's package gives dependencies the same features as in the command.
        let packages = "--package thalweg-cli --package thalweg-sim --package thalweg-http2";
        Job::cargo(&format!("build --release {packages} --example {}", program.example)).builds(30).run()?;
    }
    let mut costs = Vec::new();
    for cases in CASES {
        for name in cases.names.split_whitespace() {
            // Two processes count at a time: they do not affect each other's counts.
            let [server, client] = thread::scope(|scope| {
                [0, 1]
                    .map(|side| scope.spawn(move || cases.cost(name, side)))
                    .map(|counting| counting.join().unwrap_or_else(|panic| resume_unwind(panic)))
            });
            costs.extend([server?, client?]);
        }
    }
    Ok(costs)
}

impl Cases {
    fn cost(&self, name: &str, side: usize) -> Result<Cost> {
        let (Program { example, functions }, [few, many]) = (self.program, self.lengths);
        let counts = |count: u64| {
            // Number of calls or messages, and the calls in flight or the case.
            let words =
                if example == CORE.example { format!("{count} 64") } else { format!("{name} {count}") };
            let program = workspace::target().join("release/examples").join(example);
            let job = Job::new(program).words(&words).env("GLIBC_TUNABLES", TUNABLES);
            Counts::of(job, SIDES[side], functions[side])
        };
        let (least, most) = (counts(few)?, counts(many)?);
        let each = |least: u64, most: u64| (most as f64 - least as f64) / (many - few) as f64;
        Ok(Cost {
            case: name.to_owned(),
            side: SIDES[side].to_owned(),
            instructions: each(least.instructions, most.instructions),
            allocations: each(least.allocations, most.allocations),
        })
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
