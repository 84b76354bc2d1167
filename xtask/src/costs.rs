//! What the main calls cost, counted so that the counts repeat: `cargo xtask costs` prints them, `--record` commits
//! them, and the test step of this name compares the two.
//!
//! The programs that are counted do the same in every run: no sockets, no threads, no clock. What would still differ
//! between machines is which of its copying routines glibc chooses for a processor: [`TUNABLES`] pins that.

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

/// Cases of a program, and the calls or messages of two runs of each: what the longer one has more is what so many
/// calls more cost, without what belongs to the start and the end.
struct Cases {
    names: &'static str,
    program: Program,
    lengths: [u64; 2],
}

/// A program, which is an example.
#[derive(Clone, Copy)]
struct Program {
    example: &'static str,
    /// What runs within these functions is the server's, and the client's.
    functions: [&'static [&'static str]; 2],
}

/// Two halves of the HTTP/2 core, without the library: `crates/http2/examples/unary_calls.rs`.
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
        names: "unary-64 unary-64-timeout unary-64-deadline unary-64-web unary-64-1KiB connect-unary-64",
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
    for program in [CORE, LIBRARY] {
        // With the command's package its dependencies have the features with which they are built for it.
        let packages = "--package thalweg-cli --package thalweg-sim --package thalweg-http2";
        Job::cargo(&format!("build --release {packages} --example {}", program.example)).builds(30).run()?;
    }
    let mut costs = Vec::new();
    for cases in CASES {
        for name in cases.names.split_whitespace() {
            // Two processors count at a time: what runs beside a count does not change it.
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
            // How many calls or messages, with how many in flight or of which case.
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
