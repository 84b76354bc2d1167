//! Counts with callgrind the work within given functions.

use crate::failure::Result;
use crate::job::Job;
use crate::workspace;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) instructions: u64,
    /// Allocations, including reallocations.
    pub(super) allocations: u64,
}

/// A run takes about a second.
const LIMIT_MINUTES: u64 = 5;

impl Counts {
    /// Runs `job` and counts the work within `functions`, given by their paths; they must not call each other. No other
    /// run may use the same `name` at the same time.
    pub(super) fn of(job: Job, name: &str, functions: &[&str]) -> Result<Self> {
        let file = workspace::output().join(format!("costs-{name}.callgrind"));
        // The star matches the suffix that compilers append.
        let toggles: Vec<String> =
            functions.iter().map(|function| format!("--toggle-collect={function}*")).collect();
        let wrapper = format!(
            "valgrind --quiet --tool=callgrind --callgrind-out-file={} {}",
            file.display(),
            toggles.join(" ")
        );
        job.under(&wrapper).minutes(LIMIT_MINUTES).run()?;
        let counts = parse(&std::fs::read_to_string(&file)?);
        let counted = counts.filter(|counts| counts.instructions > 0);
        counted.ok_or_else(|| {
            failed!(
                "callgrind counted nothing within {}; check that it was not renamed",
                functions.join(", ")
            )
        })
    }
}

/// Allocator functions of a Rust program.
const ALLOCATORS: &[&str] = &["malloc", "calloc", "realloc", "posix_memalign", "aligned_alloc"];

/// Reads callgrind's output. A call is a line `cfn=(ID) NAME`, with the name only at its first occurrence, and a line
/// `calls=COUNT POSITION`. A function itself begins with `fn=(ID) NAME`. The file ends with `totals: COUNT`.
fn parse(text: &str) -> Option<Counts> {
    let mut allocators = Vec::new();
    let (mut called, mut allocations, mut instructions) = ("", 0, None);
    for line in text.lines() {
        if let Some(function) = line.strip_prefix("cfn=").or_else(|| line.strip_prefix("fn=")) {
            let (id, name) = function.split_once(' ').unwrap_or((function, ""));
            if ALLOCATORS.contains(&name) {
                allocators.push(id);
            }
            called = id;
        } else if let Some(call) = line.strip_prefix("calls=") {
            if allocators.contains(&called) {
                allocations += call.split(' ').next()?.parse::<u64>().ok()?;
            }
        } else if let Some(total) = line.strip_prefix("totals:") {
            instructions = total.trim().parse().ok();
        }
    }
    Some(Counts { instructions: instructions?, allocations })
}

#[cfg(test)]
mod tests {
    use super::{Counts, parse};

    #[test]
    fn allocator_calls_are_added_up() {
        let text = "events: Ir\n\nfn=(1) costs::server_turn\n1 5\ncfn=(2) malloc\ncalls=3 0\n1 90\ncfn=(3) memcpy\n\
                    calls=7 0\n1 70\n\nfn=(2)\n1 90\n\nfn=(4) grow\ncfn=(5) realloc\ncalls=2 0\n1 9\ncfn=(2)\n\
                    calls=1 0\n1 9\n\ntotals: 174\n";
        assert_eq!(parse(text), Some(Counts { instructions: 174, allocations: 6 }));
        assert_eq!(parse("events: Ir\n"), None);
    }
}
