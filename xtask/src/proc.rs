//! Figures of processes and of the kernel, from `/proc` (proc(5)).

use std::fs;
use std::time::Duration;

use crate::failure::Result;

/// Reads a line `NAME:   123 kB` of the file at `path`, in bytes.
pub(crate) fn bytes(path: &str, name: &str) -> Result<f64> {
    kibibytes(&fs::read_to_string(path)?, name).ok_or_else(|| failed!("{path} has no {name}"))
}

/// Memory of a process in bytes: a line of its `status`, such as `VmRSS`.
pub(crate) fn memory(process: u32, name: &str) -> Result<f64> {
    bytes(&format!("/proc/{process}/status"), name)
}

fn kibibytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    Some(1024.0 * line.split_whitespace().next()?.parse::<f64>().ok()?)
}

/// CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTime {
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// CPU time of children that were waited for, and of their children.
    pub(crate) children_user: Duration,
    pub(crate) children_system: Duration,
}

/// CPU time of a process, by its id or `self`.
pub(crate) fn cpu_time(process: &str) -> Result<CpuTime> {
    let path = format!("/proc/{process}/stat");
    times(&fs::read_to_string(&path)?).ok_or_else(|| failed!("{path} has no times"))
}

/// Fields 14 to 17, in hundredths of a second. The last bracket ends the command's name, which may contain any
/// character.
fn times(stat: &str) -> Option<CpuTime> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || Some(Duration::from_millis(10 * fields.next()?.parse::<u64>().ok()?));
    Some(CpuTime { user: next()?, system: next()?, children_user: next()?, children_system: next()? })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{CpuTime, kibibytes, times};

    #[test]
    fn proc_lines_are_parsed() {
        let text = "00400000-7ffc0000 ---p 00000000 00:00 0 [rollup]\nRss:     2048 kB\nPss:     1024 kB\n\
                    Pss_Anon:  1 kB\n";
        assert_eq!(kibibytes(text, "Pss"), Some(1024.0 * 1024.0));
        assert_eq!(kibibytes(text, "Swap"), None);
    }

    #[test]
    fn child_times_follow_process_times() {
        let stat = "123 (a) b) S 1 123 123 0 -1 4194304 1 2 3 4 10 20 300 400 20 0 1 0";
        let [user, system, children_user, children_system] =
            [100, 200, 3000, 4000].map(Duration::from_millis);
        assert_eq!(times(stat), Some(CpuTime { user, system, children_user, children_system }));
        assert_eq!(times("123 (a) S 1"), None);
    }
}
