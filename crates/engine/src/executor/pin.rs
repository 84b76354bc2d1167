//! Keeping a thread on one processor.

use super::error::ExecutorError;

#[cfg(target_os = "linux")]
pub(super) fn pin_this_thread(cpu: usize) -> Result<(), ExecutorError> {
    use nix::sched::{CpuSet, sched_setaffinity};
    use nix::unistd::Pid;

    let mut set = CpuSet::new();
    // 0 is the calling thread.
    let pinned = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    pinned.map_err(|error| ExecutorError::Pin { cpu, source: error.into(), allowed: allowed() })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn pin_this_thread(cpu: usize) -> Result<(), ExecutorError> {
    let source = std::io::ErrorKind::Unsupported.into();
    Err(ExecutorError::Pin { cpu, source, allowed: "all, on this system".to_owned() })
}

/// The processor that this thread runs on at this moment, if the system reports it.
#[cfg(target_os = "linux")]
pub(crate) fn current_cpu() -> Option<usize> {
    nix::sched::sched_getcpu().ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn current_cpu() -> Option<usize> {
    None
}

/// The processors that this thread may run on, as ranges.
#[cfg(target_os = "linux")]
fn allowed() -> String {
    use nix::sched::{CpuSet, sched_getaffinity};
    use nix::unistd::Pid;

    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return "unknown".to_owned() };
    let cpus: Vec<usize> = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect();
    let ranges = cpus.chunk_by(|one, next| one + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn missing_processor_is_named() {
        let check = |cpu: usize| {
            let error = pin_this_thread(cpu).unwrap_err().to_string();
            assert!(error.contains(&format!("CPU {cpu}: ")), "{error}");
            assert!(error.contains(&format!("(CPUs of this process: {}", allowed())), "{error}");
        };
        // Beyond what the kernel's mask holds, and beyond what this machine has.
        check(1_000_000);
        check(1023);
    }
}
