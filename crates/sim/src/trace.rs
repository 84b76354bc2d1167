//! The steps of a run.

use std::fmt::Debug;
use std::time::Duration;

/// The steps of a run: their hash, and on request a line for each.
#[derive(Debug, Default)]
pub struct Trace {
    hash: u64,
    steps: u64,
    printed: bool,
}

impl Trace {
    /// Creates a trace that is only hashed.
    pub fn quiet() -> Trace {
        Trace::default()
    }

    /// Creates a trace that is also printed to stderr.
    pub fn printed() -> Trace {
        Trace { printed: true, ..Trace::default() }
    }

    /// Records one step: time, side, action, stream or call, and a number.
    pub fn note(
        &mut self,
        at: Duration,
        side: impl Debug + Copy + Into<u64>,
        what: &str,
        which: u64,
        number: u64,
    ) {
        self.steps += 1;
        for word in [at.as_nanos() as u64, side.into(), which, number] {
            self.mix(word);
        }
        what.bytes().for_each(|byte| self.mix(u64::from(byte)));
        if self.printed {
            eprintln!("{:>12.6} {side:?} {what} #{which} {number}", at.as_secs_f64());
        }
    }

    /// Returns the trace's hash; equal hashes mean equal runs.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn mix(&mut self, word: u64) {
        self.hash = (self.hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}
