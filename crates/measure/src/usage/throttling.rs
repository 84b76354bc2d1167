//! Time that a CPU quota throttled a process, from the `cpu.stat` of its cgroup.

use std::fs;
use std::time::Duration;

/// Returns how long quotas have throttled the cgroup of this process since it was created, summed over CPUs. Returns 0
/// without a quota, or if the kernel does not report it.
pub(super) fn throttled(pid: u32) -> Duration {
    let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    let stats = groups.lines().flat_map(stat_files).filter_map(|path| fs::read_to_string(path).ok());
    stats.filter_map(|stat| throttled_in(&stat)).max().unwrap_or_default()
}

/// Returns possible paths of `cpu.stat` for a line of `/proc/PID/cgroup`, including the parent groups, whose quotas
/// apply, too. A line is `0::/path` (version 2) or `3:cpu,cpuacct:/path` (version 1).
fn stat_files(line: &str) -> Vec<String> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { return Vec::new() };
    let mount = match controllers {
        "" => "/sys/fs/cgroup".to_owned(),
        _ if controllers.split(',').any(|controller| controller == "cpu") => {
            format!("/sys/fs/cgroup/{controllers}")
        }
        _ => return Vec::new(),
    };
    let mut groups = vec![path.trim_end_matches('/')];
    while let Some((around, _)) = groups.last().and_then(|group| group.rsplit_once('/')) {
        groups.push(around);
    }
    groups.into_iter().map(|group| format!("{mount}{group}/cpu.stat")).collect()
}

/// Reads the line `throttled_usec 1503` (version 2) or `throttled_time 1503000` (version 1, ns).
fn throttled_in(stat: &str) -> Option<Duration> {
    stat.lines().find_map(|line| match line.split_once(' ')? {
        ("throttled_usec", time) => time.parse().ok().map(Duration::from_micros),
        ("throttled_time", time) => time.parse().ok().map(Duration::from_nanos),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_of_both_versions_and_their_parents_are_read() {
        let check = |line: &str, expected: &[&str]| assert_eq!(stat_files(line), expected, "{line}");
        check(
            "0::/user.slice/a:b",
            &[
                "/sys/fs/cgroup/user.slice/a:b/cpu.stat",
                "/sys/fs/cgroup/user.slice/cpu.stat",
                "/sys/fs/cgroup/cpu.stat",
            ],
        );
        check("0::/", &["/sys/fs/cgroup/cpu.stat"]);
        check("3:cpu,cpuacct:/", &["/sys/fs/cgroup/cpu,cpuacct/cpu.stat"]);
        check("4:memory:/a", &[]);
        check("", &[]);
    }

    #[test]
    fn throttled_time_of_both_versions_is_parsed() {
        let check = |stat: &str, expected| assert_eq!(throttled_in(stat), expected, "{stat}");
        check("usage_usec 9\nnr_throttled 2\nthrottled_usec 1503\n", Some(Duration::from_micros(1503)));
        check("nr_periods 246\nnr_throttled 147\nthrottled_time 9843\n", Some(Duration::from_nanos(9843)));
        check("usage_usec 9\n", None);
    }
}
