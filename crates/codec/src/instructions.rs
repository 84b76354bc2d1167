//! Counts instructions of conversions, with callgrind in a separate run of this program.
//!
//! callgrind counts within one function, and writes a file each time that its caller returns. One run of the program
//! therefore counts all lines, without start-up and shutdown.

use std::ffi::OsStr;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use crate::bench::Codecs;
use crate::contract::{InstructionsOf, Line};

/// Pattern of the function whose instructions are counted; the compiler appends a suffix to its name.
const COUNTED: &str = "thalweg_codec::instructions::counted*";
/// Pattern of the function whose return writes a file. It must differ from [`COUNTED`], because callgrind applies only
/// the last of two options for the same function.
const WRITTEN: &str = "thalweg_codec::instructions::line_written*";
/// Maximum counted conversions: each message of a kind once.
const CONVERSIONS_MAX: u64 = 64;
/// Maximum counted bytes, which means fewer large messages: callgrind is fifty times slower.
const BYTES_MAX: u64 = 256 << 10;
/// Name of callgrind's files.
const FILES: &str = "callgrind";

/// Error of counting instructions.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CountError {
    /// valgrind failed to start.
    #[error("failed to start valgrind: {0}")]
    ValgrindNotStarted(io::Error),
    /// callgrind failed.
    #[error("valgrind failed ({status}): {last_line}")]
    Failed {
        /// Exit status.
        status: String,
        /// Last line of its output.
        last_line: String,
    },
    /// The number of files does not match the lines.
    #[error(
        "callgrind counted {found} of {expected} lines; check that the program has the function’s symbol"
    )]
    Missing {
        /// Number of files with a count.
        found: usize,
        /// Number of lines.
        expected: usize,
    },
    /// A file cannot be read or written.
    #[error("failed to read callgrind’s files: {0}")]
    Io(#[from] io::Error),
}

/// Runs `program` with `arguments` under callgrind, with its files in `folder`. The program must call [`count_here`]
/// with the same codecs.
pub(crate) fn count_under_callgrind(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    codecs: &Codecs,
    folder: &Path,
) -> Result<Vec<InstructionsOf>, CountError> {
    let output = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind"])
        .arg(format!("--callgrind-out-file={}", folder.join(FILES).display()))
        .args([format!("--toggle-collect={COUNTED}"), format!("--dump-after={WRITTEN}")])
        .arg(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .map_err(CountError::ValgrindNotStarted)?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let last_line = words.lines().last().unwrap_or_default().to_owned();
        return Err(CountError::Failed { status: output.status.to_string(), last_line });
    }
    // The first file is `callgrind.1`.
    let count =
        |number: usize| fs::read_to_string(folder.join(format!("{FILES}.{number}"))).map(|it| total(&it));
    let (lines, mut counted) = (codecs.lines(), Vec::new());
    for (index, line) in lines.iter().enumerate() {
        match count(index + 1) {
            Ok(Some(total)) if total > 0 => {
                let instructions = total as f64 / conversions(codecs, line) as f64;
                counted.push(InstructionsOf { line: line.clone(), instructions });
            }
            _ => return Err(CountError::Missing { found: counted.len(), expected: lines.len() }),
        }
    }
    Ok(counted)
}

/// Runs the counted conversions of each line, in order.
pub(crate) fn count_here(codecs: &mut Codecs) -> Result<(), String> {
    for line in codecs.lines() {
        line_written(codecs, &line)?;
    }
    Ok(())
}

/// Runs the same conversions once before, uncounted, to grow buffers.
#[inline(never)]
fn line_written(codecs: &mut Codecs, line: &Line) -> Result<(), String> {
    let conversions = conversions(codecs, line);
    codecs.run(line, conversions)?;
    black_box(counted(codecs, black_box(line), conversions))
}

#[inline(never)]
fn counted(codecs: &mut Codecs, line: &Line, conversions: u64) -> Result<(), String> {
    black_box(codecs.run(black_box(line), black_box(conversions)))
}

/// Returns the number of counted conversions of a line.
fn conversions(codecs: &Codecs, line: &Line) -> u64 {
    let bytes = codecs.mean_bytes(line).max(1.0);
    ((BYTES_MAX as f64 / bytes) as u64).clamp(1, CONVERSIONS_MAX)
}

/// Parses `totals: 1234` or `summary: 1234`.
fn total(text: &str) -> Option<u64> {
    let mut counts = text.lines().filter_map(|line| {
        line.strip_prefix("totals:").or_else(|| line.strip_prefix("summary:"))?.trim().parse().ok()
    });
    counts.next_back()
}

#[cfg(test)]
mod tests {
    use super::total;

    #[test]
    fn count_is_parsed() {
        assert_eq!(total("events: Ir\n\nfn=(1) a\n1 5\n\ntotals: 1234\n"), Some(1234));
        assert_eq!(total("events: Ir\n"), None);
    }
}
