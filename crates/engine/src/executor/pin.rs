//! Keeping a thread on one processor.

use super::error::ExecutorError;

pub(super) fn pin_this_thread(cpu: usize) -> Result<(), ExecutorError> {
    affinity::set(cpu).map_err(|source| ExecutorError::Pin { cpu, source, allowed: allowed() })
}

/// The processor that this thread runs on at this moment, if the system reports it.
pub(crate) fn current_cpu() -> Option<usize> {
    affinity::current_cpu()
}

/// The processors that this thread may run on, as ranges; `unknown` if the system does not report them.
fn allowed() -> String {
    let Some(cpus) = affinity::allowed() else { return "unknown".to_owned() };
    let ranges = cpus.chunk_by(|one, next| one + 1 == *next).map(|range| match range {
        [first, .., last] => format!("{first}-{last}"),
        [only] => only.to_string(),
        [] => String::new(),
    });
    ranges.collect::<Vec<_>>().join(",")
}

/// The system's calls. libc is in each program that uses sockets; a crate with safe functions would be one more.
#[cfg(target_os = "linux")]
mod affinity {
    use std::{io, mem};

    /// Number of processors that a set can hold.
    const CPUS_MAX: usize = libc::CPU_SETSIZE as usize;

    fn empty() -> libc::cpu_set_t {
        // SAFETY: a set is an array of numbers, whose bits are its members.
        unsafe { mem::zeroed() }
    }

    pub(super) fn set(cpu: usize) -> io::Result<()> {
        if cpu >= CPUS_MAX {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let mut set = empty();
        // SAFETY: `cpu` is within the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        // SAFETY: the kernel reads as many bytes as the set has; 0 is the calling thread.
        match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    pub(super) fn allowed() -> Option<Vec<usize>> {
        let mut set = empty();
        // SAFETY: the kernel writes at most as many bytes as the set has; 0 is the calling thread.
        let outcome = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) };
        // SAFETY: all these are within the set.
        let is_allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
        (outcome == 0).then(|| (0..CPUS_MAX).filter(is_allowed).collect())
    }

    #[inline]
    pub(super) fn current_cpu() -> Option<usize> {
        // SAFETY: it takes nothing and returns a number; -1 is an error.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod affinity {
    use std::io;

    pub(super) fn set(_: usize) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn allowed() -> Option<Vec<usize>> {
        None
    }

    pub(super) fn current_cpu() -> Option<usize> {
        None
    }
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
