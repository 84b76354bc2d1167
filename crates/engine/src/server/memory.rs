//! Default memory budget of a server.

use std::fs;

/// Inverse of the fraction of the process's memory limit.
const SHARE: usize = 4;
/// Memory limit in bytes assumed if the system reports none.
const ASSUMED: usize = 4 << 30;

/// Returns a quarter of the process's memory limit in bytes: the machine's memory or its control group's limit.
pub(super) fn default_max() -> usize {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    // Control groups v2, then v1.
    let group = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = group.into_iter().find_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    share_of(machine, group)
}

fn share_of(machine: Option<usize>, group: Option<usize>) -> usize {
    machine.into_iter().chain(group).min().unwrap_or(ASSUMED) / SHARE
}

/// Parses `MemTotal:       24576000 kB`.
fn total_of(meminfo: &str) -> Option<usize> {
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: usize = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_of_the_smallest_limit_is_used() {
        let check = |machine, group, expected| assert_eq!(share_of(machine, group), expected);
        check(Some(8 << 30), None, 2 << 30);
        check(Some(8 << 30), Some(1 << 30), 256 << 20);
        // A control group without a limit reports more than any machine has.
        check(Some(8 << 30), Some(usize::MAX), 2 << 30);
        check(None, None, 1 << 30);
        assert_eq!(total_of("MemFree: 1 kB\nMemTotal:       2048 kB\n"), Some(2 << 20));
        assert_eq!(total_of("nothing of the kind"), None);
    }
}
