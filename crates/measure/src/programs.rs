//! Other programs that use CPU time during a measurement.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::kernel::TICK_MS;

/// Another program that used CPU time during a measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BusyProgram {
    /// Name of its process.
    pub name: String,
    /// CPUs that it kept busy on average: 1.0 is one CPU all the time.
    pub processors: f64,
}

/// Minimum average of busy CPUs for a program to be named.
const PROCESSORS_MIN: f64 = 0.05;

/// CPU time of all programs except this one and its descendants, since some moment.
#[derive(Debug)]
pub struct ProgramWatch {
    began: Instant,
    ticks: HashMap<u32, u64>,
}

/// A process in `/proc`.
struct ListedProcess {
    name: String,
    parent: u32,
    /// CPU time, including that of exited children.
    ticks: u64,
}

impl ProgramWatch {
    /// Starts watching.
    pub fn start() -> Self {
        let ticks = others().into_iter().map(|(pid, process)| (pid, process.ticks)).collect();
        Self { began: Instant::now(), ticks }
    }

    /// Returns the programs that were busy since then, busiest first. Processes with the same name are one program.
    pub fn busy(&self) -> Vec<BusyProgram> {
        let elapsed_s = self.began.elapsed().as_secs_f64().max(1e-3);
        let mut used: HashMap<String, u64> = HashMap::new();
        for (pid, process) in others() {
            let before = self.ticks.get(&pid).copied().unwrap_or(0);
            *used.entry(process.name).or_default() += process.ticks.saturating_sub(before);
        }
        let processors =
            |ticks: u64| thousandths(Duration::from_millis(TICK_MS * ticks).as_secs_f64() / elapsed_s);
        let all = used.into_iter().map(|(name, ticks)| BusyProgram { name, processors: processors(ticks) });
        let mut busy: Vec<BusyProgram> = all.filter(|program| program.processors >= PROCESSORS_MIN).collect();
        busy.sort_by(|a, b| b.processors.total_cmp(&a.processors).then_with(|| a.name.cmp(&b.name)));
        busy
    }
}

/// Rounds to three decimals, which JSON keeps exactly.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Returns all processes by PID, except this one, its descendants, and kernel threads.
fn others() -> HashMap<u32, ListedProcess> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let listed = pids.filter_map(|pid| {
        // The process may have exited since the listing.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, ListedProcess::in_stat(&stat)?))
    });
    let all: HashMap<u32, ListedProcess> = listed.collect();
    let own = std::process::id();
    let is_ours = |pid: u32| {
        let mut next = Some(pid);
        // At most as many steps as processes: an inconsistent listing may contain a cycle.
        (0..all.len()).any(|_| {
            let at = next;
            next = at.and_then(|pid| Some(all.get(&pid)?.parent));
            at == Some(own)
        })
    };
    let ours: Vec<u32> = all.keys().copied().filter(|&pid| is_ours(pid)).collect();
    let is_kernel = |process: &ListedProcess| process.parent == KTHREADD;
    all.into_iter().filter(|(pid, process)| !ours.contains(pid) && !is_kernel(process)).collect()
}

/// Parent of all kernel threads.
const KTHREADD: u32 = 2;

impl ListedProcess {
    /// Parses the fields 2, 4 and 14 to 17 of `/proc/PID/stat`.
    fn in_stat(stat: &str) -> Option<Self> {
        let (before, behind) = stat.rsplit_once(')')?;
        let (_, name) = before.split_once('(')?;
        let fields: Vec<&str> = behind.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let ticks = (11..15).map(number).sum::<Option<u64>>()?;
        Some(Self { name: name.to_owned(), parent: u32::try_from(number(1)?).ok()?, ticks })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_parent_and_cpu_time_of_a_process_are_parsed() {
        let stat = "7 (a) R (b)) S 5 7 7 0 -1 4194560 103 0 0 0 31 14 100 3 20 0 1 0 9 8 7";
        let process = ListedProcess::in_stat(stat).unwrap();
        assert_eq!((process.name.as_str(), process.parent, process.ticks), ("a) R (b)", 5, 148));
        assert!(ListedProcess::in_stat("7 (a) S 5").is_none());
    }

    #[test]
    fn own_process_and_children_are_not_counted_as_other_programs() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let others = others();
        assert!(!others.contains_key(&std::process::id()) && !others.contains_key(&child.id()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
