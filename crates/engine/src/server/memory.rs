//! How much memory a server may have peers make it hold, unless it is told.

use std::fs;

/// One part in so many of what the process may use.
const SHARE: usize = 4;
/// What is assumed where the system does not say, in bytes.
const ASSUMED: usize = 4 << 30;

/// A quarter of what this process may use, in bytes: the machine's memory, or what its control group allows.
pub(super) fn default_max() -> usize {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    // Version 2 of control groups, then version 1.
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    share_of(machine, group)
}

fn share_of(machine: Option<usize>, group: Option<usize>) -> usize {
    machine.into_iter().chain(group).min().unwrap_or(ASSUMED) / SHARE
}

/// `MemTotal:       24576000 kB`.
fn total_of(meminfo: &str) -> Option<usize> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_least_is_taken() {
        let check = |machine, group, expected| assert_eq!(share_of(machine, group), expected);
        check(Some(8 << 30), None, 2 << 30);
        check(Some(8 << 30), Some(1 << 30), 256 << 20);
        // A control group without a limit says a number that no machine has.
        check(Some(8 << 30), Some(usize::MAX), 2 << 30);
        check(None, None, 1 << 30);
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total_of("nothing of the kind"), None);
    }
}
