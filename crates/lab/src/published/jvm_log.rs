//! Parses pauses and compilations from JVM logs, to relate them to slow calls by time.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Prefix of log files in a run's folder.
const PREFIX: &str = "jvm-";

/// Returns JVM options that log to files in `folder`; the JVM replaces `%p` with its process id. `None` if the
/// folder's path contains a character that the options cannot express, such as a space or a colon.
pub(super) fn java_options(folder: &Path) -> Option<String> {
    let file = folder.join(format!("{PREFIX}%p.log"));
    let folder = folder.to_str()?;
    let is_plain = !folder.contains(|c: char| c.is_whitespace() || [':', '%', '"', '\''].contains(&c));
    let options = "gc,safepoint,jit+compilation=debug";
    is_plain.then(|| format!("-Xlog:{options}:file={}:utctime,tags:filecount=0", file.display()))
}

/// Logged events in order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JvmLog {
    pauses: Vec<Pause>,
    /// Times at which methods were compiled.
    compiled: Vec<SystemTime>,
}

/// A pause of the whole program.
#[derive(Clone, Debug, PartialEq)]
struct Pause {
    /// End of the pause.
    ended: SystemTime,
    took: Duration,
}

impl Pause {
    /// Returns how much of the pause lies within the span.
    fn within(&self, from: SystemTime, to: SystemTime) -> Duration {
        let began = (self.ended - self.took).max(from);
        self.ended.min(to).duration_since(began).unwrap_or_default()
    }
}

/// JVM activity within a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Meanwhile {
    /// Total paused time.
    pub(crate) paused: Duration,
    pub(crate) pauses: usize,
    /// Number of methods whose compiled code was installed.
    pub(crate) compiled: usize,
}

impl JvmLog {
    /// Reads the log files of a run's folder.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut log = Self::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(".log") {
                log.add(&fs::read_to_string(entry.path()).unwrap_or_default());
            }
        }
        log.pauses.sort_by_key(|pause| pause.ended);
        log.compiled.sort_unstable();
        log
    }

    /// Parses a log.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        let mut log = Self::default();
        log.add(text);
        log
    }

    fn add(&mut self, text: &str) {
        for line in text.lines() {
            let Some((time, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) else {
                continue;
            };
            let Some(at) = time_of(time) else { continue };
            if rest.contains("[safepoint") {
                // `Safepoint "G1CollectForAllocation", …, Total: 3181525 ns`
                let total =
                    rest.rsplit_once("Total:").and_then(|(_, total)| total.trim().strip_suffix(" ns"));
                if let Some(ns) = total.and_then(|ns| ns.trim().parse().ok()) {
                    self.pauses.push(Pause { ended: at, took: Duration::from_nanos(ns) });
                }
            } else if rest.contains("[jit,compilation") {
                self.compiled.push(at);
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pauses.is_empty() && self.compiled.is_empty()
    }

    /// Returns the activity between two times; log times are exact to 1 ms.
    pub(crate) fn within(&self, from: SystemTime, to: SystemTime) -> Meanwhile {
        const GRAIN: Duration = Duration::from_millis(1);
        let (from, to) = (from - GRAIN, to + GRAIN);
        let is_within = |pause: &&Pause| pause.ended >= from && pause.ended - pause.took <= to;
        let pauses: Vec<&Pause> = self.pauses.iter().filter(is_within).collect();
        Meanwhile {
            paused: pauses.iter().map(|pause| pause.within(from, to)).sum(),
            pauses: pauses.len(),
            compiled: self.compiled.iter().filter(|&&at| at >= from && at <= to).count(),
        }
    }
}

/// Parses a time such as `2026-11-26T10:00:00.123+0000`. With `utctime` the offset is always `+0000`.
fn time_of(text: &str) -> Option<SystemTime> {
    humantime::parse_rfc3339(&format!("{}Z", text.strip_suffix("+0000")?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jvm_events_within_a_span_are_found() {
        let log = JvmLog::of(
            "[2026-11-26T10:00:00.010+0000][jit,compilation] 1201 3 java.lang.String::hashCode (60 bytes)\n\
             [2026-11-26T10:00:00.050+0000][gc             ] GC(0) Pause Young (Normal) 20M->3M(256M) 12.5ms\n\
             [2026-11-26T10:00:00.050+0000][safepoint      ] Safepoint \"G1CollectForAllocation\", Time since last: 1 \
             ns, Reaching safepoint: 2 ns, CellConditions safepoint: 12999000 ns, Total: 13000000 ns\n\
             no line of a log\n[x] y\n",
        );
        let at = |ms| humantime::parse_rfc3339("2026-11-26T10:00:00Z").unwrap() + Duration::from_millis(ms);
        let check = |from, to, paused_ms, pauses, compiled| {
            let expected = Meanwhile { paused: Duration::from_millis(paused_ms), pauses, compiled };
            assert_eq!(log.within(at(from), at(to)), expected, "{from} to {to}");
        };
        check(0, 8, 0, 0, 0);
        check(5, 20, 0, 0, 1);
        // Counts the part within the span, extended by a millisecond at either end.
        check(40, 45, 7, 1, 0);
        check(0, 60, 13, 1, 1);
        check(52, 60, 0, 0, 0);
    }

    #[test]
    fn java_options_name_one_log_file_per_process() {
        let options = java_options(Path::new("/tmp/run")).unwrap();
        assert!(options.contains("file=/tmp/run/jvm-%p.log"), "{options}");
        assert_eq!(java_options(Path::new("/tmp/a run")), None);
        assert_eq!(java_options(Path::new("/tmp/a:run")), None);
    }
}
