//! Messages and codecs of the lab's codec study.
//!
//! This program is a peer of the lab, which drives it by the protocol in `peers/README.md`. The study (plan, results
//! and report) is in the lab, the timed loops are here. Only this program depends on the compared codecs, so users of
//! the library or the command do not build them.

mod allocations;
mod bench;
mod codecs;
mod contract;
mod converter;
mod instructions;
mod own;
mod read;
mod respond;
mod shapes;
mod sizes;
mod viewed;

use std::io;
use std::process::ExitCode;

use bench::{Codecs, SelectError};
use contract::Selection;
use instructions::count_here;

/// Counts allocations of threads for the study, at the cost of two additions per block.
#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// A run that failed.
const FAILED: u8 = 1;
/// Invalid arguments.
const BAD_ARGUMENTS: u8 = 2;

/// Known commands, for the error message.
const COMMANDS: &str = "use `version`, `bench SELECTION` or `count SELECTION`; see peers/README.md";

/// Exit code, and a line for stderr.
struct Failure(u8, String);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["version"] => {
            println!("codecs {}", env!("CODEC_VERSIONS").replace(' ', ", ").replace('=', " "));
            Ok(())
        }
        ["bench", selection] => bench(selection),
        ["count", selection] => count(selection),
        [] => Err(Failure(BAD_ARGUMENTS, COMMANDS.to_owned())),
        [command, ..] => Err(Failure(BAD_ARGUMENTS, format!("unknown command `{command}`; {COMMANDS}"))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure(code, message)) => {
            eprintln!("{message}");
            ExitCode::from(code)
        }
    }
}

/// Responds to requests until the end of input.
fn bench(selection: &str) -> Result<(), Failure> {
    let codecs = parse_selection(selection)?;
    respond::serve(codecs, selection, io::stdin().lock(), io::stdout().lock())
        .map_err(|error| Failure(FAILED, error.to_string()))
}

/// Converts under callgrind, started by `bench`.
fn count(selection: &str) -> Result<(), Failure> {
    count_here(&mut parse_selection(selection)?).map_err(|reason| Failure(FAILED, reason))
}

fn parse_selection(selection: &str) -> Result<Codecs, Failure> {
    let selection: Selection = serde_json::from_str(selection)
        .map_err(|error| Failure(BAD_ARGUMENTS, format!("invalid codec selection: {error}")))?;
    Codecs::select(&selection).map_err(|error| {
        let code = if matches!(error, SelectError::ConversionError(_)) { FAILED } else { BAD_ARGUMENTS };
        Failure(code, error.to_string())
    })
}
